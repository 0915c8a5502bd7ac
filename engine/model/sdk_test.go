package model

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/tsimport/engine/server"
)

// clock is the time of an engine and of the model, in milliseconds. It moves only on request.
type clock struct{ millis atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.millis.Store(1_700_000_000_500)
	return c
}

func (c *clock) now() time.Time { return time.UnixMilli(c.millis.Load()) }

// dated gives the SDK's requests the time of the test's clock. That invalidates their signature, which the engine does
// not check here.
type dated struct {
	http.RoundTripper
	clock   *clock
	batchIn *string
}

func (d dated) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("x-ots-date", d.clock.now().UTC().Format("2006-01-02T15:04:05.000Z"))
	if id := *d.batchIn; id != "" && strings.HasSuffix(r.URL.Path, "/BatchWriteRow") {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = append(append(body, 2<<3|2, byte(len(id))), id...)
		sum := md5.Sum(body)
		r.Header.Set("x-ots-contentmd5", base64.StdEncoding.EncodeToString(sum[:]))
		r.Body, r.ContentLength, r.GetBody = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	}
	return d.RoundTripper.RoundTrip(r)
}

// engine is the engine under test, reached through the official SDK. Without a directory it is in memory.
type engine struct {
	*tablestore.TableStoreClient
	dir    string
	fs     vfs.FS // what is acknowledged is synced there, if it is set
	clock  *clock
	server *server.Server

	transactions *bool  // that new tables have them; nil says nothing
	batchIn      string // the transaction of the next batches, which the SDK cannot say
}

// failer is a test, also rapid's.
type failer interface {
	Helper()
	Fatal(...any)
}

func (e *engine) open(t failer) {
	t.Helper()
	s, err := server.Open(e.dir, server.Options{InMemory: e.dir == "" && e.fs == nil, FS: e.fs, NoSync: e.fs == nil, Now: e.clock.now, AnyCredentials: true})
	must(t, err)
	c := tablestore.NewDefaultTableStoreConfig()
	c.RetryTimes = 0
	c.Transport = dated{s.Transport(), e.clock, &e.batchIn}
	e.server = s
	e.TableStoreClient = tablestore.NewClientWithConfig("http://engine", server.DefaultInstance, server.DefaultAccessKeyID, server.DefaultAccessKeySecret, "", c)
}

func (e *engine) close(t failer) {
	t.Helper()
	must(t, e.server.Close())
}

// refusal is an error of the service in the form of the model; another error has its text as code.
func refusal(err error) *Refusal {
	var e *tablestore.OtsError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return &Refusal{e.HttpStatusCode, e.Code, e.Message}
	}
	return &Refusal{Code: err.Error()}
}

// Translations to the SDK.

func sdkKey(k Key) *tablestore.PrimaryKey {
	pk := &tablestore.PrimaryKey{}
	for _, c := range k {
		if _, ok := c.Value.([]byte); ok { // not comparable
			pk.AddPrimaryKeyColumn(c.Name, c.Value)
			continue
		}
		switch c.Value {
		case Min:
			pk.AddPrimaryKeyColumnWithMinValue(c.Name)
		case Max:
			pk.AddPrimaryKeyColumnWithMaxValue(c.Name)
		case Placeholder{}:
			pk.AddPrimaryKeyColumnWithAutoIncrement(c.Name)
		default:
			pk.AddPrimaryKeyColumn(c.Name, c.Value)
		}
	}
	return pk
}

func sdkFilter(f Filter) tablestore.ColumnFilter {
	switch f := f.(type) {
	case *Compare:
		c := tablestore.NewSingleColumnCondition(f.Column, tablestore.ComparatorType(f.Comparator), f.Value)
		c.FilterIfMissing, c.LatestVersionOnly = f.FilterIfMissing, f.LatestOnly
		if f.Rule != nil {
			as := tablestore.Variant_STRING
			switch f.Rule.As.(type) {
			case int64:
				as = tablestore.Variant_INTEGER
			case float64:
				as = tablestore.Variant_DOUBLE
			}
			c.TransferRule = tablestore.NewValueTransferRule(f.Rule.Pattern, as)
		}
		return c
	case *Not:
		return sdkComposite(tablestore.LO_NOT, f.Of)
	case And:
		return sdkComposite(tablestore.LO_AND, f...)
	case Or:
		return sdkComposite(tablestore.LO_OR, f...)
	case *Pagination:
		return &tablestore.PaginationFilter{Offset: int32(f.Offset), Limit: int32(f.Limit)}
	}
	return nil
}

