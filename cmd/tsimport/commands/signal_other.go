//go:build !unix

package commands

import "os"

// stateSignals ask a load for its state; here there are none.
var stateSignals []os.Signal

// withoutCore has nothing to do here.
func withoutCore() {}

// closedAtStart reports whether stdout was closed when the process began: here its handle is not valid, and writing fails.
func closedAtStart() bool { return false }
