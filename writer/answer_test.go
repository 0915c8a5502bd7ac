package writer

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore/otsprotocol"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

func TestAnswersAgreeWithTheSDK(t *testing.T) {
	key := []byte{0x75, 0, 0, 0, 1}
	unit := func(write int32) *otsprotocol.ConsumedCapacity {
		return &otsprotocol.ConsumedCapacity{CapacityUnit: &otsprotocol.CapacityUnit{Read: proto.Int32(3), Write: &write}}
	}
	rows := []*otsprotocol.RowInBatchWriteRowResponse{
		{IsOk: proto.Bool(true), Consumed: unit(7)},
		{IsOk: proto.Bool(true), Consumed: unit(7)},
		{IsOk: proto.Bool(true), Consumed: unit(1), Row: key},
		{IsOk: proto.Bool(false), Error: &otsprotocol.Error{Code: proto.String("OTSTimeout"), Message: proto.String("late")}},
		{IsOk: proto.Bool(false), Error: &otsprotocol.Error{Code: proto.String("OTSTimeout")}},
	}
	body, err := proto.Marshal(protoadapt.MessageV2Of(&otsprotocol.BatchWriteRowResponse{Tables: []*otsprotocol.TableInBatchWriteRowResponse{
		{TableName: proto.String("other"), Rows: rows[:1]}, {TableName: proto.String("t"), Rows: rows},
	}}))
	must(t, err)
	got := conformance.Try(decodeAnswer(nil, body, "t", len(rows))).Must(t)
	conformance.Equal(t, len(got), 4, "runs of rows that fare alike")
	for i, r := range rows {
		a := answerOf(got, i)
		if a.ok != r.GetIsOk() || string(a.code) != r.GetError().GetCode() || string(a.message) != r.GetError().GetMessage() ||
			a.writeCU != int(r.GetConsumed().GetCapacityUnit().GetWrite()) || !bytes.Equal(a.row, r.Row) {
			t.Errorf("row %d: %+v", i, a)
		}
	}
}

func TestDamagedAnswerIsNeverASuccess(t *testing.T) {
	whole := encodeAnswer("t", append(ok(3), failed("OTSTimeout")))
	for n := range whole {
		conformance.Refused(t, conformance.ErrorOf(decodeAnswer(nil, whole[:n], "t", 4)), "",
			"the first %d bytes of %d are an answer", n, len(whole))
	}
	for name, body := range map[string][]byte{
		"another table":        encodeAnswer("u", ok(4)),
		"no result":            {10, 11, 10, 1, 't', 18, 0, 18, 0, 18, 0, 18, 0},
		"a refusal for naught": {10, 8, 10, 1, 't', 18, 3, 8, 0, 18, 0},
		"a group":              {11, 12},
		"taken with an error":  {10, 15, 10, 1, 't', 18, 10, 8, 1, 18, 6, 10, 4, 'C', 'o', 'd', 'e'},
		"two results in one":   {10, 9, 10, 1, 't', 18, 4, 8, 0, 8, 1},
		"a result of another":  {10, 7, 10, 1, 't', 18, 2, 8, 3},
		"a result as text":     {10, 8, 10, 1, 't', 18, 3, 10, 1, 1},
		"field 0":              {2, 0},
	} {
		rows := 4
		if n := bytes.Count(body, []byte{18}); body[0] == 10 && n == 1 || name == "taken with an error" {
			rows = 1
		}
		conformance.Refused(t, conformance.ErrorOf(decodeAnswer(nil, body, "t", rows)), "", "%s: no error", name)
	}
}

// answerOf is the answer for the i-th row.
func answerOf(answers []answered, i int) *answered {
	for n := range answers {
		if i -= answers[n].rows; i < 0 {
			return &answers[n]
		}
	}
	panic("there are fewer rows")
}

// FuzzAnswer looks for answers that panic, or that the SDK's decoder reads differently.
func FuzzAnswer(f *testing.F) {
	f.Add(encodeAnswer("t", append(ok(2), failed("OTSServerBusy"))), 3)
	f.Add(encodeAnswer("t", nil), 0)
	f.Add([]byte{10, 5, 10, 1, 't', 18, 0}, 1)
	f.Fuzz(func(t *testing.T, body []byte, rows int) {
		got, err := decodeAnswer(nil, body, "t", rows)
		if err != nil {
			return
		}
		want := new(otsprotocol.BatchWriteRowResponse)
		if proto.Unmarshal(body, protoadapt.MessageV2Of(want)) != nil {
			return // ours is not a validator: what it needs is there
		}
		i := 0
		for _, table := range want.Tables {
			if table.GetTableName() != "t" {
				continue
			}
			for _, r := range table.Rows {
				conformance.Equal(t, answerOf(got, i).ok, r.GetIsOk(), "row %d of %x", i, body)
				i++
			}
		}
		conformance.Equal(t, i, rows, "rows in %x", body)
	})
}

