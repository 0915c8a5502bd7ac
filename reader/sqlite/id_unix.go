//go:build unix

package sqlite

import (
	"fmt"
	"io/fs"
	"syscall"
)

// fileID distinguishes a file from another one with its name.
func fileID(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf(" (file %d)", stat.Ino)
	}
	return ""
}
