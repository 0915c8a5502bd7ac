//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package runfolder

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks the file until it is closed or the process ends.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