func sdkComposite(op tablestore.LogicalOperator, of ...Filter) tablestore.ColumnFilter {
	c := tablestore.NewCompositeColumnCondition(op)
	for _, f := range of {
		c.AddFilter(sdkFilter(f))
	}
	return c
}

func sdkCondition(c *Change) *tablestore.RowCondition {
	return &tablestore.RowCondition{
		RowExistenceExpectation: tablestore.RowExistenceExpectation(c.Expect), ColumnCondition: sdkFilter(c.Condition),
	}
}

func sdkChange(c *Change) tablestore.RowChange {
	switch c.Kind {
	case PutRow:
		p := &tablestore.PutRowChange{TableName: c.Table, PrimaryKey: sdkKey(c.Key), Condition: sdkCondition(c), TransactionId: orNil(c.Txn)}
		for _, op := range c.Ops {
			p.Columns = append(p.Columns, tablestore.AttributeColumn{ColumnName: op.Name, Value: op.Value, Timestamp: op.Timestamp})
		}
		if c.ReturnKey {
			p.SetReturnPk()
		}
		return p
	case DeleteRow:
		return &tablestore.DeleteRowChange{TableName: c.Table, PrimaryKey: sdkKey(c.Key), Condition: sdkCondition(c), TransactionId: orNil(c.Txn)}
	}
	u := &tablestore.UpdateRowChange{TableName: c.Table, PrimaryKey: sdkKey(c.Key), Condition: sdkCondition(c), TransactionId: orNil(c.Txn)}
	for _, op := range c.Ops {
		switch {
		case op.Kind == Put && op.Timestamp == 0:
			u.PutColumn(op.Name, op.Value)
		case op.Kind == Put:
			u.PutColumnWithTimestamp(op.Name, op.Value, op.Timestamp)
		case op.Kind == DeleteColumn:
			u.DeleteColumn(op.Name)
		case op.Kind == DeleteVersion:
			u.DeleteColumnWithTimestamp(op.Name, op.Timestamp)
		default:
			u.IncrementColumn(op.Name, op.Value.(int64))
		}
	}
	if c.ReturnColumns != nil {
		u.SetReturnIncrementValue()
		for _, name := range c.ReturnColumns {
			u.AppendIncrementColumnToReturn(name)
		}
	}
	return u
}

func sdkTimes(s *Selection) *tablestore.TimeRange {
	if s.At == 0 && s.To == 0 {
		return nil
	}
	return &tablestore.TimeRange{Start: s.From, End: s.To, Specific: s.At}
}

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Translations from the SDK.

func rowOf(pk *tablestore.PrimaryKey, columns []*tablestore.AttributeColumn) *Row {
	r := &Row{}
	for _, c := range pk.PrimaryKeys {
		r.Key = append(r.Key, KeyCell{c.ColumnName, c.Value})
	}
	for _, c := range columns {
		r.Cells = append(r.Cells, Cell{c.ColumnName, c.Value, c.Timestamp})
	}
	if len(r.Key) == 0 && len(r.Cells) == 0 {
		return nil
	}
	return r
}

