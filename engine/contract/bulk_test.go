package contract

import (
	"bytes"
	"cmp"
	endian "encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
)

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
	a := s.ask(t, "BulkImport", bulkBody(tb.name, bulkRow(tb, tb.key("a", 1), c("n", int64(5))), bulkRow(tb, wrong)))
	a.check(t, accepted)
	// The key's columns have 3+1 and 3+8 bytes, the cell has 1+8.
	read := message{}.bytes(1, message{}.int(1, 0).int(2, 0))
	invalidRow := message{}.text(1, "OTSInvalidPK").text(2, "Validate PK size fail. Input: 1, Meta: 2.")
	want := message{}.text(1, tb.name).bytes(2, message{}.int(1, 1).bytes(3,
		read.bytes(2, message{}.int(1, 0).int(2, 24)))).
		bytes(2, message{}.int(1, 0).bytes(2, invalidRow).bytes(3, message{}.bytes(1, message{}.int(1, 0).int(2, 1))))
	conformance.True(t, bytes.Equal(a.body, want), "got  %x\nwant %x", a.body, want)
	diff(t, tb.values(t, tb.key("a", 1)).Cells, []cell{c("n", int64(5))})
	many := make([]*tablestore.PutRowRequest, 201)
	for i := range many {
		many[i] = bulkRow(tb, tb.key("m", i))
	}
	s.ask(t, "BulkImport", bulkBody(tb.name, many...)).check(t, invalid("Rows count exceeds the upper limit: 200."))
	s.ask(t, "BulkImport", bulkBody(tb.name, many[:200]...)).check(t, accepted)
	s.ask(t, "BulkImport", bulkBody(tb.name)).check(t, invalid("No operation is specified for table: '"+tb.name+"'."))
	diff(t, len(tb.all(t)), 201)
	missing := newTableName()
	m := s.ask(t, "BulkImport", bulkBody(missing, bulkRow(tb, tb.key("a", 1))))
	m.check(t, accepted)
	conformance.Equal(t, bytes.Contains(m.body, []byte("OTSObjectNotExist")), true, "%q", m.body)
}

