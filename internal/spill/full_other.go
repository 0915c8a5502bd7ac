//go:build !windows

package spill

import (
	"errors"
	"syscall"
)

// IsFull reports whether an error means that the disk is full, or that a quota or the file-size limit is reached.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
