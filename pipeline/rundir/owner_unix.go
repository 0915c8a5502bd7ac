//go:build unix

package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// CheckOwner refuses another user's run folder, because its command would be run and its files continued.
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

// SharedVariable is the environment variable that allows folders of other users, as some mounts show one owner for all.
const SharedVariable = "TSIMPORT_SHARED_FOLDERS"

// CheckShared refuses another user's job directory or state, except root's, as its files direct signed requests.
func CheckShared(path string) error {
	info, err := os.Stat(path)
	if err != nil || os.Getenv(SharedVariable) == "trust" {
		return nil // a missing folder will be created; an unreadable one will fail later
	}
	return checkShared(path, info, os.Geteuid())
}

func checkShared(path string, info os.FileInfo, me int) error {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && s.Uid != 0 && int(s.Uid) != me {
		return fmt.Errorf("%s belongs to user %d, and this process runs as user %d: its owner decides where rows and "+
			"signed requests go; use a folder of your own, or set %s=trust for a mount on which that is expected", path,
			s.Uid, me, SharedVariable)
	}
	return nil
}

func checkOwner(path string, info os.FileInfo, me int) error {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != me {
		return fmt.Errorf("run folder %s belongs to user %d, and this process runs as user %d; resume it as that user, or "+
			"give another --run-dir", path, s.Uid, me)
	}
	return nil
}