func TestBulkExportReadsRangeAsMatrix(t *testing.T) {
	s := proving(t, "3.13.2")
	tb := s.newTable(t, tableOptions{versions: 2})
	must(t, s.do(tb.put(tb.key("a", 1), c("b", true), c("s", "é"))))
	must(t, s.do(tb.put(tb.key("a", 2), c("a", int64(-1)), c("s", "old"))))
	must(t, s.do(tb.update(tb.key("a", 2), set("s", "new"))))
	all := message{}.text(1, tb.name).bytes(3, tb.key(minKey, minKey).Build(false)).bytes(4,
		tb.key(maxKey, maxKey).Build(false))
	export := func(more message) *answer {
		a := s.ask(t, "BulkExport", append(slices.Clip(all), more...))
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
	conformance.True(t, bytes.Contains(a.body, want), "got  %x\nwant %x", a.body, want)
	// The answer has no units, but the scanned bytes of keys and columns: 2×(3+1+3+8), 1+1+1+2, 1+8+1+3.
	units := message{}.bytes(1, message{}.int(1, 0).int(2, 0)).bytes(2, message{}.int(1, 48).int(2, 0))
	consumed := message{}.bytes(1, units)
	conformance.True(t, bytes.HasPrefix(a.body, consumed), "consumed %x, want %x", a.body[:20], consumed)
	s.ask(t, "BulkExport", all).check(t, invalid("DBT_SIMPLE_ROW_MATRIX need at least one column to get."))
	// Fields are in the requested order, key columns before others.
	matrix := func(keys, others uint32, fields []byte, row ...byte) []byte {
		return append(append(le.AppendUint32(le.AppendUint32(nil, keys), others), fields...), row...)
	}
	got := export(columns("s", "none", "b"))
	first := text([]byte{2}, "é")
	conformance.True(t, bytes.Contains(got.body, matrix(0, 3, name(nil, "s", "none", "b"))) &&
		bytes.Contains(got.body, append(first, 6, 2, 1, 2)), "%x", got.body)
	got = export(columns("pk2", "s", "pk1"))
	conformance.True(t, bytes.Contains(got.body, matrix(1, 2, name(nil, "pk2", "s", "pk1"))) &&
		bytes.Contains(got.body, text(text(whole([]byte{2}, 1), "é"), "a")), "%x", got.body)
	got = export(message{}.int(6, 0))
	conformance.True(t, !bytes.Contains(got.body, []byte("SRM0")) && bytes.Contains(got.body, []byte{0x75, 0, 0, 0, 1}),
		"rows were asked for: %x", got.body)
	got = export(message{}.text(2, "pk1").text(2, "b"))
	conformance.True(t, bytes.Contains(got.body, name(nil, "pk1", "b")), "%x", got.body)
	must(t, s.do(tb.delete(tb.key("a", 1))))
	must(t, s.do(tb.delete(tb.key("a", 2))))
	got = export(columns("a"))
	conformance.True(t, bytes.Contains(got.body, []byte{3, 0, 0, 0, 0, 1}), "an empty range: %x", got.body)
}

// These functions and variables encode values in PlainBuffer without the leading size.
func vInt(v int64) []byte { return endian.LittleEndian.AppendUint64([]byte{0}, uint64(v)) }
func vDouble(f float64) []byte {
	return endian.LittleEndian.AppendUint64([]byte{1}, math.Float64bits(f))
}
func vBool(b byte) []byte     { return []byte{2, b} }
func vText(s string) []byte   { return sized([]byte{3}, s) }
func vBinary(s string) []byte { return sized([]byte{7}, s) }

var vNull, vInfMin, vInfMax, vAuto = []byte{6}, []byte{9}, []byte{10}, []byte{11}

func sized(b []byte, s string) []byte {
	return append(endian.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
}

// wireCell is a cell as a client may send it, valid or not. Without a value it has no value tag.
type wireCell struct {
	name            string
	value           []byte
	op              byte // 0 means none
	ts              int64
	stamped         bool
	nameless        bool // without a name tag
	emptyTag        bool // a value tag without a value
	noCRC, wrongCRC bool
	wrongLen        int // added to the size after the value tag
}

// wireRow is a row as a client may send it. The suite has its own encoder: SDKs cannot send most invalid rows.
type wireRow struct {
	key, cells      []wireCell
	marker          bool
	extension       []byte
	noCRC, wrongCRC bool
}

const plainHeader = "\x75\x00\x00\x00"

func (r wireRow) encode() []byte { return append([]byte(plainHeader), r.body()...) }

func (r wireRow) body() []byte {
	crc := byte(0)
	b := []byte{0x01}
	for _, c := range r.key {
		b, crc = c.append(b, crc)
	}
	if len(r.cells) > 0 {
		b = append(b, 0x02)
	}
	for _, c := range r.cells {
		b, crc = c.append(b, crc)
	}
	last := byte(0)
	if r.marker {
		b, last = append(b, 0x08), 1
	}
	if r.extension != nil {
		b = sized(append(b, 0x0B), string(r.extension))
	}
	crc = crcOf(crc, []byte{last})
	if r.wrongCRC {
		crc ^= 1
	}
	if r.noCRC {
		return b
	}
	return append(b, 0x09, crc)
}

// append appends the cell and adds its checksum to the row's.
func (c wireCell) append(b []byte, row byte) ([]byte, byte) {
	b = append(b, 0x03)
	if !c.nameless {
		b = sized(append(b, 0x04), c.name)
	}
	crc := crcOf(0, []byte(c.name))
	if c.emptyTag {
		b = append(b, 0x05)
	}
	if c.value != nil {
		b = endian.LittleEndian.AppendUint32(append(b, 0x05), uint32(len(c.value)+c.wrongLen))
		b = append(b, c.value...)
		crc = crcOf(crc, c.value)
	}
	if c.op != 0 {
		b = append(b, 0x06, c.op)
	}
	if c.stamped {
		ts := endian.LittleEndian.AppendUint64(nil, uint64(c.ts))
		b, crc = append(append(b, 0x07), ts...), crcOf(crc, ts)
	}
	if c.op != 0 {
		crc = crcOf(crc, []byte{c.op})
	}
	if c.wrongCRC {
		crc ^= 1
	}
	if !c.noCRC {
		b = append(b, 0x0A, crc)
	}
	return b, crcOf(row, []byte{crc})
}

// crcOf computes the CRC-8 with polynomial 0x07, bit by bit.
func crcOf(crc byte, b []byte) byte {
	for _, x := range b {
		crc ^= x
		for range 8 {
			if crc&0x80 != 0 {
				crc = crc<<1 ^ 0x07
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

func wireKey(a string, b int64) []wireCell {
	return []wireCell{{name: "pk1", value: vText(a)}, {name: "pk2", value: vInt(b)}}
}

func consumed(field int, read, write int64) message {
	return message{}.bytes(field, message{}.bytes(1, message{}.int(1, read).int(2, write)))
}

func TestPlainBufferEqualsSDKs(t *testing.T) {
	spec(t, "2.2.1", "2.3.1", "2.3.2", "2.3.3", "2.3.4")
	tb := &table{name: "t"}
	k := wireKey("a", 1)
	diff(t, crcOf(0, []byte("123456789")), byte(0xF4))
	diff(t, wireRow{key: k, cells: []wireCell{
		{name: "b", value: vBinary("\x00\xff")}, {name: "d", value: vDouble(3.25)},
		{name: "i", value: vInt(-5), ts: 1700000000000, stamped: true},
		{name: "s", value: vText("é")}, {name: "t", value: vBool(1)},
	}}.encode(), tb.put(tb.key("a", 1), c("b", []byte{0, 255}), c("d", 3.25), v("i", -5, 1700000000000), c("s", "é"),
		c("t", true)).Serialize())
	diff(t, wireRow{key: k, cells: []wireCell{
		{name: "a", value: vInt(1)}, {name: "b", op: 1}, {name: "c", op: 3, ts: 7, stamped: true},
		{name: "n", value: vInt(10), op: 4},
	}}.encode(), tb.update(tb.key("a", 1), set("a", 1), drop("b"), dropAt("c", 7), add("n", 10)).Serialize())
	diff(t, wireRow{key: k, marker: true}.encode(), tb.delete(tb.key("a", 1)).Serialize())
}

type wireCase struct {
	op   int64 // 1 put, 2 update, 3 delete
	row  wireRow
	want refusal
}

var brokenCell = invalid("Cell data broken, checksum is mismatch.")

func brokenCells() map[string]wireCase {
	key := wireKey("a", 1)
	with := func(op int64, c ...wireCell) func(refusal) wireCase {
		for i := range c {
			if !c[i].nameless {
				c[i].name = "c"
			}
		}
		return func(want refusal) wireCase { return wireCase{op, wireRow{key: key, cells: c}, want} }
	}
	const ms = 1700000000000
	broken, sum := invalid(""), wireCell{value: vInt(1), op: 4}
	outOfRange := invalid("Timestamp must be in range [0, INT64_MAX/1000).")
	noInfinity := invalid("Infinity can't be set to double value.")
	deletedValue := invalid("Column value cannot be given when type is DELETE_ONE_VERSION,DELETE_ALL_VERSION.")
	return map[string]wireCase{
		"no name tag": with(1, wireCell{nameless: true, value: vInt(1)})(broken),
		"an empty name": {1, wireRow{key: key, cells: []wireCell{{value: vInt(1)}}},
			invalid("Invalid column name: ''.")},
		"an update's empty name": {2, wireRow{key: key, cells: []wireCell{{op: 1}}}, invalid("Invalid column name: ''.")},
		"no value":               with(1, wireCell{})(invalid("No value is given for column name.")),
		"no value of an update":  with(2, wireCell{})(invalid("No value is given for column name.")),
		"an empty value tag":     with(1, wireCell{emptyTag: true})(broken),
		"an empty variant":       with(1, wireCell{value: []byte{}})(broken),
		"NULL":                   with(1, wireCell{value: vNull})(broken),
		"INF_MIN":                with(1, wireCell{value: vInfMin})(broken),
		"INF_MAX":                with(1, wireCell{value: vInfMax})(broken),
		"AUTO_INCREMENT":         with(1, wireCell{value: vAuto})(broken),
		"a type nobody knows":    with(1, wireCell{value: []byte{4, 0}})(broken),
		"an integer of 7 bytes":  with(1, wireCell{value: vInt(1)[:8]})(broken),
		"an integer of 9 bytes":  with(1, wireCell{value: append(vInt(1), 0)})(broken),
		"a boolean of 1":         with(1, wireCell{value: vBool(1)})(accepted),
		"a boolean of 2":         with(1, wireCell{value: vBool(2)})(broken),
		"too long a text":        with(1, wireCell{value: append(vText("ab"), 'c')})(broken),
		"too short a text":       with(1, wireCell{value: vText("ab")[:6]})(broken),
		"too small a size":       with(1, wireCell{value: vInt(1), wrongLen: -1})(broken),
		"a size beyond the row":  with(1, wireCell{value: vInt(1), wrongLen: 1 << 20})(broken),
		"no checksum": with(1, wireCell{value: vInt(1),
			noCRC: true})(invalid("Invalid Column(c): missing checksum.")),
		"a wrong cell checksum":  with(1, wireCell{value: vInt(1), wrongCRC: true})(brokenCell),
		"an operation in a put":  with(1, sum)(invalid("OpType cannot be given for column name:c in PutRow.")),
		"an unknown operation":   with(2, wireCell{op: 2})(broken),
		"an operation above all": with(2, wireCell{op: 5})(broken),
		"a deletion and a value": with(2, wireCell{value: vInt(1), op: 1})(deletedValue),
		"a deletion at a time": with(2, wireCell{op: 1, ts: ms,
			stamped: true})(invalid("Timestamp cannot be given when type is DELETE_ALL_VERSION.")),
		"a version's deletion": with(2, wireCell{op: 3, ts: ms, stamped: true})(accepted),
		"a version at 0":       with(2, wireCell{op: 3, ts: 0, stamped: true})(accepted),
		"no version to delete": with(2, wireCell{op: 3})(invalid(
			"Timestamp must be given when type is DELETE_ONE_VERSION.")),
		"a version and a value":  with(2, wireCell{value: vInt(1), op: 3, ts: ms, stamped: true})(deletedValue),
		"a version out of range": with(2, wireCell{op: 3, ts: math.MaxInt64 / 1000, stamped: true})(outOfRange),
		"an increment at a time": with(2, wireCell{value: vInt(1), op: 4, ts: ms, stamped: true})(broken),
		"an increment by text":   with(2, wireCell{value: vText("1"), op: 4})(broken),
		"a double's increment":   with(2, wireCell{value: vDouble(1), op: 4})(broken),
		"an empty increment":     with(2, wireCell{op: 4})(broken),
		"an increment twice":     with(2, sum, sum)(broken),
		"delete and increment":   with(2, wireCell{op: 1}, sum)(broken),
		"a deletion and a put":   with(2, wireCell{op: 1}, wireCell{value: vInt(1)})(accepted),
		"a deletion with cells": {3, wireRow{key: key, cells: []wireCell{{name: "c", value: vInt(1)}}, marker: true},
			invalid("Invalid delete row request: unexpected cells in request.")},
		"a deletion unmarked": {3, wireRow{key: key},
			invalid("Invalid request of delete row: missing RowDeleteMarker in request.")},
		"a deleted row": {3, wireRow{key: key, marker: true}, accepted},
		"a put marked deleted": {1, wireRow{key: key, marker: true},
			invalid("Invalid request of put/update row: unexpected RowDeleteMarker in request.")},
		"no row checksum":      {1, wireRow{key: key, noCRC: true}, invalid("Invalid row: missing checksum.")},
		"a wrong row checksum": {1, wireRow{key: key, wrongCRC: true}, broken},
		"an extension":         {1, wireRow{key: key, extension: make([]byte, 24)}, accepted},
		"a row without a key":  {1, wireRow{cells: []wireCell{{name: "c", value: vInt(1)}}}, broken},
		"a key alone":          {1, wireRow{key: key}, accepted},
		"six key columns": {1, wireRow{key: slices.Repeat(key, 3)},
			invalid("The number of primary key columns must be in range: [1, 4].")},
		"an empty extension":  {1, wireRow{key: key, extension: []byte{}}, accepted},
		"an attribute twice":  with(1, wireCell{value: vInt(1)}, wireCell{value: vText("x")})(accepted),
		"not a number":        with(1, wireCell{value: vDouble(math.NaN())})(invalid("NaN can't be set to double value.")),
		"an infinite double":  with(1, wireCell{value: vDouble(math.Inf(1))})(noInfinity),
		"negative infinity":   with(2, wireCell{value: vDouble(math.Inf(-1))})(noInfinity),
		"not UTF-8":           with(1, wireCell{value: vText("a\xffb")})(invalid("Value of column c must be UTF8 encoding.")),
		"the first late time": with(1, wireCell{value: vInt(1), ts: math.MaxInt64 / 1000, stamped: true})(outOfRange),
		"a timestamp below 0": with(1, wireCell{value: vInt(1), ts: -1, stamped: true})(outOfRange),
	}
}

func brokenKeys() map[string]wireCase {
	second := wireKey("a", 1)[1]
	key := func(cell wireCell, want refusal) wireCase {
		cell.name = cmp.Or(cell.name, "pk1")
		return wireCase{1, wireRow{key: []wireCell{cell, second}}, want}
	}
	return map[string]wireCase{
		"a key's time": key(wireCell{value: vText("a"), ts: 1, stamped: true},
			invalid("Timestamp cannot be given for primary key name:pk1.")),
		"a key's op": key(wireCell{value: vText("a"), op: 1},
			invalid("OpType cannot be given for primary key name:pk1.")),
		"a key's NULL":    key(wireCell{}, invalid("No value is given for primary key name:pk1.")),
		"a key, no name":  {1, wireRow{key: []wireCell{{value: vText("a")}, second}}, invalid("")},
		"a key of NULL":   key(wireCell{value: vNull}, invalid("VT_NULL is an invalid type for the primary key.")),
		"a key, INF_MIN":  key(wireCell{value: vInfMin}, invalid("VT_INF_MIN is an invalid type for the primary key.")),
		"a key, INF_MAX":  key(wireCell{value: vInfMax}, invalid("VT_INF_MAX is an invalid type for the primary key.")),
		"a key's text":    key(wireCell{value: vText("\xc0")}, invalid("")),
		"a key's size":    key(wireCell{value: vText("a"), wrongLen: 4}, invalid("")),
		"a key's bad CRC": key(wireCell{value: vText("a"), wrongCRC: true}, brokenCell),
		"a key, no CRC":   key(wireCell{value: vText("a"), noCRC: true}, invalid("Invalid Column(pk1): missing checksum.")),
		"a key of 255": key(wireCell{name: text(255), value: vText("a")}, invalidPK("Validate PK name fail. Input: "+
			text(255)+", Meta: pk1.")),
		"a key of 256": key(wireCell{name: text(256), value: vText("a")}, invalid("Invalid column name: '"+text(256)+"'.")),
	}
}

// TestRowsAreParsedStrictly sends each row alone, and in a batch after a valid row, which must not be applied either.
func TestRowsAreParsedStrictly(t *testing.T) {
	s := proving(t, "2.1.1", "2.1.2", "2.2.1", "2.2.2", "2.3.1", "2.3.2", "2.3.3", "2.3.4", "2.3.5", "3.1.5", "3.1.6",
		"3.3.2", "3.3.6", "3.8.7", "3.10.2")
	tb := s.newTable(t, tableOptions{})
	paths := map[int64]string{1: "PutRow", 2: "UpdateRow", 3: "DeleteRow"}
	for _, cases := range []map[string]wireCase{brokenCells(), brokenKeys()} {
		for name, v := range cases {
			t.Run(name, func(t *testing.T) {
				must(t, s.do(tb.delete(tb.key("a", 1))))
				a := s.ask(t, paths[v.op], rawPut(tb.name, v.row.encode(), 0))
				a.check(t, v.want)
				a.checkSigned(t, s, paths[v.op])
				good := wireRow{key: wireKey(name, 1)}.encode()
				a = s.ask(t, "BatchWriteRow", message{}.bytes(1, message{}.text(1, tb.name).
					bytes(2, message{}.int(1, 1).bytes(2, good).bytes(3, message{}.int(1, 0))).
					bytes(2, message{}.int(1, v.op).bytes(2, v.row.encode()).bytes(3, message{}.int(1, 0)))))
				whole := v.want
				if whole.code == "OTSInvalidPK" { // only its row fails
					whole = accepted
				}
				a.check(t, whole)
				conformance.Equal(t, tb.get(t, tb.key(name, 1)) != nil, whole == accepted, "the good row is there")
				if v.want != accepted {
					diff(t, tb.get(t, tb.key("a", 1)), (*row)(nil))
				}
			})
		}
	}
}

func TestReadKeysContainOnlyKeyColumns(t *testing.T) {
	s := proving(t, "2.3.1", "2.3.5", "3.1.6")
	tb := s.newTable(t, tableOptions{})
	inf, one := []wireCell{{name: "pk1", value: vInfMin}, {name: "pk2", value: vInfMin}},
		wireCell{name: "pk2", value: vInt(1)}
	unread, deleted := invalid("Attribute column cannot be given while reading data."),
		invalid("Delete marker cannot be given.")
	null := invalid("VT_NULL is an invalid type for the primary key.")
	for name, v := range map[string]struct {
		row   wireRow
		key   refusal // from GetRow and BatchGetRow
		bound refusal // from GetRange
	}{
		"a key":            {wireRow{key: wireKey("a", 1)}, accepted, accepted},
		"an attribute":     {wireRow{key: wireKey("a", 1), cells: []wireCell{{name: "c", value: vInt(1)}}}, unread, unread},
		"a marker":         {wireRow{key: wireKey("a", 1), marker: true}, deleted, deleted},
		"infinities":       {wireRow{key: inf}, invalid("VT_INF_MIN is an invalid type for the primary key."), accepted},
		"a wrong checksum": {wireRow{key: wireKey("a", 1), wrongCRC: true}, invalid(""), invalid("")},
		"NULL":             {wireRow{key: []wireCell{{name: "pk1", value: vNull}, one}}, null, null},
		"a stamped key": {wireRow{key: []wireCell{{name: "pk1", value: vText("a"), ts: 1, stamped: true}, one}},
			invalid(""), invalid("")},
		"no key at all": {wireRow{}, invalid(""), invalid("")},
	} {
		t.Run(name, func(t *testing.T) {
			key := v.row.encode()
			end := tb.key(maxKey, maxKey).Build(false)
			s.ask(t, "GetRow", message{}.text(1, tb.name).bytes(2, key).int(5, 1)).check(t, v.key)
			s.ask(t, "BatchGetRow", message{}.bytes(1, message{}.text(1, tb.name).bytes(2, key).int(6, 1))).check(t, v.key)
			s.ask(t, "GetRange", message{}.text(1, tb.name).int(2, 0).int(5, 1).bytes(7, key).bytes(8, end)).check(t, v.bound)
		})
	}
}
