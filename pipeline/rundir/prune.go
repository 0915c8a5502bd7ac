package rundir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/atomicfile"
)

// Contents describes the content of a run folder.
type Contents struct {
	Bytes   int64
	Newest  time.Time // when a file was last changed
	Foreign string    // a file or folder that is not the run's or that the user has changed; "" if there is none
}

var attemptNames = regexp.MustCompile(`^attempt-[1-9][0-9]*$`)

// ContentsOf inspects a run folder. own recognizes other files of the run, by path below the folder, with slashes.
func ContentsOf(path string, own func(name string, folder bool) bool) (c Contents, err error) {
	err = filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if at == path {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(path, at)
		if err != nil {
			return err
		}
		if !isOwn(filepath.ToSlash(name), d, own) && c.Foreign == "" {
			c.Foreign = name
		}
		if d.IsDir() {
			return nil // its time only shows when files were added or removed
		}
		c.Bytes += info.Size()
		if d.Name() != LockFile && info.ModTime().After(c.Newest) { // the lock may have been taken only to test it
			c.Newest = info.ModTime()
		}
		return nil
	})
	if err != nil {
		return c, fmt.Errorf("inspect run folder: %w", err)
	}
	return c, nil
}

// isOwn reports whether a file or folder in a run folder was made by a run.
func isOwn(name string, d fs.DirEntry, own func(name string, folder bool) bool) bool {
	if !d.IsDir() && !d.Type().IsRegular() {
		return false
	}
	if own(name, d.IsDir()) || strings.Contains("/"+name, "/"+StampsDir+"/") {
		return true
	}
	base := d.Name()
	if d.IsDir() { // k=v has rejects of partition folders
		return attemptNames.MatchString(base) || strings.Contains(base, "=") || base == StampsDir
	}
	base = strings.TrimSuffix(base, atomicfile.Suffix)
	return slices.Contains(ownFiles, base) || isRejectsFile(base) || base == LockFile || base == LockFile+holderSuffix
}

// Remove removes a run folder, or returns a *HeldError if another process works on the run. still is called with the
// lock held; if it returns false, nothing is removed. The files in last, which identify the run, are removed last, so
// that an interrupted removal can be repeated.
func Remove(path string, still func() bool, last ...string) (removed bool, err error) {
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return false, fmt.Errorf("remove run %s: %w", path, cmp.Or(err, errors.New("it is not a folder")))
	}
	lock, err := TakeLock(path)
	if err != nil {
		return false, err
	}
	defer func() {
		if releaseErr := lock.Release(); err == nil {
			err = releaseErr
		}
		if _, statErr := os.Lstat(path); removed && err == nil && !errors.Is(statErr, fs.ErrNotExist) {
			err = fmt.Errorf("remove run %s: files were added to it meanwhile", path)
		}
	}()
	if !still() {
		return false, nil
	}
	root, err := os.OpenRoot(path) // nothing outside is removed, even through links
	if err != nil {
		return false, fmt.Errorf("remove run: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	entries, err := os.ReadDir(path)
	if err != nil {
		return false, fmt.Errorf("remove run: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name := e.Name(); name != LockFile && !slices.Contains(last, name) {
			names = append(names, name)
		}
	}
	for _, name := range append(names, last...) {
		if err := root.RemoveAll(name); err != nil {
			return false, fmt.Errorf("remove run %s: %w", path, err)
		}
	}
	lock.passing = []string{filepath.Join(path, LockFile), path}
	return true, nil
}
