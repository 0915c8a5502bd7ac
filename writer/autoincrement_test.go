package writer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore/otsprotocol"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/encode"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// numbered simulates what AutoIncrement needs of a table that numbers its rows and has the key columns u and seq.
type numbered struct {
	last      int64
	rows      map[int64]string // mark by number, for the only user
	batches   [][]string       // marks sent in each batch
	write     func(batch int) (lost bool, err error)
	read      func() error
	deleted   []int64
	searched  [][2]int64 // first and last numbers of ranges
	longPages bool
	swap      bool // it returns keys of other rows
	silent    bool // it returns no keys
}

// Post is like fake.Post, but the table returns keys on request.
func (f *numbered) Post(_ string, appendBody func([]byte) []byte) ([]byte, error) {
	body := appendBody(nil)
	lost, err := f.write(len(f.batches))
	var marks []string
	var results []result
	for i, row := range rowsOf(body) {
		decoded, decodeErr := plainbuffer.Decode(row)
		if decodeErr != nil {
			return nil, decodeErr
		}
		mark := ""
		for _, c := range decoded.Cells {
			if c.Name == "_m" {
				mark = string(c.Value.Bytes)
			}
		}
		marks = append(marks, mark)
		r := result{units: 1}
		if err == nil || lost {
			f.last += 10
			f.rows[f.last] = mark
			if asksForKey(body, i) && !f.silent {
				r.key = keyOf(f.last)
				if f.swap {
					r.key = keyOf(f.last, "b")
				}
			}
		}
		results = append(results, r)
	}
	f.batches = append(f.batches, marks)
	if err != nil {
		return nil, err
	}
	return encodeAnswer("t", results), nil
}

// asksForKey reports whether the i-th row of a request asks for its key.
func asksForKey(body []byte, i int) bool {
	req := new(otsprotocol.BatchWriteRowRequest)
	conformance.Must(conformance.Sure{}, proto.Unmarshal(body, protoadapt.MessageV2Of(req)))
	return req.Tables[0].Rows[i].GetReturnContent().GetReturnType() == otsprotocol.ReturnType_RT_PK
}

// keyOf returns the key of a user's row with the given number.
func keyOf(number int64, user ...string) []byte {
	var r plainbuffer.Row
	r.Begin(nil)
	u, seq := plainbuffer.NewName("u"), plainbuffer.NewName("seq")
	r.Key(&u, str(strings.Join(append(user, "a")[:1], "")))
	r.Key(&seq, num(number))
	return r.End()
}

func (f *numbered) GetRow(*tablestore.GetRowRequest) (*tablestore.GetRowResponse, error) {
	return nil, errors.New("no row is read")
}

func (f *numbered) GetRange(r *tablestore.GetRangeRequest) (*tablestore.GetRangeResponse, error) {
	if f.read != nil {
		if err := f.read(); err != nil {
			return nil, err
		}
	}
	c := r.RangeRowQueryCriteria
	limit := 2 // pages are short
	if !f.longPages {
		limit = min(limit, int(c.Limit))
	} else {
		limit = int(c.Limit)
	}
	number := func(k *tablestore.PrimaryKey, without int64) int64 {
		if v, ok := k.PrimaryKeys[1].Value.(int64); ok {
			return v
		}
		return without
	}
	step, at, end := int64(-1), number(c.StartPrimaryKey, f.last), number(c.EndPrimaryKey, 0)
	if c.Direction == tablestore.FORWARD {
		step, at, end = 1, number(c.StartPrimaryKey, 1), number(c.EndPrimaryKey, f.last+1)
	}
	f.searched = append(f.searched, [2]int64{at, end})
	res := new(tablestore.GetRangeResponse)
	if c.Direction == tablestore.FORWARD && c.EndPrimaryKey.PrimaryKeys[0].Value == "a" {
		return res, nil // there is no other user
	}
	for n := at; n != end; n += step {
		mark, ok := f.rows[n]
		if !ok {
			continue
		}
		key := &tablestore.PrimaryKey{PrimaryKeys: []*tablestore.PrimaryKeyColumn{{ColumnName: "u", Value: "a"},
			{ColumnName: "seq", Value: n}}}
		if len(res.Rows) == limit {
			res.NextStartPrimaryKey = key
			break
		}
		res.Rows = append(res.Rows, &tablestore.Row{PrimaryKey: key,
			Columns: []*tablestore.AttributeColumn{{ColumnName: "_m", Value: mark, Timestamp: n}}})
	}
	return res, nil
}