// TestAllWrittenSetsNoOutcomes writes with Options.Brief and without: if Brief leaves outcomes out, all of them report
// written rows, and their units add up to the same sum.
func TestAllWrittenSetsNoOutcomes(t *testing.T) {
	costly := result{units: 7}
	for name, tt := range map[string]struct {
		results []result
		brief   bool
	}{
		"one":                    {ok(1), true},
		"many":                   {ok(200), true},
		"of several costs":       {append(append(ok(3), costly, costly), ok(2)...), true},
		"the first is throttled": {append([]result{failed("OTSNotEnoughCapacityUnit")}, ok(5)...), false},
		"the last is refused":    {append(ok(5), failed("OTSParameterInvalid")), false},
		"none":                   {[]result{failed("OTSServerBusy"), failed("OTSServerBusy")}, false},
	} {
		rows, repeated, outcomes := batch(t, len(tt.results), table.Put)
		if _, err := New(echo{encodeAnswer("t", tt.results)}, nil, "t", table.Put, table.Ignore).Write(rows, repeated, outcomes); err != nil {
			t.Fatal(err)
		}
		units, untouched := 0, table.Outcome{Fate: table.Unknown}
		brief := make([]table.Outcome, len(rows))
		for i := range brief {
			brief[i] = untouched
			if outcomes[i].Fate == table.Written {
				units += outcomes[i].WriteCU
			}
		}
		stats, err := New(echo{encodeAnswer("t", tt.results)}, nil, "t", table.Put, table.Ignore).With(Options{Brief: true}).Write(rows, repeated, brief)
		conformance.True(t, err == nil && stats.AllWritten == tt.brief,
			"%s: all written %v, error %v", name, stats.AllWritten, err)
		for i := range brief {
			if want := outcomes[i]; !tt.brief && brief[i] != want || tt.brief && (brief[i] != untouched || want.Fate != table.Written) {
				t.Errorf("%s: row %d has the outcome %+v, without Brief %+v", name, i, brief[i], want)
			}
		}
		conformance.True(t, (!tt.brief || stats.WriteCU == units) && (tt.brief || stats.WriteCU == 0),
			"%s: %d units, want %d", name, stats.WriteCU, units)
	}
}

func TestWritingDoesNotAllocatePerRow(t *testing.T) {
	throttled := slices.Repeat([]result{failed("OTSNotEnoughCapacityUnit")}, 200)
	for _, results := range [][]result{ok(1), ok(200), throttled} {
		n := len(results)
		rows, repeated, outcomes := batch(t, n, table.Put)
		w := New(echo{encodeAnswer("t", results)}, nil, "t", table.Put, table.Ignore)
		allocs := testing.AllocsPerRun(20, func() {
			conformance.Must(t, conformance.ErrorOf(w.Write(rows, repeated, outcomes)))
		})
		conformance.True(t, allocs == 0,
			"%v allocations for a request of %d rows, the first of which got %q", allocs, n, outcomes[0].Code)
	}
}

// echo answers every request with the same bytes.
type echo struct{ answer []byte }

var echoed []byte

func (e echo) Post(_ string, appendBody func([]byte) []byte) ([]byte, error) {
	echoed = appendBody(echoed[:0])
	return e.answer, nil
}

func tooLarge(code string) error {
	return &tablestore.OtsError{HttpStatusCode: 413, Code: code, Message: "<html>"}
}

func TestRefusedSizeIsHalvedAcceptedSizeKept(t *testing.T) {
	s := new(Size)
	s.took(700)
	s.failed(1000, tooLarge(tablestore.OTS_CLIENT_UNKNOWN))
	conformance.Equal(t, s.Limit(), 700, "limit")
	s = new(Size)
	for _, want := range []int{2000, 1000, 500} {
		s.failed(2*want, tooLarge(tablestore.OTS_CLIENT_UNKNOWN))
		conformance.Equal(t, s.Limit(), want, "limit")
	}
	s.failed(4000, tooLarge("OTSRequestBodyTooLarge")) // one that was in flight
	conformance.Equal(t, s.Limit(), 500, "limit")
	s.failed(400, errors.New("EOF"))
	conformance.Equal(t, s.Limit(), 500, "limit after a lost answer")
}

func TestStatus413IsBelievedAfterThreeSingleRows(t *testing.T) {
	fail := true
	f := &fake{write: func(rows [][]byte) ([]result, error) {
		if fail {
			return nil, tooLarge(tablestore.OTS_CLIENT_UNKNOWN)
		}
		return make([]result, len(rows)), nil
	}}
	for _, tt := range []struct {
		rows, times int
		passed      bool // the same body before
		want        table.Fate
	}{{3, 5, false, table.Unknown}, {1, 2, false, table.Unknown}, {1, 3, false, table.Refused}, {1, 5, true, table.Unknown}} {
		rows, repeated, outcomes := batch(t, tt.rows, table.Put)
		size := new(Size)
		w := New(f, f, "t", table.Put, table.Ignore).With(Options{Size: size})
		if tt.passed {
			fail = false
			_, err := w.Write(rows, repeated, outcomes)
			conformance.MustTrue(t, err == nil && outcomes[0].Fate == table.Written, "%+v: %+v, %v", tt, outcomes[0], err)
			fail = true
		}
		for range tt.times {
			conformance.MustEqual(t, conformance.ErrorOf(w.Write(rows, repeated, outcomes)), nil, "%+v", tt)
		}
		conformance.True(t, outcomes[0].Fate == tt.want && size.Limit() != 0,
			"%+v: %+v, limit %d", tt, outcomes[0], size.Limit())
		if tt.want == table.Refused && !strings.Contains(fmt.Sprint(outcomes[0]), "413") {
			t.Errorf("%+v", outcomes[0])
		}
	}
}
