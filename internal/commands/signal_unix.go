//go:build unix

package commands

import (
	"os"
	"syscall"
)

// stateSignals ask a load for its state.
var stateSignals = []os.Signal{syscall.SIGUSR1}
