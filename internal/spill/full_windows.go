package spill

import (
	"errors"
	"syscall"
)

// Codes for a full disk in winerror.h.
const (
	errorHandleDiskFull = syscall.Errno(39)
	errorDiskFull       = syscall.Errno(112)
)

// IsFull reports whether an error means that the disk is full.
func IsFull(err error) bool {
	return errors.Is(err, errorDiskFull) || errors.Is(err, errorHandleDiskFull)
}