func (f *numbered) DeleteRow(r *tablestore.DeleteRowRequest) (*tablestore.DeleteRowResponse, error) {
	n := r.DeleteRowChange.PrimaryKey.PrimaryKeys[1].Value.(int64)
	if _, ok := f.rows[n]; !ok {
		return nil, &tablestore.OtsError{Code: "OTSConditionCheckFail", HttpStatusCode: 403}
	}
	delete(f.rows, n)
	f.deleted = append(f.deleted, n)
	return nil, nil
}

var numberedSchema = &table.Schema{Table: "t", Numbered: 1,
	Key: []table.KeyColumn{{Name: "u", Type: table.String}, {Name: "seq", Type: table.Integer, Auto: true}},
	Columns: []table.Column{{Name: "u", Type: table.String}, {Name: "seq", Type: table.Integer},
		{Name: "v", Type: table.Integer}}}

func numberedRows(t *testing.T, n int) (rows []table.Ref) {
	t.Helper()
	b, e := &table.Block{Split: new(table.Split)}, encode.New(numberedSchema, table.Put, false)
	for i := range n {
		conformance.MustEqual(t, e.Append(b, []table.Value{str("a"), {}, num(int64(i))}, nil, table.Span{Record: uint32(i)},
			nil), nil, "")
		rows = append(rows, table.Ref{Block: b, Index: int32(i)})
	}
	return rows
}

var testMarker = table.Marker{Job: "job", Run: "run"}

func newNumbered() (*numbered, *AutoIncrement, *Writer) {
	f := &numbered{rows: map[int64]string{}, write: func(int) (bool, error) { return false, nil }}
	n := NewAutoIncrement(f, "t", 1, "_m", testMarker)
	return f, n, New(f, f, "t", table.Put, table.Ignore).With(Options{AutoIncrement: n})
}

func TestSearchStartsAtHighestNumber(t *testing.T) {
	f, _, w := newNumbered()
	rows := numberedRows(t, 2)
	var o [2]table.Outcome
	_, err := w.Write(rows[:1], []bool{false}, o[:1])
	conformance.MustTrue(t, err == nil && o[0].Number == 10, "%+v, %v", o[0], err)
	for _, applied := range []bool{false, true} {
		f.write = func(int) (bool, error) { return applied, io.ErrUnexpectedEOF }
		_, err := w.Write(rows[1:], []bool{false}, o[1:])
		conformance.MustTrue(t, err == nil && o[1].Fate == table.Unknown, "%+v, %v", o[1], err)
	}
	f.write = func(int) (bool, error) { return false, nil }
	sent := len(f.batches)
	stats, err := w.Write(rows[1:], []bool{true}, o[1:])
	conformance.True(t, err == nil && o[1].Fate == table.Written && o[1].Number == 20 && o[1].From == 11 &&
		stats == (Stats{Searched: 1, Found: 1}) && len(f.batches) == sent,
		"%+v, %v, %+v, %d requests", o[1], err, stats, len(f.batches))
	if want := [][2]int64{{20, 10}}; !slices.Equal(f.searched, want) { // the end is excluded
		t.Errorf("searched %v", f.searched)
	}
}

