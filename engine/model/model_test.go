package model

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// model models one partition key of a table with a key of two integers and one version per cell.
type model struct {
	rows     rows
	sessions map[string]*session // by id

	// The state of a history:
	ahead int64  // milliseconds by which the clock was advanced
	kept  *model // the state that a power loss leaves; nil before it
}

// rows maps the second key column and a column's name to its value.
type rows map[int64]map[string]int64

type session struct {
	rows  rows
	began int64
	wrote bool
}

func newModel() *model { return &model{rows: rows{}, sessions: map[string]*session{}} }

func (r rows) clone() rows {
	c := rows{}
	for n, cells := range r {
		c[n] = maps.Clone(cells)
	}
	return c
}

func (r rows) text(n int64) string {
	cells, there := r[n]
	if !there {
		return ""
	}
	text := fmt.Sprint("n=", n)
	for _, name := range slices.Sorted(maps.Keys(cells)) {
		text += fmt.Sprintf(" %s=%d", name, cells[name])
	}
	return text
}

func (m *model) clone() *model {
	c := &model{rows: m.rows.clone(), sessions: map[string]*session{}, kept: m.kept, ahead: m.ahead}
	for id, s := range m.sessions {
		c.sessions[id] = &session{s.rows.clone(), s.began, s.wrote}
	}
	return c
}

// answer is the service's answer. Units are 0 in a refusal.
type answer struct {
	code        string // error code of a refusal; "" means success
	read, write int    // capacity units
	rows        string
}

// kindOfWrite is put, add (to a column), drop (a column) or remove (a row).
type kindOfWrite int

const (
	put kindOfWrite = iota
	add
	drop
	remove
)

type existence int

const (
	ignored existence = iota
	exists
	absent
)

type change struct {
	kind   kindOfWrite
	n      int64
	column string
	value  int64
	expect existence
}

func randomChange(rng *rand.Rand, n int64) *change {
	c := &change{n: n, expect: existence(rng.IntN(5) % 3), kind: kindOfWrite(rng.IntN(4)),
		column: string(rune('a' + rng.IntN(2)))}
	if c.value = rng.Int64N(100); rng.IntN(3) == 0 {
		c.kind = add
	}
	return c
}

const oneMinute = 60_000

const (
	conflicts = "OTSRowOperationConflict"
	gone      = "OTSSessionNotExist"
)

// seen returns the rows that a request in the transaction id sees, or its error code. An id of "" means no transaction.
func (m *model) seen(id string, now int64) (rows, string) {
	if id == "" {
		return m.rows, ""
	}
	if s := m.sessions[id]; s != nil && now-s.began < oneMinute {
		return s.rows, ""
	}
	return nil, gone
}

func (m *model) locked(now int64) bool {
	for _, s := range m.sessions {
		if now-s.began < oneMinute {
			return true
		}
	}
	return false
}

func (m *model) change(c *change, id string, now int64) answer {
	r, refused := m.seen(id, now)
	if refused != "" {
		return answer{code: refused}
	}
	if id == "" && m.locked(now) {
		return answer{code: conflicts}
	}
	cells, there := r[c.n]
	if c.expect == exists && !there || c.expect == absent && there {
		return answer{code: "OTSConditionCheckFail"}
	}
	a := answer{write: 1}
	if c.expect != ignored {
		a.read = 1
	}
	switch c.kind {
	case put:
		r[c.n] = map[string]int64{c.column: c.value}
	case add:
		if !there {
			cells = map[string]int64{}
			r[c.n] = cells
		}
		cells[c.column] += c.value
		a.rows = fmt.Sprintf("%s=%d", c.column, cells[c.column])
	case drop:
		delete(cells, c.column)
	case remove:
		delete(r, c.n)
	}
	return a
}

func (m *model) get(n int64, id string, now int64) answer {
	r, refused := m.seen(id, now)
	if refused != "" {
		return answer{code: refused}
	}
	return answer{read: 1, rows: r.text(n)}
}

func (m *model) scan(id string, now int64) answer {
	r, refused := m.seen(id, now)
	if refused != "" {
		return answer{code: refused}
	}
	var texts []string
	for _, n := range slices.Sorted(maps.Keys(r)) {
		texts = append(texts, r.text(n))
	}
	return answer{read: 1, rows: strings.Join(texts, "\n")}
}

