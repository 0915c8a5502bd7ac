package spill

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"example.com/tsimport/internal/conformance"
	"pgregory.net/rapid"
)

var must = conformance.Must

func open(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s := conformance.Try(Open(o)).Must(t)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func write(t testing.TB, s *Store, data ...[]byte) Frame {
	t.Helper()
	return conformance.Try(s.Write(data...)).Must(t)
}

// noise returns incompressible bytes.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)}).Read(b)
	return b
}

// rows returns bytes that resemble rows: all names and some values repeat.
func rows(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 2))
	var b []byte
	for len(b) < n {
		b = fmt.Appendf(b, "\x03\x04CardID\x05%08x\x03\x04Student\x05name %d\x03\x04Amount\x05%d.%02d", r.Uint32(),
			r.IntN(5000), r.IntN(900), r.IntN(100))
	}
	return b[:n]
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	for _, e := range conformance.Try(os.ReadDir(dir)).Must(t) {
		found = append(found, e.Name())
	}
	return found
}

func TestFrameIsConcatenationOfWrites(t *testing.T) {
	s := open(t, Options{})
	for _, parts := range [][][]byte{
		{}, {nil}, {{}}, {{'x'}}, {[]byte("ab"), nil, []byte("c")}, {rows(1, 100)}, {rows(2, 256<<10)},
		{noise(3, blockBytes)}, {noise(4, blockBytes+1)}, {rows(5, 1<<20), noise(6, 1<<20), rows(7, 3<<20)},
	} {
		want := append([]byte("before"), bytes.Join(parts, nil)...)
		f := write(t, s, parts...)
		conformance.Equal(t, f.kept.raw, len(want)-len("before"), "frame of %d bytes", len(want)-len("before"))
		for range 2 { // a frame can be read more than once
			got, err := s.Read(f, []byte("before"))
			conformance.True(t, err == nil && bytes.Equal(got, want),
				"frame of %d parts, %d bytes: reads as %d bytes, %v", len(parts), f.kept.raw, len(got)-len("before"), err)
		}
	}
}

func TestReadReusesLargeBuffer(t *testing.T) {
	s := open(t, Options{})
	data := rows(1, 1<<20)
	f := write(t, s, data)
	buf := make([]byte, 0, len(data))
	got, err := s.Read(f, buf)
	conformance.True(t, err == nil && &got[:1][0] == &buf[:1][0], "another buffer, %v", err)
}

// TestOperationsKeepFramesAndReuseSpace compares a store with a map, and its file with the most space used at once.
func TestOperationsKeepFramesAndReuseSpace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir := conformance.Try(os.MkdirTemp("", "spill-test-*")).Must(t)
		defer os.RemoveAll(dir)
		s := conformance.Try(Open(Options{Dir: dir})).Must(t)
		defer s.Close()
		model := map[Frame][]byte{}
		var order []Frame
		var live, peak, raw int64
		blocks := func(f Frame) int64 { return int64(f.kept.disk+blockBytes-1) / blockBytes * blockBytes }
		pick := func(t *rapid.T) int {
			if len(order) == 0 {
				t.Skip("no frame")
			}
			return rapid.IntRange(0, len(order)-1).Draw(t, "frame")
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				data := noise(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 10*blockBytes).Draw(t, "bytes"))
				cut := rapid.IntRange(0, len(data)).Draw(t, "cut")
				f := conformance.Try(s.Write(data[:cut], data[cut:])).Must(t)
				model[f], order = data, append(order, f)
				live, raw = live+blocks(f), raw+int64(len(data))
				peak = max(peak, live)
			},
			"free": func(t *rapid.T) {
				i := pick(t)
				f := order[i]
				order = append(order[:i], order[i+1:]...)
				s.Free(f)
				s.Free(f)
				live, raw = live-blocks(f), raw-int64(len(model[f]))
				delete(model, f)
				got, err := s.Read(f, nil)
				conformance.MustTrue(t, err != nil, "a freed frame reads as %d bytes", len(got))
			},
			"read": func(t *rapid.T) {
				f := order[pick(t)]
				got, err := s.Read(f, nil)
				conformance.MustTrue(t, err == nil && bytes.Equal(got, model[f]), "%d, %v, want %d", len(got), err, len(model[f]))
			},
			"": func(t *rapid.T) {
				u := s.Usage()
				if u.Frames != len(model) || u.RawBytes != raw || u.DiskBytes < live || u.PeakDiskBytes > peak {
					t.Fatalf("%+v with %d frames, %d raw bytes, %d live bytes on disk, at most %d", u, len(model), raw, live, peak)
				}
				conformance.MustTrue(t, len(model) != 0 || u.DiskBytes == 0, "no frame and %d bytes on disk", u.DiskBytes)
			},
		})
		for f, want := range model {
			got, err := s.Read(f, nil)
			conformance.MustTrue(t, err == nil && bytes.Equal(got, want), "in the end %d bytes, %v", len(got), err)
		}
	})
}

