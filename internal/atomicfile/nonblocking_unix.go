//go:build unix

package atomicfile

import "syscall"

// nonBlocking opens a pipe without waiting for its reader.
const nonBlocking = syscall.O_NONBLOCK
