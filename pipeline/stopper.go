package pipeline

import "context"

// stopper stops a load early. Only the dispatcher's goroutine calls stop; any goroutine may wait for ended.
type stopper struct {
	cause    error           // why no further batch is cut; nil while the load continues
	ended    context.Context // ends when sending must stop
	end      context.CancelFunc
	stopRead func()
}

func newStopper(stopRead func()) *stopper {
	s := &stopper{stopRead: stopRead}
	s.ended, s.end = context.WithCancel(context.Background())
	return s
}

// stop stops reading and cutting. Only the first cause is kept.
func (s *stopper) stop(cause error) {
	if s.cause == nil {
		s.cause = cause
	}
	s.end()
	s.stopRead()
}

func (s *stopper) stopped() bool { return s.cause != nil }
