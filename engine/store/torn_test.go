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
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

var tornRounds = flag.Int("torn-rounds", 4, "cuts and flips of each file by the tests of torn stores")

// storeAfter returns the disk of a store of 400 rows, closed or crashed. Most rows are synced in logs, some flushed.
func storeAfter(t *testing.T, closed bool) (fs *vfs.MemFS, rows int64) {
	t.Helper()
	fs = vfs.NewCrashableMem()
	s := reopen(t, "d", Options{FS: fs})
	tab := newTable(t, s, -1, 1)
	for rows < 400 {
		conformance.MustEqual(t, tryPut(s, tab, rows, rows+1), true, "refused")
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

func TestTornStoreIsRefusedAfterCrash(t *testing.T) { tear(t, false) }
func TestTornStoreIsRefusedAfterClose(t *testing.T) { tear(t, true) }

// tear cuts each file at many places, and flips bytes. A store that still opens must be complete or report the damage.
func tear(t *testing.T, closed bool) {
	fs, rows := storeAfter(t, closed)
	err := wholeOrError(fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 1))}),
		rows, true)
	conformance.MustTrue(t, err == nil, "the store as it was: %v", err)
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
			conformance.True(t, err == nil || err == errRefused, "%s, %s of %d bytes: %v", name, damage.what, size, err)
			if err == nil {
				whole++
			} else {
				refused++
			}
		}
	}
	conformance.True(t, whole != 0 && refused != 0,
		"%d opened whole and %d were refused: the test damages nothing or everything", whole, refused)
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

func files(t *testing.T, fs vfs.FS) (paths []string) {
	t.Helper()
	for _, dir := range []string{"d", "d/data"} {
		names := conformance.Try(fs.List(dir)).Must(t)
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
	f := conformance.Try(fs.Open(name)).Must(t)
	defer f.Close()
	b := conformance.Try(io.ReadAll(f)).Must(t)
	return b
}

func rewrite(t *testing.T, fs vfs.FS, name string, change func([]byte) []byte) {
	t.Helper()
	b := change(contents(t, fs, name))
	f := conformance.Try(fs.Create(name, vfs.WriteCategoryUnspecified)).Must(t)
	conformance.Must(t, conformance.ErrorOf(f.Write(b)))
	must(t, f.Sync())
	must(t, f.Close())
}

// TestLogCutBetweenRecordsIsRefused cuts a log where Pebble cannot detect it, as if the rest had never been written.
func TestLogCutBetweenRecordsIsRefused(t *testing.T) {
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
			conformance.True(t, (err == nil || err == errRefused) && (err != nil || name != lastLog(t, fs)),
				"%s, cut after record %d of %d: %v", name, i+1, len(ends), err)
			tried++
		}
	}
	conformance.True(t, tried >= 10, "%d cuts: the store has hardly a log", tried)
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