func TestMissingRowIsSentAgainInBatch(t *testing.T) {
	f, _, w := newNumbered()
	rows, o := numberedRows(t, 3), make([]table.Outcome, 3)
	f.rows[5], f.last = string(testMarker.Append(nil, rows[1])), 5
	stats, err := w.Write(rows, []bool{true, true, false}, o)
	conformance.MustTrue(t, err == nil && stats == (Stats{Requests: 1, Searched: 2, Found: 1}), "%+v, %v", stats, err)
	conformance.True(t, o[0].Number == 15 && o[1].Number == 5 && o[2].Number == 25, "%+v", o)
	conformance.True(t, len(f.batches) == 1 && len(f.batches[0]) == 2, "sent %q", f.batches)
}

func TestUnsearchableRowIsNotSent(t *testing.T) {
	for code, fatal := range map[string]bool{"OTSServerBusy": false, "OTSPartitionUnavailable": false, "OTSTimeout": false,
		"OTSAuthFailed": true} {
		f, _, w := newNumbered()
		f.read = func() error { return &tablestore.OtsError{Code: code, Message: "why", HttpStatusCode: 503} }
		rows, o := numberedRows(t, 2), make([]table.Outcome, 2)
		_, err := w.Write(rows, []bool{true, false}, o)
		conformance.True(t, (err != nil) == fatal && o[0].Fate == table.Again && !o[0].Throttled,
			"%s: %+v, %v", code, o[0], err)
		conformance.Equal(t, o[0].Unavailable, code == "OTSPartitionUnavailable", "%s: unavailable", code)
		sent := len(f.batches) > 0
		conformance.True(t, sent != fatal && (fatal || len(f.batches[0]) == 1), "%s: sent %q", code, f.batches)
	}
}

func TestAnswerWithoutKeyIsUnreadable(t *testing.T) {
	f, _, w := newNumbered()
	f.write = func(int) (bool, error) { return false, nil }
	rows, o := numberedRows(t, 1), make([]table.Outcome, 1)
	f.silent = true
	_, err := w.Write(rows, []bool{false}, o)
	conformance.True(t, err == nil && o[0].Fate == table.Unknown, "%+v, %v", o[0], err)
	f.silent, f.swap = false, true
	_, err = w.Write(rows, []bool{false}, o)
	conformance.True(t, err == nil && o[0].Fate == table.Unknown, "another row's key: %+v, %v", o[0], err)
}

func TestSweepKeepsRecordedCopy(t *testing.T) {
	f, n, _ := newNumbered()
	rows := numberedRows(t, 3)
	mark := func(i int) string { return string(testMarker.Append(nil, rows[i])) }
	f.rows, f.last = map[int64]string{1: "x", 2: mark(0), 3: mark(0), 4: mark(1), 5: mark(0), 6: mark(2), 7: mark(1)}, 7
	var doubts []Doubt
	for i, number := range []int64{3, 99} { // the second row's recorded copy is gone, so the lowest is kept
		d := conformance.Try(n.Doubt(rows[i], table.Outcome{Number: number, From: 1})).Must(t)
		doubts = append(doubts, d)
	}
	f.read = func() error { return errors.New("unreadable") }
	conformance.Refused(t, conformance.ErrorOf(n.Sweep(doubts)), "unreadable", "copies cannot be searched for")
	f.read = nil
	for range 2 { // a sweep may be repeated
		conformance.Must(t, conformance.ErrorOf(n.Sweep(doubts)))
	}
	want := map[int64]string{1: "x", 3: mark(0), 4: mark(1), 6: mark(2)}
	conformance.Equal(t, cmp.Diff(want, f.rows), "", "(-want +got)")
}

