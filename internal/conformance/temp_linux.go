package conformance

import "syscall"

// inMemory returns a folder in memory with a gigabyte free, or "".
func inMemory() string {
	const folder, tmpfs, enough = "/dev/shm", 0x01021994, 1 << 30
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil || int64(s.Type) != tmpfs || s.Bavail*uint64(s.Bsize) < enough {
		return ""
	}
	return folder
}
