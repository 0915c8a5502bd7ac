package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Limits for a client. They are low because nothing is uploaded and answers are short.
const (
	headerTimeout   = 5 * time.Second
	answerTimeout   = 30 * time.Second
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = time.Second
	maxHeaderBytes  = 16 << 10
)

// Server serves the state of a load at an address of its own.
type Server struct {
	listener net.Listener
	web      *http.Server
	end      context.CancelFunc // ends requests that wait for the load
}

// Listen listens at the address; port 0 means a free port. Clients wait until Serve runs.
func Listen(address string, load Load) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	return &Server{
		listener: listener,
		end:      end,
		web: &http.Server{
			Handler:     onlyKnownHosts(address, Handler(load)),
			BaseContext: func(net.Listener) context.Context { return ctx },
			// Mistakes of clients do not belong in the log of the load.
			ErrorLog:          log.New(io.Discard, "", 0),
			ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout,
			MaxHeaderBytes: maxHeaderBytes,
		},
	}, nil
}

// URL returns the address of the front page for this machine, as a wildcard address cannot be connected to.
func (s *Server) URL() string {
	address := s.listener.Addr().String()
	if a, ok := s.listener.Addr().(*net.TCPAddr); ok && a.IP.IsUnspecified() {
		address = fmt.Sprintf("127.0.0.1:%d", a.Port)
	}
	return fmt.Sprintf("http://%s/", address)
}

// Loopback reports whether only programs on this machine can reach the server.
func (s *Server) Loopback() bool {
	a, ok := s.listener.Addr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

// Serve answers requests until Close is called, and then returns nil.
func (s *Server) Serve() error {
	if err := s.web.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the status on %s: %w", s.listener.Addr(), err)
	}
	return nil
}

// Close gives requests in flight a moment to finish, and releases the address. Serve need not have run.
func (s *Server) Close() {
	s.end()
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if s.web.Shutdown(ctx) != nil {
		_ = s.web.Close() // cut off clients that are still reading
	}
	_ = s.listener.Close() // already closed if Serve has run
}

// onlyKnownHosts refuses foreign host names, with which a web page could read the status through a browser.
func onlyKnownHosts(listen string, next http.Handler) http.Handler {
	own := hostOf(listen)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r.Host)
		_, err := netip.ParseAddr(host)
		if err != nil && host != "" && host != own && host != "localhost" && !strings.HasSuffix(host, ".localhost") {
			http.Error(w, "the Host of the request is not an address, localhost or the listener's name", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOf returns the host of an address, without its port and in lower case.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(address, "[]"), "."))
}
