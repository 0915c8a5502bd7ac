package writer

import (
	"bytes"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore/otsprotocol"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/encode"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

const testRun = "0abcdefghijklmn"

// countedRows are n records of one row each, all of the same key.
func countedRows(t *testing.T, n int) (rows []table.Ref) {
	t.Helper()
	s := &table.Schema{Table: "t", Key: []table.KeyColumn{{Name: "id", Type: table.String}},
		Columns: []table.Column{{Name: "id", Type: table.String}, {Name: "n", Type: table.Integer}}}
	b, e := &table.Block{Split: new(table.Split)}, encode.New(s, table.Increment, false)
	for i := range n {
		conformance.MustEqual(t, e.Append(b, []table.Value{str("a"), num(int64(i))}, nil, table.Span{Record: uint32(i)}, nil), nil, "reason")
		rows = append(rows, table.Ref{Block: b, Index: int32(i)})
	}
	return rows
}

// The SDK reads a request of increments as it was meant, and would write the same bytes.
func TestARequestOfCountedRowsCanBeRead(t *testing.T) {
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
		if _, err := w.Write(rows, make([]bool, 200), make([]table.Outcome, 200)); err != nil {
			t.Fatal(err)
		}
		req := new(otsprotocol.BatchWriteRowRequest)
		must(t, proto.Unmarshal(body, protoadapt.MessageV2Of(req)))
		if again, err := proto.Marshal(protoadapt.MessageV2Of(req)); err != nil || !bytes.Equal(again, body) {
			t.Errorf("%v: the SDK's own bytes are others", err)
		}
		for i, r := range req.Tables[0].Rows {
			condition := tablestore.NewSingleColumnCondition(mark, tablestore.CT_LESS_THAN, testRun+"."+position(rows[i]))
			condition.FilterIfMissing, condition.LatestVersionOnly = false, true
			if want := condition.Serialize(); !bytes.Equal(r.Condition.ColumnCondition, want) || r.GetType() != otsprotocol.OperationType_UPDATE {
				t.Fatalf("row %d: condition %x, want %x", i, r.Condition.ColumnCondition, want)
			}
			row, err := plainbuffer.Decode(r.RowChange)
			want := testRun + "." + position(rows[i]) + "!" + position(rows[3])
			if err != nil || len(row.Cells) != 2 || string(row.Cells[1].Value.Bytes) != want || len(want) > table.MaxMarkBytes {
				t.Fatalf("row %d: %v, %+v", i, err, row)
			}
			if travels := rows[i].Row().Bytes() + len(mark) + table.MaxMarkBytes + 24 + c.ConditionBytes() + 32; proto.Size(protoadapt.MessageV2Of(r)) > travels {
				t.Fatalf("row %d: more bytes travel than are counted", i)
			}
		}
	}
}

// What a mark says of a record whose condition did not hold.
func TestMarksTellTheOutcomeOfARecord(t *testing.T) {
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
		"it was refused":             {readMark{text: mark(6, "!"+position(rows[5])), any: true}, true, table.Refused, "an earlier attempt"},
		"another was refused":        {readMark{text: mark(6, "!"+position(rows[4])), any: true}, true, table.Written, ""},
		"many were refused":          {readMark{text: mark(6, "!*"), any: true}, true, table.Refused, "is not known"},
		"it was given up":            {readMark{text: mark(6, "!"+position(rows[4])+"?"+position(rows[5])), any: true}, true, table.Refused, "may have been added"},
		"another was given up":       {readMark{text: mark(6, "?"+position(rows[4])), any: true}, true, table.Written, ""},
		"a later load's, sent once":  {readMark{text: later, any: true}, false, table.Refused, "was not added"},
		"a later load's, sent twice": {readMark{text: later, any: true}, true, table.Refused, "added or not"},
		"an earlier load's":          {readMark{text: "00000000000000." + position(rows[9]), any: true}, true, table.Again, ""},
		"something else":             {readMark{any: true, odd: true}, true, table.Refused, "not a mark"},
	} {
		n := NewIncrements(nil, "_m", testRun)
		o := table.Outcome{Fate: table.Again}
		n.decide(c.mark, rows[5], c.repeated, &o)
		if o.Fate != c.fate || !strings.Contains(o.Message, c.message) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// markAnswer is a service that gives one answer to reads of marks.
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
		want   string // of the error; "" is none
	}{
		"its own":     {markAnswer{row("a", own)}, ""},
		"no row":      {markAnswer{{IsSucceed: true, TableName: "t"}}, ""},
		"another row": {markAnswer{row("b", own)}, "a row of another key"},
		"no answer":   {nil, "not a result for each key"},
		"two answers": {markAnswer{row("a", own), row("a", own)}, "not a result for each key"},
	} {
		marks, err := NewIncrements(tt.answer, "_m", testRun).read("t", rows, []int{0})
		if tt.want == "" && (err != nil || len(marks) != 1 || marks[0].any != (name == "its own")) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %+v, %v", name, marks, err)
		}
	}
}

func TestRejectedRecordsTakeBoundedMemory(t *testing.T) {
	c := NewIncrements(nil, "_m", testRun)
	rows := countedRows(t, 5)
	named := func(c *Increments) string {
		return strings.TrimPrefix(string(c.appendMark(nil, rows[4], position(rows[4]))), testRun+"."+position(rows[4]))
	}
	for i, want := range []string{"", "!" + position(rows[0]), "!" + position(rows[0]) + "!" + position(rows[1]), "!*", "!*"} {
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

// A record that was refused and one that was given up are told from each other, and the second says more.
func TestARecordThatWasGivenUpIsNamed(t *testing.T) {
	c, rows := NewIncrements(nil, "_m", testRun), countedRows(t, 3)
	c.Rejected(rows[0], false)
	c.Rejected(rows[1], false)
	c.Rejected(rows[1], true)
	want := "!" + position(rows[0]) + "?" + position(rows[1])
	if got := string(c.appendMark(nil, rows[2], position(rows[2]))); !strings.HasSuffix(got, want) || len(got) > table.MaxMarkBytes || !isCountMark(got) {
		t.Errorf("%s, want it to end with %s", got, want)
	}
}

// An attempt that reads that many records were rejected cannot name them either, and must not hide that there are some.
func TestMarksOfManyRejectedRecordsAreTakenOver(t *testing.T) {
	c, rows := NewIncrements(nil, "_m", testRun), countedRows(t, 9)
	o := table.Outcome{Fate: table.Again}
	if c.decide(readMark{text: testRun + "." + position(rows[7]) + "!*", any: true}, rows[5], true, &o); o.Fate != table.Refused || !o.MaybeApplied {
		t.Errorf("%+v", o)
	}
	if got := string(c.appendMark(nil, rows[8], position(rows[8]))); !strings.HasSuffix(got, "!*") {
		t.Errorf("the next mark is %s", got)
	}
}
