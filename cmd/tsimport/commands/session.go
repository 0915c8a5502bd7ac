package commands

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"example.com/tsimport/cmd/tsimport/collection"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/sqltable"
)

// session holds what the loads of a job share: ceilings, memory, embedded stores. It is safe for concurrent use.
type session struct {
	limits   *lanes.SharedLimits
	gate     *scan.Gate        // limits reads from tables
	memory   int64             // bytes for all loads
	each     int64             // bytes for one load
	requests int               // maximum in flight, for all loads
	rates    lanes.Rates       // limits for all loads together
	moments  *sqltable.Moments // snapshots of databases; nil in a plan
	quiet    bool
	readOnly bool // write nothing, and create no store

	mu     sync.Mutex
	said   map[string]bool // targets that were already named
	stores map[string]*server.Server
}

// gateOf returns the limit of a command's reads from tables.
func gateOf(c *call) *scan.Gate {
	if s := c.in.session; s != nil && s.gate != nil {
		return s.gate
	}
	return scan.NewGate(c.of.MaxRCU)
}

// waitsOf returns waits that tell the user when the service keeps refusing reads.
func waitsOf(c *call) *scan.Waits {
	return scan.NewWaits(func(why string, most time.Duration) {
		c.say.Line("waiting: reading is refused: %s; retrying for up to %v", why, most)
	})
}

// newSession parses the settings that apply to all loads together. Up to parallel of them run concurrently.
func newSession(common []job.Setting, parallel int) (*session, error) {
	s := &session{stores: map[string]*server.Server{}, said: map[string]bool{}}
	of := &options.Command{Name: "run"}
	for _, t := range common {
		if err := options.Find(t.Key).Set(of, t.Values); err != nil {
			return nil, usagef("%v", err)
		}
	}
	s.memory, s.requests = cmp.Or(of.Memory, options.DefaultMemory()), cmp.Or(of.Concurrency, pipeline.DefaultConcurrency)
	s.rates = lanes.Rates{MaxWCU: of.MaxWCU, MaxRows: of.MaxRowsPerSecond, MaxBytes: float64(of.MaxBytesPerSecond)}
	if s.each = s.memory / int64(parallel); s.each < options.MinMemory {
		return nil, usagef("--memory %s for %d loads at a time: each needs at least 16MiB; give %dMiB, or fewer loads at a "+
			"time with --parallel", sizeText(common, s.memory), parallel, 16*parallel)
	}
	s.limits, s.gate = lanes.NewSharedLimits(s.rates, s.requests), scan.NewGate(of.MaxRCU)
	return s, nil
}

// sizeText returns the memory size as written in the job.
func sizeText(common []job.Setting, bytes int64) string {
	for _, t := range common {
		if t.Key == "memory" {
			return t.Values[0]
		}
	}
	return fmt.Sprintf("%dMiB", bytes>>20)
}

// tell names a target when the first load uses it, but not in a plan, which names its targets itself.
func (s *session) tell(show *display, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.said[text] && !s.quiet && !s.readOnly {
		show.say.Line("%s", text)
	}
	s.said[text] = true
}

// openStore opens an embedded store, or shares one that another load has opened.
func (s *session) openStore(t *target, a access, timeout time.Duration) (*target, error) {
	path, err := filepath.Abs(t.dir)
	if err != nil {
		return nil, fmt.Errorf("find embedded store: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	open := s.stores[path]
	if open == nil {
		a.readOnly = s.readOnly
		if t, err = t.openStore(a, timeout); err != nil || t.missing {
			return t, err
		}
		open = t.store
		s.stores[path] = open
		limitMemory(s.memory, true)
	}
	t.store, t.shared = open, true
	t.reach(open, timeout)
	return t, nil
}

// close closes the embedded stores, which hold every acknowledged row.
func (s *session) close() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, open := range s.stores {
		err = errors.Join(err, open.Close())
	}
	return err
}

const (
	smallMemory = 64 << 20
	// embeddedMemory is the memory of an embedded store, for caches and requests, in addition to the load's.
	embeddedMemory = 512 << 20
)

// limitMemory sets the garbage collector's memory limit, unless the user has set it.
func limitMemory(memory int64, embedded bool) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := plan.MemoryLimit(memory)
	if embedded {
		limit += embeddedMemory
	}
	debug.SetMemoryLimit(limit)
	// With little memory, garbage of large records dominates, and on a busy machine the heap exceeds the limit.
	if memory < smallMemory && os.Getenv("GOGC") == "" {
		collection.At(25)
	}
}

// orderWarning returns a warning about --order none if rows of a key do not simply replace each other.
func orderWarning(w *pipeline.Write) string {
	if w.Order != plan.OrderNone || w.Mode == table.Delete {
		return ""
	}
	const any = "--order none: rows of the same key are written in any order"
	switch {
	case w.Condition != table.Ignore || w.When != nil:
		return any + ", so which of them pass the condition is undefined"
	case w.Mode == table.Update:
		return any + ", so any of them may set the final value of a column"
	}
	return ""
}