func TestDoubtRoundTrip(t *testing.T) {
	_, n, _ := newNumbered()
	var file []byte
	var want []Doubt
	for i, r := range numberedRows(t, 3) {
		d := conformance.Try(n.Doubt(r, table.Outcome{Number: int64(i) << 40, From: int64(i)})).Must(t)
		want = append(want, d)
		file = d.Append(file)
	}
	r := bufio.NewReader(bytes.NewReader(file))
	for i := range want {
		got, err := ReadDoubt(r)
		diff := cmp.Diff(want[i], got)
		conformance.True(t, diff == "" && err == nil, "%v (-want +got):\n%s", err, diff)
	}
	_, err := ReadDoubt(r)
	conformance.True(t, err == io.EOF, "behind the last: %v", err)
	one := want[0].Append(nil)
	for cut := 1; cut < len(one); cut++ {
		_, err := ReadDoubt(bufio.NewReader(bytes.NewReader(one[:cut])))
		conformance.True(t, err != nil && err != io.EOF, "%d of %d bytes: %v", cut, len(one), err)
	}
	conformance.Refused(t, conformance.ErrorOf(ReadDoubt(bufio.NewReader(strings.NewReader("\xff\xff\xff\xff\x0f")))), "",
		"a length of 4 GB is taken")
}

func TestHighestNumbersTakeBoundedMemory(t *testing.T) {
	_, n, _ := newNumbered()
	const keys = 200_000
	for i := range keys {
		n.highest.note(fmt.Appendf(nil, "key%d", i), int64(i)+1)
		n.highest.note([]byte("often"), int64(i)+1)
	}
	conformance.True(t, n.highest.bytes <= maxHighestBytes && len(n.highest.highest) == n.highest.recent.Len() &&
		len(n.highest.highest) >= maxHighestBytes/highestNumberMin/2,
		"%d bytes for %d keys", n.highest.bytes, len(n.highest.highest))
	conformance.True(t, n.highest.from([]byte("often")) == keys+1 &&
		n.highest.from(fmt.Appendf(nil, "key%d", keys-1)) == keys+1 && n.highest.from([]byte("key0")) == 0,
		"what was used last is forgotten first")
	n.highest.note([]byte("often"), 3)
	conformance.Equal(t, n.highest.from([]byte("often")), keys+1, "a lower number counts")
}

func TestLookFirstAcceptsRowsOfOtherRuns(t *testing.T) {
	other := table.Marker{Job: testMarker.Job, Run: "other"}
	for _, lookFirst := range []bool{false, true} {
		for name, mark := range map[string]func(table.Ref) string{
			"another run's": func(r table.Ref) string { return string(other.Append(nil, r)) },
			"an earlier version's": func(r table.Ref) string {
				return strings.Replace(string(other.Append(nil, r)), ".other.", ".", 1)
			},
		} {
			f, n, w := newNumbered()
			n.LookFirst = lookFirst
			rows, o := numberedRows(t, 1), make([]table.Outcome, 1)
			f.rows[5], f.last = mark(rows[0]), 5
			stats, err := w.Write(rows, []bool{true}, o)
			conformance.True(t, err == nil && (stats.Found == 1) == lookFirst && o[0].Fate == table.Written,
				"look first %v, %s mark: %+v, %+v, %v", lookFirst, name, stats, o[0], err)
		}
	}
}

func TestSweepKeepsRowsOfOtherRuns(t *testing.T) {
	other := table.Marker{Job: testMarker.Job, Run: "other"}
	for _, lookFirst := range []bool{false, true} {
		f, n, _ := newNumbered()
		n.LookFirst = lookFirst
		rows := numberedRows(t, 1)
		f.rows, f.last = map[int64]string{1: string(other.Append(nil, rows[0])), 2: string(testMarker.Append(nil, rows[0])),
			3: string(other.Append(nil, rows[0]))}, 3
		d := conformance.Try(n.Doubt(rows[0], table.Outcome{Number: 2})).Must(t)
		if deleted, err := n.Sweep([]Doubt{d}); err != nil || deleted != 0 || len(f.rows) != 3 {
			t.Errorf("look first %v: %d deleted, %v; rows %v", lookFirst, deleted, err, f.rows)
		}
	}
}

