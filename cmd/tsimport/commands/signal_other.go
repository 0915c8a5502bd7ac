//go:build !unix

package commands

import "os"

// stateSignals is empty here: no signal requests a load's state.
var stateSignals []os.Signal

func withoutCore() {}

// closedAtStart reports whether stdout was closed at the start. Here its handle is then invalid, and writing fails.
func closedAtStart() bool { return false }
