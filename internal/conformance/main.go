package conformance

import (
	"os"
	"runtime/debug"
	"testing"
)

// Main runs a package's tests and ends the process. They make hundreds of small loads, stores and files, so the heap may grow before garbage
// is collected, and temporary folders are in memory where a gigabyte is free there: a load calls fsync about fifteen times, and tests that
// lose no power need not wait for a disk. TMPDIR, if it is set, stays.
func Main(m *testing.M) {
	debug.SetGCPercent(400)
	if folder := inMemory(); folder != "" && os.Getenv("TMPDIR") == "" {
		if err := os.Setenv("TMPDIR", folder); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// Must ends a test, or one drawing of a property, with an error that it does not expect.
func Must(t interface {
	Helper()
	Fatal(args ...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
