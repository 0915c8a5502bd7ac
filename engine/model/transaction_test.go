package model

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
)

// session is a local transaction: the rows of a partition key as it sees them.
type session struct {
	table     string
	partition any
	began     int64
	rows      []*row
	wrote     bool
}

// session returns the session with an id, if it still exists.
func (m *Model) session(id string, now int64) (*session, *Refusal) {
	if len(id) != 32 {
		return nil, invalid("TransactionID is invalid.")
	}
	s := m.sessions[id]
	if s == nil || now-s.began >= 60_000 {
		return nil, &Refusal{404, "OTSSessionNotExist", "Session not exist or may be timeout."}
	}
	return s, nil
}

// swap puts the session's rows into its table, or takes them out again.
func (m *Model) swap(s *session) {
	t := m.Tables[s.table]
	t.rows, s.rows = s.rows, t.rows
}

func (s *session) holds(table string, key Key) *Refusal {
	if table != s.table {
		return &Refusal{400, "OTSDataOutOfRange", fmt.Sprintf("Data out of scope of transaction. Transaction Table:%s. Data Table:%s", s.table, table)}
	}
	if compareValues(key[0].Value, s.partition) == 0 {
		return nil
	}
	text := keyText(key[0].Value)
	switch key[0].Value {
	case Min:
		text = "VT_INF_MIN"
	case Max:
		text = "VT_INF_MAX"
	}
	return &Refusal{400, "OTSDataOutOfRange", fmt.Sprintf("Data out of scope of transaction. Transaction PartKey:%s. Data PartKey:%s", keyText(s.partition), text)}
}

func conflict() *Refusal {
	return &Refusal{409, "OTSRowOperationConflict", "Data is being modified by the other request."}
}

// locked reports whether a transaction keeps others from a partition key.
func (m *Model) locked(table string, partition any, now int64) bool {
	for _, s := range m.sessions {
		if s.table == table && compareValues(s.partition, partition) == 0 && now-s.began < 60_000 {
			return true
		}
	}
	return false
}

// StartTransaction is StartLocalTransaction, which returns an id if it is not refused.
func (m *Model) StartTransaction(table string, key Key, now int64) *Refusal {
	if len(key) != 1 {
		return invalid("StartLocalTransaction support only one primary key.")
	}
	t := m.Tables[table]
	disabled := invalid("Try to call method using explicit transaction on explicit-transaction-disabled table.")
	if _, x := m.index(table); x != nil {
		return disabled
	}
	if t == nil {
		return noTable()
	}
	if !t.Transactions {
		return disabled
	}
	first := &Table{Key: t.Key[:1]}
	if r := first.checkKey(key); r != nil {
		return r
	}
	if m.locked(table, key[0].Value, now) {
		return conflict()
	}
	return nil
}

// started notes that a transaction has begun with an id.
func (m *Model) started(id, table string, partition any, now int64) {
	m.sessions[id] = &session{table, partition, now, copyRows(m.partition(table, partition)), false}
}

func (m *Model) partition(table string, partition any) []*row {
	return slices.DeleteFunc(slices.Clone(m.Tables[table].rows), func(r *row) bool { return compareValues(r.key[0].Value, partition) != 0 })
}

// EndTransaction is CommitTransaction or AbortTransaction.
func (m *Model) EndTransaction(id string, commit bool, now int64) *Refusal {
	s, r := m.session(id, now)
	if r != nil {
		return r
	}
	delete(m.sessions, id)
	if t := m.Tables[s.table]; commit {
		t.rows = slices.DeleteFunc(t.rows, func(r *row) bool { return compareValues(r.key[0].Value, s.partition) == 0 })
		t.rows = append(t.rows, s.rows...)
		slices.SortFunc(t.rows, func(a, b *row) int { return compareKeys(a.key, b.key) })
	}
	return nil
}

func (m *Model) endSessions(table string) {
	maps.DeleteFunc(m.sessions, func(_ string, s *session) bool { return s.table == table })
}

func (m *Model) clone() *Model {
	c := &Model{Tables: map[string]*Table{}, sessions: map[string]*session{}, kept: m.kept, ahead: m.ahead}
	for name, t := range m.Tables {
		n := *t
		n.rows = copyRows(t.rows)
		c.Tables[name] = &n
	}
	for id, s := range m.sessions {
		n := *s
		n.rows = copyRows(s.rows)
		c.sessions[id] = &n
	}
	return c
}

// Of the engine.

