package writer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/encode"
)

// recorder is a network that keeps the last request and answers it with a refusal.
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
	table.Ignore: tablestore.RowExistenceExpectation_IGNORE, table.ExpectExist: tablestore.RowExistenceExpectation_EXPECT_EXIST,
	table.ExpectNotExist: tablestore.RowExistenceExpectation_EXPECT_NOT_EXIST,
}

// recorded is the body that the SDK sends for the changes.
func recorded(t *testing.T, req *tablestore.BatchWriteRowRequest) []byte {
	t.Helper()
	sent := new(recorder)
	sdk, err := client.New(t.Context(), client.Target{Endpoint: "http://recorded", Instance: "i", AcceptUnsigned: true, Transport: sent,
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: "id", AccessKeySecret: "secret"}}, nil)
	must(t, err)
	_, err = sdk.BatchWriteRow(req)
	conformance.MustTrue(t, err != nil && sent.body != nil, "nothing was recorded: %v", err)
	return sent.body
}

func TestRequestsEqualTheSDKs(t *testing.T) {
	for _, name := range []string{"t", "a_table_with_a_name_of_more_than_one_hundred_and_twenty_seven_bytes_takes_a_length_of_two_bytes_and_that_is_what_is_tried_out_here"} {
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
	t.Helper()
	rows, _, _ := batch(t, n, mode)
	req := new(tablestore.BatchWriteRowRequest)
	for i := range rows {
		key, cells := []table.Value{num(int64(i))}, []table.Value{str("v"), {}}
		req.AddRowChange(sdkChange(schema, name, mode, conditions[existence], false, key, cells, nil))
	}
	want := recorded(t, req)
	if got := AppendRequest(nil, name, mode, existence, rows); !bytes.Equal(got, want) {
		t.Errorf("mode %d, condition %d, %d rows:\n got %x\nwant %x", mode, existence, n, got, want)
	}
}

func TestLengthsTakeAsManyBytesAsTheyNeed(t *testing.T) {
	for _, size := range []int{0, 1, 90, 100, 110, 120, 127, 128, 16_300, 16_383, 16_384, 2 << 20} {
		b := &table.Block{Data: make([]byte, size)}
		b.Append(0, 0, size, table.Span{}, nil)
		rows := []table.Ref{{Block: b}, {Block: b}}
		got := rowsOf(AppendRequest([]byte{}, "t", table.Put, table.Ignore, rows))
		conformance.True(t, len(got) == 2 && len(got[0]) == size && len(got[1]) == size,
			"rows of %d bytes became %d rows", size, len(got))
	}
}

// Unusual requests: no cells, cells of all types, deleted columns, timestamps, keys that the service numbers, 4 MB.
func TestUnusualRowsEqualTheSDKs(t *testing.T) {
	schema := &table.Schema{Table: "t", Key: []table.KeyColumn{{Name: "s", Type: table.String}, {Name: "b", Type: table.Binary}, {Name: "n", Type: table.Integer}},
		Columns: []table.Column{{Name: "s"}, {Name: "b"}, {Name: "n"}, {Name: "text"}, {Name: "bytes"}, {Name: "whole"}, {Name: "broken"}, {Name: "truth"}, {Name: "列"}}}
	key := []table.Value{str("k\x00é"), {Type: table.Binary, Bytes: []byte{0, 0xff}}, num(-1 << 63)}
	full := []table.Value{str(""), {Type: table.Binary}, num(1<<63 - 1), {Type: table.Double, Double: -0.5}, {Type: table.Boolean, Int: 1}, str("値")}
	none := make([]table.Value, len(full))
	large := append([]table.Value{str(strings.Repeat("x", 2<<20))}, none[1:]...)
	for name, tt := range map[string]struct {
		mode       table.Mode
		deleteNull bool
		rows       [][]table.Value
		stamps     []int64
		numbered   bool
	}{
		"put of nothing":                  {mode: table.Put, rows: [][]table.Value{none}},
		"put of all types":                {mode: table.Put, rows: [][]table.Value{full, none, full}},
		"put with timestamps":             {mode: table.Put, rows: [][]table.Value{full}, stamps: []int64{-1, -1, -1, 1, 1700000000000, -1, 5, 6, 7}},
		"update that deletes everything":  {mode: table.Update, deleteNull: true, rows: [][]table.Value{none, full}},
		"update that deletes one":         {mode: table.Update, deleteNull: true, rows: [][]table.Value{append(none[:1:1], full[1:]...)}},
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

// sdkChange is the change given to the SDK for a row.
func sdkChange(schema *table.Schema, name string, mode table.Mode, existence tablestore.RowExistenceExpectation, deleteNull bool,
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

// keyRefused is a service, or an intermediary, that refuses the keys without a signature.
type keyRefused struct{}

func (keyRefused) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Body.Close()
	return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("\n\x0dOTSAuthFailed\x12\x02no"))}, nil
}

func TestAnUnsignedRefusalOfTheKeysStopsAndLeavesRowsInDoubt(t *testing.T) {
	c, err := client.Connect(t.Context(), client.Target{Endpoint: "http://made-up", Instance: "i", Transport: keyRefused{},
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: "id", AccessKeySecret: "secret"}}, nil)
	must(t, err)
	rows, _, _ := batch(t, 3, table.Put)
	outcomes := make([]table.Outcome, len(rows))
	_, err = New(c.Sender(), nil, "t", table.Put, table.Ignore).Write(rows, make([]bool, len(rows)), outcomes)
	conformance.Equal(t, client.Denied(err), true, "it does not stop: %v", err)
	for i, o := range outcomes {
		conformance.Equal(t, o.Fate, table.Unknown, "row %d: fate", i)
	}
}
