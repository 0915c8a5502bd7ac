package reader

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the heap grow: thousands of small files are read, and a fifth of the CPU went into collecting garbage.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
