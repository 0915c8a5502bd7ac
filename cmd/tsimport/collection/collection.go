package collection

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

var (
	mu     sync.Mutex
	chosen bool // by At
)

func init() { firstLate(debug.SetGCPercent) }

// firstLate has the first collection be late, and those after it as usual: most commands end before that, and collections of little garbage would
// take a quarter of their time.
func firstLate(setPercent func(int) int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := setPercent(400)
	runtime.AddCleanup(new([64]byte), func(usual int) { // with the first collection
		mu.Lock()
		defer mu.Unlock()
		if !chosen {
			setPercent(usual)
		}
	}, usual)
}

// At sets by how many percent the heap may grow between collections.
func At(percent int) {
	mu.Lock()
	defer mu.Unlock()
	chosen = true
	debug.SetGCPercent(percent)
}
