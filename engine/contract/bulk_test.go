package contract

import (
	"bytes"
	endian "encoding/binary"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// bulkBody is a BulkImport of puts.
func bulkBody(table string, rows ...*tablestore.PutRowRequest) message {
	body := message{}.text(1, table)
	for _, r := range rows {
		body = body.bytes(2, message{}.int(1, 1).bytes(2, r.PutRowChange.Serialize()))
	}
	return body
}

func bulkRow(tb *table, key *tablestore.PrimaryKey, cells ...cell) *tablestore.PutRowRequest {
	change := &tablestore.PutRowChange{TableName: tb.name, PrimaryKey: key}
	for _, c := range cells {
		change.AddColumn(c.Name, c.Value)
	}
	return &tablestore.PutRowRequest{PutRowChange: change}
}

func TestBulkImportWritesRowsOfOneTable(t *testing.T) {
	s := proving(t, "3.13.1")
	tb := s.newTable(t, tableOptions{})
	wrong := &tablestore.PrimaryKey{}
	wrong.AddPrimaryKeyColumn("pk1", "b")
	a := s.send(t, rawRequest{operation: "BulkImport", body: bulkBody(tb.name, bulkRow(tb, tb.key("a", 1), c("n", int64(5))), bulkRow(tb, wrong))})
	a.check(t, accepted)
	// 3+1 and 3+8 bytes of key, 1+8 of the cell.
	want := message{}.text(1, tb.name).bytes(2, message{}.int(1, 1).bytes(3, message{}.bytes(1, message{}.int(1, 0).int(2, 0)).bytes(2, message{}.int(1, 0).int(2, 24)))).
		bytes(2, message{}.int(1, 0).bytes(2, message{}.text(1, "OTSInvalidPK").text(2, "Validate PK size fail. Input: 1, Meta: 2.")).bytes(3, message{}.bytes(1, message{}.int(1, 0).int(2, 1))))
	if !bytes.Equal(a.body, want) {
		t.Errorf("got  %x\nwant %x", a.body, want)
	}
	diff(t, tb.values(t, tb.key("a", 1)).Cells, []cell{c("n", int64(5))})
	many := make([]*tablestore.PutRowRequest, 201)
	for i := range many {
		many[i] = bulkRow(tb, tb.key("m", i))
	}
	s.send(t, rawRequest{operation: "BulkImport", body: bulkBody(tb.name, many...)}).check(t, invalid("Rows count exceeds the upper limit: 200."))
	s.send(t, rawRequest{operation: "BulkImport", body: bulkBody(tb.name, many[:200]...)}).check(t, accepted)
	s.send(t, rawRequest{operation: "BulkImport", body: bulkBody(tb.name)}).check(t, invalid("No operation is specified for table: '"+tb.name+"'."))
	diff(t, len(tb.all(t)), 201)
	missing := newTableName()
	m := s.send(t, rawRequest{operation: "BulkImport", body: bulkBody(missing, bulkRow(tb, tb.key("a", 1)))})
	m.check(t, accepted)
	if !bytes.Contains(m.body, []byte("OTSObjectNotExist")) {
		t.Errorf("%q", m.body)
	}
}

func TestBulkExportReadsARangeAsAMatrix(t *testing.T) {
	s := proving(t, "3.13.2")
	tb := s.newTable(t, tableOptions{versions: 2})
	must(t, s.do(tb.put(tb.key("a", 1), c("b", true), c("s", "é"))))
	must(t, s.do(tb.put(tb.key("a", 2), c("a", int64(-1)), c("s", "old"))))
	must(t, s.do(tb.update(tb.key("a", 2), set("s", "new"))))
	export := func(more message) *answer {
		body := append(message{}.text(1, tb.name).bytes(3, tb.key(minKey, minKey).Build(false)).bytes(4, tb.key(maxKey, maxKey).Build(false)), more...)
		a := s.send(t, rawRequest{operation: "BulkExport", body: body})
		a.check(t, accepted)
		return a
	}
	le := endian.LittleEndian
	name := func(dst []byte, names ...string) []byte {
		for _, n := range names {
			dst = append(le.AppendUint16(dst, uint16(len(n))), n...)
		}
		return dst
	}
	want := []byte("SRM0")
	head := name(nil, "pk1", "pk2", "a", "b", "s")
	options := uint32(20 + len(head))
	want = le.AppendUint32(le.AppendUint32(want, options+7), options)
	want = le.AppendUint32(le.AppendUint32(want, 2), 3)
	want = append(append(want, head...), 10, 1, 3)
	want = le.AppendUint32(want, 2)
	text := func(dst []byte, s string) []byte {
		return append(le.AppendUint32(append(dst, 3), uint32(len(s))), s...)
	}
	whole := func(dst []byte, n int64) []byte { return le.AppendUint64(append(dst, 0), uint64(n)) }
	want = text(append(append(whole(text(append(want, 2), "a"), 1), 6), 2, 1), "é")
	want = text(append(whole(whole(text(append(want, 2), "a"), 2), -1), 6), "new")
	want = append(want, 1)
	columns := func(names ...string) (asked message) {
		for _, n := range names {
			asked = asked.text(2, n)
		}
		return asked
	}
	a := export(columns("pk1", "pk2", "a", "b", "s"))
	if !bytes.Contains(a.body, want) {
		t.Errorf("got  %x\nwant %x", a.body, want)
	}
	// No units, and the bytes of keys and columns that were scanned: 2×(3+1+3+8), 1+1+1+2, 1+8+1+3.
	if consumed := (message{}.bytes(1, message{}.bytes(1, message{}.int(1, 0).int(2, 0)).bytes(2, message{}.int(1, 48).int(2, 0)))); !bytes.HasPrefix(a.body, consumed) {
		t.Errorf("consumed %x, want %x", a.body[:20], consumed)
	}
	none := append(message{}.text(1, tb.name).bytes(3, tb.key(minKey, minKey).Build(false)), message{}.bytes(4, tb.key(maxKey, maxKey).Build(false))...)
	s.send(t, rawRequest{operation: "BulkExport", body: none}).check(t, invalid("DBT_SIMPLE_ROW_MATRIX need at least one column to get."))
	// Fields are what was asked for, in that order, of which those in front are of the key.
	matrix := func(keys, others uint32, fields []byte, row ...byte) []byte {
		return append(append(le.AppendUint32(le.AppendUint32(nil, keys), others), fields...), row...)
	}
	got := export(columns("s", "none", "b"))
	first := text([]byte{2}, "é")
	if !bytes.Contains(got.body, matrix(0, 3, name(nil, "s", "none", "b"))) || !bytes.Contains(got.body, append(first, 6, 2, 1, 2)) {
		t.Errorf("%x", got.body)
	}
	if got := export(columns("pk2", "s", "pk1")); !bytes.Contains(got.body, matrix(1, 2, name(nil, "pk2", "s", "pk1"))) || !bytes.Contains(got.body, text(text(whole([]byte{2}, 1), "é"), "a")) {
		t.Errorf("%x", got.body)
	}
	if got := export(message{}.int(6, 0)); bytes.Contains(got.body, []byte("SRM0")) || !bytes.Contains(got.body, []byte{0x75, 0, 0, 0, 1}) {
		t.Errorf("rows were asked for: %x", got.body)
	}
	if got := export(message{}.text(2, "pk1").text(2, "b")); !bytes.Contains(got.body, name(nil, "pk1", "b")) {
		t.Errorf("%x", got.body)
	}
	must(t, s.do(tb.delete(tb.key("a", 1))))
	must(t, s.do(tb.delete(tb.key("a", 2))))
	if got := export(columns("a")); !bytes.Contains(got.body, []byte{3, 0, 0, 0, 0, 1}) {
		t.Errorf("an empty range: %x", got.body)
	}
}