func (e *engine) start(table string, key Key) (id string, r *Refusal) {
	answer, err := e.StartLocalTransaction(&tablestore.StartLocalTransactionRequest{TableName: table, PrimaryKey: sdkKey(key)})
	if err != nil {
		return "", refusal(err)
	}
	return *answer.TransactionId, nil
}

func (e *engine) end(id string, commit bool) *Refusal {
	var err error
	if commit {
		_, err = e.CommitTransaction(&tablestore.CommitTransactionRequest{TransactionId: &id})
	} else {
		_, err = e.AbortTransaction(&tablestore.AbortTransactionRequest{TransactionId: &id})
	}
	return refusal(err)
}

// Of the machine.

// started is a transaction that was once begun.
type started struct {
	id, table string
	partition any
}

// set puts a request into the transaction; nil leaves it alone.
func (x *started) set(id *string) {
	if x != nil {
		*id = x.id
	}
}

// enable draws whether a table about to be made has transactions, and tells the model once it is made.
func (m *machine) enable(rt *rapid.T, name string, key []KeyColumn) (made func()) {
	on := m.transactional && !key[len(key)-1].Auto && rapid.IntRange(0, 5).Draw(rt, "transactions") > 0
	m.engine.transactions = &on
	before := m.model.Tables[name]
	return func() {
		if t := m.model.Tables[name]; t != before {
			t.Transactions = on
		}
	}
}

// drawTransaction draws one for a request of a table, or nil; the key is then mostly one of its own.
func (m *machine) drawTransaction(rt *rapid.T, table string, key Key) *started {
	if !m.transactional || len(m.started) == 0 || rapid.IntRange(0, 2).Draw(rt, "in a transaction") == 0 {
		return nil
	}
	x := &m.started[rapid.IntRange(0, len(m.started)-1).Draw(rt, "transaction")]
	if x.table == table && rapid.IntRange(0, 9).Draw(rt, "of the transaction") > 0 {
		key[0].Value = x.partition
	}
	return x
}

func (m *machine) transaction(rt *rapid.T) {
	if x := m.drawTransaction(rt, "", nil); x != nil {
		id := x.id
		if rapid.IntRange(0, 9).Draw(rt, "wrong id") == 0 {
			id = rapid.SampledFrom([]string{"x", strings.Repeat("0", 32), strings.Repeat("0", 33), ""}).Draw(rt, "id")
		}
		commit := rapid.IntRange(0, 2).Draw(rt, "commit") > 0
		same(rt, "the end of a transaction", m.engine.end(id, commit), m.model.EndTransaction(id, commit, m.now()))
		return
	}
	name := rapid.SampledFrom(append(m.names[1:], m.names...)).Draw(rt, "table")
	key := m.drawKey(rt, name)
	if rapid.IntRange(0, 9).Draw(rt, "whole key") > 0 {
		key = key[:1]
	}
	id, r := m.engine.start(name, key)
	same(rt, "StartLocalTransaction", r, m.model.StartTransaction(name, key, m.now()))
	if r == nil {
		m.model.started(id, name, key[0].Value, m.now())
		m.started = append(m.started[max(0, len(m.started)-5):], started{id, name, key[0].Value})
	}
}

func (m *machine) abortAll(rt *rapid.T) {
	for _, x := range m.started {
		same(rt, "AbortTransaction", m.engine.end(x.id, false), m.model.EndTransaction(x.id, false, m.now()))
	}
	m.started = nil
}

func TestTransactionsMatchModel(t *testing.T) { transact(t, "transactions") }
func TestTransactionsWithIndexesMatchModel(t *testing.T) {
	transact(t, "transactions, indexes")
}

func transact(t *testing.T, with string) {
	checks(t, 60)
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(rt, "", with)
		defer m.engine.close(rt)
		rt.Repeat(m.actions())
	})
}

func TestTransactionsMatchModelAcrossRestarts(t *testing.T) {
	acrossRestarts(t, "transactions, indexes")
}

// Histories of clients that work on one partition key at the same time, with and without transactions, while partitions
// split, minutes pass and power fails.

var transactionHistories = flag.Int("transaction-histories", 40, "concurrent histories of transactions that are checked for an order that explains them")

// asked is a request of a history other than one of a single row.
type asked struct {
	kind   kind
	key    Key    // of a row; of a start and a scan the partition key
	id     string // of the transaction, "" is none; of a start the one that it gave
	commit bool
	rows   string // that a scan answered

	busy bool  // another request of the transaction overlaps
	held bool  // one of any transaction overlaps, which keeps the partition key until it is answered, if the minute is over meanwhile
	away bool  // a partition may be away
	late int64 // how far the clock was moved meanwhile: a request of a transaction that began within its minute is carried out after it
}

