//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package rundir

import "os"

// lockFile leaves it to holdFile: the standard library has no locks here that end with the process.
func lockFile(*os.File) error { return errNoLocks }

// alive reports whether a process of this machine runs.
func alive(pid int) bool {
	process, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = process.Release()
	return true
}
