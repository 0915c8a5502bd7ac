//go:build unix

package sqlite

import (
	"fmt"
	"io/fs"
	"syscall"
)

// fileID tells a file from one that takes its name.
func fileID(info fs.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf(" (file %d)", stat.Ino)
	}
	return ""
}
