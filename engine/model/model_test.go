package model

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
)

// model is one partition key of a table whose key is a pair of integers, with one version of each cell.
type model struct {
	rows     rows
	sessions map[string]*session // by their ids

	// Of a history:
	ahead int64  // that the clock was moved on, in milliseconds
	kept  *model // what a loss of power leaves; nil: it has not struck
}

// rows are cells by the second column of the key and by name.
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

// answer is what the service says. Units are 0 if it refused.
type answer struct {
	code        string // of a refusal; "" is none
	read, write int    // capacity units
	rows        string
}

// kindOfWrite is put, add (to a column), drop (a column) or remove.
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

// seen returns the rows that a request of a transaction sees, "" is none.
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

// clock is the time of an engine and of the model, in milliseconds. It moves only on request.
type clock struct{ millis atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.millis.Store(1_700_000_000_500)
	return c
}

func (c *clock) now() time.Time { return time.UnixMilli(c.millis.Load()) }

// dated gives the SDK's requests the time of the test's clock, which invalidates their signature, unchecked here.
type dated struct {
	http.RoundTripper
	clock *clock
}

func (d dated) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("x-ots-date", d.clock.now().UTC().Format("2006-01-02T15:04:05.000Z"))
	return d.RoundTripper.RoundTrip(r)
}

// engine is the engine under test, reached through the official SDK. What is acknowledged is synced to fs.
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
	t.Helper()
	meta, on := &tablestore.TableMeta{TableName: "t"}, true
	meta.AddPrimaryKeyColumn("p", tablestore.PrimaryKeyType_INTEGER)
	meta.AddPrimaryKeyColumn("n", tablestore.PrimaryKeyType_INTEGER)
	conformance.Must(t, conformance.ErrorOf(e.CreateTable(&tablestore.CreateTableRequest{
		TableMeta: meta, TableOption: &tablestore.TableOption{TimeToAlive: -1, MaxVersion: 1},
		ReservedThroughput: &tablestore.ReservedThroughput{}, EnableLocalTxn: &on,
	})))
}

// codeOf is the code of a refusal; another error is its own text.
func codeOf(err error) string {
	var e *tablestore.OtsError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
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

// answered is an answer with a row, whose key and cells are shown like the model's.
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

// change sends a change as a single request. An addition returns the column.
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
