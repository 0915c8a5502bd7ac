//go:build !unix

package sqlite

import "io/fs"

// fileID cannot tell files apart here.
func fileID(fs.FileInfo) string { return "" }
