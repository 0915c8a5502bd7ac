//go:build !unix

package sqlite

import "io/fs"

// fileID returns "", because files with the same name cannot be distinguished on this system.
func fileID(fs.FileInfo) string { return "" }
