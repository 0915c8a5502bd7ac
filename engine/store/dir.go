package store

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	markerName = "TSIMPORT-STORE"
	markerText = "tsimport store, format 1\n"
	dataDir    = "data"
)

// prepareDir ensures that dir is a store: it has the marker, or is empty or missing and gets one.
func prepareDir(fs vfs.FS, dir string, readOnly bool) error {
	names, err := fs.List(dir)
	switch {
	case errors.Is(err, os.ErrNotExist) && readOnly:
		return fmt.Errorf("open store %s: no such directory", dir)
	case errors.Is(err, os.ErrNotExist):
		if err := makeDir(fs, dir); err != nil {
			return fmt.Errorf("create store %s: %w", dir, err)
		}
	case err != nil:
		return fmt.Errorf("open store %s: %w", dir, err)
	}
	foreign := false
	for _, n := range names {
		if n == markerName {
			return checkMarker(fs, dir)
		}
		// a .tmp file is left by a process that was killed while it created the store
		foreign = foreign || !strings.HasPrefix(n, markerName+".") || !strings.HasSuffix(n, ".tmp")
	}
	if foreign {
		return fmt.Errorf("open store %s: the directory is not empty and not a tsimport store", dir)
	}
	if readOnly {
		return fmt.Errorf("open store %s: the directory is not a tsimport store", dir)
	}
	if err := createMarker(fs, dir); err != nil {
		return fmt.Errorf("create store %s: %w", dir, err)
	}
	return nil
}

// IsStore reports whether a directory is a store, by its marker.
func IsStore(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, markerName))
	return err == nil && info.Mode().IsRegular()
}

func checkMarker(fs vfs.FS, dir string) error {
	text, err := readWhole(fs, fs.PathJoin(dir, markerName), 256)
	if err != nil {
		return fmt.Errorf("open store %s: %w", dir, err)
	}
	if string(text) != markerText {
		return fmt.Errorf("open store %s: %s has a format that this version does not support", dir, markerName)
	}
	if err := makeDir(fs, fs.PathJoin(dir, dataDir)); err != nil {
		return fmt.Errorf("open store %s: %w", dir, err)
	}
	return nil
}

// makeDir creates a directory and its missing parents, and syncs each parent, so that they survive a power loss.
func makeDir(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(dir); err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	parent := fs.PathDir(dir)
	if parent != dir {
		if err := makeDir(fs, parent); err != nil {
			return err
		}
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDir(fs, parent)
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// createMarker writes the marker atomically, so that a kill leaves an empty directory or a store.
func createMarker(fs vfs.FS, dir string) error {
	if err := writeWhole(fs, dir, markerName, []byte(markerText)); err != nil {
		return err
	}
	return makeDir(fs, fs.PathJoin(dir, dataDir))
}

// writeWhole creates and syncs a file atomically, even if others create it at the same time.
func writeWhole(fs vfs.FS, dir, name string, text []byte) error {
	tmp := fs.PathJoin(dir, fmt.Sprintf("%s.%08x.tmp", name, rand.Uint32()))
	f, err := fs.Create(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(tmp, fs.PathJoin(dir, name)); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

func readWhole(fs vfs.FS, name string, limit int64) ([]byte, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

func lockError(dir string, err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("open store %s: the directory is not writable: %w", dir, err)
	}
	if errors.As(err, new(*os.PathError)) || errors.Is(err, syscall.ENOLCK) { // no file, or a file system without locks
		return fmt.Errorf("open store %s: %w", dir, err)
	}
	return fmt.Errorf("open store %s: it is in use by another process; stop that one, or reach the store through it "+
		"(tsimport serve, then --endpoint)", dir)
}

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
