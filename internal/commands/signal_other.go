//go:build !unix

package commands

import "os"

// stateSignals ask a load for its state; here there are none.
var stateSignals []os.Signal
