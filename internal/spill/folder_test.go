package spill

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"example.com/tsimport/internal/conformance"
)

// childDir names, in the environment of a child process, the directory it spills to.
const childDir = "TSIMPORT_TEST_SPILL_DIR"

// TestChildSpills is not a test of its own: the other tests run it in their child processes.
func TestChildSpills(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("the child of another test")
	}
	must(t, conformance.ErrorOf(conformance.Try(Open(Options{Dir: dir})).Must(t).Write([]byte("rows"))))
	os.Stdout.WriteString("spilled\n")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent kills this process or ends itself
}

// child starts a process that has spilled to dir; kill ends it.
func child(t *testing.T, dir string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildSpills$")
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	in := conformance.Try(cmd.StdinPipe()).Must(t)
	out := conformance.Try(cmd.StdoutPipe()).Must(t)
	must(t, cmd.Start())
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		in.Close()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "spilled\n" {
		kill()
		t.Fatalf("the child says %q, %v", line, err)
	}
	return kill
}

func TestTheFolderOfAKilledRunIsRemovedByTheNext(t *testing.T) {
	dir := t.TempDir()
	kill := child(t, dir)
	open(t, Options{Dir: dir})
	found := names(t, dir)
	conformance.True(t, len(found) == 1 && strings.HasPrefix(found[0], folderPrefix), "while the other lives: %v", found)
	kill()
	open(t, Options{Dir: dir})
	conformance.Equal(t, len(names(t, dir)), 0, "after it was killed")
}

func TestLiveStoresInOneDirectoryLeaveEachOtherAlone(t *testing.T) {
	dir := t.TempDir()
	a := open(t, Options{Dir: dir})
	inA := write(t, a, []byte("a"))
	b := open(t, Options{Dir: dir})
	inB := write(t, b, []byte("b"))
	open(t, Options{Dir: dir})
	for s, f := range map[*Store]Frame{a: inA, b: inB} {
		got, err := s.Read(f, nil)
		conformance.True(t, err == nil && len(got) == 1, "%q, %v", got, err)
	}
	conformance.Equal(t, len(names(t, dir)), 2, "names")
	must(t, a.Close())
	conformance.Equal(t, string(conformance.Try(b.Read(inB, nil)).Must(t)), "b", "after the other was closed")
}

func TestWithoutAFrameThereIsNoFolder(t *testing.T) {
	dir := t.TempDir()
	open(t, Options{Dir: dir})
	conformance.Equal(t, len(names(t, dir)), 0, "names")
}

// TestOnlyAbandonedFoldersOfRunsAreRemoved fills a directory with near misses.
func TestOnlyAbandonedFoldersOfRunsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	put := func(name, content string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(content), 0o600))
	}
	const deadLock = lockText + "1\n"
	put(folderPrefix+"0-dead/"+lockName, deadLock)
	put(folderPrefix+"0-dead/"+framesName, "rows")
	put(folderPrefix+"0-dead-before-its-file/"+lockName, deadLock)
	put(folderPrefix+"1-notes/todo.txt", "mine")                  // no lock
	put(folderPrefix+"2-notes/"+lockName, "mine")                 // a lock file of something else
	put(folderPrefix+"3-cut/"+lockName, lockText)                 // cut off
	put(folderPrefix+"3-being-made/"+lockName, "")                // not locked yet
	put(folderPrefix+"4-a-file", deadLock)                        // no folder
	put(folderPrefix+"5-lock-is-a-folder/"+lockName+"/x", "mine") // no file
	put("elsewhere/"+lockName, deadLock)
	put("elsewhere/"+framesName, "mine")
	for _, link := range [][2]string{
		{"elsewhere", folderPrefix + "6-link-to-a-folder"},
		{"../elsewhere/" + lockName, folderPrefix + "7-link-to-a-lock/" + lockName},
	} {
		path := filepath.Join(dir, filepath.FromSlash(link[1]))
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if err := os.Symlink(filepath.FromSlash(link[0]), path); err != nil {
			t.Skipf("no links here: %v", err)
		}
	}
	put(folderPrefix+"8-dead-with-a-guest/"+lockName, deadLock)
	put(folderPrefix+"8-dead-with-a-guest/guest", "mine")

	var want []string
	for _, name := range names(t, dir) {
		if !strings.HasPrefix(name, folderPrefix+"0") {
			want = append(want, name)
		}
	}
	open(t, Options{Dir: dir})
	conformance.Same(t, names(t, dir), want, "files that are left")
	for _, name := range []string{folderPrefix + "1-notes/todo.txt", folderPrefix + "2-notes/" + lockName,
		"elsewhere/" + framesName, "elsewhere/" + lockName, folderPrefix + "8-dead-with-a-guest/guest"} {
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		conformance.True(t, err == nil && bytes.Contains([]byte("mine"+deadLock), content), "%s: %q, %v", name, content, err)
	}
}

func TestAMissingDirectoryIsAnErrorThatSaysWhatToDo(t *testing.T) {
	_, err := Open(Options{Dir: filepath.Join(t.TempDir(), "missing")})
	conformance.True(t, err != nil && strings.Contains(err.Error(), "missing") && strings.Contains(err.Error(), "TMPDIR"),
		"%v", err)
}

func TestADirectoryThatCannotBeWrittenToFailsAtTheFirstFrame(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	must(t, os.RemoveAll(dir))
	conformance.Refused(t, conformance.ErrorOf(s.Write([]byte("x"))), dir, "error")
}

