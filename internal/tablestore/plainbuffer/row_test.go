package plainbuffer

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/internal/table"
)

func str(s string) table.Value { return table.Value{Type: table.String, Bytes: []byte(s)} }
func num(v int64) table.Value  { return table.Value{Type: table.Integer, Int: v} }
func bin(b ...byte) table.Value {
	return table.Value{Type: table.Binary, Bytes: b}
}

func flag(b bool) table.Value {
	v := table.Value{Type: table.Boolean}
	if b {
		v.Int = 1
	}
	return v
}

func name(s string) *Name {
	n := NewName(s)
	return &n
}

func TestRowsMatchTheDocumentedVectors(t *testing.T) {
	uidSeq := func(r *Row) {
		r.Key(name("uid"), str("user-001"))
		r.Key(name("seq"), num(42))
	}
	tests := []struct {
		name  string
		want  string
		build func(r *Row) []byte
	}{
		{"V05 key of one string", "7500000001030403000000706b3105060000000301000000610a1909ea",
			func(r *Row) []byte { r.Key(name("pk1"), str("a")); return r.End() }},
		{"V06 delete row", "7500000001030403000000706b3105060000000301000000610a190809ed",
			func(r *Row) []byte { r.Key(name("pk1"), str("a")); return r.EndDelete() }},
		{"V07 integer 1", "7500000001030402000000696405090000000001000000000000000a0a0982",
			func(r *Row) []byte { r.Key(name("id"), num(1)); return r.End() }},
		{"V07 integer -1", "75000000010304020000006964050900000000ffffffffffffffff0ace093b",
			func(r *Row) []byte { r.Key(name("id"), num(-1)); return r.End() }},
		{"V08 binary", "75000000010304010000006205080000000703000000" + "00ff800aa4094c",
			func(r *Row) []byte { r.Key(name("b"), bin(0, 0xff, 0x80)); return r.End() }},
		{"V08 empty string", "7500000001030403000000706b31050500000003000000000ac70986",
			func(r *Row) []byte { r.Key(name("pk1"), str("")); return r.End() }},
		{"V09 two columns", "7500000001030403000000756964050d0000000308000000757365722d3030310ad80304030000007365710509000000002a000000000000000a880960",
			func(r *Row) []byte { uidSeq(r); return r.End() }},
		{"V09 two columns deleted", "7500000001030403000000756964050d0000000308000000757365722d3030310ad80304030000007365710509000000002a000000000000000a88080967",
			func(r *Row) []byte { uidSeq(r); return r.EndDelete() }},
		{"V11 auto increment", "7500000001030403000000756964050600000003010000007" + "50af503040300000073657105010000000b0a8b020304010000006305090000000007000000000000000aa409e6",
			func(r *Row) []byte {
				r.Key(name("uid"), str("u"))
				r.KeyAutoIncrement(name("seq"))
				r.Cell(name("c"), num(7))
				return r.End()
			}},
		{"V13 all types", "7500000001030403000000706b3105060000000301000000610a190203040100000069050900000000fbffffffffffffff0adf030401000000640509000000010000000000000a400afe03040100000074050200000002010ae103040100000066050200000002000a9203040100000073050b000000030600000068c3a96c6c6f0a5003040100000062050800000007030000000102030ab20304020000006573050500000003000000000a400304020000006562050500000007000000000a78092a",
			func(r *Row) []byte {
				r.Key(name("pk1"), str("a"))
				r.Cell(name("i"), num(-5))
				r.Cell(name("d"), table.Value{Type: table.Double, Double: 3.25})
				r.Cell(name("t"), flag(true))
				r.Cell(name("f"), flag(false))
				r.Cell(name("s"), str("héllo"))
				r.Cell(name("b"), bin(1, 2, 3))
				r.Cell(name("es"), str(""))
				r.Cell(name("eb"), bin())
				return r.End()
			}},
		{"V14 two versions", "7500000001030403000000706b3105060000000301000000610a190203040100000076050800000003030000006e6577070168e5cf8b0100000a0c03040100000076050800000003030000006f6c64070068e5cf8b0100000a2f0956",
			func(r *Row) []byte {
				r.Key(name("pk1"), str("a"))
				r.CellAt(name("v"), str("new"), 1700000000001)
				r.CellAt(name("v"), str("old"), 1700000000000)
				return r.End()
			}},
		{"V15 update", "7500000001030403000000706b3105060000000301000000610a19020304010000006105090000000001000000000000000a1e0304010000006206010ad8030401000000630603070068e5cf8b0100000a0e0304010000006e0509000000000a0000000000000006040aa9096c",
			func(r *Row) []byte {
				r.Key(name("pk1"), str("a"))
				r.Cell(name("a"), num(1))
				r.DeleteColumn(name("b"))
				r.DeleteVersion(name("c"), 1700000000000)
				r.Increment(name("n"), 10)
				return r.End()
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r Row
			r.Begin([]byte("kept"))
			got := tt.build(&r)
			if want := "kept"; string(got[:4]) != want {
				t.Fatalf("the caller's bytes changed: %q", got[:4])
			}
			if h := hex.EncodeToString(got[4:]); h != tt.want {
				t.Errorf("got  %s\nwant %s", h, tt.want)
			}
		})
	}
}

