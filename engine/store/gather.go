package store

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// gather makes one flush write several memtables while rows are written but not read, so that memtables are small and
// level 0 has few large files. A flush takes all full memtables, so it is held back until enough are full; their rows
// are in the log. It is held in Pebble's callback for a new file, which holds no locks.
//
// The first flushes are not held back, because holding back helps only with much data to merge. Reads end a hold,
// because they search every memtable: otherwise updates of 1,000,000 rows would cost half as much again.
type gather struct {
	after int           // number of first flushes that are not held back
	count int           // number of memtables per flush; 0 holds nothing back
	most  time.Duration // longest time for which a flush is held back
	read  atomic.Bool   // rows were read since the last flush started

	mu      sync.Mutex
	flushes int           // number of flushes started
	logs    int           // number of logs created, one per memtable
	until   int           // value of logs at which the current flush continues
	held    chan struct{} // closed when it continues; nil if no flush is held back
	on      bool          // the store is open; Pebble waits for flushes while it opens and closes
}

// listen adds callbacks to the listener of a database about to be opened.
func (g *gather) listen(l *pebble.EventListener) {
	l.FlushBegin = func(pebble.FlushInfo) { g.begin() }
	l.WALCreated = func(pebble.WALCreateInfo) { g.full() }
	l.TableCreated = func(info pebble.TableCreateInfo) {
		if info.Reason == "flushing" {
			g.wait()
		}
	}
}

func (g *gather) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until, g.held = g.logs+g.count, nil
	if read := g.read.Swap(false); !read && g.on && g.flushes >= g.after {
		g.held = make(chan struct{})
	}
	g.flushes++
	g.release()
}

func (g *gather) full() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.logs++
	g.release()
}

// release lets the flush continue if it is due. The caller holds mu.
func (g *gather) release() {
	if g.held != nil && (!g.on || g.logs >= g.until || g.read.Load()) {
		close(g.held)
		g.held = nil
	}
}

// noteRead records that rows are read, and lets the flush continue: memtables take memory from the block cache.
func (g *gather) noteRead() {
	if g.read.Load() || g.read.Swap(true) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release()
}

func (g *gather) wait() {
	g.mu.Lock()
	held := g.held
	g.mu.Unlock()
	if held == nil {
		return
	}
	timer := time.NewTimer(g.most)
	defer timer.Stop()
	select {
	case <-held:
	case <-timer.C:
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.held == held {
			g.held = nil // the flush may create more files
		}
	}
}

// hold sets whether flushes may be held back from now on.
func (g *gather) hold(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.on = on
	g.release()
}
