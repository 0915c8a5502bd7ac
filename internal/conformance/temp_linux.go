package conformance

import (
	"os"
	"syscall"
)

// TempInMemory puts the temporary folders of a package's tests in memory where a gigabyte is free there: a load calls fsync
// about fifteen times, and tests that lose no power need not wait for a disk. TMPDIR, if it is set, stays.
func TempInMemory() error {
	const folder, tmpfs, enough = "/dev/shm", 0x01021994, 1 << 30
	var s syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(folder, &s) != nil || int64(s.Type) != tmpfs || s.Bavail*uint64(s.Bsize) < enough {
		return nil
	}
	return os.Setenv("TMPDIR", folder)
}
