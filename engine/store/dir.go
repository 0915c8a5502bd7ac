package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	markerName = "TSIMPORT-STORE"
	markerText = "tsimport store, format 1\n"
	dataDir    = "data"

	begunName = markerName + ".tmp" // a store is being created here
	unnamed   = markerName + ".new" // the marker in the making; only the owner of the lock writes it
)

// prepareDir makes sure that dir is ours: it has the marker, or it is empty or missing. Then it is fresh, and create has
// to make a store of it; so has a directory whose creation was interrupted.
func prepareDir(fs vfs.FS, dir string, readOnly bool) (fresh bool, err error) {
	names, err := fs.List(dir)
	switch {
	case errors.Is(err, os.ErrNotExist) && readOnly:
		return false, fmt.Errorf("open store %s: no such directory", dir)
	case errors.Is(err, os.ErrNotExist):
		if err := makeDir(fs, dir); err != nil {
			return false, fmt.Errorf("create store %s: %w", dir, err)
		}
	case err != nil:
		return false, fmt.Errorf("open store %s: %w", dir, err)
	}
	err = nil
	begun := slices.Contains(names, begunName)
	for _, n := range names {
		if n == markerName {
			return false, checkMarker(fs, dir)
		}
		if n != begunName && !(begun && (n == dataDir || n == unnamed)) {
			err = fmt.Errorf("open store %s: the directory is not empty and not a tsimport store", dir)
		}
	}
	if err != nil { // or another process has just finished creating it, while the names were read
		if _, e := fs.Stat(fs.PathJoin(dir, markerName)); e == nil {
			return false, checkMarker(fs, dir)
		}
	}
	if err == nil && readOnly {
		err = fmt.Errorf("open store %s: the directory holds no tsimport store", dir)
	}
	if err != nil {
		return false, err
	}
	if err := beginStore(fs, dir); err != nil {
		return false, fmt.Errorf("create store %s: %w", dir, err)
	}
	return true, nil
}

func checkMarker(fs vfs.FS, dir string) error {
	f, err := fs.Open(fs.PathJoin(dir, markerName))
	if err != nil {
		return fmt.Errorf("open store %s: %w", dir, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return fmt.Errorf("open store %s: %w", dir, err)
	}
	if string(text) != markerText {
		return fmt.Errorf("open store %s: %s is not of a format this version knows", dir, markerName)
	}
	if _, err := fs.Stat(fs.PathJoin(dir, dataDir)); err != nil {
		return fmt.Errorf("open store %s: the store's data is gone: %w", dir, err)
	}
	return nil
}

// makeDir creates a directory and its missing parents, and syncs each in the one above: a store in a directory that a
// loss of power takes away is lost with it.
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
	if err := fs.MkdirAll(dir, 0o755); err != nil {
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

// beginStore leaves a note that a store is being created here, and makes the directory that has the lock.
func beginStore(fs vfs.FS, dir string) error {
	if err := writeFile(fs, fs.PathJoin(dir, begunName), ""); err != nil {
		return err
	}
	if err := syncDir(fs, dir); err != nil {
		return err
	}
	return makeDir(fs, fs.PathJoin(dir, dataDir))
}

// create makes Pebble's files and then gives the directory its marker: what has the marker has data, so that data that
// is missing later is a loss and not a store that was never used. The caller holds the lock, and opens the store anew:
// the first log of Pebble's life is of an old format, in which damage in its middle passes for its end.
func (s *Store) create(fs vfs.FS, dir string, po *pebble.Options) error {
	marker := fs.PathJoin(dir, markerName)
	if _, err := fs.Stat(marker); err == nil {
		return nil // another process was faster
	}
	db, err := pebble.Open(fs.PathJoin(dir, dataDir), po)
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	if err := s.health.cause(); err != nil {
		return err
	}
	if err := writeFile(fs, fs.PathJoin(dir, unnamed), markerText); err != nil {
		return err
	}
	if err := fs.Rename(fs.PathJoin(dir, unnamed), marker); err != nil {
		return err
	}
	if err := syncDir(fs, dir); err != nil {
		return err
	}
	fs.Remove(fs.PathJoin(dir, begunName)) // beside the marker it says nothing
	return nil
}

func writeFile(fs vfs.FS, name, text string) error {
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

func lockError(dir string, err error) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("open store %s: the directory is not writable: %w", dir, err)
	}
	var path *os.PathError
	if errors.As(err, &path) { // the lock file could not even be opened
		return fmt.Errorf("open store %s: %w", dir, err)
	}
	return fmt.Errorf("open store %s: it is in use by another process; stop that one, or reach the store through it (tsimport serve, then --endpoint)", dir)
}
