package commands

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
)

// session is what the loads of a job have together: ceilings, memory, and the embedded stores, which one process opens once. It is safe
// for concurrent use.
type session struct {
	limits   *pipeline.SharedLimits
	gate     *scan.Gate     // of what is read from tables
	memory   int64          // of all loads
	each     int64          // of one
	requests int            // in flight, of all loads
	rates    pipeline.Rates // of all loads
	quiet    bool
	readOnly bool // nothing is written, and no store made

	mu     sync.Mutex
	said   map[string]bool // targets that were named
	stores map[string]*server.Server
}

// gateOf bounds what a command reads from tables.
func gateOf(c *call) *scan.Gate {
	if s := c.in.session; s != nil && s.gate != nil {
		return s.gate
	}
	return scan.NewGate(c.of.MaxRCU)
}

// waitsOf tells a user of reading that the service refuses for a while.
func waitsOf(c *call, stderr io.Writer) *scan.Waits {
	return scan.NewWaits(func(why string, most time.Duration) {
		say(c, stderr, "waiting: reading is refused: %s; tried again for up to %v", why, most)
	})
}

// newSession reads what defaults say of all loads together. So many run at a time.
func newSession(common []job.Setting, parallel int) (*session, error) {
	s := &session{stores: map[string]*server.Server{}, said: map[string]bool{}}
	given := map[string]string{}
	for _, t := range common {
		given[t.Key] = t.Values[0]
	}
	number := func(name string) (n float64, err error) {
		if given[name] == "" {
			return 0, nil
		}
		if n, err = strconv.ParseFloat(given[name], 64); err != nil || !(n >= 0) || math.IsInf(n, 0) {
			return 0, usagef("--%s %s: want a number above 0, or 0 for none", name, given[name])
		}
		return n, nil
	}
	size := func(name string) (n int64, err error) {
		if given[name] == "" {
			return 0, nil
		}
		if n, err = options.ParseSize(given[name]); err != nil {
			return 0, usagef("--%s: %v", name, err)
		}
		return n, nil
	}
	var rates pipeline.Rates
	var rcu float64
	for name, to := range map[string]*float64{"max-wcu": &rates.MaxWCU, "max-rows-per-second": &rates.MaxRows, "max-rcu": &rcu} {
		var err error
		if *to, err = number(name); err != nil {
			return nil, err
		}
	}
	bytes, err := size("max-bytes-per-second")
	if err != nil {
		return nil, err
	}
	rates.MaxBytes = float64(bytes)
	if s.memory, err = size("memory"); err != nil {
		return nil, err
	}
	if given["memory"] == "" {
		s.memory = options.DefaultMemory()
	}
	if s.each = s.memory / int64(parallel); s.each < options.MinMemory {
		return nil, usagef("--memory %s for %d loads at a time: each needs 16MiB at least; give %dMiB, or fewer loads at a time with --parallel", sizeText(given["memory"], s.memory), parallel, 16*parallel)
	}
	requests := pipeline.DefaultConcurrency
	if text := given["concurrency"]; text != "" {
		if requests, err = strconv.Atoi(text); err != nil || requests < 1 || requests > 4096 {
			return nil, usagef("--concurrency %s: want 1 to 4096", text)
		}
	}
	s.requests = requests
	s.rates = rates
	s.limits, s.gate = pipeline.NewSharedLimits(rates, requests), scan.NewGate(rcu)
	return s, nil
}

func sizeText(given string, bytes int64) string {
	if given != "" {
		return given
	}
	return fmt.Sprintf("%dMiB", bytes>>20)
}

// tell names a target, the first time that a load works on it. A plan names them itself.
func (s *session) tell(stderr io.Writer, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.said[text] && !s.quiet && !s.readOnly {
		fmt.Fprintf(stderr, "tsimport: %s\n", printable(text))
	}
	s.said[text] = true
}

// openStore opens an embedded store, or takes the one that another load has opened.
func (s *session) openStore(t *target, a access, timeout time.Duration) (*target, error) {
	path, err := filepath.Abs(t.dir)
	if err != nil {
		return nil, fmt.Errorf("find embedded store: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	open := s.stores[path]
	if open == nil {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !a.create {
			t.missing = true
			return t, nil
		}
		if open, err = server.Open(t.dir, server.Options{NoSync: a.noSync, ReadOnly: s.readOnly}); err != nil {
			return nil, err
		}
		s.stores[path] = open
		limitMemory(s.memory, true)
	}
	t.store, t.shared = open, true
	t.reach(open, timeout)
	return t, nil
}

// close closes the embedded stores. Every acknowledged row is in them.
func (s *session) close() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, open := range s.stores {
		err = errors.Join(err, open.Close())
	}
	return err
}
