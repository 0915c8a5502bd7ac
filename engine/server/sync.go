package server

import "errors"

// Sync returns when everything that was acknowledged survives a crash.
func (s *Server) Sync() error {
	if !s.begin() {
		return errors.New("the server is closed")
	}
	defer s.serving.Done()
	return s.store.Sync()
}
