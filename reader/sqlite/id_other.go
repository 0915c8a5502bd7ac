//go:build !unix

package sqlite

import "io/fs"

// fileID returns "": files cannot be distinguished on this system.
func fileID(fs.FileInfo) string { return "" }
