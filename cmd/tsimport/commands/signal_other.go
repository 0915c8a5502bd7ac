//go:build !unix

package commands

import "os"

// stateSignals is empty here: no signal requests a load's state.
var stateSignals []os.Signal

func withoutCore() {}

// closedAtStart returns false. On this system, a stdout closed at the start has an invalid handle, and writing fails.
func closedAtStart() bool { return false }
