package store

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

// lockable creates a table that supports transactions and has the key columns p and n.
func lockable(t testing.TB, s *Store, indexes ...wire.IndexMeta) *Table {
	t.Helper()
	r := &wire.CreateTable{Name: []byte("t"), Key: []wire.KeyColumn{{Name: "p", Type: wire.KeyString},
		{Name: "n", Type: wire.KeyInteger}},
		Defined: []wire.DefinedColumn{{Name: "a", Type: 1}}, Indexes: indexes}
	r.Options.TTL.Value, r.Options.MaxVersions.Value, r.LocalTxn.Value = -1, 1, true
	must(t, s.CreateTable(ctx, r))
	return s.Table([]byte("t"))
}

func begin(t testing.TB, s *Store, tab *Table, p string) wire.TransactionID {
	t.Helper()
	id, err := s.StartTransaction(tab, column("p", words(p)))
	must(t, err)
	return wire.TransactionID(id)
}

func put(p string, n int64, cells ...wire.Cell) wire.Change { return pair(wire.PutRow, p, n, cells...) }

func pair(op wire.RowOp, p string, n int64, cells ...wire.Cell) wire.Change {
	key := []wire.Cell{column("p", words(p)), column("n", whole(n))}
	return wire.Change{Op: op, Row: wire.Row{Key: key, Cells: cells, Delete: op == wire.DeleteRow},
		DataBytes: 16 + len(p) + wire.DataBytes(cells)}
}

// in writes in a transaction, or outside one if id is nil, and returns the codes of the request and its rows.
func in(s *Store, id wire.TransactionID, tab *Table, atomic bool, changes ...wire.Change) string {
	out := make([]wire.Outcome, len(changes))
	tables := []TableWrite{{Table: tab, Changes: changes, Outcomes: out}}
	var err *wire.Error
	if id == nil {
		err = s.Write(ctx, tables, atomic)
	} else {
		err = s.WriteIn(id, tables, atomic)
	}
	codes := []string{codeOf(err)}
	for i := range out {
		codes = append(codes, codeOf(out[i].Err))
	}
	return strings.TrimSpace(strings.Join(codes, " "))
}

func codeOf(err *wire.Error) string {
	if err == nil {
		return ""
	}
	return err.Code
}

func rowsOf(t testing.TB, s *Store, tab *Table) int {
	t.Helper()
	m := tab.meta.Load()
	q := &wire.GetRange{}
	for _, k := range m.Key {
		q.Start = append(q.Start, wire.Cell{Name: []byte(k.Name), Type: wire.InfMin})
		q.End = append(q.End, wire.Cell{Name: []byte(k.Name), Type: wire.InfMax})
	}
	p, err := s.Range(ctx, tab, q, nil)
	must(t, err)
	defer p.Release()
	return rowsIn(t, p)
}

func rowsIn(t testing.TB, p *Page) (n int) {
	for i := 0; i+1 < len(p.Rows); i++ {
		if p.Rows[i] == 0x01 && p.Rows[i+1] == 0x03 { // tags of a row's key and its first cell
			n++
		}
	}
	return n
}

func TestTransactionInUseIsBusy(t *testing.T) {
	s := open(t, Options{})
	tab := lockable(t, s)
	id := begin(t, s, tab, "a")
	conformance.MustEqual(t, in(s, id, tab, false, put("a", 1)), "", "a write")
	s.commits <- struct{}{} // commits must wait
	ended := make(chan *wire.Error, 1)
	go func() { ended <- s.EndTransaction(ctx, id, true) }()
	for {
		s.transactions.mu.Lock()
		busy := s.transactions.byID[string(id)].busy
		s.transactions.mu.Unlock()
		if busy {
			break
		}
		runtime.Gosched()
	}
	get := func() string { return codeOf(s.GetIn(id, tab, put("a", 1).Row.Key, &wire.Selection{}, nil).Err) }
	conformance.Equal(t, get(), wire.CodeSessionBusy, "a read while it commits")
	<-s.commits
	must(t, <-ended)
	conformance.Equal(t, get(), wire.CodeSessionNotExist, "a read after that")
	conformance.Equal(t, rowsOf(t, s, tab), 1, "rows")
}

