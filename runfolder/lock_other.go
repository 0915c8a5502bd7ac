//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package runfolder

import (
	"encoding/json"
	"io"
	"os"
)

// lockFile takes the process in the file for the lock's holder as long as it is alive.
func lockFile(f *os.File) error {
	text, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	var by Holder
	if json.Unmarshal(text, &by) != nil || by.PID == os.Getpid() {
		return nil
	}
	if process, err := os.FindProcess(by.PID); err == nil {
		_ = process.Release()
		return errLocked
	}
	return nil
}
