package store

import (
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// private is a file system whose new files and folders only the owner may read, because a store holds data.
type private struct{ vfs.FS }

func (p private) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return own(name)(p.FS.Create(name, category))
}

// OpenReadWrite may create a missing file, so it also needs own.
func (p private) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return own(name)(p.FS.OpenReadWrite(name, category, opts...))
}

func (p private) MkdirAll(dir string, _ os.FileMode) error { return p.FS.MkdirAll(dir, 0o700) }

func (p private) Unwrap() vfs.FS { return p.FS }

// own returns a function that denies other users access to a newly opened file.
func own(name string) func(vfs.File, error) (vfs.File, error) {
	return func(f vfs.File, err error) (vfs.File, error) {
		if err == nil {
			_ = os.Chmod(name, 0o600) // the folder is private, too, and some file systems have no modes
		}
		return f, err
	}
}
