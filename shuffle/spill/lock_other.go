//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package spill

import (
	"os"
	"strconv"
)

// hold closes the file: the id in it is the lock, and a folder with an open file cannot be renamed on every system.
func hold(lock *os.File) error { return lock.Close() }

// isHeld reports whether the process whose id the lock file names is alive. An id that another process has got since
// keeps a folder from being removed; none is removed too early.
func isHeld(_ *os.File, pid string) bool {
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
