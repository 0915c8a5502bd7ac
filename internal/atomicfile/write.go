package atomicfile

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"unicode/utf8"
)

// Suffix is the suffix of the names of temporary files.
const Suffix = ".part"

// Options sets the permissions of the new file and says what to do with the old one.
type Options struct {
	Perm     fs.FileMode
	Previous string // new name of the old file, in the same folder; if empty, the old file is removed
}

// Operations that tests replace with failing ones.
var (
	syncFile = (*os.File).Sync
	closeIt  = (*os.File).Close
	rename   = os.Rename
)

// Write replaces the file with the output of write. If write fails, Write returns its error and leaves the old file.
func Write(name string, o Options, write func(io.Writer) error) error {
	f, err := New(Beside(name, Suffix), o.Perm)
	if err != nil {
		return err
	}
	made, err := f.Stat()
	if err == nil {
		err = write(f)
	}
	if err != nil {
		err = errors.Join(err, closeIt(f))
	} else {
		err = commit(f, name, o.Previous)
	}
	if err == nil {
		return nil
	}
	if left, statErr := os.Lstat(f.Name()); statErr != nil || !os.SameFile(made, left) {
		return err // it was renamed already, or is another writer's file
	}
	return errors.Join(err, os.Remove(f.Name()))
}

// WriteBytes replaces the file with content, as Write does.
func WriteBytes(name string, o Options, content []byte) error {
	return Write(name, o, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(content))
		return err
	})
}

// New creates a temporary file as Write does. Pass it to Commit when it is complete.
func New(name string, perm fs.FileMode) (*os.File, error) {
	if info, err := os.Lstat(name); err == nil && !info.IsDir() {
		if err := os.Remove(name); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm)
}

// Commit closes a file that New created and renames it within its folder: steps 1, 3 and 4 of the package comment.
func Commit(f *os.File, name string) error { return commit(f, name, "") }

func commit(f *os.File, name, previous string) error {
	err := syncFile(f)
	whole, statErr := f.Stat()
	if err = errors.Join(err, statErr, closeIt(f)); err != nil {
		return err
	}
	if now, err := os.Lstat(f.Name()); err != nil || !os.SameFile(whole, now) {
		return fmt.Errorf("%s is no longer the file that was written; does another process write to %s?", f.Name(), name)
	}
	if previous != "" {
		if err := rename(name, filepath.Join(filepath.Dir(name), previous)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := rename(f.Name(), name); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(name))
}

// MakeFolder makes a folder and its parents, and syncs them so that they survive a power failure.
func MakeFolder(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	above := filepath.Dir(dir)
	if above != dir {
		if err := MakeFolder(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(above)
}

// syncFolder makes renames in a folder survive a power failure, if the system supports it.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	err = syncFile(f)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, closeIt(f))
}

// MaxNameBytes is the length of the longest file name that common file systems allow.
const MaxNameBytes = 255

// Beside returns name plus suffix. If the file name would be too long, part of it is replaced with a hash of the whole.
func Beside(name, suffix string) string {
	dir, base := filepath.Split(name)
	if len(base)+len(suffix) <= MaxNameBytes {
		return name + suffix
	}
	sum := sha256.Sum256([]byte(base))
	suffix = fmt.Sprintf("-%x%s", sum[:8], suffix)
	cut := MaxNameBytes - len(suffix)
	for cut > 0 && !utf8.RuneStart(base[cut]) {
		cut--
	}
	return dir + base[:cut] + suffix
}