func TestForeignFileInFolderIsNotRemoved(t *testing.T) {
	s := conformance.Try(Open(Options{Dir: t.TempDir()})).Must(t)
	write(t, s, []byte("x"))
	guest := filepath.Join(s.folder.path, "guest")
	must(t, os.WriteFile(guest, nil, 0o600))
	conformance.Refused(t, s.Close(), s.folder.path, "error")
	conformance.Must(t, conformance.ErrorOf(os.Stat(guest)))
}

func TestFullStoreKeepsEarlierFrames(t *testing.T) {
	s := open(t, Options{MaxBytes: 10*blockBytes + 1})
	first, second := noise(1, 3*blockBytes-50), noise(2, 6*blockBytes-50)
	a, b := write(t, s, first), write(t, s, second)
	before := s.Usage()
	_, err := s.Write(noise(3, 2*blockBytes))
	conformance.MustTrue(t, errors.Is(err, ErrFull), "a frame too many: %v", err)
	conformance.Equal(t, s.Usage(), before, "usage after the refused frame")
	for f, want := range map[Frame][]byte{a: first, b: second} {
		got, err := s.Read(f, nil)
		conformance.True(t, err == nil && bytes.Equal(got, want), "an earlier frame: %v", err)
	}
	s.Free(a) // leaves a hole of three blocks; with the one after the end it holds a frame of four
	third := noise(4, 4*blockBytes-50)
	got, err := s.Read(write(t, s, third), nil)
	conformance.True(t, err == nil && bytes.Equal(got, third), "a frame in two pieces: %v", err)
	conformance.Equal(t, s.Usage().DiskBytes, 10*blockBytes, "bytes on disk")
}

// failing is a file on which the n-th operation of a kind fails.
type failing struct {
	file
	mu             sync.Mutex
	failWrite      error // what the next write that is not passed fails with, after half of it
	pass           int
	corrupt, short bool
}

func (f *failing) WriteAt(b []byte, at int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pass--; f.pass < 0 && f.failWrite != nil {
		n, _ := f.file.WriteAt(b[:len(b)/2], at)
		return n, &fs.PathError{Op: "write", Path: framesName, Err: f.failWrite}
	}
	return f.file.WriteAt(b, at)
}

func (f *failing) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.file.ReadAt(b, at)
	if f.corrupt && n > 0 {
		b[n/2] ^= 1
	}
	if f.short {
		return n / 2, errors.New("input/output error")
	}
	return n, err
}

// failingStore makes a store on a failing file that does not fail yet.
func failingStore(t *testing.T) (*Store, *failing) {
	s, f := open(t, Options{}), &failing{}
	s.create = func(path string) (inner file, err error) {
		f.file, err = createFile(path)
		return f, err
	}
	return s, f
}

func TestAFailedWriteLeavesEarlierFramesIntact(t *testing.T) {
	for _, tt := range []struct {
		cause error
		full  bool
	}{{syscall.ENOSPC, true}, {syscall.EDQUOT, true}, {syscall.EIO, false}} {
		for pass := range 2 {
			s, disk := failingStore(t)
			data := noise(1, 4*blockBytes)
			hole, a := write(t, s, noise(0, blockBytes/2)), write(t, s, data)
			s.Free(hole) // the next frame is written in two pieces
			before := s.Usage()
			disk.failWrite, disk.pass = tt.cause, pass
			_, err := s.Write(noise(2, 3*blockBytes))
			conformance.True(t, err != nil && errors.Is(err, ErrFull) == tt.full && errors.Is(err, tt.cause),
				"%v at piece %d: %v", tt.cause, pass, err)
			u := s.Usage()
			u.PeakDiskBytes = before.PeakDiskBytes // it was needed for a moment
			conformance.Equal(t, u, before, "%v at piece %d: usage", tt.cause, pass)
			got, err := s.Read(a, nil)
			conformance.True(t, err == nil && bytes.Equal(got, data), "%v at %d: the earlier frame: %v", tt.cause, pass, err)
			disk.failWrite = nil
			got, err = s.Read(write(t, s, data), nil)
			conformance.True(t, err == nil && bytes.Equal(got, data), "%v at piece %d: a later frame: %v", tt.cause, pass, err)
		}
	}
}

func TestUnusableFolderLeavesNothing(t *testing.T) {
	s := open(t, Options{})
	s.create = func(string) (file, error) {
		return nil, &fs.PathError{Op: "open", Path: framesName, Err: syscall.ENOSPC}
	}
	conformance.Is(t, conformance.ErrorOf(s.Write([]byte("x"))), ErrFull, "error")
	left := names(t, s.dir)
	conformance.True(t, len(left) == 0, "left behind: %v", left)
	s.create = createFile
	write(t, s, []byte("x"))
}

func TestADamagedFrameIsAnErrorThatNamesTheFile(t *testing.T) {
	for name, damage := range map[string]func(*Store, *failing){
		"a flipped bit":   func(_ *Store, f *failing) { f.corrupt = true },
		"a failing disk":  func(_ *Store, f *failing) { f.short = true },
		"a file cut off":  func(_ *Store, f *failing) { _ = f.Truncate(10) },
		"another's bytes": func(_ *Store, f *failing) { _, _ = f.file.WriteAt(noise(9, blockBytes), 0) },
	} {
		s, disk := failingStore(t)
		f := write(t, s, rows(1, 1<<20))
		damage(s, disk)
		got, err := s.Read(f, []byte("before"))
		conformance.True(t, err != nil && strings.Contains(err.Error(), s.folder.framesPath()) && string(got) == "before",
			"%s: %d bytes, %v", name, len(got), err)
		disk.corrupt, disk.short = false, false
		got, err = s.Read(write(t, s, rows(2, 1<<20)), nil)
		conformance.True(t, err == nil && bytes.Equal(got, rows(2, 1<<20)), "%s: the next frame: %v", name, err)
	}
}
