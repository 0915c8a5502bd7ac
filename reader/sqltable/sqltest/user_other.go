//go:build !unix

package sqltest

import "syscall"

// userOf would make a process run as another user. It is not needed on this system, which has no root.
func userOf(int, int) *syscall.SysProcAttr { return nil }