func (e *engine) createTable(name string, key []KeyColumn, o Options, defined []DefinedColumn, indexes []Index) *Refusal {
	meta := &tablestore.TableMeta{TableName: name}
	for _, k := range key {
		if k.Auto {
			meta.AddPrimaryKeyColumnOption(k.Name, tablestore.PrimaryKeyType(k.Type), tablestore.AUTO_INCREMENT)
		} else {
			meta.AddPrimaryKeyColumn(k.Name, tablestore.PrimaryKeyType(k.Type))
		}
	}
	types := map[Type]tablestore.DefinedColumnType{Integer: tablestore.DefinedColumn_INTEGER, String: tablestore.DefinedColumn_STRING, Binary: tablestore.DefinedColumn_BINARY}
	for _, d := range defined {
		meta.AddDefinedColumn(d.Name, types[d.Type])
	}
	r := &tablestore.CreateTableRequest{
		TableMeta: meta, TableOption: sdkOptions(o), ReservedThroughput: &tablestore.ReservedThroughput{}, EnableLocalTxn: e.transactions,
	}
	for i := range indexes {
		r.IndexMetas = append(r.IndexMetas, indexes[i].sdk())
	}
	_, err := e.CreateTable(r)
	return refusal(err)
}

func sdkOptions(o Options) *tablestore.TableOption {
	updates := !o.NoUpdate
	return &tablestore.TableOption{TimeToAlive: o.TTL, MaxVersion: o.MaxVersions, DeviationCellVersionInSec: o.Deviation, AllowUpdate: &updates}
}

func optionsOf(o *tablestore.TableOption) Options {
	return Options{o.TimeToAlive, o.MaxVersion, o.DeviationCellVersionInSec, o.AllowUpdate != nil && !*o.AllowUpdate}
}

func (e *engine) updateTable(name string, o Options) (Options, *Refusal) {
	r, err := e.UpdateTable(&tablestore.UpdateTableRequest{TableName: name, TableOption: sdkOptions(o)})
	if err != nil {
		return Options{}, refusal(err)
	}
	return optionsOf(r.TableOption), nil
}

// writeRow sends a change as a single request. The SDK returns no key after UpdateRow.
func (e *engine) writeRow(c *Change) Outcome {
	var u *tablestore.ConsumedCapacityUnit
	var row *Row
	switch x := sdkChange(c).(type) {
	case *tablestore.PutRowChange:
		r, err := e.PutRow(&tablestore.PutRowRequest{PutRowChange: x})
		if err != nil {
			return Outcome{Refusal: refusal(err)}
		}
		u, row = r.ConsumedCapacityUnit, rowOf(&r.PrimaryKey, nil)
	case *tablestore.UpdateRowChange:
		r, err := e.UpdateRow(&tablestore.UpdateRowRequest{UpdateRowChange: x})
		if err != nil {
			return Outcome{Refusal: refusal(err)}
		}
		u, row = r.ConsumedCapacityUnit, rowOf(&tablestore.PrimaryKey{}, r.Columns)
	case *tablestore.DeleteRowChange:
		r, err := e.DeleteRow(&tablestore.DeleteRowRequest{DeleteRowChange: x})
		if err != nil {
			return Outcome{Refusal: refusal(err)}
		}
		u = r.ConsumedCapacityUnit
	}
	return Outcome{Read: int(u.Read), Write: int(u.Write), Row: row}
}

// writeBatch returns the outcomes in the order of the changes.
func (e *engine) writeBatch(changes []Change, atomic bool) ([]Outcome, *Refusal) {
	q := &tablestore.BatchWriteRowRequest{IsAtomic: atomic}
	e.batchIn = ""
	if len(changes) > 0 {
		e.batchIn = changes[0].Txn
	}
	place := map[string][]int{}
	for i := range changes {
		q.AddRowChange(sdkChange(&changes[i]))
		place[changes[i].Table] = append(place[changes[i].Table], i)
	}
	r, err := e.BatchWriteRow(q)
	if err != nil {
		return nil, refusal(err)
	}
	return inOrder(r.TableToRowsResult, place, len(changes)), nil
}

// inOrder puts the answers of a batch where its rows were; one too few or too many is an unexpected outcome.
func inOrder(answers map[string][]tablestore.RowResult, place map[string][]int, n int) []Outcome {
	outcomes := make([]Outcome, n)
	for table, at := range place {
		if len(answers[table]) != len(at) {
			return append(outcomes, Outcome{Refusal: &Refusal{Code: "another number of answers for " + table}})
		}
		for i, r := range answers[table] {
			o := Outcome{Read: int(r.ConsumedCapacityUnit.Read), Write: int(r.ConsumedCapacityUnit.Write), Row: rowOf(&r.PrimaryKey, r.Columns)}
			if !r.IsSucceed {
				o = Outcome{Refusal: &Refusal{0, r.Error.Code, r.Error.Message}}
			}
			outcomes[at[i]] = o
		}
	}
	return outcomes
}

