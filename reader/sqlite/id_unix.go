//go:build unix

package sqlite

import (
	"fmt"
	"io/fs"
	"syscall"
)

// fileID returns text that distinguishes a file from others with the same name.
func fileID(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf(" (file %d)", stat.Ino)
	}
	return ""
}