func TestCRC8MatchesTheDocumentedVectors(t *testing.T) {
	for in, want := range map[string]byte{"": 0, "a": 0x20, "pk0": 0x95, "123456789": 0xf4, "\xff": 0xf3} {
		if got := crcBytes(0, []byte(in)); got != want {
			t.Errorf("crc8(%q) = %02x, want %02x", in, got, want)
		}
	}
	if got := crc32LE(0, 1); got != 0x16 {
		t.Errorf("crc8(int32 1) = %02x, want 16", got)
	}
	minusOne, stamp := int64(-1), int64(1700000000000)
	for v, want := range map[uint64]byte{1: 0x13, uint64(minusOne): 0xd7, uint64(stamp): 0x9d} {
		if got := crc64LE(0, v); got != want {
			t.Errorf("crc8(int64 %d) = %02x, want %02x", int64(v), got, want)
		}
	}
}

func TestCRC8OverBlocksEqualsByteByByte(t *testing.T) {
	data := make([]byte, 100)
	for i := range data {
		data[i] = byte(i * 37)
	}
	for n := range data {
		crc := byte(n)
		for _, b := range data[:n] {
			crc = crcByte(crc, b)
		}
		if got := crcBytes(byte(n), data[:n]); got != crc {
			t.Fatalf("length %d: %02x, want %02x", n, got, crc)
		}
	}
}

