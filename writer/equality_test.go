package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
	"tsimport/internal/tablestore/plainbuffer"
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

// sdkChange is the change that the SDK would be given for the row.
func sdkChange(t *testing.T, row table.Ref, name string, mode table.Mode, existence table.Existence) tablestore.RowChange {
	t.Helper()
	decoded, err := plainbuffer.Decode(row.Body())
	must(t, err)
	key := new(tablestore.PrimaryKey)
	for _, c := range decoded.Key {
		key.AddPrimaryKeyColumn(c.Name, client.SDKValue(c.Value))
	}
	condition := &tablestore.RowCondition{RowExistenceExpectation: conditions[existence]}
	switch mode {
	case table.Put:
		put := &tablestore.PutRowChange{TableName: name, PrimaryKey: key, Condition: condition}
		for _, c := range decoded.Cells {
			put.AddColumn(c.Name, client.SDKValue(c.Value))
		}
		return put
	case table.Update:
		update := &tablestore.UpdateRowChange{TableName: name, PrimaryKey: key, Condition: condition}
		for _, c := range decoded.Cells {
			update.PutColumn(c.Name, client.SDKValue(c.Value))
		}
		return update
	}
	return &tablestore.DeleteRowChange{TableName: name, PrimaryKey: key, Condition: condition}
}

func TestARequestIsTheBytesTheSDKSendsForEveryModeAndCondition(t *testing.T) {
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
	sent := new(recorder)
	target := client.Target{Endpoint: "http://recorded", Instance: "i", AcceptUnsigned: true, Transport: sent,
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: "id", AccessKeySecret: "secret"}}
	sdk, err := client.New(context.Background(), target, nil)
	must(t, err)
	rows, _, _ := batch(t, n, mode)
	req := new(tablestore.BatchWriteRowRequest)
	for _, r := range rows {
		req.AddRowChange(sdkChange(t, r, name, mode, existence))
	}
	if _, err := sdk.BatchWriteRow(req); err == nil || sent.body == nil {
		t.Fatalf("nothing was recorded: %v", err)
	}
	if got := AppendRequest(nil, name, mode, existence, rows); !bytes.Equal(got, sent.body) {
		t.Errorf("mode %d, condition %d, %d rows:\n got %x\nwant %x", mode, existence, n, got, sent.body)
	}
}

func TestLengthsTakeAsManyBytesAsTheyNeed(t *testing.T) {
	for _, size := range []int{0, 1, 90, 100, 110, 120, 127, 128, 16_300, 16_383, 16_384, 2 << 20} {
		b := &table.Block{Data: make([]byte, size)}
		b.Append(0, 0, size, table.Span{}, nil)
		rows := []table.Ref{{Block: b}, {Block: b}}
		got := rowsOf(AppendRequest([]byte{}, "t", table.Put, table.Ignore, rows))
		if len(got) != 2 || len(got[0]) != size || len(got[1]) != size {
			t.Errorf("rows of %d bytes became %d rows", size, len(got))
		}
	}
}
