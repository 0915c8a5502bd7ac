package collection

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

var (
	mu     sync.Mutex
	chosen bool // whether At was called
)

func init() { firstLate(debug.SetGCPercent) }

// firstLate delays only the first collection. Most commands end before it; early ones took a quarter of their time.
func firstLate(setPercent func(int) int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := setPercent(400)
	runtime.AddCleanup(new([64]byte), func(usual int) { // runs with the first collection
		mu.Lock()
		defer mu.Unlock()
		if !chosen {
			setPercent(usual)
		}
	}, usual)
}

// At sets the percentage by which the heap may grow between collections.
func At(percent int) {
	mu.Lock()
	defer mu.Unlock()
	chosen = true
	debug.SetGCPercent(percent)
}