func TestFileLengthEqualsUsage(t *testing.T) {
	s := open(t, Options{})
	var frames []Frame
	for i := range 10 {
		frames = append(frames, write(t, s, noise(uint64(i), 3*blockBytes)))
	}
	length := func() int64 {
		t.Helper()
		return conformance.Try(os.Stat(s.folder.framesPath())).Must(t).Size()
	}
	for i := range frames {
		// Only the used part of the last block is written.
		got, most := length(), s.Usage().DiskBytes
		conformance.True(t, got <= most && got > most-blockBytes, "the file has %d bytes, usage says %d", got, most)
		s.Free(frames[len(frames)-1-i])
	}
	conformance.Equal(t, length(), 0, "bytes without a frame")
}

func TestLongLivedFrameDoesNotWasteSpace(t *testing.T) {
	s := open(t, Options{})
	var live int64
	for i := range 200 { // every tenth frame is kept; the holes between them differ from the next frame by a block
		f := write(t, s, noise(uint64(i), (i%7+1)*blockBytes-50))
		if i%10 == 0 {
			live += int64(f.kept.disk)
		} else {
			s.Free(f)
		}
	}
	u := s.Usage()
	conformance.True(t, u.DiskBytes <= 2*live, "%d bytes on disk for %d", u.DiskBytes, live)
}

func TestUnwrittenFrameCannotBeRead(t *testing.T) {
	s := open(t, Options{})
	conformance.Refused(t, conformance.ErrorOf(s.Read(Frame{}, nil)), "", "the zero frame can be read")
	s.Free(Frame{})
}

func TestClosedStoreRefusesUse(t *testing.T) {
	dir := t.TempDir()
	s := conformance.Try(Open(Options{Dir: dir})).Must(t)
	f := write(t, s, []byte("x"))
	for range 2 {
		must(t, s.Close())
	}
	left := names(t, dir)
	conformance.True(t, len(left) == 0, "left behind: %v", left)
	conformance.Refused(t, conformance.ErrorOf(s.Write([]byte("y"))), "", "it takes a frame")
	conformance.Refused(t, conformance.ErrorOf(s.Read(f, nil)), "", "it reads a frame")
	s.Free(f)
	u := s.Usage()
	conformance.True(t, u.Frames == 0 && u.DiskBytes == 0 && u.WrittenBytes != 0, "%+v", u)
}

func TestConcurrentWritesReadsAndFrees(t *testing.T) {
	s := open(t, Options{})
	var wait sync.WaitGroup
	for w := range 4 {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 3))
			kept := map[Frame]uint64{}
			for i := range 150 {
				seed := uint64(w*1000 + i)
				f, err := s.Write(rows(seed, r.IntN(100<<10)), noise(seed, 5000))
				if err != nil {
					t.Error(err)
					return
				}
				kept[f] = seed
				for f, seed := range kept { // in random order
					got, err := s.Read(f, nil)
					conformance.True(t, err == nil && bytes.HasSuffix(got, noise(seed, 5000)), "frame %d: %x, %v", seed, got, err)
					if len(kept) > 5 || r.IntN(2) == 0 {
						s.Free(f)
						delete(kept, f)
					}
					s.Usage()
					break
				}
			}
			for f := range kept {
				s.Free(f)
			}
		})
	}
	wait.Wait()
	u := s.Usage()
	conformance.True(t, u.Frames == 0 && u.RawBytes == 0 && u.DiskBytes == 0, "in the end %+v", u)
}

