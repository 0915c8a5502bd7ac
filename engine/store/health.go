package store

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"example.com/tsimport/engine/wire"
)

// health tracks whether the store is writable.
type health struct {
	mu       sync.Mutex
	err      error         // first failure of the log or the manifest; permanent
	flushErr error         // error of the last flush, until one succeeds
	failed   chan struct{} // closed when err is set

	flushFailed chan struct{} // has one slot; filled when a flush fails
	corrupt     atomic.Bool   // a file is damaged, which stops compactions
}

func (h *health) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = err
		close(h.failed)
	}
}

func (h *health) cause() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// state returns the error that prevents writes, permanently or at present, or nil.
func (h *health) state() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return h.err
	}
	return h.flushErr
}

// refusal returns the error of a write that cannot start, or nil. Its code forbids retries: a full disk remains full.
func (h *health) refusal() *wire.Error {
	err := h.state()
	if err == nil {
		return nil
	}
	return wire.Failf(wire.CodeNoPermission, "The store cannot be written: %v: nothing was applied.", err)
}

// ambiguous returns the error of a write during which the store failed, or nil. The write may or may not survive.
func (h *health) ambiguous() *wire.Error {
	if err := h.cause(); err != nil {
		return wire.Failf(wire.CodeInternalServerError, "The store failed while writing: %v.", err)
	}
	return nil
}

// listener observes flushes. FlushEnd also has an error for an empty memtable; real ones are background errors, too.
func (h *health) listener() *pebble.EventListener {
	var ended error // error of the last flush; guarded by h.mu
	return &pebble.EventListener{
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			h.corrupt.Store(true)
			h.fail(fmt.Errorf("file %s is damaged: %w", info.Path, oneLine(info.Details)))
		},
		FlushEnd: func(info pebble.FlushInfo) {
			h.mu.Lock()
			defer h.mu.Unlock()
			if ended = info.Err; ended == nil {
				h.flushErr = nil
			}
		},
		BackgroundError: func(err error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			if ended == nil || !errors.Is(err, ended) {
				return // a compaction failed; writes continue
			}
			h.flushErr = err
			select {
			case h.flushFailed <- struct{}{}:
			default:
			}
		},
	}
}

// compactions limits concurrent compactions. Pebble would retry one that finds a damaged file forever, without a pause.
func (h *health) compactions() (low, high int) {
	if h.corrupt.Load() {
		return 0, 1 // Pebble divides by high
	}
	return 1, 2
}

// logger is Pebble's logger. Its Fatalf returns instead of ending the process. Every caller in Pebble that can have a
// disk error then returns an error, except for commit, after which the store asks health.
type logger struct{ health *health }

func (logger) Infof(string, ...any)  {}
func (logger) Errorf(string, ...any) {}

func (l logger) Fatalf(format string, args ...any) { l.health.fail(fmt.Errorf(format, args...)) }