func (m *model) start(id string, now int64) answer {
	if m.locked(now) {
		return answer{code: conflicts}
	}
	m.sessions[id] = &session{rows: m.rows.clone(), began: now}
	return answer{}
}

func (m *model) end(id string, commit bool, now int64) answer {
	r, refused := m.seen(id, now)
	if refused != "" {
		return answer{code: refused}
	}
	if delete(m.sessions, id); commit {
		m.rows = r
	}
	return answer{}
}

// clock is the time of the engine and the model, in milliseconds. It moves only on request.
type clock struct{ millis atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.millis.Store(1_700_000_000_500)
	return c
}

func (c *clock) now() time.Time { return time.UnixMilli(c.millis.Load()) }

// dated gives the SDK's requests the test clock's time. That invalidates their signatures, which are not checked.
type dated struct {
	http.RoundTripper
	clock *clock
}

func (d dated) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("x-ots-date", d.clock.now().UTC().Format("2006-01-02T15:04:05.000Z"))
	return d.RoundTripper.RoundTrip(r)
}

// engine is the engine under test, reached through the official SDK. Acknowledged writes are synced to fs.
type engine struct {
	*tablestore.TableStoreClient
	fs     vfs.FS
	clock  *clock
	server *server.Server
}

func (e *engine) open(t *testing.T) {
	t.Helper()
	e.server = conformance.Try(server.Open("store", server.Options{FS: e.fs, Now: e.clock.now,
		AnyCredentials: true})).Must(t)
	c := tablestore.NewDefaultTableStoreConfig()
	c.RetryTimes, c.Transport = 0, dated{e.server.Transport(), e.clock}
	e.TableStoreClient = tablestore.NewClientWithConfig("http://engine", server.DefaultInstance, server.DefaultAccessKeyID,
		server.DefaultAccessKeySecret, "", c)
}

func (e *engine) close(t *testing.T) {
	t.Helper()
	conformance.Must(t, e.server.Close())
}

func (e *engine) createTable(t *testing.T) {
	meta, on := &tablestore.TableMeta{TableName: "t"}, true
	meta.AddPrimaryKeyColumn("p", tablestore.PrimaryKeyType_INTEGER)
	meta.AddPrimaryKeyColumn("n", tablestore.PrimaryKeyType_INTEGER)
	conformance.Must(t, conformance.ErrorOf(e.CreateTable(&tablestore.CreateTableRequest{
		TableMeta: meta, TableOption: &tablestore.TableOption{TimeToAlive: -1, MaxVersion: 1},
		ReservedThroughput: &tablestore.ReservedThroughput{}, EnableLocalTxn: &on,
	})))
}

// codeOf returns the code of a refusal, or the text of any other error.
func codeOf(err error) string {
	if err == nil {
		return ""
	} else if e, ok := errors.AsType[*tablestore.OtsError](err); ok {
		return e.Code
	}
	return err.Error()
}

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func keyOf(p, n int64) *tablestore.PrimaryKey {
	k := &tablestore.PrimaryKey{}
	k.AddPrimaryKeyColumn("p", p)
	k.AddPrimaryKeyColumn("n", n)
	return k
}

// answered makes an answer with a row, whose key and cells are formatted like the model's.
func answered(u *tablestore.ConsumedCapacityUnit, key *tablestore.PrimaryKey,
	cells []*tablestore.AttributeColumn) answer {
	var parts []string
	if len(key.PrimaryKeys) > 0 {
		parts = append(parts, fmt.Sprint("n=", key.PrimaryKeys[1].Value))
	}
	for _, c := range cells {
		parts = append(parts, fmt.Sprintf("%s=%v", c.ColumnName, c.Value))
	}
	return answer{read: int(u.Read), write: int(u.Write), rows: strings.Join(parts, " ")}
}