type kind int

const (
	write kind = iota
	read
	scan
	start
	end
	minute // the clock is moved on by more than a minute
	cut    // what was applied by then survives a loss of power, what comes later does not
)

const justOverAMinute = 61_000

// possible applies an event to the model, and reports whether its answer is possible.
func (ev *event) possible(m *Model, now int64) bool {
	now += m.ahead
	before := m.clone()
	if ev.answered(m, now) {
		return true
	}
	*m = *before
	return ev.asked.late > 0 && ev.answered(m, now-ev.asked.late)
}

func (ev *event) answered(m *Model, now int64) bool {
	a := ev.asked
	if r := ev.got.Refusal; r != nil && r.Code == "OTSSessionBusy" {
		return a.busy
	} else if r != nil && r.Code == "OTSPartitionUnavailable" {
		return a.away
	} else if r != nil && r.Code == "OTSRowOperationConflict" && a.held && m.ahead > 0 {
		return true
	}
	var want Outcome
	var rows string
	survives := false // if there is a loss of power later
	switch a.kind {
	case write:
		want = m.WriteRow(*ev.change, now)
		survives = a.id == ""
		if s := m.sessions[a.id]; s != nil && want.Refusal == nil {
			s.wrote = true
		}
	case read:
		want = m.GetRow("t", a.key, &Selection{MaxVersions: 1, Txn: a.id}, now)
	case scan:
		p, r := m.GetRange("t", append(a.key, KeyCell{"n", Min}), append(a.key, KeyCell{"n", Max}), false, 0, &Selection{MaxVersions: 1, Txn: a.id}, now)
		want.Refusal = r
		if r == nil {
			want.Read, rows = p.Read, pageText(p)
		}
	case start:
		if want.Refusal = m.StartTransaction("t", a.key, now); want.Refusal == nil {
			m.started(a.id, "t", a.key[0].Value, now)
		}
	case end:
		s := m.sessions[a.id]
		want.Refusal = m.EndTransaction(a.id, a.commit, now)
		survives = a.commit && s != nil && s.wrote
	case minute:
		m.ahead += justOverAMinute
	case cut:
		if m.kept != nil {
			return false
		}
		m.kept = m.clone()
	}
	if ev.to == math.MaxInt64 {
		return want.Refusal == nil
	}
	if survives && m.kept != nil && want.Refusal == nil {
		return false
	}
	return explains(untimed(want), ev.got) && rows == a.rows
}

// untimed omits the timestamps, which depend on when exactly the clock was moved.
func untimed(o Outcome) Outcome {
	if o.Row != nil {
		r := *o.Row
		r.Cells = slices.Clone(r.Cells)
		for i := range r.Cells {
			r.Cells[i].Timestamp = 0
		}
		o.Row = &r
	}
	return o
}

func pageText(p *Page) (text string) {
	for i := range p.Rows {
		text += rowText(untimed(Outcome{Row: &p.Rows[i]}).Row) + "\n"
	}
	return text
}

var paired = []KeyColumn{{Name: "p", Type: Integer}, {Name: "n", Type: Integer}}

var oneVersion = Options{TTL: -1, MaxVersions: 1, Deviation: 86400}

// play is a history in the making.
type play struct {
	engine    *engine
	partition int64
	tick      atomic.Int64
	split     atomic.Bool

	mu  sync.Mutex
	ids []string // of all transactions
}

func (p *play) key() Key { return Key{{"p", p.partition}} }

// run lets clients send that many requests each, and returns them with their answers. Every other history lets all
// begin a request together.
func (p *play) run(seed uint64, clients, each int) []event {
	begun := make([]sync.WaitGroup, each)
	for i := range begun {
		begun[i].Add(clients)
	}
	history := make([]event, clients*each)
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(client)))
			own := ""
			for i := range each {
				ev := p.draw(rng, own)
				ev.from = p.tick.Add(1)
				begun[i].Done()
				if seed%2 == 0 {
					begun[i].Wait()
				}
				p.send(&ev, rng)
				ev.to = p.tick.Add(1)
				switch a := ev.asked; {
				case a.kind == start && ev.got.Refusal == nil:
					own = a.id
				case a.kind == end && a.id == own:
					own = ""
				}
				history[client*each+i] = ev
			}
		})
	}
	all.Wait()
	return history
}