func (e *engine) getRow(table string, key Key, s *Selection) Outcome {
	r, err := e.GetRow(&tablestore.GetRowRequest{SingleRowQueryCriteria: &tablestore.SingleRowQueryCriteria{
		TableName: table, PrimaryKey: sdkKey(key), ColumnsToGet: s.Columns, MaxVersion: int32(s.MaxVersions), TimeRange: sdkTimes(s),
		StartColumn: orNil(s.Start), EndColumn: orNil(s.End), Filter: sdkFilter(s.Filter), TransactionId: orNil(s.Txn),
	}})
	if err != nil {
		return Outcome{Refusal: refusal(err)}
	}
	return Outcome{Read: int(r.ConsumedCapacityUnit.Read), Row: rowOf(&r.PrimaryKey, r.Columns)}
}

// getBatch reads the keys of one selection, from several tables.
func (e *engine) getBatch(tables []string, keys []Key, s *Selection) ([]Outcome, *Refusal) {
	q := &tablestore.BatchGetRowRequest{}
	place := map[string][]int{}
	criteria := map[string]*tablestore.MultiRowQueryCriteria{}
	for i, table := range tables {
		c := criteria[table]
		if c == nil {
			c = &tablestore.MultiRowQueryCriteria{
				TableName: table, ColumnsToGet: s.Columns, MaxVersion: s.MaxVersions, TimeRange: sdkTimes(s),
				StartColumn: orNil(s.Start), EndColumn: orNil(s.End), Filter: sdkFilter(s.Filter),
			}
			criteria[table] = c
			q.MultiRowQueryCriteria = append(q.MultiRowQueryCriteria, c)
		}
		c.PrimaryKey = append(c.PrimaryKey, sdkKey(keys[i]))
		place[table] = append(place[table], i)
	}
	r, err := e.BatchGetRow(q)
	if err != nil {
		return nil, refusal(err)
	}
	return inOrder(r.TableToRowsResult, place, len(keys)), nil
}

func (e *engine) getRange(table string, start, end Key, backward bool, limit int, s *Selection) (*Page, *Refusal) {
	q := &tablestore.RangeRowQueryCriteria{
		TableName: table, StartPrimaryKey: sdkKey(start), EndPrimaryKey: sdkKey(end), Limit: int32(limit),
		ColumnsToGet: s.Columns, MaxVersion: int32(s.MaxVersions), TimeRange: sdkTimes(s),
		StartColumn: orNil(s.Start), EndColumn: orNil(s.End), Filter: sdkFilter(s.Filter), TransactionId: orNil(s.Txn),
	}
	if backward {
		q.Direction = tablestore.BACKWARD
	}
	r, err := e.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: q})
	if err != nil {
		return nil, refusal(err)
	}
	p := &Page{Read: int(r.ConsumedCapacityUnit.Read)}
	for _, row := range r.Rows {
		p.Rows = append(p.Rows, *rowOf(row.PrimaryKey, row.Columns))
	}
	if r.NextStartPrimaryKey != nil {
		p.Next = rowOf(r.NextStartPrimaryKey, nil).Key
	}
	return p, nil
}

func (e *engine) deleteTable(name string) *Refusal {
	_, err := e.DeleteTable(&tablestore.DeleteTableRequest{TableName: name})
	return refusal(err)
}

type description struct {
	Key     []KeyColumn
	Options Options
}

func (e *engine) describe(name string) (description, *Refusal) {
	r, err := e.DescribeTable(&tablestore.DescribeTableRequest{TableName: name})
	if err != nil {
		return description{}, refusal(err)
	}
	t := description{Options: optionsOf(r.TableOption)}
	for _, k := range r.TableMeta.SchemaEntry {
		t.Key = append(t.Key, KeyColumn{*k.Name, Type(*k.Type), k.Option != nil})
	}
	return t, nil
}
