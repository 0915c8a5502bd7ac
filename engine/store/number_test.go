package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

// newNumbered creates a table with the key columns p STRING, n INTEGER AUTO_INCREMENT and s STRING.
func newNumbered(t testing.TB, s *Store) *Table {
	t.Helper()
	r := tableRequest("numbered", -1, 1)
	r.Key = []wire.KeyColumn{{Name: "p", Type: wire.KeyString}, {Name: "n", Type: wire.KeyInteger, AutoIncrement: true},
		{Name: "s", Type: wire.KeyString}}
	must(t, s.CreateTable(ctx, r))
	return s.Table(r.Name)
}

// numberedKey returns a key. If n is 0, its number is a placeholder.
func numberedKey(p string, n int64, s string) []wire.Cell {
	key := []wire.Cell{
		{Name: []byte("p"), Type: wire.String, Value: []byte(p)},
		{Name: []byte("n"), Type: wire.Integer, Value: integer(n)},
		{Name: []byte("s"), Type: wire.String, Value: []byte(s)},
	}
	if n == 0 {
		key[1].Type = wire.AutoIncrement
	}
	return key
}

func numbered(p, s string, cells ...wire.Cell) wire.Change {
	return wire.Change{Op: wire.PutRow, Return: wire.ReturnKey, Row: wire.Row{Key: numberedKey(p, 0, s), Cells: cells}}
}

func write(s *Store, tab *Table, changes ...wire.Change) (numbers []int64, err error) {
	out := make([]wire.Outcome, len(changes))
	if err := s.Write(ctx, []TableWrite{{Table: tab, Changes: changes, Outcomes: out}}, false); err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].Err != nil {
			return nil, out[i].Err
		}
		if len(out[i].Row) == 0 {
			continue
		}
		var d wire.Decoder
		row, err := d.Row(out[i].Row)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, row.Key[1].Int())
	}
	return numbers, nil
}

func mustWrite(t testing.TB, s *Store, tab *Table, changes ...wire.Change) []int64 {
	t.Helper()
	numbers := conformance.Try(write(s, tab, changes...)).Must(t)
	return numbers
}

func stored(s *Store, tab *Table, p string) (numbers []int64, err error) {
	from, to := numberedKey(p, 1, ""), numberedKey(p, 1, "")
	for i := 1; i < 3; i++ {
		from[i].Type, to[i].Type = wire.InfMin, wire.InfMax
	}
	it, e := tab.meta.Load().bounds(&wire.GetRange{Start: from, End: to})
	if e != nil {
		return nil, e
	}
	rows, err := s.db.NewIter(it)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.First(); rows.Valid(); rows.Next() {
		key, ok := decodeKey(rows.Key(), tab.meta.Load().Key)
		if !ok {
			return nil, errors.New("key is damaged")
		}
		numbers = append(numbers, key[1].Int())
	}
	return numbers, nil
}

func TestNumbersIncreaseThoughClockIsSetBack(t *testing.T) {
	c := &clock{}
	s := open(t, Options{Now: c.now})
	tab := newNumbered(t, s)
	last := int64(0)
	for _, ms := range []int64{-5, 0, 1000, 1000, 999, 0, 1_700_000_000_000, 5, 1_700_000_000_001} {
		c.ms.Store(ms)
		if n := mustWrite(t, s, tab, numbered("p", ""))[0]; n <= last {
			t.Errorf("at %d ms: %d is not above %d", ms, n, last)
		} else {
			last = n
		}
	}
	conformance.Equal(t, last, int64(1_700_000_000_001_000), "number")
}

