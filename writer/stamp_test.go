package writer

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore/otsprotocol"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/encode"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// clock is the service's clock in milliseconds. Its time is known to within unsure.
type clock struct{ now, unsure int64 }

func (c *clock) service() (earliest, latest time.Time) {
	return time.UnixMilli(c.now - c.unsure), time.UnixMilli(c.now + c.unsure)
}

func TestTimestampsAreServicesLatest(t *testing.T) {
	c := &clock{now: 1_000_000, unsure: 20}
	s := NewStamps(c.service, time.Hour)
	next := func(after, want int64) {
		t.Helper()
		got := s.Next(after)
		conformance.True(t, got == want && s.Last() == want, "at %d above %d: %d, want %d", c.now, after, got, want)
	}
	next(0, 1_000_020)
	next(1_000_020, 1_000_021)
	next(0, 1_000_021) // never below an earlier timestamp
	c.unsure = 1       // more answers have arrived
	next(0, 1_000_021)
	c.now += 100
	next(0, 1_000_101)
	c.now -= 48 * 3_600_000 // the clock is set back beyond the deviation: the table will refuse, but nothing is reordered
	next(1_000_101, 1_000_102)
}

func TestTimestampsFitDeviationOfOneSecond(t *testing.T) {
	for unsure := int64(0); unsure < 500; unsure += 37 {
		c := &clock{unsure: unsure}
		s := NewStamps(c.service, time.Second)
		for c.now = 5_000_000; c.now < 5_010_000; c.now += 13 {
			at := s.Next(0)
			for _, real := range []int64{c.now - unsure, c.now, c.now + unsure} {
				if now := real / 1000; at/1000 >= now+1 || at/1000 < now-1 {
					t.Fatalf("at %d±%d: %d is refused at %d", c.now, unsure, at, real)
				}
			}
		}
	}
}

func TestAtFaultDetectsRefusedTimestamps(t *testing.T) {
	c := &clock{now: 1_000_000, unsure: 5}
	s := NewStamps(c.service, 10*time.Second)
	for at, want := range map[int64]bool{999000: false, 995_100: false, 994_900: true, 1_004_900: false, 1_005_100: true} {
		conformance.Equal(t, s.AtFault(at), want, "%d: at fault: %v", at, !want)
	}
	for at, want := range map[int64]bool{999_000: true, 990_600: true, 990_400: false, 980_000: false, 1_008_000: true,
		1_010_000: false} {
		conformance.Equal(t, s.Takes(at), want, "%d: taken: %v", at, !want)
	}
}

// Rows of a key wait for time to pass, unless the clock was set back.
func TestTimestampsOfKeyRiseNoFasterThanTime(t *testing.T) {
	c := &clock{now: 1_000_000}
	s := NewStamps(c.service, time.Hour)
	for after, want := range map[int64]time.Duration{999_999: 0, 1_000_000: time.Millisecond, 1_000_040: time.Millisecond,
		1_900_000: 0} {
		conformance.Equal(t, s.Wait(after), want, "after %d", after)
	}
}

func TestRowsAreSentWithTheirTimestamps(t *testing.T) {
	c := &clock{now: 1_006_000}
	var stamps []int64
	refuse := true
	f := &fake{write: func(rows [][]byte) ([]result, error) {
		stamps = stamps[:0]
		for _, r := range rows {
			row, err := plainbuffer.Decode(r)
			if err != nil {
				return nil, err
			}
			stamps = append(stamps, row.Cells[0].Stamp)
		}
		if refuse && len(rows) == 3 {
			return nil, &tablestore.OtsError{Code: "OTSParameterInvalid", HttpStatusCode: 400} // so that the request is halved
		}
		results := ok(len(rows))
		for i := range results {
			if refuse {
				results[i] = failed("OTSParameterInvalid")
			}
		}
		return results, nil
	}}
	rows, repeated, outcomes := batch(t, 3, table.Update)
	w := New(f, f, "t", table.Update, table.Ignore).With(Options{Stamps: NewStamps(c.service, 10*time.Second)})
	for range 2 {
		for i, at := range []int64{1_006_000, 1_000_000, 1_005_999} {
			outcomes[i] = table.Outcome{Stamp: at}
		}
		conformance.Must(t, conformance.ErrorOf(w.Write(rows, repeated, outcomes)))
		for i, o := range outcomes {
			want := table.Outcome{Fate: table.Written, Stamp: o.Stamp, WriteCU: 2}
			if refuse {
				want = table.Outcome{Fate: table.Refused, Stale: i == 1, Stamp: o.Stamp, Code: "OTSParameterInvalid",
					Message: "why"}
			}
			conformance.True(t, o == want && (refuse || o.Stamp == stamps[i]), "row %d: %+v, sent with %d", i, o, stamps)
		}
		refuse = false
	}
}

