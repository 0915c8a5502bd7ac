package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"example.com/tsimport/internal/atomicfile"
)

// place is where a Writer writes. Puts are atomic. put, replace, Open and Path may run concurrently.
type place interface {
	Files
	String() string
	// lock excludes other writers. If there is one, the error is an OccupiedError.
	lock() error
	unlock() error
	// sizes returns the size of every file by name, or -1 if unknown. It includes leftovers and foreign files.
	sizes() (map[string]int64, error)
	remove(name string) error
	put(name string, body []byte) error
	replace(name string, body []byte) error

	// beginJournal writes a journal's first line. continueJournal returns the complete lines.
	beginJournal(line []byte) error
	continueJournal() (whole []byte, err error) // fs.ErrNotExist if there is no journal
	appendJournal(line []byte) error            // the line is durable on return
	closeJournal() error
	// clean removes the journal and all other files that only writing needs.
	clean() error
}

// folder is a place in the file system.
type folder struct {
	localFiles
	held    *flock.Flock
	journal *os.File
	torn    error // why the journal's last line may be incomplete
}

func newFolder(dir string) (*folder, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("create archive folder: %w", err)
	}
	return &folder{localFiles: localFiles(dir), held: flock.New(filepath.Join(dir, lockName),
		flock.SetFlag(os.O_CREATE|os.O_RDWR))}, nil
}

func (f *folder) String() string { return string(f.localFiles) }

func (f *folder) lock() error {
	switch locked, err := f.held.TryLock(); {
	case err != nil:
		return fmt.Errorf("lock archive folder %s: %w", f, err)
	case !locked:
		return &OccupiedError{f.String(), "is being written by another process"}
	}
	return nil
}

func (f *folder) unlock() error { return f.held.Unlock() }

func (f *folder) sizes() (map[string]int64, error) {
	sizes := make(map[string]int64)
	err := filepath.WalkDir(f.String(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(f.String(), path)
		name = filepath.ToSlash(name)
		sizes[name] = -1
		if info, err := e.Info(); err == nil {
			sizes[name] = info.Size()
		}
		return err
	})
	return sizes, err
}

func (f *folder) remove(name string) error {
	if err := os.Remove(f.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (f *folder) put(name string, body []byte) error {
	if err := atomicfile.MakeFolder(filepath.Dir(f.Path(name))); err != nil {
		return err
	}
	return f.replace(name, body)
}

func (f *folder) replace(name string, body []byte) error {
	return atomicfile.WriteBytes(f.Path(name), atomicfile.Options{Perm: 0o666}, body)
}

func (f *folder) beginJournal(line []byte) (err error) {
	if err := f.replace(journalName, line); err != nil {
		return err
	}
	f.journal, err = os.OpenFile(f.Path(journalName), os.O_WRONLY|os.O_APPEND, 0)
	return err
}

// continueJournal removes an incomplete last line, which nothing has relied on.
func (f *folder) continueJournal() ([]byte, error) {
	text, err := os.ReadFile(f.Path(journalName))
	if err != nil {
		return nil, err
	}
	whole := text[:strings.LastIndexByte(string(text), '\n')+1]
	if f.journal, err = os.OpenFile(f.Path(journalName), os.O_RDWR, 0); err != nil {
		return nil, err
	}
	if err = f.journal.Truncate(int64(len(whole))); err == nil {
		_, err = f.journal.Seek(0, io.SeekEnd)
	}
	return whole, err
}

// appendJournal refuses to write after an incomplete line.
func (f *folder) appendJournal(line []byte) error {
	if f.torn != nil {
		return f.torn
	}
	if _, f.torn = f.journal.Write(line); f.torn == nil {
		f.torn = f.journal.Sync()
	}
	return f.torn
}

func (f *folder) closeJournal() error {
	if f.journal == nil {
		return nil
	}
	return f.journal.Close()
}

func (f *folder) clean() error { return errors.Join(f.remove(journalName), f.remove(lockName)) }