// FuzzRowEqualsSDK builds the same row with the official SDK and with ours from one fuzzed program of cells.
func FuzzRowEqualsSDK(f *testing.F) {
	f.Add([]byte{0, 0}, "pk", "value", int64(7), 1.5)
	f.Add([]byte{1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "pk1", "héllo", int64(-5), 3.25)
	f.Add([]byte{2, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, "", "", int64(math.MinInt64), math.Inf(1))
	f.Add([]byte{3, 3, 3, 4, 4, 7, 7, 1, 9}, "键", "\x00\xff", int64(math.MaxInt64), math.NaN())
	f.Fuzz(func(t *testing.T, program []byte, column, text string, number int64, double float64) {
		if len(program) == 0 || len(program) > 64 {
			return
		}
		got, want := buildBoth(program, column, text, number, double)
		if !bytes.Equal(got, want) {
			t.Errorf("program %v\ngot  %x\nwant %x", program, got, want)
		}
	})
}

// buildBoth interprets program[0] as the operation and the key's shape, and every further byte as one cell.
func buildBoth(program []byte, column, text string, number int64, double float64) (ours, sdk []byte) {
	key := new(tablestore.PrimaryKey)
	var r Row
	r.Begin(nil)
	n := name(column)
	key.AddPrimaryKeyColumn(column, text)
	r.Key(n, str(text))
	if program[0]&4 != 0 {
		key.AddPrimaryKeyColumn(column, number)
		r.Key(n, num(number))
	}
	if program[0]&8 != 0 {
		key.AddPrimaryKeyColumn(column, []byte(text))
		r.Key(n, bin([]byte(text)...))
	}
	if program[0]&16 != 0 {
		key.AddPrimaryKeyColumnWithAutoIncrement(column)
		r.KeyAutoIncrement(n)
	}
	switch program[0] & 3 {
	case 0:
		return r.EndDelete(), (&tablestore.DeleteRowChange{PrimaryKey: key}).Serialize()
	case 1:
		put := &tablestore.PutRowChange{PrimaryKey: key}
		for _, op := range program[1:] {
			v, any := cellValue(op, text, number, double)
			if op&0x80 != 0 && number != 0 { // the SDK's put takes timestamp 0 for none
				put.AddColumnWithTimestamp(column, any, number)
				r.CellAt(n, v, number)
				continue
			}
			put.AddColumn(column, any)
			r.Cell(n, v)
		}
		return r.End(), put.Serialize()
	}
	update := &tablestore.UpdateRowChange{PrimaryKey: key}
	for _, op := range program[1:] {
		v, any := cellValue(op, text, number, double)
		switch op >> 5 {
		case 0, 1, 2:
			update.PutColumn(column, any)
			r.Cell(n, v)
		case 3:
			update.PutColumnWithTimestamp(column, any, number)
			r.CellAt(n, v, number)
		case 4, 5:
			update.DeleteColumn(column)
			r.DeleteColumn(n)
		case 6:
			update.DeleteColumnWithTimestamp(column, number)
			r.DeleteVersion(n, number)
		case 7:
			update.IncrementColumn(column, number)
			r.Increment(n, number)
		}
	}
	return r.End(), update.Serialize()
}

func cellValue(op byte, text string, number int64, double float64) (table.Value, any) {
	switch op % 5 {
	case 0:
		return num(number), number
	case 1:
		return table.Value{Type: table.Double, Double: double}, double
	case 2:
		return flag(number&1 == 1), number&1 == 1
	case 3:
		return str(text), text
	}
	return bin([]byte(text)...), []byte(text)
}

func TestEncodingDoesNotAllocate(t *testing.T) {
	id, c := NewName("id"), NewName("column")
	value := str("some text of a usual length")
	buf := make([]byte, 0, 1024)
	allocs := testing.AllocsPerRun(100, func() {
		var r Row
		r.Begin(buf)
		r.Key(&id, num(5))
		for range 8 {
			r.Cell(&c, value)
		}
		buf = r.End()[:0]
	})
	if allocs != 0 {
		t.Errorf("%v allocations a row, want none", allocs)
	}
}

func BenchmarkRow12Columns(b *testing.B) {
	id := NewName("id")
	names := make([]Name, 11)
	for i := range names {
		names[i] = NewName("column_" + string(rune('a'+i)))
	}
	value := str("twelve bytes")
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		var r Row
		r.Begin(buf[:0])
		r.Key(&id, num(5))
		for i := range names {
			r.Cell(&names[i], value)
		}
		buf = r.End()
	}
	b.SetBytes(int64(len(buf)))
}

func TestWalkSeesWhatWasWritten(t *testing.T) {
	id, n, gone, old, count := NewName("id"), NewName("n"), NewName("gone"), NewName("old"), NewName("count")
	var r Row
	r.Begin(nil)
	r.Key(&id, table.Value{Type: table.Integer, Int: 5})
	r.CellAt(&n, table.Value{Type: table.String, Bytes: []byte("x")}, 1234)
	r.DeleteColumn(&gone)
	r.DeleteVersion(&old, 99)
	r.Increment(&count, 3)
	row := r.End()
	var got []string
	see := func(v View) { got = append(got, fmt.Sprintf("%s %v %d @%d", v.Name, v.Value.Type, v.Op, v.Timestamp)) }
	deleted, err := Walk(row, see, see)
	want := "id integer 0 @-1, n string 0 @1234, gone null 1 @-1, old null 2 @99, count integer 3 @-1"
	if err != nil || deleted || strings.Join(got, ", ") != want {
		t.Errorf("got  %s, %v, %v\nwant %s", strings.Join(got, ", "), deleted, err, want)
	}
	if allocs := testing.AllocsPerRun(10, func() { _, _ = Walk(row, nil, func(View) {}) }); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
	r.Begin(nil)
	r.Key(&id, table.Value{Type: table.Integer, Int: 5})
	if deleted, err := Walk(r.EndDelete(), nil, nil); err != nil || !deleted {
		t.Errorf("a row that is deleted: %v, %v", deleted, err)
	}
	for n := range row {
		if _, err := Walk(row[:n], nil, nil); err == nil {
			t.Errorf("the first %d bytes are a row", n)
		}
	}
}