// Many small cells take more bytes on the wire than the service counts for them.
func TestStampedRequestStaysWithinLimit(t *testing.T) {
	s := &table.Schema{Table: "t", Key: []table.KeyColumn{{Name: "id", Type: table.Integer}},
		Columns: []table.Column{{Name: "id", Type: table.Integer}}}
	for i := range 1000 {
		s.Columns = append(s.Columns, table.Column{Name: fmt.Sprintf("c%03d", i), Type: table.Integer})
	}
	e := encode.New(s, table.Update, false)
	e.StampBytes = 8
	b := new(table.Block)
	for r := range 200 {
		row := []table.Value{num(int64(r))}
		for i := range 1000 {
			row = append(row, num(int64(i)))
		}
		conformance.MustEqual(t, e.Append(b, row, nil, table.Span{}, nil), nil, "reason")
	}
	batch := &table.Batch{Extra: func(r table.Ref) int { return plainbuffer.StampBytes(r.Body()) }}
	for i := 0; i < 200 && batch.Add(table.Ref{Block: b, Index: int32(i)}); i++ {
	}
	sent := 0
	f := postFunc(func(_ string, body func([]byte) []byte) ([]byte, error) { sent = len(body(nil)); return nil, io.EOF })
	now := func() (earliest, latest time.Time) {
		return time.UnixMilli(1700000000000), time.UnixMilli(1700000000000)
	}
	w := New(f, nil, "t", table.Update, table.Ignore).With(Options{Stamps: NewStamps(now, time.Hour)})
	outcomes := make([]table.Outcome, len(batch.Rows))
	for i := range outcomes {
		outcomes[i].Stamp = 1700000000000
	}
	conformance.Must(t, conformance.ErrorOf(w.Write(batch.Rows, make([]bool, len(batch.Rows)), outcomes)))
	conformance.True(t, sent <= table.MaxBodyBytes && sent >= table.MaxBodyBytes*9/10,
		"%d rows make %d bytes, the service takes %d", len(batch.Rows), sent, table.MaxBodyBytes)
}

type postFunc func(string, func([]byte) []byte) ([]byte, error)

func (f postFunc) Post(op string, body func([]byte) []byte) ([]byte, error) { return f(op, body) }

const testRun = "0abcdefghijklmn"

// countedRows returns n records with the same key.
func countedRows(t *testing.T, n int) (rows []table.Ref) {
	t.Helper()
	s := &table.Schema{Table: "t", Key: []table.KeyColumn{{Name: "id", Type: table.String}},
		Columns: []table.Column{{Name: "id", Type: table.String}, {Name: "n", Type: table.Integer}}}
	b, e := &table.Block{Split: new(table.Split)}, encode.New(s, table.Increment, false)
	for i := range n {
		conformance.MustEqual(t, e.Append(b, []table.Value{str("a"), num(int64(i))}, nil, table.Span{Record: uint32(i)}, nil),
			nil, "")
		rows = append(rows, table.Ref{Block: b, Index: int32(i)})
	}
	return rows
}

