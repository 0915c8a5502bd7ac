package spill

import (
	"errors"
	"syscall"
)

// Error codes for a full disk, from winerror.h.
const (
	errorHandleDiskFull = syscall.Errno(39)
	errorDiskFull       = syscall.Errno(112)
)

// IsFull reports whether an error means that the disk is full.
func IsFull(err error) bool {
	return errors.Is(err, errorDiskFull) || errors.Is(err, errorHandleDiskFull)
}