// A request's lengths must match the annotated rows that it sends, and the SDK must read it as intended.
func TestAnnotatedRequestIsReadable(t *testing.T) {
	_, n, w := newNumbered()
	rows := numberedRows(t, 200)
	w.rows = rows
	conformance.Must(t, w.annotate(rows, make([]table.Outcome, len(rows))))
	body := w.appendBody(nil)
	req := new(otsprotocol.BatchWriteRowRequest)
	conformance.Must(t, proto.Unmarshal(body, protoadapt.MessageV2Of(req)))
	again, err := proto.Marshal(protoadapt.MessageV2Of(req))
	conformance.True(t, err == nil && bytes.Equal(again, body), "%v: the SDK's own bytes are others", err)
	for i, r := range req.Tables[0].Rows {
		row, err := plainbuffer.Decode(r.RowChange)
		conformance.MustTrue(t, err == nil && len(row.Cells) == 2 &&
			string(row.Cells[1].Value.Bytes) == string(n.Marker.Append(nil, rows[i])) && asksForKey(body, i),
			"row %d: %v, %+v", i, err, row)
	}
}

func TestSearchGoesFromNewestToFoundRow(t *testing.T) {
	f, _, w := newNumbered()
	rows, o := numberedRows(t, 1), make([]table.Outcome, 1)
	for n := range int64(100) {
		f.rows[n+1] = "others"
	}
	f.rows[97], f.last = string(testMarker.Append(nil, rows[0])), 100
	_, err := w.Write(rows, []bool{true}, o)
	conformance.True(t, err == nil && o[0].Number == 97 && len(f.searched) == 2, "%+v, %v, %v", o[0], err, f.searched)
}

// In the fake, a row's timestamp is its number.
func TestSearchEndsAtRowOlderThanLoad(t *testing.T) {
	for name, c := range map[string]struct {
		rows, younger int64
		requests      int
	}{"all are older": {1000, 0, 1}, "the newest are not": {1000, 20, 2}, "none is older": {1000, 1000, 4},
		"there are none": {0, 0, 1}} {
		f, n, w := newNumbered()
		f.longPages, f.last = true, 20_000
		n.Begun = f.last - c.younger + 1 + clockSpread
		for i := range c.rows {
			f.rows[f.last-i] = string(table.Marker{Job: "job", Run: "other"}.Append(nil, numberedRows(t, 1)[0]))
		}
		rows, o := numberedRows(t, 1), make([]table.Outcome, 1)
		_, err := w.Write(rows, []bool{true}, o)
		conformance.True(t, err == nil && o[0].Fate == table.Written && !o[0].Found && len(f.searched) == c.requests,
			"%s: %+v, %v, searched %v", name, o[0], err, f.searched)
	}
}

// Within a run, rows of earlier records have lower numbers.
func TestSearchEndsAtEarlierRecord(t *testing.T) {
	f, n, w := newNumbered()
	f.longPages = true
	rows := numberedRows(t, 600)
	for i, r := range rows[:599] {
		f.rows[int64(i)+1] = string(n.Marker.Append(nil, r))
	}
	f.last = 599
	o := make([]table.Outcome, 1)
	_, err := w.Write(rows[599:], []bool{true}, o)
	conformance.True(t, err == nil && o[0].Number == 609 && len(f.searched) == 1, "%+v, %v, %v", o[0], err, f.searched)
}

// pastRows returns rows that an earlier process may have sent. It has written the first 300, one of them twice.
func pastRows(t *testing.T, f *numbered, n *AutoIncrement) []table.Ref {
	rows := numberedRows(t, 500)
	for i, r := range rows {
		r.Row().SetSuspect()
		if i >= 300 {
			continue
		}
		f.last++
		f.rows[f.last] = string(n.Marker.Append(nil, r))
		if i == 7 {
			f.last++
			f.rows[f.last] = f.rows[f.last-1]
		}
	}
	n.Earlier = &Earlier{Rows: int64(len(rows)), Open: func(int, int64) bool { return true }}
	return rows
}

