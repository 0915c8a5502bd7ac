//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package archive

import (
	"os"
	"syscall"
)

// lock locks the file until it is closed or the process ends, however it ends.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