// change sends a change as a single request. The answer to an addition contains the column.
func (e *engine) change(partition int64, c *change, id string) answer {
	key, expects := keyOf(partition, c.n), &tablestore.RowCondition{
		RowExistenceExpectation: tablestore.RowExistenceExpectation(c.expect)}
	none := &tablestore.PrimaryKey{}
	switch c.kind {
	case put:
		p := &tablestore.PutRowChange{TableName: "t", PrimaryKey: key, Condition: expects, TransactionId: orNil(id)}
		p.AddColumn(c.column, c.value)
		r, err := e.PutRow(&tablestore.PutRowRequest{PutRowChange: p})
		if err != nil {
			return answer{code: codeOf(err)}
		}
		return answered(r.ConsumedCapacityUnit, &r.PrimaryKey, nil)
	case remove:
		d := &tablestore.DeleteRowChange{TableName: "t", PrimaryKey: key, Condition: expects, TransactionId: orNil(id)}
		r, err := e.DeleteRow(&tablestore.DeleteRowRequest{DeleteRowChange: d})
		if err != nil {
			return answer{code: codeOf(err)}
		}
		return answered(r.ConsumedCapacityUnit, none, nil)
	}
	u := &tablestore.UpdateRowChange{TableName: "t", PrimaryKey: key, Condition: expects, TransactionId: orNil(id)}
	if c.kind == drop {
		u.DeleteColumn(c.column)
	} else {
		u.IncrementColumn(c.column, c.value)
		u.SetReturnIncrementValue()
		u.AppendIncrementColumnToReturn(c.column)
	}
	r, err := e.UpdateRow(&tablestore.UpdateRowRequest{UpdateRowChange: u})
	if err != nil {
		return answer{code: codeOf(err)}
	}
	return answered(r.ConsumedCapacityUnit, none, r.Columns)
}

func (e *engine) get(partition, n int64, id string) answer {
	r, err := e.GetRow(&tablestore.GetRowRequest{SingleRowQueryCriteria: &tablestore.SingleRowQueryCriteria{
		TableName: "t", PrimaryKey: keyOf(partition, n), MaxVersion: 1, TransactionId: orNil(id),
	}})
	if err != nil {
		return answer{code: codeOf(err)}
	}
	return answered(r.ConsumedCapacityUnit, &r.PrimaryKey, r.Columns)
}

func (e *engine) scan(partition int64, id string) answer {
	from, to := &tablestore.PrimaryKey{}, &tablestore.PrimaryKey{}
	from.AddPrimaryKeyColumn("p", partition)
	from.AddPrimaryKeyColumnWithMinValue("n")
	to.AddPrimaryKeyColumn("p", partition)
	to.AddPrimaryKeyColumnWithMaxValue("n")
	r, err := e.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
		TableName: "t", StartPrimaryKey: from, EndPrimaryKey: to, MaxVersion: 1, TransactionId: orNil(id),
	}})
	if err != nil {
		return answer{code: codeOf(err)}
	}
	var texts []string
	for _, row := range r.Rows {
		texts = append(texts, answered(r.ConsumedCapacityUnit, row.PrimaryKey, row.Columns).rows)
	}
	return answer{read: int(r.ConsumedCapacityUnit.Read), rows: strings.Join(texts, "\n")}
}

func (e *engine) start(partition int64) (id string, a answer) {
	key := &tablestore.PrimaryKey{}
	key.AddPrimaryKeyColumn("p", partition)
	r, err := e.StartLocalTransaction(&tablestore.StartLocalTransactionRequest{TableName: "t", PrimaryKey: key})
	if err != nil {
		return "", answer{code: codeOf(err)}
	}
	return *r.TransactionId, answer{}
}

func (e *engine) end(id string, commit bool) answer {
	var err error
	if commit {
		_, err = e.CommitTransaction(&tablestore.CommitTransactionRequest{TransactionId: &id})
	} else {
		_, err = e.AbortTransaction(&tablestore.AbortTransactionRequest{TransactionId: &id})
	}
	return answer{code: codeOf(err)}
}

// Clients of one partition key make the histories, with transactions, splits, passing minutes and power losses.

var transactionHistories = flag.Int("transaction-histories", 40,
	"concurrent histories of transactions that are checked for an order that explains them")

type asked struct {
	kind   kind
	n      int64  // second key column
	id     string // the transaction, "" if none; for a start, the id that it returned
	commit bool

	busy bool  // another request of the transaction overlaps
	held bool  // a request of another transaction overlaps and locks the key until answered, even past its minute
	away bool  // a partition may be unavailable
	late int64 // advance of the clock during the request, which may begin within its transaction's minute and end after it
}

