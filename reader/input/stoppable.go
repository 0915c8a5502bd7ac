package input

import (
	"context"
	"io"
)

// stoppable makes each read in a goroutine, into a buffer of its own: a read of a terminal or a pipe cannot be broken off.
// The last one stays until the process ends or data comes.
type stoppable struct {
	ctx     context.Context
	r       io.Reader
	buf     []byte
	rest    []byte // of buf, not yet delivered
	err     error  // after rest
	pending chan readResult
}

type readResult struct {
	n   int
	err error
}

// Stoppable returns a reader of r whose reads end with ctx, with its cause as the error. It may read ahead of what is asked
// for, and one read of r may be in progress when ctx has ended: r is the reader's alone from then on.
func Stoppable(ctx context.Context, r io.Reader) io.Reader {
	return &stoppable{ctx: ctx, r: r, buf: make([]byte, 256<<10), pending: make(chan readResult, 1)}
}

func (s *stoppable) Read(p []byte) (int, error) {
	for len(s.rest) == 0 && s.err == nil {
		go func() {
			n, err := s.r.Read(s.buf)
			s.pending <- readResult{n, err}
		}()
		select {
		case res := <-s.pending:
			s.rest, s.err = s.buf[:res.n], res.err
		case <-s.ctx.Done():
			s.err = context.Cause(s.ctx)
		}
	}
	if len(s.rest) > 0 {
		n := copy(p, s.rest)
		s.rest = s.rest[n:]
		return n, nil
	}
	return 0, s.err
}
