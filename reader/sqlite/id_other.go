//go:build !unix

package sqlite

import "io/fs"

// fileID cannot distinguish files here.
func fileID(fs.FileInfo) string { return "" }
