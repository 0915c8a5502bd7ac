//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package spill

import (
	"os"
	"syscall"
)

// lock locks the file until it is closed or the process ends, however it ends.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// isLocked reports whether anybody has locked the file. What cannot be told is taken for locked.
func isLocked(f *os.File, _ string) bool { return lock(f) != nil }
