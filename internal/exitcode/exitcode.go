package exitcode

import (
	"errors"
	"slices"
	"syscall"

	"example.com/tsimport/internal/tablestore/client"
)

// The exit codes. Schedulers rely on them, so they do not change.
const (
	OK          = 0
	Failed      = 1   // not finished; the same command can be tried again
	Usage       = 2   // wrong flags or configuration, or an unsuitable input
	Rejects     = 3   // finished, but some rows were rejected, or deletes withheld
	ErrorLimit  = 4   // more rows were rejected than --max-errors allows
	Refused     = 5   // the service refuses permanently: access key, permission, missing table, quota or certificate
	Differences = 6   // a comparison or check found something
	NoInput     = 7   // there is nothing to load
	Hangup      = 129 // the terminal was closed
	Interrupted = 130
	Crashed     = 134 // the Go runtime ended the process: a panic, out of memory or SIGQUIT
	Killed      = 137 // the process was killed by SIGKILL; a command cannot return this code
	Pipe        = 141 // the reader of the output closed it
	Terminated  = 143
)

// Coded is an error with an exit code.
type Coded interface {
	error
	Exit() int
}

// Of returns the exit code of an error: Pipe for EPIPE, its own if it is Coded, otherwise one according to its cause.
func Of(err error) int {
	var coded Coded
	switch {
	case err == nil:
		return OK
	case errors.Is(err, syscall.EPIPE):
		return Pipe
	case errors.As(err, &coded):
		return coded.Exit()
	case client.Refused(err):
		return Refused
	case client.WrongScheme(err):
		return Usage
	}
	return Failed
}

// Order lists all codes that a command can return itself, the most important first.
var Order = []int{Interrupted, Terminated, Hangup, Pipe, Failed, Refused, ErrorLimit, Usage, Differences, NoInput,
	Rejects, OK}

// First returns the code that is first in Order, or OK if there are none. A code that is not in Order counts as Failed.
func First(codes ...int) int {
	first := len(Order) - 1
	for _, c := range codes {
		at := slices.Index(Order, c)
		if at < 0 {
			at = slices.Index(Order, Failed)
		}
		first = min(first, at)
	}
	return Order[first]
}
