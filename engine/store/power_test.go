package store

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/tsimport/engine/wire"
)

var powerRounds = flag.Int("power-rounds", 5, "losses of power of numbered rows, those that are acknowledged and twice as many of those that are not synced")

// rowText is a value that belongs to one row, long enough to cross blocks of the log.
func rowText(k int64) string { return strings.Repeat(fmt.Sprint(k, " "), 1+int(k%97)*7) }

// tryPut writes rows and says whether all were acknowledged.
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

// holds reads all rows and returns their keys, or an error when a row cannot be read or is not what was written.
func holds(s *Store) (map[int64]bool, error) {
	keys := map[int64]bool{}
	tab := s.Table([]byte("t"))
	if tab == nil {
		return keys, nil
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: appendRowPrefix(nil, tab.id), UpperBound: appendRowPrefix(nil, tab.id+1)})
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

// TestAcknowledgedNumbersSurviveALossOfPower copies the disk as it would be after a loss of power, with a random part
// of what was not synced, while clients write; again and again on top of what was left.
func TestAcknowledgedNumbersSurviveALossOfPower(t *testing.T) {
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

// loadAndCrash writes from four clients, and after a random number of acknowledgements takes the copy that continues. What
// is acknowledged later counts no more.
func loadAndCrash(t *testing.T, s *Store, tab *Table, fs *vfs.MemFS, rng *rand.Rand, acknowledged map[int64]bool, sent int64) (*vfs.MemFS, int64) {
	t.Helper()
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
	if err := s.Close(); err != nil { // of the old disk, which is gone
		t.Fatal(err)
	}
	return after, sent
}

func checkHeld(t *testing.T, s *Store, acknowledged map[int64]bool, sent int64) {
	t.Helper()
	got, err := holds(s)
	must(t, err)
	for k := range acknowledged {
		if !got[k] {
			t.Fatalf("row %d of %d acknowledged is lost", k, len(acknowledged))
		}
	}
	for k := range got {
		if k < 0 || k >= sent {
			t.Fatalf("row %d was never sent", k)
		}
		if base := k - k%3; !got[base] || !got[base+1] || !got[base+2] {
			t.Fatalf("the batch of row %d is there in part", k)
		}
	}
}