// draw draws a request of a client with or without a transaction.
func (p *play) draw(rng *rand.Rand, own string) event {
	id := own
	p.mu.Lock()
	if len(p.ids) > 0 && rng.IntN(8) == 0 {
		id = p.ids[rng.IntN(len(p.ids))] // anybody's, perhaps over
	}
	p.mu.Unlock()
	if rng.IntN(6) == 0 {
		id = ""
	}
	row := append(p.key(), KeyCell{"n", rng.Int64N(2)})
	switch n := rng.IntN(20); {
	case n == 0:
		return event{asked: &asked{kind: minute}}
	case own == "" && n < 9:
		return event{asked: &asked{kind: start, key: p.key()}}
	case id != "" && n < 8:
		return event{asked: &asked{kind: end, id: id, commit: n < 6}}
	case n < 11:
		return event{asked: &asked{kind: read, key: row, id: id}}
	case n < 14:
		return event{asked: &asked{kind: scan, key: p.key(), id: id}}
	}
	c := randomChange(rng, row)
	c.Txn = id
	return event{change: &c, asked: &asked{kind: write, id: id}}
}

func (p *play) send(ev *event, rng *rand.Rand) {
	e, a := p.engine, ev.asked
	if rng.IntN(10) == 0 { // a partition splits, and its children are away for a moment
		p.split.Store(true)
		at := sim.IntegerKey(p.partition + rng.Int64N(3) - 1)
		_ = e.server.Sim().Split(context.Background(), "t", server.Cut{Keys: []sim.Key{at}, Unavailable: 10 * time.Millisecond})
		defer e.clock.millis.Add(10)
	}
	switch a.kind {
	case write:
		ev.got = untimed(e.writeRow(ev.change))
	case read:
		ev.got = untimed(e.getRow("t", a.key, &Selection{MaxVersions: 1, Txn: a.id}))
	case scan:
		page, r := e.getRange("t", append(a.key, KeyCell{"n", Min}), append(a.key, KeyCell{"n", Max}), false, 0, &Selection{MaxVersions: 1, Txn: a.id})
		if ev.got.Refusal = r; r == nil {
			ev.got.Read, a.rows = page.Read, pageText(page)
		}
	case start:
		a.id, ev.got.Refusal = e.start("t", a.key)
		if ev.got.Refusal == nil {
			p.mu.Lock()
			p.ids = append(p.ids, a.id)
			p.mu.Unlock()
		}
	case end:
		ev.got.Refusal = e.end(a.id, a.commit)
	case minute:
		e.clock.millis.Add(justOverAMinute)
	}
}

// judged adds to each event what may refuse it besides the model, and whether its effect is unknown: because it had no
// answer when the power failed, at a time between from and to.
func (p *play) judged(history []event, from, to int64) (left []event) {
	for i := range history {
		ev := &history[i]
		ev.asked.away = p.split.Load()
		for j := range history {
			x := &history[j]
			if i != j && x.asked.id != "" && x.from < ev.to && ev.from < x.to {
				ev.asked.busy = ev.asked.busy || ev.asked.id == x.asked.id
				ev.asked.held = ev.asked.held || x.asked.kind != start
			}
			if x.asked.kind == minute && ev.asked.id != "" && ev.asked.kind != start && x.from < ev.to && ev.from < x.to {
				ev.asked.late += justOverAMinute
			}
		}
	}
	for i, ev := range history {
		if ev.from > to {
			continue
		}
		if ev.to > from {
			if ev.asked.kind == read || ev.asked.kind == scan {
				continue
			}
			ev.to, ev.got = math.MaxInt64, Outcome{}
			if ev.asked.kind == start && ev.asked.id == "" {
				ev.asked.id = fmt.Sprintf("%032d", i)
			}
		}
		left = append(left, ev)
	}
	return left
}

// explained looks for an order of a history, with or without a power loss and another history after it.
func explained(before, after []event, now int64) bool {
	m := New()
	m.CreateTable("t", paired, oneVersion)
	m.Tables["t"].Transactions = true
	run := func(m *Model, ev *event) bool { return ev.possible(m, now) }
	if after == nil {
		return linear(m, before, make([]bool, len(before)), run, func(*Model) bool { return true })
	}
	before = append(slices.Clip(before), event{to: math.MaxInt64, asked: &asked{kind: cut}})
	return linear(m, before, make([]bool, len(before)), run, func(m *Model) bool {
		if m.kept != nil {
			m = m.kept
		}
		m = m.clone()
		m.kept = nil
		clear(m.sessions)
		return linear(m, after, make([]bool, len(after)), run, func(*Model) bool { return true })
	})
}

