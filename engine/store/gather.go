package store

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// gather lets one flush write several memtables while rows are written and not read: level 0 gets few large files, and
// memtables stay small. A flush takes all full memtables, so each is held back until enough others are full. The log
// holds their rows meanwhile. Pebble's callback for a new file holds none of its locks.
//
// The first flushes are not held back: that helps only once there is much to merge. Reads end it, since they look into
// each memtable: updates of 1,000,000 rows cost half as much again.
type gather struct {
	after int           // number of flushes
	count int           // memtables; 0 holds nothing back
	most  time.Duration // limit for holding a flush back
	read  atomic.Bool   // rows were read since the last flush began

	mu      sync.Mutex
	flushes int           // that began
	logs    int           // that were made, one for each memtable
	until   int           // number of logs at which the current flush continues
	held    chan struct{} // closed at that number; nil if no flush is held back
	on      bool          // the store is open: Pebble waits for flushes while it opens and closes one
}

// listen observes a database about to be opened.
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

// release lets the flush continue if it is time. The caller holds mu.
func (g *gather) release() {
	if g.held != nil && (!g.on || g.logs >= g.until || g.read.Load()) {
		close(g.held)
		g.held = nil
	}
}

// noteRead notes that rows are read, and lets the flush continue: memtables take their memory from the block cache.
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
			g.held = nil // the flush may have more files
		}
	}
}

// hold sets whether flushes are held back from now on.
func (g *gather) hold(on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.on = on
	g.release()
}
