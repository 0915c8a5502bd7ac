//go:build unix

package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// CheckOwner refuses a run folder of another user: whoever made it has written the command that a resumed run carries out, and
// the files that it continues. One that is missing is not refused.
func CheckOwner(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open run folder: %w", err)
	}
	return checkOwner(path, info, os.Geteuid())
}

func checkOwner(path string, info os.FileInfo, me int) error {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != me {
		return fmt.Errorf("run folder %s belongs to user %d, and this process is user %d; resume it as that user, or give another --run-dir", path, s.Uid, me)
	}
	return nil
}
