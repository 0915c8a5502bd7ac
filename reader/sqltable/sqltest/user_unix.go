//go:build unix

package sqltest

import "syscall"

// userOf makes a process run as another user.
func userOf(uid, gid int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
