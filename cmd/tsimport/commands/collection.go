package commands

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/plan"
)

// collection is when the garbage collector begins.
var collection struct {
	once sync.Once
	sync.Mutex
	chosen bool // by collectAt
}

// collectFirstLate has the garbage collector begin at a heap of 16 MB instead of 4 MB, and then do as usual: most commands end before that, and
// collections of little garbage would take a quarter of their time.
func collectFirstLate(setPercent func(int) int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := setPercent(400)
	runtime.AddCleanup(new([64]byte), func(usual int) { // with the first collection
		collection.Lock()
		defer collection.Unlock()
		if !collection.chosen {
			setPercent(usual)
		}
	}, usual)
}

// collectAt sets by how many percent the heap may grow between collections.
func collectAt(percent int) {
	collection.Lock()
	defer collection.Unlock()
	collection.chosen = true
	debug.SetGCPercent(percent)
}

const (
	smallMemory = 64 << 20
	// embeddedMemory is what a store in this process takes beside the load: its caches and the requests it answers.
	embeddedMemory = 512 << 20
)

// limitMemory tells the garbage collector how much the process may take, unless the user has told it.
func limitMemory(memory int64, embedded bool) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := plan.MemoryLimit(memory)
	if embedded {
		limit += embeddedMemory
	}
	debug.SetMemoryLimit(limit)
	// Garbage of large records is most of what a small load takes, and the collector overshoots on a busy machine.
	if memory < smallMemory && os.Getenv("GOGC") == "" {
		collectAt(25)
	}
}

// orderWarning says what --order none means for rows of a key that do not simply replace each other.
func orderWarning(w *pipeline.Write) string {
	if w.Order != plan.OrderNone {
		return ""
	}
	const any = "--order none: rows of the same key are written in any order"
	switch {
	case w.Condition != table.Ignore || w.When != nil:
		return any + ", so which of them the condition lets pass is chance"
	case w.Mode == table.Update:
		return any + ", so which of them a column is left with is chance"
	}
	return ""
}