// The test checks the store after each write to disk of a commit, with a random part of the unsynced data.
func TestCommitIsAtomicAcrossPowerLoss(t *testing.T) {
	const rows = 100
	for left := 0; left <= 100; left += 50 {
		disk, random := vfs.NewCrashableMem(), rand.New(rand.NewPCG(1, uint64(left)))
		var watching atomic.Bool
		var mu sync.Mutex
		var states []*vfs.MemFS
		s := reopen(t, "d", Options{FS: errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if watching.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				mu.Lock()
				defer mu.Unlock()
				states = append(states, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: left, RNG: random}))
			}
			return nil
		}))})
		tab := lockable(t, s)
		id := begin(t, s, tab, "a")
		for n := range int64(rows) {
			conformance.MustEqual(t, in(s, id, tab, false, put("a", n, column("x", words(strings.Repeat("x", 1e3))))), "", "")
		}
		s.commits <- struct{}{} // blocks other writes
		watching.Store(true)
		<-s.commits
		must(t, s.EndTransaction(ctx, id, true))
		watching.Store(false)
		last := disk.CrashClone(vfs.CrashCloneCfg{})
		must(t, s.Close())
		conformance.Equal(t, len(states) > 1, true, "states")
		for i, fs := range append(states, last) {
			s := reopen(t, "d", Options{FS: fs})
			n := rowsOf(t, s, s.Table([]byte("t")))
			conformance.Equal(t, n == rows || n == 0 && i < len(states), true,
				"%d of %d rows are left, with %d %% in state %d of %d", n, rows, left, i, len(states))
			must(t, s.Close())
		}
	}
}

func TestIndexesShowTransactionAfterCommit(t *testing.T) {
	for _, delay := range []time.Duration{0, 5 * time.Second} {
		c := &clock{}
		c.ms.Store(1_000_000)
		s := open(t, Options{Now: c.now})
		must(t, s.Choose(Choices{IndexDelay: delay}))
		tab := lockable(t, s, wire.IndexMeta{Name: "x", Key: []string{"a"}})
		index := s.Table([]byte("x"))
		conformance.Equal(t, in(s, nil, tab, false, put("a", 1, column("a", whole(1))), put("a", 2, column("a", whole(2)))),
			"", "writes before")
		c.ms.Add(10_000)
		for _, commit := range []bool{false, true} {
			id := begin(t, s, tab, "a")
			conformance.Equal(t, in(s, id, tab, false, pair(wire.DeleteRow, "a", 1)), "", "a deletion")
			conformance.Equal(t, in(s, id, tab, false, put("a", 3, column("a", whole(3)))), "", "a row")
			conformance.Equal(t, in(s, id, tab, false, put("a", 4, column("a", whole(4)))), "", "a row")
			c.ms.Add(10_000)
			conformance.Equal(t, rowsOf(t, s, index), 2, "rows of the index meanwhile, %s late", delay)
			must(t, s.EndTransaction(ctx, id, commit))
			c.ms.Add(10_000)
			conformance.Equal(t, rowsOf(t, s, index), map[bool]int{false: 2, true: 3}[commit], "%s late, %t", delay, commit)
		}
	}
}

