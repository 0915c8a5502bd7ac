package store

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

var tornRounds = flag.Int("torn-rounds", 4, "cuts and flips of each file by the tests of torn stores")

// storeAfter is the disk of a store of 400 rows, most of them synced in logs and some flushed, that was closed or not.
func storeAfter(t *testing.T, closed bool) (fs *vfs.MemFS, rows int64) {
	t.Helper()
	fs = vfs.NewCrashableMem()
	s := reopen(t, "d", Options{FS: fs})
	tab := newTable(t, s, -1, 1)
	for rows < 400 {
		if !tryPut(s, tab, rows, rows+1) {
			t.Fatal("refused")
		}
		if rows += 2; rows == 100 {
			must(t, s.flush())
		}
	}
	after := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
	must(t, s.Close())
	if closed {
		return fs, rows
	}
	return after, rows
}

func TestATornStoreDoesNotOpenShortAfterACrash(t *testing.T) { tear(t, false) }
func TestATornStoreDoesNotOpenShortAfterAClose(t *testing.T) { tear(t, true) }

// tear cuts each file of the store at many places, and flips bytes at many: what then opens must be whole, or say that
// it is not, when it is opened or when the damaged place is read.
func tear(t *testing.T, closed bool) {
	fs, rows := storeAfter(t, closed)
	if err := wholeOrError(fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))}), rows, true); err != nil {
		t.Fatalf("the store as it was: %v", err)
	}
	rng := rand.New(rand.NewPCG(2, 2))
	whole, refused := 0, 0
	for _, name := range files(t, fs) {
		size := len(contents(t, fs, name))
		for n := range *tornRounds {
			damage := cutAt(size * n / *tornRounds)
			if n%2 == 1 {
				damage = flip(rng.IntN(max(1, size)), byte(1+rng.IntN(255)))
			}
			torn := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})
			rewrite(t, torn, name, damage.apply)
			err := wholeOrError(torn, rows, false)
			if err != nil && err != errRefused {
				t.Errorf("%s, %s of %d bytes: %v", name, damage.what, size, err)
			}
			if err == nil {
				whole++
			} else {
				refused++
			}
		}
	}
	if whole == 0 || refused == 0 {
		t.Errorf("%d opened whole and %d were refused: the test damages nothing, or everything", whole, refused)
	}
	t.Logf("%d opened whole, %d were refused", whole, refused)
}

type damage struct {
	what  string
	apply func([]byte) []byte
}

func cutAt(n int) damage {
	return damage{fmt.Sprint("cut at ", n), func(b []byte) []byte { return b[:min(n, len(b))] }}
}

func flip(at int, by byte) damage {
	return damage{fmt.Sprint("flipped at ", at), func(b []byte) []byte {
		if at < len(b) {
			b[at] ^= by
		}
		return b
	}}
}

var errRefused = fmt.Errorf("refused with a clear error")

// wholeOrError opens a store and reads it all.
func wholeOrError(fs vfs.FS, rows int64, must bool) error {
	clear := func(err error) error {
		if must || strings.Contains(err.Error(), "\n") || err.Error() == "" {
			return err
		}
		return errRefused
	}
	s, err := Open("d", Options{FS: fs})
	if err != nil {
		return clear(err)
	}
	defer s.Close()
	keys, err := holds(s)
	if err != nil {
		return clear(readError(err))
	}
	if int64(len(keys)) != rows {
		return fmt.Errorf("it opened with %d of %d rows", len(keys), rows)
	}
	return nil
}

// files is the paths of all files of the store.
func files(t *testing.T, fs vfs.FS) (paths []string) {
	t.Helper()
	for _, dir := range []string{"d", "d/data"} {
		names, err := fs.List(dir)
		must(t, err)
		for _, name := range names {
			if info, err := fs.Stat(dir + "/" + name); err != nil {
				t.Fatal(err)
			} else if !info.IsDir() && info.Size() > 0 {
				paths = append(paths, dir+"/"+name)
			}
		}
	}
	return paths
}

func contents(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	must(t, err)
	defer f.Close()
	b, err := io.ReadAll(f)
	must(t, err)
	return b
}

func rewrite(t *testing.T, fs vfs.FS, name string, change func([]byte) []byte) {
	t.Helper()
	b := change(contents(t, fs, name))
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	must(t, err)
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	must(t, f.Sync())
	must(t, f.Close())
}

