package server

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"

	"example.com/tsimport/engine/wire"
)

// instancesDir is the folder within a store that holds a store for each further instance.
const instancesDir = "instances"

// maxInstances limits the instances that AnyCredentials creates, because each has its own store.
const maxInstances = 64

// instances holds the servers of an account's further instances, with their own tables but the same faults and clock.
type instances struct {
	mu  sync.Mutex
	dir string
	of  map[string]*Server
}

// instanceOf returns the server of the instance that a request names, or nil if there is none or it cannot be opened.
func (s *Server) instanceOf(h http.Header) *Server {
	name := h.Get(wire.HeaderInstance)
	if name == s.o.Instance || s.o.AnyCredentials && !validInstance(name) {
		return s
	}
	more := &s.instances
	more.mu.Lock()
	defer more.mu.Unlock()
	if of := more.of[name]; of != nil || !s.o.AnyCredentials {
		return of
	}
	err := fmt.Errorf("the server already has %d further instances, the maximum", len(more.of))
	var of *Server
	if len(more.of) < maxInstances {
		of, err = s.openInstance(name)
	}
	if err != nil {
		s.o.Log.Printf("open instance %s: %v", name, err)
	}
	return of
}

// openInstance opens the store of a further instance. The caller holds s.instances.mu, or has not yet published s.
func (s *Server) openInstance(name string) (*Server, error) {
	o := s.o
	o.Instance, o.More, o.AnyCredentials = name, nil, false
	of, err := Open(filepath.Join(s.instances.dir, instancesDir, name), o)
	if err != nil {
		return nil, err
	}
	of.o.AnyCredentials = s.o.AnyCredentials
	of.ahead.Store(s.ahead.Load())
	of.SetFaults(s.Faults())
	if s.instances.of == nil {
		s.instances.of = map[string]*Server{}
	}
	s.instances.of[name] = of
	return of, nil
}

func (s *Server) further(do func(*Server) error) error {
	s.instances.mu.Lock()
	defer s.instances.mu.Unlock()
	var errs []error
	for _, of := range s.instances.of {
		errs = append(errs, do(of))
	}
	return errors.Join(errs...)
}