type kind int

const (
	write kind = iota
	read
	scan
	start
	end
	minute // the clock is advanced by more than a minute
	cut    // writes applied by then survive a power loss, later ones do not
)

const justOverAMinute = 61_000

// event is one request of a history, with the time span in which it may have taken effect.
type event struct {
	change   *change // nil for a read
	got      answer
	from, to int64 // to is math.MaxInt64 if its effect is unknown; then the order may omit it
	asked    *asked
}

// linear tries every order that respects time: an event may be next if it began before every remaining one ended. run
// applies an event to the model and reports whether the engine's answer is possible, then whether the final state is.
func linear(m *model, history []event, done []bool, run func(*model, *event) bool, then func(*model) bool) bool {
	firstEnd := int64(math.MaxInt64)
	for i, ev := range history {
		if !done[i] {
			firstEnd = min(firstEnd, ev.to)
		}
	}
	if firstEnd == math.MaxInt64 && then(m) {
		return true
	}
	for i := range history {
		ev := &history[i]
		if done[i] || ev.from > firstEnd {
			continue
		}
		c := m.clone()
		if !run(c, ev) {
			continue
		}
		done[i] = true
		if linear(c, history, done, run, then) {
			return true
		}
		done[i] = false
	}
	return false
}

func (ev *event) possible(m *model, now int64) bool {
	now += m.ahead
	before := m.clone()
	if ev.answered(m, now) {
		return true
	}
	*m = *before
	return ev.asked.late > 0 && ev.answered(m, now-ev.asked.late)
}

func (ev *event) answered(m *model, now int64) bool {
	a := ev.asked
	switch code := ev.got.code; {
	case code == "OTSSessionBusy":
		return a.busy
	case code == "OTSPartitionUnavailable":
		return a.away
	case code == conflicts && a.held && m.ahead > 0:
		return true
	}
	var want answer
	survives := false // its effect survives a later power loss
	switch a.kind {
	case write:
		want = m.change(ev.change, a.id, now)
		survives = a.id == ""
		if s := m.sessions[a.id]; s != nil && want.code == "" {
			s.wrote = true
		}
	case read:
		want = m.get(a.n, a.id, now)
	case scan:
		want = m.scan(a.id, now)
	case start:
		want = m.start(a.id, now)
	case end:
		s := m.sessions[a.id]
		want = m.end(a.id, a.commit, now)
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
		return want.code == ""
	}
	return want == ev.got && (want.code != "" || !survives || m.kept == nil)
}

type play struct {
	engine    *engine
	partition int64
	tick      atomic.Int64
	split     atomic.Bool

	mu  sync.Mutex
	ids []string // of all transactions so far
}

// run makes each client send the number each of requests, concurrently in every second history. It returns all events.
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
				case a.kind == start && ev.got.code == "":
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

func (p *play) draw(rng *rand.Rand, own string) event {
	id := own
	p.mu.Lock()
	if len(p.ids) > 0 && rng.IntN(8) == 0 {
		id = p.ids[rng.IntN(len(p.ids))] // any client's transaction, which may have ended
	}
	p.mu.Unlock()
	if rng.IntN(6) == 0 {
		id = ""
	}
	row := rng.Int64N(2)
	switch n := rng.IntN(20); {
	case n == 0:
		return event{asked: &asked{kind: minute}}
	case own == "" && n < 9:
		return event{asked: &asked{kind: start}}
	case id != "" && n < 8:
		return event{asked: &asked{kind: end, id: id, commit: n < 6}}
	case n < 11:
		return event{asked: &asked{kind: read, n: row, id: id}}
	case n < 14:
		return event{asked: &asked{kind: scan, id: id}}
	}
	return event{change: randomChange(rng, row), asked: &asked{kind: write, id: id}}
}