// After a kill, a few requests find all rows that the previous process may have sent, however many there are.
func TestEarlierRowsAreReadAtOnce(t *testing.T) {
	for others, requests := range map[int]int{0: 2, 30_000: 8} {
		f, n, w := newNumbered()
		f.longPages = true
		rows := pastRows(t, f, n)
		for range others {
			f.last++
			f.rows[f.last] = "others"
		}
		repeated, o := make([]bool, len(rows)), make([]table.Outcome, len(rows))
		for i := range repeated {
			repeated[i] = true
		}
		stats, err := w.Write(rows, repeated, o)
		conformance.MustTrue(t, err == nil && stats.Searched == 500 && stats.Found == 300 && len(f.batches[0]) == 200 &&
			len(f.searched) <= requests, "%+v, %v, %d requests", stats, err, len(f.searched))
		for i := range o {
			want := i < 300
			conformance.True(t, (o[i].Number <= 301) == want && o[i].Found == (want && i != 7), "row %d: %+v", i, o[i])
		}
		// A missing row that has been sent since must be searched for in the table.
		searched := len(f.searched)
		_, err = w.Write(rows[400:401], repeated[:1], o[:1])
		conformance.True(t, err == nil && o[0].Found && len(f.searched) != searched, "%+v, %v", o[0], err)
	}
}

// A table far larger than the run's writes is not read to its end, and the partial result is not used.
func TestLargeTableIsNotReadForEarlierRows(t *testing.T) {
	f, n, w := newNumbered()
	f.longPages = true
	for range 600_000 {
		f.last++
		f.rows[f.last] = "others"
	}
	rows := pastRows(t, f, n)
	n.Earlier.read(n, rows)
	requests := len(f.searched)
	conformance.True(t, requests <= 500/rowsPerPage+pagesMore+1, "%d requests for 500 rows", requests)
	o := make([]table.Outcome, 1)
	_, err := w.Write(rows[299:300], []bool{true}, o)
	conformance.True(t, err == nil && o[0].Found, "%+v, %v", o[0], err)
}

// If the table cannot be read for the moment, earlier rows are looked up one by one.
func TestEarlierRowsAreLookedUpIfTableIsUnreadable(t *testing.T) {
	f, n, w := newNumbered()
	f.longPages = true
	rows := pastRows(t, f, n)
	failures := 0
	f.read = func() error {
		if failures++; failures > pageTries {
			return nil
		}
		return &tablestore.OtsError{Code: "OTSServerBusy", HttpStatusCode: 503}
	}
	stats, err := w.Write(rows[298:300], []bool{true, true}, make([]table.Outcome, 2))
	conformance.True(t, err == nil && stats.Found == 2, "%+v, %v", stats, err)
}

// The sweep begins with the newest rows, and does not read rows from before the load.
func TestSweepEndsAtRowOlderThanLoad(t *testing.T) {
	f, n, _ := newNumbered()
	f.longPages, f.last = true, 20_000
	n.Begun = f.last + 1 + clockSpread
	rows := numberedRows(t, 1)
	for i := range int64(10_000) {
		f.rows[f.last-i] = string(table.Marker{Job: "job", Run: "other"}.Append(nil, rows[0]))
	}
	mark := string(n.Marker.Append(nil, rows[0]))
	for number := n.Begun; number < n.Begun+2; number++ {
		f.rows[number], f.last = mark, number
	}
	d := conformance.Try(n.Doubt(rows[0], table.Outcome{Number: f.last})).Must(t)
	deleted, err := n.Sweep([]Doubt{d})
	conformance.True(t, err == nil && deleted == 1 && f.rows[f.last] == mark && len(f.searched) == 1,
		"%d deleted, %v, searched %v", deleted, err, f.searched)
}
