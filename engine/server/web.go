package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Limits limits the resources that clients use over a port. A zero field means DefaultLimits's value.
type Limits struct {
	Connections   int           // maximum; beyond it, idle ones and those without a known key are closed
	HeaderBytes   int           // of a request's line and headers together
	HeaderTimeout time.Duration // from a request's first byte, or the connection's start, to the end of its headers
	ReadTimeout   time.Duration // likewise, to the end of its body
	WriteTimeout  time.Duration // from the end of the headers to the last byte of the answer
	IdleTimeout   time.Duration // between two requests on a connection
	Grace         time.Duration // for requests in flight when the server stops
	BodyBytes     int64         // of all bodies in memory together
	BodyWait      time.Duration // wait for a share of BodyBytes before a request is refused

	TLS *tls.Config // nil for plain HTTP
}

// serving holds a listener's limits and its budget for bodies.
type serving struct {
	Limits
	bodies *bodyBudget
}

// limitsKey is the key of *serving in a request's context.
type limitsKey struct{}

// DefaultLimits suit one machine. They also limit memory: bodies share BodyBytes; an answer of 5 MB takes 10 MB.
var DefaultLimits = Limits{
	Connections:   512,
	HeaderBytes:   64 << 10,
	HeaderTimeout: 10 * time.Second,
	ReadTimeout:   time.Minute,
	WriteTimeout:  3 * time.Minute,
	IdleTimeout:   2 * time.Minute,
	Grace:         30 * time.Second,
	BodyBytes:     256 << 20,
	BodyWait:      10 * time.Second,
}

// filled returns the limits with defaults instead of zeros.
func (l Limits) filled() Limits {
	d := DefaultLimits
	l.Connections = cmp.Or(l.Connections, d.Connections)
	l.HeaderBytes = cmp.Or(l.HeaderBytes, d.HeaderBytes)
	l.BodyBytes = cmp.Or(l.BodyBytes, d.BodyBytes)
	l.HeaderTimeout = cmp.Or(l.HeaderTimeout, d.HeaderTimeout)
	l.ReadTimeout = cmp.Or(l.ReadTimeout, d.ReadTimeout)
	l.WriteTimeout = cmp.Or(l.WriteTimeout, d.WriteTimeout)
	l.IdleTimeout = cmp.Or(l.IdleTimeout, d.IdleTimeout)
	l.Grace = cmp.Or(l.Grace, d.Grace)
	l.BodyWait = cmp.Or(l.BodyWait, d.BodyWait)
	return l
}

// ServeListener answers requests at a listener until ctx is done. Then it closes the listener, gives requests in flight
// Limits.Grace to finish, and cuts the rest. It does not close the store.
func (s *Server) ServeListener(ctx context.Context, listener net.Listener, limits Limits) error {
	limits = limits.filled()
	under := &serving{limits, newBodyBudget(limits.BodyBytes, limits.BodyWait)}
	limited := newConnectionLimit(listener, limits.Connections, s.o.Log)
	web := &http.Server{
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.Background(), limitsKey{}, under)
		},
		ConnContext:       limited.context,
		ConnState:         limited.state,
		Handler:           s,
		ErrorLog:          s.o.Log,
		MaxHeaderBytes:    limits.HeaderBytes,
		ReadHeaderTimeout: limits.HeaderTimeout,
		ReadTimeout:       limits.ReadTimeout,
		WriteTimeout:      limits.WriteTimeout,
		IdleTimeout:       limits.IdleTimeout,

		DisableGeneralOptionsHandler: true, // "OPTIONS *" is not an operation, either
	}
	failed := make(chan error, 1)
	var from net.Listener = limited
	if limits.TLS != nil {
		from = tls.NewListener(limited, limits.TLS)
	}
	go func() { failed <- web.Serve(from) }()
	select {
	case err := <-failed:
		web.Close()
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.Grace)
	defer cancel()
	err := web.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		s.o.Log.Printf("requests were still in flight after %v; their connections are cut", limits.Grace)
		err = web.Close()
	}
	if err != nil {
		return fmt.Errorf("finish the requests in flight: %w", err)
	}
	return nil
}
