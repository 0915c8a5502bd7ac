//go:build unix

package sqltest

import "syscall"

// userOf returns the attributes of a process that runs as this user.
func userOf(uid, gid int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