// TestALogCutBetweenTwoRecordsIsRefused is about the cut that Pebble cannot see: it leaves a log that looks as if the
// rest had never been written.
func TestALogCutBetweenTwoRecordsIsRefused(t *testing.T) {
	fs, rows := storeAfter(t, false)
	tried := 0
	for _, name := range files(t, fs) {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		ends := recordEnds(t, fs, name)
		for i := 0; i < len(ends)-1; i += 10 {
			torn := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))})
			rewrite(t, torn, name, cutAt(ends[i]).apply)
			err := wholeOrError(torn, rows, false)
			if err != nil && err != errRefused || err == nil && name == lastLog(t, fs) {
				t.Errorf("%s, cut after record %d of %d: %v", name, i+1, len(ends), err)
			}
			tried++
		}
	}
	if tried < 10 {
		t.Errorf("%d cuts: the store has hardly a log", tried)
	}
}

func lastLog(t *testing.T, fs vfs.FS) (last string) {
	t.Helper()
	for _, name := range files(t, fs) {
		if strings.HasSuffix(name, ".log") {
			last = max(last, name)
		}
	}
	return last
}

// recordEnds is the offsets at which the log's records end.
func recordEnds(t *testing.T, fs vfs.FS, name string) (ends []int) {
	t.Helper()
	number, err := strconv.ParseUint(strings.TrimSuffix(path.Base(name), ".log"), 10, 32)
	must(t, err)
	records := newReader(record.NewReader, bytes.NewReader(contents(t, fs, name)), number)
	for {
		r, err := records.Next()
		if err != nil {
			return ends
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			return ends
		}
		ends = append(ends, int(records.Offset()))
	}
}

func TestWithoutSyncedAStoreOpensWithWhatItHas(t *testing.T) {
	fs, rows := storeAfter(t, false)
	log := lastLog(t, fs)
	ends := recordEnds(t, fs, log)
	rewrite(t, fs, log, cutAt(ends[len(ends)/2]).apply)
	_, err := Open("d", Options{FS: fs})
	if err == nil || !strings.Contains(err.Error(), "were acknowledged") || !strings.Contains(err.Error(), "delete SYNCED") {
		t.Fatalf("a cut log: %v", err)
	}
	must(t, fs.Remove("d/"+syncedName))
	for range 2 { // the first opening writes the file again
		s := reopen(t, "d", Options{FS: fs})
		got, err := holds(s)
		if err != nil || len(got) == 0 || int64(len(got)) >= rows {
			t.Errorf("%d of %d rows, %v", len(got), rows, err)
		}
		must(t, s.Close())
	}
}

func TestWhatWasWrittenWithoutSyncIsHeldToBeSyncedAfterASyncAndAtTheClose(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := reopen(t, "d", Options{FS: fs, NoSync: true})
	synced := func(want uint64) {
		t.Helper()
		if n, ok, err := readSynced(fs, "d"); n != want || !ok || err != nil {
			t.Errorf("%d writes are synced, %t, %v, want %d", n, ok, err, want)
		}
	}
	tab := newTable(t, s, -1, 1)
	if !tryPut(s, tab, 1, 2, 3) {
		t.Fatal("refused")
	}
	synced(1) // the table
	must(t, s.Sync())
	after := fs.CrashClone(vfs.CrashCloneCfg{})
	if !tryPut(s, tab, 4, 5, 6) {
		t.Fatal("refused")
	}
	must(t, s.Close())
	synced(3)
	s = reopen(t, "d", Options{FS: after, NoSync: true})
	defer s.Close()
	if got, err := holds(s); err != nil || !maps.Equal(got, map[int64]bool{1: true, 2: true, 3: true}) {
		t.Errorf("after a loss of power there is %v, %v", got, err)
	}
}

func TestAStoreThatMeetsADamagedTableTakesNoMoreWritesAndCloses(t *testing.T) {
	fs, _ := storeAfter(t, true)
	for _, name := range files(t, fs) {
		if strings.HasSuffix(name, ".sst") {
			rewrite(t, fs, name, flip(1000, 1).apply)
		}
	}
	s := reopen(t, "d", Options{FS: fs})
	if _, err := holds(s); err == nil {
		t.Error("a damaged block was read")
	}
	e := s.Write(ctx, []TableWrite{{Table: s.Table([]byte("t")), Changes: []wire.Change{change(wire.PutRow, 1)}, Outcomes: make([]wire.Outcome, 1)}}, false)
	if e == nil || !strings.Contains(e.Message, ".sst is damaged") || strings.Contains(e.Message, "\n") {
		t.Error(e)
	}
	conformance.Refused(t, s.Close(), "damaged", "close")
}