// The SDK reads a request of increments as intended, and would send the same bytes.
func TestCountedRequestIsReadable(t *testing.T) {
	for _, mark := range []string{"_m", strings.Repeat("long", 60)} {
		c := NewIncrements(nil, mark, testRun)
		rows := countedRows(t, 200)
		c.Rejected(rows[3], false)
		var body []byte
		f := postFunc(func(_ string, appendBody func([]byte) []byte) ([]byte, error) {
			body = appendBody(nil)
			return nil, &tablestore.OtsError{Code: "OTSServerBusy"}
		})
		w := New(f, nil, "t", table.Increment, table.Ignore).With(Options{Increments: c})
		conformance.Must(t, conformance.ErrorOf(w.Write(rows, make([]bool, 200), make([]table.Outcome, 200))))
		req := new(otsprotocol.BatchWriteRowRequest)
		conformance.Must(t, proto.Unmarshal(body, protoadapt.MessageV2Of(req)))
		again, err := proto.Marshal(protoadapt.MessageV2Of(req))
		conformance.True(t, err == nil && bytes.Equal(again, body), "%v: the SDK's own bytes are others", err)
		for i, r := range req.Tables[0].Rows {
			condition := tablestore.NewSingleColumnCondition(mark, tablestore.CT_LESS_THAN, testRun+"."+position(rows[i]))
			condition.FilterIfMissing, condition.LatestVersionOnly = false, true
			if want := condition.Serialize(); !bytes.Equal(r.Condition.ColumnCondition, want) ||
				r.GetType() != otsprotocol.OperationType_UPDATE {
				t.Fatalf("row %d: condition %x, want %x", i, r.Condition.ColumnCondition, want)
			}
			row, err := plainbuffer.Decode(r.RowChange)
			want := testRun + "." + position(rows[i]) + "!" + position(rows[3])
			conformance.MustTrue(t, err == nil && len(row.Cells) == 2 && string(row.Cells[1].Value.Bytes) == want &&
				len(want) <= table.MaxMarkBytes, "row %d: %v, %+v", i, err, row)
			travels := rows[i].Row().Bytes() + len(mark) + table.MaxMarkBytes + 24 + c.ConditionBytes() + 32
			conformance.MustTrue(t, proto.Size(protoadapt.MessageV2Of(r)) <= travels, "row %d: more bytes travel than count", i)
		}
	}
}

// Marks decide the outcome of a record whose condition failed.
func TestMarksDecideOutcomes(t *testing.T) {
	rows := countedRows(t, 10)
	mark := func(i int, after string) string { return testRun + "." + position(rows[i]) + after }
	later := "0zzzzzzzzzzzzzz." + position(rows[0])
	for name, c := range map[string]struct {
		mark     readMark
		repeated bool
		fate     table.Fate
		message  string
	}{
		"its own":                    {readMark{text: mark(5, ""), any: true}, true, table.Written, ""},
		"its own, with refused ones": {readMark{text: mark(5, "!*"), any: true}, true, table.Written, ""},
		"a later one's":              {readMark{text: mark(6, ""), any: true}, true, table.Written, ""},
		"an earlier one's":           {readMark{text: mark(4, ""), any: true}, true, table.Again, ""},
		"none":                       {readMark{}, true, table.Again, ""},
		"it was refused": {readMark{text: mark(6, "!"+position(rows[5])), any: true}, true, table.Refused,
			"an earlier attempt"},
		"another was refused": {readMark{text: mark(6, "!"+position(rows[4])), any: true}, true, table.Written, ""},
		"many were refused":   {readMark{text: mark(6, "!*"), any: true}, true, table.Refused, "perhaps this one"},
		"it was given up": {readMark{text: mark(6, "!"+position(rows[4])+"?"+position(rows[5])), any: true}, true,
			table.Refused, "may have been added"},
		"another was given up":       {readMark{text: mark(6, "?"+position(rows[4])), any: true}, true, table.Written, ""},
		"a later load's, sent once":  {readMark{text: later, any: true}, false, table.Refused, "without this record"},
		"a later load's, sent twice": {readMark{text: later, any: true}, true, table.Refused, "added or not"},
		"of an earlier load": {readMark{text: "00000000000000." + position(rows[9]), any: true}, true,
			table.Again, ""},
		"something else": {readMark{any: true, odd: true}, true, table.Refused, "not a mark"},
	} {
		n := NewIncrements(nil, "_m", testRun)
		o := table.Outcome{Fate: table.Again}
		n.decide(c.mark, rows[5], c.repeated, &o)
		conformance.True(t, o.Fate == c.fate && strings.Contains(o.Message, c.message), "%s: %+v", name, o)
	}
}

