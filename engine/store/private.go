package store

import (
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// private is a file system whose new files and folders only their owner reads: what is in a store is data.
type private struct{ vfs.FS }

// Create implements vfs.FS.
func (p private) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return own(name)(p.FS.Create(name, category))
}

// OpenReadWrite implements vfs.FS; it makes a file that is missing.
func (p private) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return own(name)(p.FS.OpenReadWrite(name, category, opts...))
}

// MkdirAll implements vfs.FS.
func (p private) MkdirAll(dir string, _ os.FileMode) error { return p.FS.MkdirAll(dir, 0o700) }

// Unwrap implements vfs.FS.
func (p private) Unwrap() vfs.FS { return p.FS }

// own takes a file that was opened away from everybody else.
func own(name string) func(vfs.File, error) (vfs.File, error) {
	return func(f vfs.File, err error) (vfs.File, error) {
		if err == nil {
			_ = os.Chmod(name, 0o600) // its folder keeps others out too, and a file system without modes has none
		}
		return f, err
	}
}
