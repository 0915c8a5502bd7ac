package encode

import (
	"bytes"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/internal/table"
)

var schema = &table.Schema{Table: "t", Key: []table.KeyColumn{{Name: "id", Type: table.String}},
	Columns: []table.Column{{Name: "id"}, {Name: "a"}, {Name: "b"}}}

func str(s string) table.Value { return table.Value{Type: table.String, Bytes: []byte(s)} }

func TestRowsAreTheSDKsBytesInEveryMode(t *testing.T) {
	key := new(tablestore.PrimaryKey)
	key.AddPrimaryKeyColumn("id", "k")
	put := &tablestore.PutRowChange{PrimaryKey: key}
	put.AddColumn("a", "x")
	update := &tablestore.UpdateRowChange{PrimaryKey: key}
	update.PutColumn("a", "x")
	deleting := &tablestore.UpdateRowChange{PrimaryKey: key}
	deleting.PutColumn("a", "x")
	deleting.DeleteColumn("b")
	remove := &tablestore.DeleteRowChange{PrimaryKey: key}
	for name, tt := range map[string]struct {
		mode       table.Mode
		deleteNull bool
		want       []byte
		size       int
	}{
		"put":                       {table.Put, false, put.Serialize(), 5},
		"put has nothing to delete": {table.Put, true, put.Serialize(), 5},
		"update":                    {table.Update, false, update.Serialize(), 5},
		"update that deletes nulls": {table.Update, true, deleting.Serialize(), 6},
		"delete":                    {table.Delete, false, remove.Serialize(), 3},
	} {
		b := new(table.Block)
		if why := New(schema, tt.mode, tt.deleteNull).Append(b, []table.Value{str("k"), str("x"), {}}, nil, table.Span{}, nil); why != nil {
			t.Fatalf("%s: %v", name, why)
		}
		r := table.Ref{Block: b}
		if !bytes.Equal(r.Body(), tt.want) {
			t.Errorf("%s:\ngot  %x\nwant %x", name, r.Body(), tt.want)
		}
		if r.Row().Size() != tt.size {
			t.Errorf("%s: %d accounted bytes, want %d", name, r.Row().Size(), tt.size)
		}
		if want := table.AppendKey(nil, str("k")); !bytes.Equal(r.Key(), want) {
			t.Errorf("%s: ordering key %x, want %x", name, r.Key(), want)
		}
	}
}

func TestARefusedRowLeavesTheBlockUnchanged(t *testing.T) {
	b := new(table.Block)
	e := New(schema, table.Update, false)
	good := []table.Value{str("k"), str("x"), str("y")}
	if why := e.Append(b, good, nil, table.Span{}, nil); why != nil {
		t.Fatal(why)
	}
	before := len(b.Data)
	huge := table.Value{Type: table.String, Bytes: make([]byte, table.MaxValueBytes+1)}
	for _, tt := range []struct {
		values []table.Value
		code   string
	}{
		{[]table.Value{{}, str("x"), str("y")}, table.CodeNullKey},
		{[]table.Value{{Type: table.String, Bytes: make([]byte, table.MaxKeyBytes+1)}, str("x"), {}}, table.CodeKeyTooLong},
		{[]table.Value{str("k"), str("x"), huge}, table.CodeValueTooLong},
		{[]table.Value{str("k"), {}, {}}, table.CodeNoCells},
	} {
		why := e.Append(b, tt.values, nil, table.Span{}, nil)
		if why == nil || why.Code != tt.code {
			t.Errorf("got %v, want %s", why, tt.code)
		}
		if len(b.Data) != before || len(b.Rows) != 1 {
			t.Errorf("%s left %d bytes and %d rows", tt.code, len(b.Data), len(b.Rows))
		}
	}
	if why := New(schema, table.Put, false).Append(b, []table.Value{str(""), {}, {}}, nil, table.Span{}, nil); why != nil {
		t.Errorf("a put of a key only, and an empty key value: %v", why)
	}
}
