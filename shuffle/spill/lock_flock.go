//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package spill

import (
	"os"
	"syscall"
)

// hold locks the file until it is closed or the process ends, however it ends.
func hold(lock *os.File) error { return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// isHeld reports whether anybody holds the lock file. What cannot be told is taken for held.
func isHeld(lock *os.File, _ string) bool { return hold(lock) != nil }