func TestOthersCannotReadSpilledRows(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions are inherited there")
	}
	s := open(t, Options{})
	write(t, s, []byte("secret"))
	must(t, filepath.WalkDir(s.folder.path, func(path string, e fs.DirEntry, err error) error {
		must(t, err)
		mode := conformance.Try(e.Info()).Must(t).Mode()
		conformance.Equal(t, mode.Perm()&0o077, 0, "%s has mode %v", path, mode)
		return nil
	}))
}

// TestSpaceIsNeverSharedOrLost compares space with a list of each block's owner.
func TestSpaceIsNeverSharedOrLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int64{0, 20 * blockBytes}).Draw(t, "limit")
		s := space{max: limit}
		var used [200]bool
		var frames [][]extent
		inUse := func() (n, end int64) {
			for i, u := range used {
				if u {
					n, end = n+1, int64(i+1)
				}
			}
			return n, end
		}
		mark := func(extents []extent, as bool) {
			for _, e := range extents {
				for b := e.at / blockBytes; b < e.end()/blockBytes; b++ {
					conformance.MustTrue(t, used[b] != as, "block %d of %v is in use: %v", b, extents, as)
					used[b] = as
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			if len(frames) > 0 && rapid.Bool().Draw(t, "give") {
				i := rapid.IntRange(0, len(frames)-1).Draw(t, "frame")
				mark(frames[i], false)
				s.give(frames[i])
				frames = slices.Delete(frames, i, i+1)
			} else {
				bytes := rapid.IntRange(0, 3*blockBytes).Draw(t, "bytes")
				before, _ := inUse()
				need := int64(bytes+blockBytes-1) / blockBytes
				extents, ok := s.take(bytes)
				conformance.MustEqual(t, ok, limit == 0 || (before+need)*blockBytes <= limit, "%d blocks by %d", need, before)
				mark(extents, true)
				after, _ := inUse()
				conformance.MustTrue(t, !ok || after == before+need, "%d blocks wanted, %d taken", need, after-before)
				if ok {
					frames = append(frames, extents)
				}
			}
			n, end := inUse()
			free := int64(0)
			for i, h := range s.holes {
				free += h.bytes / blockBytes
				conformance.MustTrue(t, h.bytes > 0 && h.end() < s.end && (i == 0 || s.holes[i-1].end() < h.at), "%v", s.holes)
			}
			conformance.MustTrue(t, s.end == end*blockBytes && n+free == end, "%d, %d free, the end is %d", n, free, s.end)
		}
	})
}

func TestKeptFrameIsReadInParts(t *testing.T) {
	s := conformance.Try(Open(Options{Dir: t.TempDir(), MaxBytes: 12 * blockBytes})).Must(t)
	var holes []Frame
	for range 8 { // every second frame leaves a hole
		holes = append(holes, conformance.Try(s.Keep(make([]byte, blockBytes))).Must(t))
	}
	for i := 0; i < len(holes); i += 2 {
		s.Free(holes[i])
	}
	data := make([]byte, 5*blockBytes+100)
	for i := range data {
		data[i] = byte(i / 7)
	}
	f := conformance.Try(s.Keep(data)).Must(t)
	conformance.MustTrue(t, len(f.kept.extents) >= 3, "it is in %d pieces", len(f.kept.extents))
	for at := 0; at < len(data); at += 1000 {
		for _, n := range []int{1, 100, 2 * blockBytes, len(data)} {
			part := make([]byte, min(n, len(data)-at))
			must(t, s.ReadAt(f, part, int64(at)))
			conformance.MustEqual(t, bytes.Equal(part, data[at:][:len(part)]), true, "%d bytes from %d on are others", n, at)
		}
	}
	conformance.Is(t, conformance.ErrorOf(s.Keep(data)), ErrFull, "beyond the limit")
	s.Free(f)
	for name, of := range map[string]Frame{"freed": f, "never written": {}} {
		conformance.Refused(t, s.ReadAt(of, make([]byte, 1), 0), "", "%s: it is read", name)
	}
	must(t, s.Close())
	conformance.Is(t, s.ReadAt(holes[1], make([]byte, 1), 0), errClosed, "closed")
}

