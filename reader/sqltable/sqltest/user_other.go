//go:build !unix

package sqltest

import "syscall"

// userOf returns nil, because no test runs as root on these systems.
func userOf(int, int) *syscall.SysProcAttr { return nil }
