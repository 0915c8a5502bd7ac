package spill

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
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

// rows returns bytes like those of rows: repeated names, values that partly repeat.
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
		for range 2 { // reading does not use a frame up
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

// TestAnyOperationsKeepFramesAndReuseSpace compares a store with a map, and its disk usage with the largest need at any
// moment.
func TestAnyOperationsKeepFramesAndReuseSpace(t *testing.T) {
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
		// The last block is written only as far as it is used.
		got, most := length(), s.Usage().DiskBytes
		conformance.True(t, got <= most && got > most-blockBytes, "the file has %d bytes, usage says %d", got, most)
		s.Free(frames[len(frames)-1-i])
	}
	conformance.Equal(t, length(), 0, "bytes without a frame")
}

func TestLongLivedFrameDoesNotWasteSpace(t *testing.T) {
	s := open(t, Options{})
	var live int64
	for i := range 200 { // every tenth stays, the others leave holes of one block more or less than is needed next
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

func TestFramesComeAndGoConcurrently(t *testing.T) {
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
				for f, seed := range kept { // in any order
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

// TestSpaceIsNeverGivenTwiceAndNeverLost keeps a list of each block's owner.
func TestSpaceIsNeverGivenTwiceAndNeverLost(t *testing.T) {
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
	for range 8 { // of which every other one leaves a hole
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