func recordEnds(t *testing.T, fs vfs.FS, name string) (ends []int) {
	t.Helper()
	number := conformance.Try(strconv.ParseUint(strings.TrimSuffix(path.Base(name), ".log"), 10, 32)).Must(t)
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

func TestStoreWithoutSyncedFileOpens(t *testing.T) {
	fs, rows := storeAfter(t, false)
	log := lastLog(t, fs)
	ends := recordEnds(t, fs, log)
	rewrite(t, fs, log, cutAt(ends[len(ends)/2]).apply)
	_, err := Open("d", Options{FS: fs})
	conformance.MustTrue(t, err != nil && strings.Contains(err.Error(), "was acknowledged") &&
		strings.Contains(err.Error(), "delete SYNCED"), "a cut log: %v", err)
	must(t, fs.Remove("d/"+syncedName))
	for range 2 { // the first opening creates the file again
		s := reopen(t, "d", Options{FS: fs})
		got, err := holds(s)
		conformance.True(t, err == nil && len(got) != 0 && int64(len(got)) < rows, "%d of %d rows, %v", len(got), rows, err)
		must(t, s.Close())
	}
}

func TestUnsyncedWritesCountAsSyncedAfterSyncAndClose(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := reopen(t, "d", Options{FS: fs, NoSync: true})
	synced := func(want uint64) {
		t.Helper()
		n, ok, err := readSynced(fs, "d")
		conformance.True(t, n == want && ok && err == nil, "%d writes are synced, %t, %v, want %d", n, ok, err, want)
	}
	tab := newTable(t, s, -1, 1)
	conformance.MustEqual(t, tryPut(s, tab, 1, 2, 3), true, "refused")
	synced(1) // written with the table
	must(t, s.Sync())
	after := fs.CrashClone(vfs.CrashCloneCfg{})
	conformance.MustEqual(t, tryPut(s, tab, 4, 5, 6), true, "refused")
	must(t, s.Close())
	synced(3)
	s = reopen(t, "d", Options{FS: after, NoSync: true})
	defer s.Close()
	if got, err := holds(s); err != nil || !maps.Equal(got, map[int64]bool{1: true, 2: true, 3: true}) {
		t.Errorf("after a loss of power there is %v, %v", got, err)
	}
}

func TestStoreWithDamagedTableRefusesWritesAndCloses(t *testing.T) {
	fs, _ := storeAfter(t, true)
	for _, name := range files(t, fs) {
		if strings.HasSuffix(name, ".sst") {
			rewrite(t, fs, name, flip(1000, 1).apply)
		}
	}
	s := reopen(t, "d", Options{FS: fs})
	conformance.Refused(t, conformance.ErrorOf(holds(s)), "", "a damaged block was read")
	e := s.Write(ctx, writes(s.Table([]byte("t")), change(wire.PutRow, 1)), false)
	conformance.True(t, e != nil && strings.Contains(e.Message, ".sst is damaged") && !strings.Contains(e.Message, "\n"),
		"%v", e)
	conformance.Refused(t, s.Close(), "damaged", "close")
}

var powerRounds = flag.Int("power-rounds", 5,
	"losses of power of numbered rows, those that are acknowledged and twice as many of those that are not synced")

// rowText returns a value unique to a row. Some are long enough to cross blocks of the log.
func rowText(k int64) string { return strings.Repeat(fmt.Sprint(k, " "), 1+int(k%97)*7) }

func tryPut(s *Store, tab *Table, keys ...int64) bool {
	changes := make([]wire.Change, len(keys))
	for i, k := range keys {
		changes[i] = change(wire.PutRow, k, at("a", rowText(k), 0), at("b", fmt.Sprint(k), 0))
	}
	out := make([]wire.Outcome, len(changes))
	if err := s.Write(ctx, []TableWrite{{Table: tab, Changes: changes, Outcomes: out}}, false); err != nil {
		return false
	}
	for i := range out {
		if out[i].Err != nil {
			return false
		}
	}
	return true
}

// holds reads all rows and returns their keys, or an error if a row is unreadable or differs from what was written.
func holds(s *Store) (map[int64]bool, error) {
	keys := map[int64]bool{}
	tab := s.Table([]byte("t"))
	if tab == nil {
		return keys, nil
	}
	it, err := rowsIter(s, tab.id)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, err
		}
		key, ok := decodeKey(it.Key(), tab.meta.Load().Key)
		cells, whole := readRow(value, nil)
		if !ok || !whole {
			return nil, fmt.Errorf("row %x is damaged", it.Key())
		}
		k := key[0].Int()
		if len(cells) != 2 || string(cells[0].Value) != rowText(k) || string(cells[1].Value) != fmt.Sprint(k) {
			return nil, fmt.Errorf("row %d is not what was written: %v", k, cells)
		}
		keys[k] = true
	}
	return keys, it.Error()
}

// TestAcknowledgedNumbersSurvivePowerLoss copies the disk, with some unsynced data, again and again as clients write.
func TestAcknowledgedNumbersSurvivePowerLoss(t *testing.T) {
	for round := range *powerRounds {
		rng := rand.New(rand.NewPCG(1, uint64(round)))
		fs := vfs.NewCrashableMem()
		acknowledged := map[int64]bool{}
		sent := int64(0)
		for range 3 {
			s := reopen(t, "d", Options{FS: fs})
			tab := s.Table([]byte("t"))
			if tab == nil {
				tab = newTable(t, s, -1, 1)
			}
			fs, sent = loadAndCrash(t, s, tab, fs, rng, acknowledged, sent)
		}
		s := reopen(t, "d", Options{FS: fs})
		checkHeld(t, s, acknowledged, sent)
		must(t, s.Close())
	}
}

// loadAndCrash writes from four clients, and copies the disk after a random acknowledgement, the last one recorded.
func loadAndCrash(t *testing.T, s *Store, tab *Table, fs *vfs.MemFS, rng *rand.Rand, acknowledged map[int64]bool,
	sent int64) (*vfs.MemFS, int64) {
	var mu sync.Mutex
	var after *vfs.MemFS
	cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(4) * 33, RNG: rng}
	left := rng.IntN(40)
	flushAt := rng.IntN(60)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				mu.Lock()
				if after != nil {
					mu.Unlock()
					return
				}
				keys := []int64{sent, sent + 1, sent + 2}
				sent += 3
				mu.Unlock()
				if !tryPut(s, tab, keys...) {
					t.Error("a write was refused")
					return
				}
				mu.Lock()
				if after == nil {
					for _, k := range keys {
						acknowledged[k] = true
					}
					if left == flushAt {
						s.db.AsyncFlush()
					}
					if left--; left < 0 {
						after = fs.CrashClone(cfg)
					}
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if err := s.Close(); err != nil { // the store on the lost disk
		t.Fatal(err)
	}
	return after, sent
}

func checkHeld(t *testing.T, s *Store, acknowledged map[int64]bool, sent int64) {
	got := conformance.Try(holds(s)).Must(t)
	for k := range acknowledged {
		conformance.MustEqual(t, got[k], true, "row %d of %d acknowledged is lost", k, len(acknowledged))
	}
	for k := range got {
		conformance.MustTrue(t, k >= 0 && k < sent, "row %d was never sent", k)
		base := k - k%3
		conformance.MustTrue(t, got[base] && got[base+1] && got[base+2], "the batch of row %d is there in part", k)
	}
}
