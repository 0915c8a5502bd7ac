//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package spill

import (
	"os"
	"strconv"
)

// lock does nothing: here the process id in the file is the lock.
func lock(*os.File) error { return nil }

// isLocked reports whether the process with the id is alive. An id that another process has got since keeps a folder
// from being removed; none is removed too early.
func isLocked(_ *os.File, pid string) bool {
	id, err := strconv.Atoi(pid)
	if err != nil {
		return true
	}
	process, err := os.FindProcess(id)
	if err != nil {
		return false
	}
	_ = process.Release()
	return true
}