// Earlier writes of a transaction may not fit the changed table.
func TestTableChangesEndTransactions(t *testing.T) {
	for name, change := range map[string]func(*Store) error{
		"an index is made": func(s *Store) error {
			return asError(s.CreateIndex(ctx, &wire.CreateIndex{Table: []byte("t"),
				Index: wire.IndexMeta{Name: "y", Key: []string{"a"}}}))
		},
		"an index is dropped": func(s *Store) error {
			return asError(s.DropIndex(ctx, &wire.DropIndex{Table: []byte("t"), Index: []byte("x")}))
		},
		"the table is deleted":         func(s *Store) error { return asError(s.DeleteTable(ctx, []byte("t"))) },
		"choices change":               func(s *Store) error { return s.Choose(Choices{FirstWriteWins: true}) },
		"the delay of indexes changes": func(s *Store) error { return s.Choose(Choices{IndexDelay: time.Second}) },
	} {
		s := open(t, Options{})
		tab := lockable(t, s, wire.IndexMeta{Name: "x", Key: []string{"a"}})
		id := begin(t, s, tab, "a")
		conformance.Equal(t, in(s, id, tab, false, put("a", 1, column("a", whole(1)))), "", "a write")
		conformance.Equal(t, change(s), nil, "%s", name)
		conformance.Equal(t, codeOf(s.EndTransaction(ctx, id, true)), wire.CodeSessionNotExist, "a commit after %s", name)
		conformance.Equal(t, s.transactions.open.Load(), 0, "transactions after %s", name)
		if !tab.dropped {
			conformance.Equal(t, in(s, nil, tab, false, put("a", 1)), "", "a write after %s", name)
		}
	}
}

func asError(err *wire.Error) error {
	if err == nil {
		return nil
	}
	return err
}

func TestTransactionStartErrors(t *testing.T) {
	s := open(t, Options{})
	tab := lockable(t, s)
	must(t, s.Choose(Choices{DeletionsHideEarlier: true}))
	_, err := s.StartTransaction(tab, column("p", words("a")))
	conformance.Equal(t, codeOf(err), wire.CodeUnsupported, "while deletions hide")
	must(t, s.DeleteTable(ctx, []byte("t")))
	_, err = s.StartTransaction(tab, column("p", words("a")))
	conformance.Equal(t, codeOf(err), wire.CodeObjectNotExist, "of a table that was dropped meanwhile")
}

func TestTransactionMemoryLimit(t *testing.T) {
	c := &clock{}
	s := open(t, Options{Now: c.now})
	s.waitingLimit = 1000
	tab := lockable(t, s)
	a := begin(t, s, tab, "a")
	long := put("a", 1, column("text", words(strings.Repeat("x", 1000))))
	conformance.Equal(t, in(s, a, tab, false, long), "", "the first write")
	conformance.Equal(t, in(s, a, tab, false, long), wire.CodeServerBusy, "the next one")
	c.ms.Add(30_000)
	b := begin(t, s, tab, "b")
	conformance.Equal(t, in(s, b, tab, false, put("b", 1)), wire.CodeServerBusy, "another transaction")
	c.ms.Add(30_000)
	conformance.Equal(t, in(s, b, tab, false, put("b", 1)), "", "one when the first transaction is over")
	must(t, s.EndTransaction(ctx, b, false))
	conformance.Equal(t, s.transactions.waiting.Load(), 0, "bytes that wait")
}

func TestWriteThatCannotReadEndsTransaction(t *testing.T) {
	s := open(t, Options{})
	tab := lockable(t, s)
	id := begin(t, s, tab, "a")
	key, err := tab.meta.Load().appendKey(nil, put("a", 2).Row.Key)
	must(t, err)
	must(t, s.db.Set(key, []byte("damaged"), pebble.NoSync))
	broken := in(s, id, tab, false, put("a", 1), pair(wire.UpdateRow, "a", 2, column("a", whole(1))))
	conformance.Equal(t, broken, wire.CodeServerUnavailable, "a write")
	conformance.Equal(t, codeOf(s.EndTransaction(ctx, id, true)), wire.CodeSessionNotExist, "the commit")
	must(t, s.db.Delete(key, pebble.NoSync))
	conformance.Equal(t, rowsOf(t, s, tab), 0, "rows")
}

