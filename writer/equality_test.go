package writer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore/otsprotocol"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/encode"
)

// recorder is a transport that records the last request and answers it with a refusal.
type recorder struct {
	header http.Header
	path   string
	body   []byte
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	defer req.Body.Close()
	r.header, r.path = req.Header.Clone(), req.URL.Path
	var err error
	if r.body, err = io.ReadAll(req.Body); err != nil {
		return nil, err
	}
	if req.ContentLength != int64(len(r.body)) {
		return nil, fmt.Errorf("Content-Length %d of %d bytes", req.ContentLength, len(r.body))
	}
	return nil, errors.New("recorded")
}

var conditions = map[table.Existence]tablestore.RowExistenceExpectation{
	table.Ignore:         tablestore.RowExistenceExpectation_IGNORE,
	table.ExpectExist:    tablestore.RowExistenceExpectation_EXPECT_EXIST,
	table.ExpectNotExist: tablestore.RowExistenceExpectation_EXPECT_NOT_EXIST,
}

// recorded returns the body that the SDK sends for the request.
func recorded(t *testing.T, req *tablestore.BatchWriteRowRequest) []byte {
	t.Helper()
	sent := new(recorder)
	sdk, err := client.New(t.Context(), client.Target{Endpoint: "http://recorded", Instance: "i", AcceptUnsigned: true,
		Transport: sent, Credentials: &common.DefaultCredentialsProvider{AccessKeyID: "id", AccessKeySecret: "secret"}}, nil)
	conformance.Must(t, err)
	_, err = sdk.BatchWriteRow(req)
	conformance.MustTrue(t, err != nil && sent.body != nil, "nothing was recorded: %v", err)
	return sent.body
}

func TestRequestsEqualSDKRequests(t *testing.T) {
	for _, name := range []string{"t",
		"a_table_with_a_name_of_more_than_one_hundred_and_twenty_seven_bytes_takes_a_length_of_two_bytes_and_that_is_what_is_tried_out_here"} {
		for _, mode := range []table.Mode{table.Put, table.Update, table.Delete} {
			for existence := range conditions {
				for _, n := range []int{1, 2, 199, 200} {
					checkRequest(t, name, mode, existence, n)
				}
			}
		}
	}
}

func checkRequest(t *testing.T, name string, mode table.Mode, existence table.Existence, n int) {
	rows, _, _ := batch(t, n, mode)
	req := new(tablestore.BatchWriteRowRequest)
	for i := range rows {
		key, cells := []table.Value{num(int64(i))}, []table.Value{str("v"), {}}
		req.AddRowChange(sdkChange(schema, name, mode, conditions[existence], false, key, cells, nil))
	}
	want := recorded(t, req)
	got := AppendRequest(nil, name, mode, existence, rows)
	conformance.True(t, bytes.Equal(got, want), "mode %d, %d, %d rows:\n got %x\nwant %x", mode, existence, n, got, want)
}

func TestRowsOfAnySizeAreReadable(t *testing.T) {
	for _, size := range []int{0, 1, 90, 100, 110, 120, 127, 128, 16_300, 16_383, 16_384, 2 << 20} {
		b := &table.Block{Data: make([]byte, size)}
		b.Append(0, 0, size, table.Span{}, nil)
		rows := []table.Ref{{Block: b}, {Block: b}}
		got := rowsOf(AppendRequest([]byte{}, "t", table.Put, table.Ignore, rows))
		conformance.True(t, len(got) == 2 && len(got[0]) == size && len(got[1]) == size,
			"rows of %d bytes became %d rows", size, len(got))
	}
}

