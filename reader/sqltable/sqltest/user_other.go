//go:build !unix

package sqltest

import "syscall"

// userOf runs a process as this user: no other is needed where nobody is root.
func userOf(int, int) *syscall.SysProcAttr { return nil }
