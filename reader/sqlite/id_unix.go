//go:build unix

package sqlite

import (
	"fmt"
	"io/fs"
	"syscall"
)

// fileID returns a text that distinguishes a file from others of the same name.
func fileID(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf(" (file %d)", stat.Ino)
	}
	return ""
}
