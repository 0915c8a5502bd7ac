package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"example.com/tsimport/internal/conformance"
)

// system stands in for the file operations: it records the calls and lets one of them fail.
type system struct {
	calls []string
	fail  int // number of the call that fails; negative means none
	err   error
}

var must = conformance.Must

func fake(t *testing.T, fail int, err error) *system {
	s := &system{fail: fail, err: err}
	oldSync, oldClose, oldRename := syncFile, closeIt, rename
	t.Cleanup(func() { syncFile, closeIt, rename = oldSync, oldClose, oldRename })
	nothing := func() error { return nil }
	syncFile = func(f *os.File) error { return s.call("sync "+filepath.Base(f.Name()), nothing) }
	closeIt = func(f *os.File) error {
		return errors.Join(f.Close(), s.call("close "+filepath.Base(f.Name()), nothing))
	}
	rename = func(from, to string) error {
		return s.call("rename "+filepath.Base(from)+" "+filepath.Base(to), func() error { return os.Rename(from, to) })
	}
	return s
}

func (s *system) call(what string, do func() error) error {
	s.calls = append(s.calls, what)
	if len(s.calls)-1 == s.fail {
		return s.err
	}
	return do()
}

func content(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "none"
	}
	must(t, err)
	return string(text)
}

func put(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o600))
}

func TestSyncAndRenameOrder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("folders are not synced there")
	}
	dir := filepath.Join(t.TempDir(), "folder")
	must(t, os.Mkdir(dir, 0o700))
	name := filepath.Join(dir, "a")
	put(t, name, "old")
	s := fake(t, -1, nil)
	must(t, WriteBytes(name, Options{Perm: 0o600, Previous: "before"}, []byte("new")))
	want := []string{"sync a.part", "close a.part", "rename a before", "rename a.part a", "sync folder", "close folder"}
	conformance.Same(t, s.calls, want, "calls")
	conformance.Equal(t, content(t, name)+" "+content(t, filepath.Join(dir, "before")), "new old", "content")
}

func TestFailureLeavesOldOrNewContent(t *testing.T) {
	for _, previous := range []string{"", "before"} {
		broken := errors.New("broken")
		for fail := 0; ; fail++ {
			dir := t.TempDir()
			name := filepath.Join(dir, "a")
			put(t, name, "old")
			s := fake(t, fail, broken)
			err := WriteBytes(name, Options{Perm: 0o600, Previous: previous}, []byte("new"))
			if fail >= len(s.calls) {
				conformance.True(t, err == nil && fail >= 5, "nothing failed in %d operations: %v", len(s.calls), err)
				break
			}
			what := s.calls[fail]
			conformance.Is(t, err, broken, "%s failed", what)
			want := "old"
			switch renamed := slices.Index(s.calls, "rename a.part a"); {
			case fail == renamed && previous != "":
				want = "none"
				conformance.Equal(t, content(t, filepath.Join(dir, previous)), "old", "%s failed: before", what)
			case renamed >= 0 && fail > renamed:
				want = "new"
			}
			conformance.Equal(t, content(t, name), want, "%s failed", what)
			conformance.Equal(t, content(t, name+Suffix), "none", "%s failed: what is left", what)
		}
	}
}

func TestWriteErrorChangesNothing(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	put(t, name, "old")
	broken := errors.New("broken")
	err := Write(name, Options{Perm: 0o600}, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return broken
	})
	conformance.True(t, errors.Is(err, broken) && content(t, name) == "old" && content(t, name+Suffix) == "none",
		"%v, %s, %s", err, content(t, name), content(t, name+Suffix))
}

func TestUnsyncableFolderIsNotAnError(t *testing.T) {
	for _, cannot := range []error{syscall.EINVAL, syscall.ENOSYS, errors.ErrUnsupported} {
		name := filepath.Join(t.TempDir(), "a")
		fake(t, 3, cannot) // the call after sync, close and rename fails
		err := WriteBytes(name, Options{Perm: 0o600}, []byte("new"))
		conformance.True(t, err == nil && content(t, name) == "new", "%v: %v, %s", cannot, err, content(t, name))
		fake(t, 0, cannot)
		err = WriteBytes(name, Options{Perm: 0o600}, []byte("newer"))
		conformance.True(t, errors.Is(err, cannot) && content(t, name) == "new", "%v: %v", cannot, err)
	}
}

func TestTemporaryNameIsNeverReused(t *testing.T) {
	dir := t.TempDir()
	name, victim := filepath.Join(dir, "a"), filepath.Join(dir, "victim")
	put(t, victim, "mine")
	if err := os.Symlink(victim, name+Suffix); err != nil {
		t.Skip(err)
	}
	must(t, WriteBytes(name, Options{Perm: 0o600}, []byte("new")))
	conformance.Equal(t, content(t, name)+" "+content(t, victim), "new mine", "content")
	must(t, os.Mkdir(name+Suffix, 0o700))
	conformance.Is(t, WriteBytes(name, Options{Perm: 0o600}, []byte("newer")), fs.ErrExist, "a folder")
	_, err := os.Stat(name + Suffix)
	conformance.True(t, err == nil && content(t, name) == "new", "%v, %s", err, content(t, name))
}

func TestOneOfTwoWritersCommits(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is open cannot be removed there: the second writer gets the error")
	}
	name := filepath.Join(t.TempDir(), "a")
	err := Write(name, Options{Perm: 0o600}, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		second, err := New(name+Suffix, 0o600)
		if err != nil {
			return err
		}
		_, err = second.WriteString("second")
		return errors.Join(err, second.Close())
	})
	conformance.Refused(t, err, "another process", "the first")
	conformance.Equal(t, fmt.Sprint(content(t, name), " ", content(t, name+Suffix)), "none second", "content")
}

func TestFileWrittenOverTimeIsCommitted(t *testing.T) {
	dir := t.TempDir()
	f := conformance.Try(New(filepath.Join(dir, "rows.part"), 0o600)).Must(t)
	must(t, conformance.ErrorOf(f.WriteString("rows")))
	name := filepath.Join(dir, "rows")
	broken := errors.New("broken")
	s := fake(t, 2, broken) // the rename fails
	err := Commit(f, name)
	conformance.True(t, errors.Is(err, broken) && content(t, name+".part") == "rows" && content(t, name) == "none",
		"%q: %v", s.calls, err)
	s.fail = -1
	f = conformance.Try(os.OpenFile(name+".part", os.O_RDWR, 0)).Must(t)
	if err := Commit(f, name); err != nil || content(t, name) != "rows" || content(t, name+".part") != "none" {
		t.Errorf("%q: %v", s.calls, err)
	}
}
