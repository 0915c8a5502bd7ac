package commands

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
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
