//go:build !unix

package sqltest

import "syscall"

// userOf runs a process as this user: no one is root here.
func userOf(int, int) *syscall.SysProcAttr { return nil }
