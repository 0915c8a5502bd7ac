//go:build !unix

package sqltest

import "syscall"

// userOf would run a process as this user; here, nobody is root.
func userOf(int, int) *syscall.SysProcAttr { return nil }
