package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/engine/store"
)

// The defaults of a server and its clients. They are not secret, and only guard a local store.
const (
	DefaultInstance        = "tsimport"
	DefaultAccessKeyID     = "tsimport-local"
	DefaultAccessKeySecret = "tsimport-local-secret"
)

// DefaultThroughputInterval is the default of Options.ThroughputInterval, and the service's.
const DefaultThroughputInterval = 2 * time.Minute

// Options configures a server. The zero value has the built-in access key and no simulation.
type Options struct {
	Instance, AccessKeyID, AccessKeySecret string // "" means the defaults above

	More []string // further instances of the account, each with its own tables

	Hosts []string // host names besides localhost, in lower case, that clients may use with the built-in secret

	// AnyCredentials accepts any access key, secret and instance. Each instance has its own tables.
	AnyCredentials bool
	// IgnoreStreams accepts tables with a stream and describes the stream, but refuses requests that read it.
	IgnoreStreams bool
	// NoAdmin hides the paths under /_engine/ from network clients.
	NoAdmin bool

	NoSync   bool             // does not sync acknowledged writes
	ReadOnly bool             // opens the store for reading only, and refuses writes
	InMemory bool             // keeps the store in memory, and ignores the directory
	FS       vfs.FS           // nil means the operating system's; tests can simulate a power failure
	Now      func() time.Time // nil means time.Now; see Advance for the clock for data
	Faults   *faults.Plan     // nil means none
	Log      *log.Logger      // for errors of the engine itself; nil means the standard logger

	// ThroughputInterval is the minimum time between changes of reserved throughput; 0 means the default, -1 none.
	ThroughputInterval time.Duration
	MaxTables          int // quota of tables, 64 in the service; 0 means none
	TableOps           int // limit of table operations in any second, 10 in the service; 0 means none

	// InstanceUnits limits write units per second of all tables. The excess gets OTSFlowControl. 0 means no limit.
	InstanceUnits float64

	Simulation *Simulation // of all tables; nil means none. Sim can change it later
}

// Server is an open store and the account that may use it. It is safe for concurrent use.
type Server struct {
	store *store.Store
	o     Options
	plan  atomic.Pointer[faults.Plan]
	sim   *Simulator

	instances instances

	lastPlan atomic.Pointer[faults.Plan] // keeps the counts of a plan that has ended
	ids      requestIDs
	verify   keyCache
	tableOps opsLimit
	instance *sim.Instance // nil means no limit
	ahead    atomic.Int64  // nanoseconds that the clock for data is ahead of o.Now

	mu      sync.Mutex     // guards closing and the admission of requests
	serving sync.WaitGroup // requests and late applications
	closing chan struct{}  // closed by Close
}

// IsStore reports whether a folder contains a store.
func IsStore(dir string) bool { return store.IsStore(dir) }

// Open opens the store in dir. It creates a missing store unless ReadOnly is set.
func Open(dir string, o Options) (*Server, error) {
	o.ThroughputInterval = cmp.Or(o.ThroughputInterval, DefaultThroughputInterval)
	s := newServer(o)
	st, err := store.Open(dir, store.Options{
		NoSync: o.NoSync, ReadOnly: o.ReadOnly, InMemory: o.InMemory, FS: o.FS, Now: s.Now,
		ThroughputInterval: max(0, o.ThroughputInterval), MaxTables: o.MaxTables,
	})
	if err != nil {
		return nil, err
	}
	s.store, s.instances.dir = st, dir
	if o.Simulation != nil {
		if err = s.sim.Simulate("", *o.Simulation); err != nil {
			err = fmt.Errorf("simulate: %w", err)
		}
	}
	for _, name := range o.More {
		if err == nil && name != s.o.Instance && s.instances.of[name] == nil {
			_, err = s.openInstance(name)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func newServer(o Options) *Server {
	o.Instance = cmp.Or(o.Instance, DefaultInstance)
	o.AccessKeyID = cmp.Or(o.AccessKeyID, DefaultAccessKeyID)
	o.AccessKeySecret = cmp.Or(o.AccessKeySecret, DefaultAccessKeySecret)
	o.Log = cmp.Or(o.Log, log.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{o: o, closing: make(chan struct{})}
	s.tableOps.perSecond = o.TableOps
	if o.InstanceUnits > 0 {
		s.instance = sim.NewInstance(o.InstanceUnits, o.Now())
	}
	s.SetFaults(o.Faults)
	s.sim = &Simulator{server: s, tables: map[*store.Table]*simTable{}}
	s.ids.start(o.Now())
	return s
}

// SetFaults replaces the plan of faults; nil means none.
func (s *Server) SetFaults(p *faults.Plan) {
	_ = s.further(func(of *Server) error { of.SetFaults(p); return nil })
	s.plan.Store(p)
	if p != nil {
		s.lastPlan.Store(p)
	}
}

func (s *Server) HasTable(name string) bool { return s.store.Table([]byte(name)) != nil }

// DropTable deletes a table, as DeleteTable does.
func (s *Server) DropTable(ctx context.Context, name string) error {
	t := s.store.Table([]byte(name))
	if err := s.store.DeleteTable(ctx, []byte(name)); err != nil {
		return fmt.Errorf("delete table %s: %s", name, err.Error())
	}
	s.sim.forget(t)
	return nil
}

// Faults returns the current plan of faults, or nil if there is none.
func (s *Server) Faults() *faults.Plan { return s.plan.Load() }

// begin admits a request. It returns false after Close.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closing:
		return false
	default:
		s.serving.Add(1)
		return true
	}
}

// Close refuses new requests, waits for running ones, applies late ones and closes the store. It may be called again.
func (s *Server) Close() error {
	s.mu.Lock()
	select {
	case <-s.closing:
		s.mu.Unlock()
		s.serving.Wait()
		return nil
	default:
	}
	close(s.closing)
	s.mu.Unlock()
	s.serving.Wait()
	return errors.Join(s.further((*Server).Close), s.store.Close())
}

// applyLate calls apply after the delay, or at once if the server closes, unless the plan's Within has passed.
func (s *Server) applyLate(plan *faults.Plan, delay time.Duration, apply func(context.Context)) {
	began := time.Now()
	end := plan.Begin(began)
	s.serving.Go(func() {
		defer end()
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.closing:
		}
		if plan.Within == 0 || time.Since(began) <= plan.Within {
			apply(context.Background())
		}
	})
}

// Sync syncs all acknowledged writes to disk.
func (s *Server) Sync() error {
	if !s.begin() {
		return errors.New("the server is closed")
	}
	defer s.serving.Done()
	return s.store.Sync()
}