// childDir is the environment variable with the directory that a child process spills to.
const childDir = "TSIMPORT_TEST_SPILL_DIR"

// TestChildSpills runs only in the child processes of other tests.
func TestChildSpills(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("the child of another test")
	}
	must(t, conformance.ErrorOf(conformance.Try(Open(Options{Dir: dir})).Must(t).Write([]byte("rows"))))
	os.Stdout.WriteString("spilled\n")
	_, _ = io.Copy(io.Discard, os.Stdin) // wait until the parent kills this process or exits
}

// child starts a process and waits until it has spilled to dir; kill kills it.
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

func TestNextRunRemovesFolderOfKilledRun(t *testing.T) {
	dir := t.TempDir()
	kill := child(t, dir)
	open(t, Options{Dir: dir})
	found := names(t, dir)
	conformance.True(t, len(found) == 1 && strings.HasPrefix(found[0], folderPrefix), "while the other lives: %v", found)
	kill()
	open(t, Options{Dir: dir})
	conformance.Equal(t, len(names(t, dir)), 0, "after it was killed")
}

func TestLiveStoresShareDirectory(t *testing.T) {
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

func TestStoreWithoutFramesHasNoFolder(t *testing.T) {
	dir := t.TempDir()
	open(t, Options{Dir: dir})
	conformance.Equal(t, len(names(t, dir)), 0, "names")
}

// TestOnlyAbandonedFoldersOfRunsAreRemoved fills a directory with folders that only resemble abandoned ones.
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
	put(folderPrefix+"1-notes/todo.txt", "mine")                  // has no lock
	put(folderPrefix+"2-notes/"+lockName, "mine")                 // has the lock file of something else
	put(folderPrefix+"3-cut/"+lockName, lockText)                 // the text of the lock file is cut off
	put(folderPrefix+"3-being-made/"+lockName, "")                // the text of the lock file is not written yet
	put(folderPrefix+"4-a-file", deadLock)                        // is not a folder
	put(folderPrefix+"5-lock-is-a-folder/"+lockName+"/x", "mine") // has a folder in place of the lock file
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

func TestMissingDirectoryErrorNamesRemedy(t *testing.T) {
	_, err := Open(Options{Dir: filepath.Join(t.TempDir(), "missing")})
	conformance.True(t, err != nil && strings.Contains(err.Error(), "missing") && strings.Contains(err.Error(), "TMPDIR"),
		"%v", err)
}

func TestUnwritableDirectoryFailsAtFirstFrame(t *testing.T) {
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
	s.Free(a) // leaves a hole of three blocks, which can hold a frame of four with the block after the end
	third := noise(4, 4*blockBytes-50)
	got, err := s.Read(write(t, s, third), nil)
	conformance.True(t, err == nil && bytes.Equal(got, third), "a frame in two pieces: %v", err)
	conformance.Equal(t, s.Usage().DiskBytes, 10*blockBytes, "bytes on disk")
}

// failing is a file on which a chosen write, read or truncation fails.
type failing struct {
	file
	mu             sync.Mutex
	failWrite      error // error of the next write that fails, after half its bytes
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

func TestFailedWriteKeepsEarlierFrames(t *testing.T) {
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
			u.PeakDiskBytes = before.PeakDiskBytes // the failed write needed it for a moment
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

func TestDamagedFrameErrorNamesFile(t *testing.T) {
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