func (p *play) send(ev *event, rng *rand.Rand) {
	e, a := p.engine, ev.asked
	if rng.IntN(10) == 0 { // a partition splits, and its children are unavailable for a moment
		p.split.Store(true)
		at := sim.IntegerKey(p.partition + rng.Int64N(3) - 1)
		cut := server.Cut{Keys: []sim.Key{at}, Unavailable: 10 * time.Millisecond}
		_ = e.server.Sim().Split(context.Background(), "t", cut)
		defer e.clock.millis.Add(10)
	}
	switch a.kind {
	case write:
		ev.got = e.change(p.partition, ev.change, a.id)
	case read:
		ev.got = e.get(p.partition, a.n, a.id)
	case scan:
		ev.got = e.scan(p.partition, a.id)
	case start:
		a.id, ev.got = e.start(p.partition)
		if ev.got.code == "" {
			p.mu.Lock()
			p.ids = append(p.ids, a.id)
			p.mu.Unlock()
		}
	case end:
		ev.got = e.end(a.id, a.commit)
	case minute:
		e.clock.millis.Add(justOverAMinute)
	}
}

// judged marks events that other requests or splits may refuse. It drops those lost with power or makes them optional.
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
			ev.to, ev.got = math.MaxInt64, answer{}
			if ev.asked.kind == start && ev.asked.id == "" {
				ev.asked.id = fmt.Sprintf("%032d", i)
			}
		}
		left = append(left, ev)
	}
	return left
}

// explained reports whether some order explains a history, and if after is not nil, the history after a power loss.
func explained(before, after []event, now int64) bool {
	m := newModel()
	run := func(m *model, ev *event) bool { return ev.possible(m, now) }
	if after == nil {
		return linear(m, before, make([]bool, len(before)), run, func(*model) bool { return true })
	}
	before = append(slices.Clip(before), event{to: math.MaxInt64, asked: &asked{kind: cut}})
	return linear(m, before, make([]bool, len(before)), run, func(m *model) bool {
		if m.kept != nil {
			m = m.kept
		}
		m = m.clone()
		m.kept = nil
		clear(m.sessions)
		return linear(m, after, make([]bool, len(after)), run, func(*model) bool { return true })
	})
}

func TestTransactionHistoriesAreLinearizable(t *testing.T) {
	seen := map[string]int{}
	for h := range *transactionHistories {
		before, after := aHistory(t, uint64(h))
		now := newClock().millis.Load()
		if !explained(before, after, now) {
			for _, ev := range slices.Concat(before, []event{{}}, after) {
				t.Logf("%d…%d %+v %+v: %+v", ev.from, ev.to, ev.asked, ev.change, ev.got)
			}
			t.Fatalf("history %d has no order that explains it", h)
		}
		for _, ev := range slices.Concat(before, after) {
			seen[cmp.Or(ev.got.code, [...]string{"write", "read", "scan", "start", "end", "minute"}[ev.asked.kind])]++
			if ev.to == math.MaxInt64 {
				seen["lost"]++
			}
		}
	}
	t.Log(seen)
	for _, what := range []string{"write", "read", "scan", "start", "end", "minute", "lost", conflicts, gone,
		"OTSConditionCheckFail", "OTSPartitionUnavailable"} {
		conformance.Equal(t, seen[what] > 0, true, "%s was met", what)
	}
}

// aHistory makes a history, in three of four cases with a power loss.
func aHistory(t *testing.T, seed uint64) (before, after []event) {
	rng := rand.New(rand.NewPCG(seed, 99))
	fs := vfs.NewCrashableMem()
	e := &engine{fs: fs, clock: newClock()}
	e.open(t)
	e.createTable(t)
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
	p = &play{engine: &engine{fs: left, clock: e.clock}, partition: p.partition, ids: p.ids}
	p.engine.open(t)
	after = append(p.run(seed+1_000_000_000, 2, 3), p.last())
	p.engine.close(t)
	return before, p.judged(after, math.MaxInt64, math.MaxInt64)
}

// last reads everything when no other client is active.
func (p *play) last() event {
	p.engine.clock.millis.Add(10) // all partitions are available again
	ev := event{asked: &asked{kind: scan}, from: p.tick.Add(1)}
	p.send(&ev, rand.New(zero{}))
	ev.to = p.tick.Add(1)
	return ev
}

// zero is a random source that never splits a partition.
type zero struct{}

func (zero) Uint64() uint64 { return math.MaxUint64 / 2 }

