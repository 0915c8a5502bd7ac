package conformance

import (
	"os"
	"testing"
)

// told is a test that only counts failures.
type told int

func (n *told) Helper()               {}
func (n *told) Fatal(...any)          { *n++ }
func (n *told) Errorf(string, ...any) { *n++ }
func (n *told) Fatalf(string, ...any) { *n++ }

// TestFailedChecksFailTests: a check that reports nothing would hide every failure.
func TestFailedChecksFailTests(t *testing.T) {
	for _, holds := range []bool{true, false} {
		var n told
		True(&n, holds, "")
		MustTrue(&n, holds, "")
		MustEqual(&n, holds, true, "")
		Must(&n, ErrorOf(0, map[bool]error{false: os.ErrInvalid}[holds]))
		MustEqual(t, Try(7, map[bool]error{false: os.ErrInvalid}[holds]).Must(&n), 7, "value")
		MustEqual(t, n, map[bool]told{false: 5}[holds], "failures of five checks")
	}
}