// The requests have no cells, all types, deleted columns, timestamps, numbered keys, or 4 MB.
func TestUnusualRequestsEqualSDKRequests(t *testing.T) {
	schema := &table.Schema{Table: "t", Key: []table.KeyColumn{{Name: "s", Type: table.String},
		{Name: "b", Type: table.Binary}, {Name: "n", Type: table.Integer}},
		Columns: []table.Column{{Name: "s"}, {Name: "b"}, {Name: "n"}, {Name: "text"}, {Name: "bytes"}, {Name: "whole"},
			{Name: "broken"}, {Name: "truth"}, {Name: "列"}}}
	key := []table.Value{str("k\x00é"), {Type: table.Binary, Bytes: []byte{0, 0xff}}, num(-1 << 63)}
	full := []table.Value{str(""), {Type: table.Binary}, num(1<<63 - 1), {Type: table.Double, Double: -0.5},
		{Type: table.Boolean, Int: 1}, str("値")}
	none := make([]table.Value, len(full))
	large := append([]table.Value{str(strings.Repeat("x", 2<<20))}, none[1:]...)
	for name, tt := range map[string]struct {
		mode       table.Mode
		deleteNull bool
		rows       [][]table.Value
		stamps     []int64
		numbered   bool
	}{
		"put of nothing":   {mode: table.Put, rows: [][]table.Value{none}},
		"put of all types": {mode: table.Put, rows: [][]table.Value{full, none, full}},
		"put, timestamps": {mode: table.Put, rows: [][]table.Value{full},
			stamps: []int64{-1, -1, -1, 1, 1700000000000, -1, 5, 6, 7}},
		"update that deletes everything": {mode: table.Update, deleteNull: true, rows: [][]table.Value{none, full}},
		"update, deleting one": {mode: table.Update, deleteNull: true,
			rows: [][]table.Value{append(none[:1:1], full[1:]...)}},
		"delete":                          {mode: table.Delete, rows: [][]table.Value{none, full}},
		"4 MB":                            {mode: table.Put, rows: [][]table.Value{large, large}},
		"put of rows the service numbers": {mode: table.Put, rows: [][]table.Value{full, none}, numbered: true},
	} {
		if schema.Numbered = 0; tt.numbered {
			schema.Numbered = 2
		}
		block, e := new(table.Block), encode.New(schema, tt.mode, tt.deleteNull)
		var refs []table.Ref
		req := new(tablestore.BatchWriteRowRequest)
		for i, cells := range tt.rows {
			why := e.Append(block, append(append([]table.Value{}, key...), cells...), tt.stamps, table.Span{}, nil)
			conformance.MustTrue(t, why == nil, "%s: %v", name, why)
			refs = append(refs, table.Ref{Block: block, Index: int32(i)})
			req.AddRowChange(sdkChange(schema, "t", tt.mode, conditions[table.Ignore], tt.deleteNull, key, cells, tt.stamps))
		}
		want := recorded(t, req)
		d := new(annotated)
		if tt.numbered {
			d.asks = asksKey
		}
		got := appendRequest(nil, "t", tt.mode, table.Ignore, refs, d)
		conformance.True(t, bytes.Equal(got, want), "%s:\n got %.300x\nwant %.300x", name, got, want)
	}
}

func sdkChange(schema *table.Schema, name string, mode table.Mode, existence tablestore.RowExistenceExpectation,
	deleteNull bool,
	key, cells []table.Value, stamps []int64) tablestore.RowChange {
	pk := new(tablestore.PrimaryKey)
	for i, k := range schema.Key {
		if i == schema.Numbered && i > 0 {
			pk.AddPrimaryKeyColumnWithAutoIncrement(k.Name)
			continue
		}
		pk.AddPrimaryKeyColumn(k.Name, client.SDKValue(key[i]))
	}
	condition := &tablestore.RowCondition{RowExistenceExpectation: existence}
	put := &tablestore.PutRowChange{TableName: name, PrimaryKey: pk, Condition: condition}
	if schema.Numbered > 0 {
		put.SetReturnPk()
	}
	update := &tablestore.UpdateRowChange{TableName: name, PrimaryKey: pk, Condition: condition}
	for i, c := range schema.Columns[len(key):] {
		switch v := cells[i]; {
		case v.Type == table.Null && deleteNull:
			update.DeleteColumn(c.Name)
		case v.Type == table.Null:
		case stamps != nil && stamps[len(key)+i] >= 0:
			put.AddColumnWithTimestamp(c.Name, client.SDKValue(v), stamps[len(key)+i])
		default:
			put.AddColumn(c.Name, client.SDKValue(v))
			update.PutColumn(c.Name, client.SDKValue(v))
		}
	}
	switch mode {
	case table.Put:
		return put
	case table.Update:
		return update
	}
	return &tablestore.DeleteRowChange{TableName: name, PrimaryKey: pk, Condition: condition}
}

// keyRefused is a service, or an intermediary, whose unsigned answers refuse the access key.
type keyRefused struct{}

func (keyRefused) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Body.Close()
	return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader("\n\x0dOTSAuthFailed\x12\x02no"))}, nil
}

func TestUnsignedKeyRefusalStopsWithRowsInDoubt(t *testing.T) {
	c, err := client.Connect(t.Context(), client.Target{Endpoint: "http://made-up", Instance: "i", Transport: keyRefused{},
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: "id", AccessKeySecret: "secret"}}, nil)
	conformance.Must(t, err)
	rows, _, _ := batch(t, 3, table.Put)
	outcomes := make([]table.Outcome, len(rows))
	_, err = New(c.Sender(), nil, "t", table.Put, table.Ignore).Write(rows, make([]bool, len(rows)), outcomes)
	conformance.Equal(t, client.Denied(err), true, "it does not stop: %v", err)
	for i, o := range outcomes {
		conformance.Equal(t, o.Fate, table.Unknown, "row %d: fate", i)
	}
}