func TestTransactionHistoriesAreLinearizable(t *testing.T) {
	seen := map[string]int{}
	for h := range *transactionHistories {
		before, after := aHistory(t, uint64(h))
		now := newClock().millis.Load()
		if !explained(before, after, now) {
			for _, ev := range slices.Concat(before, []event{{}}, after) {
				t.Logf("%d…%d %+v %+v: %s %+v", ev.from, ev.to, ev.asked, ev.change, rowText(ev.got.Row), ev.got.Refusal)
			}
			t.Fatalf("history %d has no order that explains it", h)
		}
		for _, ev := range slices.Concat(before, after) {
			seen[cmp.Or(codeOf(ev.got.Refusal), [...]string{"write", "read", "scan", "start", "end", "minute"}[ev.asked.kind])]++
			if ev.to == math.MaxInt64 {
				seen["lost"]++
			}
		}
	}
	t.Log(seen)
	for _, what := range []string{"write", "read", "scan", "start", "end", "minute", "lost", "OTSRowOperationConflict", "OTSSessionNotExist", "OTSConditionCheckFail", "OTSPartitionUnavailable"} {
		conformance.Equal(t, seen[what] > 0, true, "%s was met", what)
	}
}

func codeOf(r *Refusal) string {
	if r == nil {
		return ""
	}
	return r.Code
}

// aHistory makes a history, in three of four cases with a loss of power.
func aHistory(t *testing.T, seed uint64) (before, after []event) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 99))
	fs := vfs.NewCrashableMem()
	on := true
	e := &engine{dir: "store", fs: fs, clock: newClock(), transactions: &on}
	e.open(t)
	conformance.MustEqual(t, e.createTable("t", paired, oneVersion, nil, nil), nil, "refusal")
	p := &play{engine: e, partition: rng.Int64N(3)}
	clients, each := 3, 5
	if seed%4 == 0 {
		before = p.run(seed, clients, each)
		before = append(before, p.last())
		e.close(t)
		return p.judged(before, math.MaxInt64, math.MaxInt64), nil
	}
	at := rng.Int64N(int64(2 * clients * each))
	kept := make(chan *vfs.MemFS)
	var from, to int64
	go func() {
		for p.tick.Load() < at {
			runtime.Gosched()
		}
		from = p.tick.Add(1)
		left := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(5) * 25, RNG: rng})
		to = p.tick.Add(1)
		kept <- left
	}()
	before = p.run(seed, clients, each)
	left := <-kept
	before = p.judged(before, from, to)
	e.close(t)
	p = &play{engine: &engine{dir: "store", fs: left, clock: e.clock}, partition: p.partition, ids: p.ids}
	p.engine.open(t)
	after = append(p.run(seed+1_000_000_000, 2, 3), p.last())
	p.engine.close(t)
	return before, p.judged(after, math.MaxInt64, math.MaxInt64)
}

// last reads everything while no other client is there.
func (p *play) last() event {
	p.engine.clock.millis.Add(10) // nothing is away any more
	ev := event{asked: &asked{kind: scan, key: p.key()}, from: p.tick.Add(1)}
	p.send(&ev, rand.New(zero{}))
	ev.to = p.tick.Add(1)
	return ev
}

// zero draws what never splits a partition.
type zero struct{}

func (zero) Uint64() uint64 { return math.MaxUint64 / 2 }