// markAnswer is a service that answers every read of marks with the same rows.
type markAnswer []tablestore.RowResult

func (a markAnswer) BatchGetRow(*tablestore.BatchGetRowRequest) (*tablestore.BatchGetRowResponse, error) {
	return &tablestore.BatchGetRowResponse{TableToRowsResult: map[string][]tablestore.RowResult{"t": a}}, nil
}

func TestMarksOfOtherRowsAreUnreadable(t *testing.T) {
	rows := countedRows(t, 1)
	row := func(id, mark string) tablestore.RowResult {
		return tablestore.RowResult{IsSucceed: true, TableName: "t",
			PrimaryKey: tablestore.PrimaryKey{PrimaryKeys: []*tablestore.PrimaryKeyColumn{{ColumnName: "id", Value: id}}},
			Columns:    []*tablestore.AttributeColumn{{ColumnName: "_m", Value: mark}}}
	}
	own := testRun + "." + position(rows[0])
	for name, tt := range map[string]struct {
		answer markAnswer
		want   string // part of the error; "" means no error
	}{
		"its own":     {markAnswer{row("a", own)}, ""},
		"no row":      {markAnswer{{IsSucceed: true, TableName: "t"}}, ""},
		"another row": {markAnswer{row("b", own)}, "a row with another key"},
		"no answer":   {nil, "one result for each key"},
		"two answers": {markAnswer{row("a", own), row("a", own)}, "one result for each key"},
	} {
		marks, err := NewIncrements(tt.answer, "_m", testRun).read("t", rows, []int{0})
		conformance.True(t, (err == nil) == (tt.want == "") && strings.Contains(fmt.Sprint(err), tt.want) &&
			(err != nil || len(marks) == 1 && marks[0].any == (name == "its own")), "%s: %+v, %v", name, marks, err)
	}
}

func TestRejectedRecordsTakeBoundedMemory(t *testing.T) {
	c := NewIncrements(nil, "_m", testRun)
	rows := countedRows(t, 5)
	named := func(c *Increments) string {
		return strings.TrimPrefix(string(c.appendMark(nil, rows[4], position(rows[4]))), testRun+"."+position(rows[4]))
	}
	for i, want := range []string{"", "!" + position(rows[0]), "!" + position(rows[0]) + "!" + position(rows[1]),
		"!*", "!*"} {
		conformance.Equal(t, named(c), want, "after %d", i)
		c.Rejected(rows[i], false)
		c.Rejected(rows[i], false)
	}
	c = NewIncrements(nil, "_m", testRun)
	c.bytes = maxRefusedBytes - refusedBytesMin
	if c.Rejected(rows[0], false); !c.many || len(c.refused) > 0 || named(c) != "!*" {
		t.Errorf("%d keys, %v, %s", len(c.refused), c.many, named(c))
	}
}

// Refused and given-up records are distinguished; a record that is both counts as given up.
func TestGivenUpRecordIsNamed(t *testing.T) {
	c, rows := NewIncrements(nil, "_m", testRun), countedRows(t, 3)
	c.Rejected(rows[0], false)
	c.Rejected(rows[1], false)
	c.Rejected(rows[1], true)
	want := "!" + position(rows[0]) + "?" + position(rows[1])
	got := string(c.appendMark(nil, rows[2], position(rows[2])))
	conformance.True(t, strings.HasSuffix(got, want) && len(got) <= table.MaxMarkBytes && isCountMark(got),
		"%s, want it to end with %s", got, want)
}

// A resumed load whose row's mark says only that many records were rejected keeps saying so.
func TestLongMarksAreContinued(t *testing.T) {
	c, rows := NewIncrements(nil, "_m", testRun), countedRows(t, 9)
	o := table.Outcome{Fate: table.Again}
	c.decide(readMark{text: testRun + "." + position(rows[7]) + "!*", any: true}, rows[5], true, &o)
	conformance.True(t, o.Fate == table.Refused && o.MaybeApplied, "%+v", o)
	got := string(c.appendMark(nil, rows[8], position(rows[8])))
	conformance.True(t, strings.HasSuffix(got, "!*"), "the next mark is %s", got)
}