// TestNumbersAppearInOrder checks that no number from eight writers of a key is below one that a reader has seen.
func TestNumbersAppearInOrder(t *testing.T) {
	s := open(t, Options{})
	tab := newNumbered(t, s)
	const writers, batches = 8, 40
	given := make([][]int64, writers)
	errs := make(chan error, writers+1)
	stop := make(chan struct{})
	var writing, reading sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for range batches {
				numbers, err := write(s, tab, numbered("p", fmt.Sprint(w)), numbered("other", ""), numbered("p", fmt.Sprint(w)))
				if err != nil {
					errs <- err
					return
				}
				given[w] = append(given[w], numbers[0], numbers[2])
			}
		})
	}
	reading.Go(func() {
		var before []int64
		for {
			now, err := stored(s, tab, "p")
			if err == nil && (len(now) < len(before) || !slices.Equal(now[:len(before)], before)) {
				err = fmt.Errorf("rows appeared below others already seen: %d, then %d", before, now)
			}
			if err != nil {
				errs <- err
				return
			}
			before = now
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	writing.Wait()
	close(stop)
	reading.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	var all []int64
	for _, numbers := range given {
		conformance.Equal(t, slices.IsSorted(numbers), true, "a writer's numbers do not rise")
		all = append(all, numbers...)
	}
	slices.Sort(all)
	conformance.Equal(t, len(slices.Compact(all)), writers*batches*2, "numbers of rows")
	if got, err := stored(s, tab, "p"); err != nil || len(got) != writers*batches*2 {
		t.Errorf("%d rows are stored (%v), want %d", len(got), err, writers*batches*2)
	}
}

func TestWriteWithoutNumberIsNotApplied(t *testing.T) {
	s := open(t, Options{})
	tab := newNumbered(t, s)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	s.commits <- struct{}{} // another commit is in progress, and the client gives up
	err := s.Write(gone, writes(tab, numbered("p", "")), false)
	<-s.commits
	conformance.True(t, err != nil && err.Code == wire.CodePartitionUnavailable, "%v", err)
	if got, err := stored(s, tab, "p"); err != nil || len(got) != 0 {
		t.Error(got, err)
	}
	mustWrite(t, s, tab, numbered("p", ""))
}

func TestStoreWithDamagedAutoIncrementCounterDoesNotOpen(t *testing.T) {
	dir := t.TempDir()
	s := reopen(t, dir, Options{})
	must(t, s.db.Set(numbersKey, []byte{1}, pebble.Sync))
	must(t, s.Close())
	if s, err := Open(dir, Options{}); err == nil {
		s.Close()
		t.Error("it opened")
	}
}

// TestNumbersOfRemainingRowsAreUnique loses random unsynced data. Remaining rows must have the lowest numbers.
func TestNumbersOfRemainingRowsAreUnique(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		c := &clock{}
		c.ms.Store(1_700_000_000_000)
		fs := vfs.NewCrashableMem()
		s := reopen(t, "d", Options{FS: fs, Now: c.now, NoSync: noSync})
		tab := newNumbered(t, s)
		if err := s.flush(); err != nil { // so that the table itself exists
			t.Fatal(err)
		}
		var writing sync.WaitGroup
		for range 4 {
			writing.Go(func() {
				for range 20 {
					c.ms.Add(3_000)
					write(s, tab, numbered("p", "", at("a", string(make([]byte, 20_000)), 0)), numbered("p", ""))
				}
			})
		}
		random := rand.New(rand.NewPCG(1, 2))
		for range 2 * *powerRounds {
			lossy := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: random})
			after := reopen(t, "d", Options{FS: lossy, Now: func() time.Time { return time.Unix(0, 0) }})
			tab := after.Table([]byte("numbered"))
			left := conformance.Try(stored(after, tab, "p")).Must(t)
			n := mustWrite(t, after, tab, numbered("p", ""))[0]
			if len(left) > 0 && n <= left[len(left)-1] {
				t.Errorf("no sync %t: %d is not above %d, which is there", noSync, n, left[len(left)-1])
			}
			must(t, after.Close())
		}
		writing.Wait()
		conformance.Equal(t, s.Close(), nil, "error")
	}
}