func TestAnswersMatchSDK(t *testing.T) {
	key := []byte{0x75, 0, 0, 0, 1}
	unit := func(write int32) *otsprotocol.ConsumedCapacity {
		return &otsprotocol.ConsumedCapacity{CapacityUnit: &otsprotocol.CapacityUnit{Read: proto.Int32(3), Write: &write}}
	}
	rows := []*otsprotocol.RowInBatchWriteRowResponse{{IsOk: proto.Bool(true), Consumed: unit(7)},
		{IsOk: proto.Bool(true), Consumed: unit(7)}, {IsOk: proto.Bool(true), Consumed: unit(1), Row: key},
		{IsOk: proto.Bool(false), Error: &otsprotocol.Error{Code: proto.String("OTSTimeout"), Message: proto.String("late")}},
		{IsOk: proto.Bool(false), Error: &otsprotocol.Error{Code: proto.String("OTSTimeout")}}}
	body, err := proto.Marshal(protoadapt.MessageV2Of(&otsprotocol.BatchWriteRowResponse{
		Tables: []*otsprotocol.TableInBatchWriteRowResponse{
			{TableName: proto.String("other"), Rows: rows[:1]}, {TableName: proto.String("t"), Rows: rows},
		}}))
	conformance.Must(t, err)
	body = append(body, 3<<3|5, 1, 2, 3, 4, 4<<3|1, 1, 2, 3, 4, 5, 6, 7, 8) // fields added by a later service
	got := conformance.Try(decodeAnswer(nil, body, "t", len(rows))).Must(t)
	conformance.Equal(t, len(got), 4, "runs of rows that fare alike")
	for i, r := range rows {
		a := answerOf(got, i)
		conformance.True(t, a.ok == r.GetIsOk() && string(a.code) == r.GetError().GetCode() &&
			string(a.message) == r.GetError().GetMessage() && a.writeCU == int(r.GetConsumed().GetCapacityUnit().GetWrite()) &&
			bytes.Equal(a.row, r.Row), "row %d: %+v", i, a)
	}
}

func TestDamagedAnswerIsNeverASuccess(t *testing.T) {
	whole := encodeAnswer("t", append(ok(3), failed("OTSTimeout")))
	for n := range whole {
		conformance.Refused(t, conformance.ErrorOf(decodeAnswer(nil, whole[:n], "t", 4)), "", "%d bytes of %d", n, len(whole))
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
		"units cut short":      {10, 13, 10, 1, 't', 18, 8, 8, 1, 26, 4, 10, 2, 8, 128},
	} {
		rows := 4
		if n := bytes.Count(body, []byte{18}); body[0] == 10 && n == 1 || name == "taken with an error" {
			rows = 1
		}
		conformance.Refused(t, conformance.ErrorOf(decodeAnswer(nil, body, "t", rows)), "", "%s: no error", name)
	}
}

func answerOf(answers []answered, i int) *answered {
	for n := range answers {
		if i -= answers[n].rows; i < 0 {
			return &answers[n]
		}
	}
	panic("there are fewer rows")
}

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
			return // our decoder does not check fields that it does not need
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

// With Options.Brief, Write sets only the sum of the units if every row was written, and otherwise all outcomes.
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
		if _, err := New(echo{encodeAnswer("t", tt.results)}, nil, "t", table.Put, table.Ignore).Write(rows, repeated,
			outcomes); err != nil {
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
		stats, err := New(echo{encodeAnswer("t", tt.results)}, nil, "t", table.Put,
			table.Ignore).With(Options{Brief: true}).Write(rows, repeated, brief)
		conformance.True(t, err == nil && stats.AllWritten == tt.brief, "%s: all %v, error %v", name, stats.AllWritten, err)
		for i := range brief {
			if want := outcomes[i]; !tt.brief && brief[i] != want || tt.brief &&
				(brief[i] != untouched || want.Fate != table.Written) {
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
		conformance.True(t, allocs == 0, "%v allocations for a request of %d rows, the first %q", allocs, n, outcomes[0].Code)
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
	s.failed(4000, tooLarge("OTSRequestBodyTooLarge")) // from a request that was in flight
	conformance.Equal(t, s.Limit(), 500, "limit")
	s.failed(400, errors.New("EOF"))
	conformance.Equal(t, s.Limit(), 500, "limit after a lost answer")
}

// If a gateway repeatedly cuts the connections of large requests, a limit must be found, and later requests keep to it.
func TestCutConnectionsLowerSize(t *testing.T) {
	l := conformance.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(c, make([]byte, 32<<10))
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	}()
	connection := conformance.Try(client.Connect(t.Context(), client.Target{
		Endpoint: "http://" + l.Addr().String(), Instance: "i", AcceptUnsigned: true,
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: "id", AccessKeySecret: "secret"},
	}, nil)).Must(t)
	cut := func() error {
		for range 100 {
			s := connection.Sender()
			_, err := s.Post("BatchWriteRow", func(dst []byte) []byte { return append(dst, make([]byte, 8<<20)...) })
			s.Close()
			if client.CutWhileSending(err) {
				return err
			}
		}
		t.Fatal("no connection breaks while a request is being sent")
		return nil
	}()
	s := new(Size)
	for _, bytes := range []int{3 << 20, leastCut, 2 << 20, 4 << 20} {
		conformance.Equal(t, s.Limit(), 0, "limit before a third large body is cut")
		s.failed(bytes, cut)
	}
	conformance.Equal(t, s.Limit(), 1<<20, "limit: half of the smallest")
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
		passed      bool // the same body was accepted before
		want        table.Fate
	}{{3, 5, false, table.Unknown}, {1, 2, false, table.Unknown}, {1, 3, false, table.Refused},
		{1, 5, true, table.Unknown}} {
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
		conformance.True(t, tt.want != table.Refused || strings.Contains(fmt.Sprint(outcomes[0]), "413"), "%+v", outcomes[0])
	}
}