func TestUnorderableTransactionHistoryIsDetected(t *testing.T) {
	id, other := strings.Repeat("1", 32), strings.Repeat("2", 32)
	key := Key{{"p", int64(1)}}
	row := func(n int64) Key { return append(slices.Clone(key), KeyCell{"n", n}) }
	clock := int64(0)
	next := func(ev event) event { // one after the other
		clock += 2
		ev.from, ev.to = clock, clock+1
		return ev
	}
	refused := func(ev event, code string) event {
		ev.got = Outcome{Refusal: &Refusal{Code: code}}
		return ev
	}
	begin := func(id string) event { return event{asked: &asked{kind: start, key: key, id: id}} }
	ends := func(id string, commit bool) event { return event{asked: &asked{kind: end, id: id, commit: commit}} }
	put := func(id string, n, v int64) event {
		c := &Change{Table: "t", Kind: PutRow, Key: row(n), Ops: []Op{{Name: "a", Value: v}}, Txn: id}
		return event{change: c, got: Outcome{Write: 1}, asked: &asked{kind: write, id: id}}
	}
	sees := func(id string, n, v int64) event {
		got := Outcome{Read: 1}
		if v > 0 {
			got.Row = &Row{row(n), []Cell{{Name: "a", Value: v}}}
		}
		return event{got: got, asked: &asked{kind: read, key: row(n), id: id}}
	}
	lost := func(ev event) event {
		ev = next(ev)
		ev.to, ev.got = math.MaxInt64, Outcome{}
		return ev
	}
	const conflicts, gone = "OTSRowOperationConflict", "OTSSessionNotExist"
	minutes := event{asked: &asked{kind: minute}}
	for name, h := range map[string]struct {
		before, after []event
		want          bool
	}{
		"a commit":                             {[]event{next(begin(id)), next(put(id, 0, 1)), next(sees("", 0, 0)), next(sees(id, 0, 1)), next(ends(id, true)), next(sees("", 0, 1))}, nil, true},
		"a dirty read":                         {[]event{next(begin(id)), next(put(id, 0, 1)), next(sees("", 0, 1)), next(ends(id, true))}, nil, false},
		"a write that does not see itself":     {[]event{next(begin(id)), next(put(id, 0, 1)), next(sees(id, 0, 0))}, nil, false},
		"half a commit":                        {[]event{next(begin(id)), next(put(id, 0, 1)), next(put(id, 1, 1)), next(ends(id, true)), next(sees("", 0, 1)), next(sees("", 1, 0))}, nil, false},
		"an abort that is seen":                {[]event{next(begin(id)), next(put(id, 0, 1)), next(ends(id, false)), next(sees("", 0, 1))}, nil, false},
		"a write into the lock":                {[]event{next(begin(id)), next(put("", 0, 1))}, nil, false},
		"a write that is kept out":             {[]event{next(begin(id)), next(refused(put("", 0, 1), conflicts)), next(ends(id, true)), next(put("", 0, 1))}, nil, true},
		"a conflict without a transaction":     {[]event{next(begin(id)), next(ends(id, true)), next(refused(put("", 0, 1), conflicts))}, nil, false},
		"two transactions":                     {[]event{next(begin(id)), next(begin(other))}, nil, false},
		"two transactions, a minute apart":     {[]event{next(begin(id)), next(minutes), next(begin(other)), next(refused(ends(id, true), gone))}, nil, true},
		"a commit after a minute":              {[]event{next(begin(id)), next(minutes), next(ends(id, true))}, nil, false},
		"busy alone":                           {[]event{next(begin(id)), next(refused(ends(id, true), "OTSSessionBusy"))}, nil, false},
		"a commit survives":                    {[]event{next(begin(id)), next(put(id, 0, 1)), next(ends(id, true))}, []event{next(sees("", 0, 1)), next(refused(ends(id, true), gone))}, true},
		"a commit that does not survive":       {[]event{next(begin(id)), next(put(id, 0, 1)), next(ends(id, true))}, []event{next(sees("", 0, 0))}, false},
		"a transaction that survives":          {[]event{next(begin(id)), next(put(id, 0, 1))}, []event{next(ends(id, true))}, false},
		"a lost commit that survives":          {[]event{next(begin(id)), next(put(id, 0, 1)), lost(ends(id, true))}, []event{next(sees("", 0, 1))}, true},
		"a lost commit that does not":          {[]event{next(begin(id)), next(put(id, 0, 1)), lost(ends(id, true))}, []event{next(sees("", 0, 0))}, true},
		"half a lost commit":                   {[]event{next(begin(id)), next(put(id, 0, 1)), next(put(id, 1, 1)), lost(ends(id, true))}, []event{next(sees("", 0, 1)), next(sees("", 1, 0))}, false},
		"a lost commit that was seen once":     {[]event{next(begin(id)), next(put(id, 0, 1)), lost(ends(id, true)), next(sees("", 0, 1))}, []event{next(sees("", 0, 0))}, true},
		"what followed a commit that was lost": {[]event{next(begin(id)), next(put(id, 0, 1)), lost(ends(id, true)), next(sees("", 0, 1)), next(put("", 1, 1))}, []event{next(sees("", 0, 0)), next(sees("", 1, 1))}, false},
	} {
		conformance.Equal(t, explained(h.before, h.after, 5), h.want, "%s", name)
	}
}
