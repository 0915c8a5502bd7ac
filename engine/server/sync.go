package server

// Sync returns when everything that was acknowledged survives a crash.
func (s *Server) Sync() error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	return s.store.Sync()
}