func TestCommitOnFullDiskIsNotAcknowledged(t *testing.T) {
	var full atomic.Bool
	s := reopen(t, "d", Options{FS: failing(&full)})
	tab := lockable(t, s)
	id := begin(t, s, tab, "a")
	conformance.Equal(t, in(s, id, tab, false, put("a", 1)), "", "a write")
	full.Store(true)
	conformance.Equal(t, codeOf(s.EndTransaction(ctx, id, true)), wire.CodeInternalServerError, "the commit")
	conformance.Equal(t, codeOf(s.EndTransaction(ctx, id, true)), wire.CodeSessionNotExist, "another one")
	_ = s.Close()
}

func TestFailedRowFailsAtomicBatchInTransaction(t *testing.T) {
	s := open(t, Options{})
	tab := lockable(t, s)
	id := begin(t, s, tab, "a")
	fails := put("a", 3)
	fails.Expect = wire.ExpectExist
	conformance.Equal(t, in(s, id, tab, false, put("a", 1)), "", "a write")
	both := wire.CodeConditionCheckFail + " " + wire.CodeConditionCheckFail
	conformance.Equal(t, in(s, id, tab, true, put("a", 2), fails), both, "an atomic batch")
	conformance.Equal(t, in(s, id, tab, false, put("a", 4), fails), wire.CodeConditionCheckFail, "a batch")
	conformance.Equal(t, in(s, id, tab, true, put("a", 5), put("a", 6)), "", "an atomic batch")
	fails.Row.Key = put("a", 5).Row.Key // a row that the transaction sees
	conformance.Equal(t, in(s, id, tab, true, put("a", 7), fails), "", "a batch that expects an earlier row")
	must(t, s.EndTransaction(ctx, id, true))
	conformance.Equal(t, rowsOf(t, s, tab), 5, "rows")
}

func TestTransactionExpiresAfterMinute(t *testing.T) {
	c := &clock{}
	c.ms.Store(1_000_000)
	s := open(t, Options{Now: c.now})
	tab := lockable(t, s)
	id := begin(t, s, tab, "a")
	conformance.Equal(t, in(s, id, tab, false, put("a", 1)), "", "a write")
	c.ms.Add(59_999)
	conformance.Equal(t, in(s, nil, tab, false, put("a", 2), put("b", 2)), wire.CodeRowOperationConflict, "writes outside")
	used, err := s.take(id)
	must(t, err)
	c.ms.Add(1)
	conformance.Equal(t, in(s, nil, tab, false, put("a", 2)), wire.CodeRowOperationConflict, "outside, in use")
	s.transactions.give(used)
	conformance.Equal(t, in(s, id, tab, false, put("a", 1)), wire.CodeSessionNotExist, "one that is over")
	conformance.Equal(t, codeOf(s.EndTransaction(ctx, id, true)), wire.CodeSessionNotExist, "its commit")
	conformance.Equal(t, in(s, nil, tab, false, put("a", 3)), "", "a write outside")
	begin(t, s, tab, "a")
	conformance.Equal(t, len(s.transactions.byID), 1, "transactions in memory")
	conformance.Equal(t, s.transactions.waiting.Load(), 0, "bytes that wait")
	conformance.Equal(t, rowsOf(t, s, tab), 2, "rows")
}

func TestRefusedCommitKeepsTransaction(t *testing.T) {
	s := open(t, Options{})
	tab := lockable(t, s)
	id := begin(t, s, tab, "a")
	conformance.Equal(t, in(s, id, tab, false, put("a", 1)), "", "a write")
	s.commits <- struct{}{}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	conformance.Equal(t, codeOf(s.EndTransaction(gone, id, true)), wire.CodePartitionUnavailable, "of a gone client")
	<-s.commits
	must(t, s.EndTransaction(ctx, id, true))
	conformance.Equal(t, rowsOf(t, s, tab), 1, "rows")
}