func TestUnorderableTransactionHistoryIsDetected(t *testing.T) {
	id, other := strings.Repeat("1", 32), strings.Repeat("2", 32)
	clock := int64(0)
	seq := func(events ...event) []event { // one after another
		for i := range events {
			clock += 2
			events[i].from, events[i].to = clock, cmp.Or(events[i].to, clock+1)
		}
		return events
	}
	refused := func(ev event, code string) event {
		ev.got = answer{code: code}
		return ev
	}
	begin := func(id string) event { return event{asked: &asked{kind: start, id: id}} }
	ends := func(id string, commit bool) event { return event{asked: &asked{kind: end, id: id, commit: commit}} }
	put := func(id string, n, v int64) event {
		return event{change: &change{n: n, column: "a", value: v}, got: answer{write: 1}, asked: &asked{kind: write, id: id}}
	}
	sees := func(id string, n, v int64) event {
		ev := event{got: answer{read: 1}, asked: &asked{kind: read, n: n, id: id}}
		if v > 0 {
			ev.got.rows = fmt.Sprintf("n=%d a=%d", n, v)
		}
		return ev
	}
	lost := func(ev event) event {
		ev.to, ev.got = math.MaxInt64, answer{}
		return ev
	}
	minutes := event{asked: &asked{kind: minute}}
	for name, h := range map[string]struct {
		before, after []event
		want          bool
	}{
		"a commit": {seq(begin(id), put(id, 0, 1), sees("", 0, 0), sees(id, 0, 1), ends(id, true), sees("", 0, 1)),
			nil, true},
		"a dirty read":    {seq(begin(id), put(id, 0, 1), sees("", 0, 1), ends(id, true)), nil, false},
		"an unseen write": {seq(begin(id), put(id, 0, 1), sees(id, 0, 0)), nil, false},
		"half a commit": {seq(begin(id), put(id, 0, 1), put(id, 1, 1), ends(id, true), sees("", 0, 1), sees("", 1, 0)),
			nil, false},
		"an abort is seen":  {seq(begin(id), put(id, 0, 1), ends(id, false), sees("", 0, 1)), nil, false},
		"a write in a lock": {seq(begin(id), put("", 0, 1)), nil, false},
		"write kept out":    {seq(begin(id), refused(put("", 0, 1), conflicts), ends(id, true), put("", 0, 1)), nil, true},
		"a lone conflict":   {seq(begin(id), ends(id, true), refused(put("", 0, 1), conflicts)), nil, false},
		"two transactions":  {seq(begin(id), begin(other)), nil, false},
		"two, apart":        {seq(begin(id), minutes, begin(other), refused(ends(id, true), gone)), nil, true},
		"a late commit":     {seq(begin(id), minutes, ends(id, true)), nil, false},
		"busy alone":        {seq(begin(id), refused(ends(id, true), "OTSSessionBusy")), nil, false},
		"a commit survives": {seq(begin(id), put(id, 0, 1), ends(id, true)),
			seq(sees("", 0, 1), refused(ends(id, true), gone)), true},
		"a commit does not":   {seq(begin(id), put(id, 0, 1), ends(id, true)), seq(sees("", 0, 0)), false},
		"a session survives":  {seq(begin(id), put(id, 0, 1)), seq(ends(id, true)), false},
		"a lost one survives": {seq(begin(id), put(id, 0, 1), lost(ends(id, true))), seq(sees("", 0, 1)), true},
		"a lost one does not": {seq(begin(id), put(id, 0, 1), lost(ends(id, true))), seq(sees("", 0, 0)), true},
		"half a lost one": {seq(begin(id), put(id, 0, 1), put(id, 1, 1), lost(ends(id, true))),
			seq(sees("", 0, 1), sees("", 1, 0)), false},
		"a commit seen once": {seq(begin(id), put(id, 0, 1), lost(ends(id, true)), sees("", 0, 1)),
			seq(sees("", 0, 0)), true},
		"after a lost commit": {seq(begin(id), put(id, 0, 1), lost(ends(id, true)), sees("", 0, 1), put("", 1, 1)),
			seq(sees("", 0, 0), sees("", 1, 1)), false},
	} {
		conformance.Equal(t, explained(h.before, h.after, 5), h.want, "%s", name)
	}
}
