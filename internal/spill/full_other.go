//go:build !windows

package spill

import (
	"errors"
	"syscall"
)

// IsFull reports whether an error means that the disk, the user's quota or the largest file allowed is full.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
