package jobdir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/progress"
)

// folder is a store in a folder. PutAbsent uses link(2), which the server of a network file system carries out.
type folder struct{ path string }

// errNoLinks means that a file system lacks features that PutAbsent needs.
var errNoLinks = progress.Unfitf("its file system has no hard links, which locks need; use another folder, oss:// or s3://")

func (f folder) String() string          { return f.path }
func (f folder) file(name string) string { return filepath.Join(f.path, filepath.FromSlash(name)) }

// ownSuffix ends the names of temporary files, which are not objects.
const ownSuffix = ".tmp"

func (f folder) PutAbsent(_ context.Context, name string, body []byte) error {
	file := f.file(name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	own := file + "." + Nonce() + ownSuffix
	if err := atomicfile.WriteBytes(own, atomicfile.Options{Perm: 0o600}, body); err != nil {
		return err
	}
	err := os.Link(own, file)
	switch {
	case errors.Is(err, fs.ErrExist):
		// A network file system may carry out a request and lose the response.
		if a, statErr := os.Stat(own); statErr == nil {
			if b, statErr := os.Stat(file); statErr == nil && os.SameFile(a, b) {
				err = nil
				break
			}
		}
		err = ErrExists
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS),
		errors.Is(err, syscall.EMLINK), errors.Is(err, errors.ErrUnsupported):
		err = fmt.Errorf("%w (%v)", errNoLinks, errors.Unwrap(err))
	}
	if removeErr := os.Remove(own); err == nil {
		err = removeErr
	}
	return err
}

func (f folder) Put(_ context.Context, name string, body []byte) error {
	return f.put(name, bytes.NewReader(body))
}

func (f folder) PutFile(_ context.Context, name, file string) error {
	from, err := os.Open(file)
	if err != nil {
		return err
	}
	defer from.Close()
	return f.put(name, from)
}

func (f folder) put(name string, from io.Reader) error {
	to := f.file(name)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(to, atomicfile.Options{Perm: 0o600}, func(w io.Writer) error {
		_, err := io.Copy(w, from)
		return err
	})
}

func (f folder) Get(_ context.Context, name string) ([]byte, error) { return os.ReadFile(f.file(name)) }

func (f folder) GetRange(_ context.Context, name string, from, n int64) (body []byte, err error) {
	file, err := os.Open(f.file(name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	body = make([]byte, n)
	if _, err = file.ReadAt(body, from); errors.Is(err, io.EOF) {
		err = fmt.Errorf("%s ends before byte %d", name, from+n)
	}
	return body, err
}

func (f folder) List(_ context.Context, prefix string) (names []string, err error) {
	top := f.file(prefix[:strings.LastIndex(prefix, "/")+1])
	err = filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was never put, or has been deleted
		}
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(f.path, name)
		if rel = filepath.ToSlash(rel); err == nil && strings.HasPrefix(rel, prefix) && !strings.HasSuffix(rel, ownSuffix) &&
			!strings.HasSuffix(rel, atomicfile.Suffix) {
			names = append(names, rel)
		}
		return err
	})
	slices.Sort(names)
	return names, err
}

func (f folder) Delete(_ context.Context, name string) error {
	if err := os.Remove(f.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
