package plainbuffer

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"pgregory.net/rapid"
)

func str(s string) table.Value  { return table.Value{Type: table.String, Bytes: []byte(s)} }
func num(v int64) table.Value   { return table.Value{Type: table.Integer, Int: v} }
func bin(b ...byte) table.Value { return table.Value{Type: table.Binary, Bytes: b} }

// DeleteVersion removes the version of a column with the given timestamp in milliseconds (updates only).
func (r *Row) DeleteVersion(n *Name, timestamp int64) {
	r.openCell(n)
	// On the wire the operation precedes the timestamp; in the checksum it follows.
	r.buf = append(r.buf, tagCellType, opDeleteOneVersion)
	r.closeCell(crcByte(r.timestamp(n.crc, timestamp), opDeleteOneVersion))
}

func TestBlockwiseCRC8EqualsBytewiseCRC8(t *testing.T) {
	data := make([]byte, 100)
	for i := range data {
		data[i] = byte(i * 37)
	}
	for n := range data {
		crc := byte(n)
		for _, b := range data[:n] {
			crc = crcByte(crc, b)
		}
		conformance.MustEqual(t, crcBytes(byte(n), data[:n]), crc, "length %d", n)
	}
}

// FuzzRowEqualsSDK builds a row from a fuzzed program with the official SDK and with this package.
func FuzzRowEqualsSDK(f *testing.F) {
	f.Add([]byte{0, 0}, "pk", "value", int64(7), 1.5)
	f.Add([]byte{1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "pk1", "héllo", int64(-5), 3.25)
	f.Add([]byte{2, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, "", "", int64(math.MinInt64), math.Inf(1))
	f.Add([]byte{3, 3, 3, 4, 4, 7, 7, 1, 9}, "键", "\x00\xff", int64(math.MaxInt64), math.NaN())
	f.Add([]byte{1 | 4 | 8 | 16, 0x80, 0x81, 0x82, 0x83, 0x84, 0, 1, 2}, "uid", "user-001", int64(1700000000001), -1.5)
	f.Add([]byte{2 | 16, 0x60, 0x81, 0xc2, 0xe3, 0x64, 0xa0, 0xff}, "n", "", int64(1700000000000), 0.0) // all operations
	f.Add([]byte{0 | 4 | 8}, "seq", "a", int64(-1), 0.0)
	f.Fuzz(func(t *testing.T, program []byte, column, text string, number int64, double float64) {
		if len(program) == 0 || len(program) > 64 {
			return
		}
		got, want := buildBoth(program, column, text, number, double)
		conformance.Equal(t, bytes.Equal(got, want), true, "program %v\ngot  %x\nwant %x", program, got, want)
	})
}

// buildBoth builds a row in both ways. program[0] determines the operation and the key, each further byte a cell.
func buildBoth(program []byte, column, text string, number int64, double float64) (ours, sdk []byte) {
	key := new(tablestore.PrimaryKey)
	var r Row
	r.Begin(nil)
	own := NewName(column)
	n := &own
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
			if op&0x80 != 0 && number != 0 { // to the SDK's put, timestamp 0 means none
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
		return table.Value{Type: table.Boolean, Int: number & 1}, number&1 == 1
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
	conformance.Equal(t, allocs, 0, "allocations a row")
}

func TestWalkReadsWrittenCells(t *testing.T) {
	id, n, gone, old, count := NewName("id"), NewName("n"), NewName("gone"), NewName("old"), NewName("count")
	var r Row
	r.Begin(nil)
	r.Key(&id, table.Value{Type: table.Integer, Int: 5})
	r.CellAt(&n, table.Value{Type: table.String, Bytes: []byte("x")}, 1234)
	r.DeleteColumn(&gone)
	r.DeleteVersion(&old, 99)
	r.Increment(&count, 3)
	r.Cell(&n, table.Value{Type: table.Boolean, Int: 1})
	row := r.End()
	var got []string
	see := func(v View) { got = append(got, fmt.Sprintf("%s %v %d @%d", v.Name, v.Value.Type, v.Op, v.Timestamp)) }
	deleted, err := Walk(row, see, see)
	want := "id integer 0 @-1, n string 0 @1234, gone null 1 @-1, old null 2 @99, count integer 3 @-1, n boolean 0 @-1"
	conformance.True(t, err == nil && !deleted && strings.Join(got, ", ") == want, "%q, %v, %v", got, deleted, err)
	allocs := testing.AllocsPerRun(10, func() { _, _ = Walk(row, nil, func(View) {}) })
	conformance.True(t, allocs == 0, "%v allocations", allocs)
	r.Begin(nil)
	r.Key(&id, table.Value{Type: table.Integer, Int: 5})
	conformance.Refused(t, conformance.ErrorOf(Walk(slices.Insert(bytes.Clone(row), 5, 0x7f), nil, nil)),
		"unexpected tag 0x7f", "an unknown part")
	conformance.Refused(t, conformance.ErrorOf(Walk(slices.Insert(bytes.Clone(row), 6, 0x7f), nil, nil)),
		"decode PlainBuffer cell: unexpected tag 0x7f", "an unknown part of a cell")
	deleted, err = Walk(r.EndDelete(), nil, nil)
	conformance.True(t, err == nil && deleted, "a row that is deleted: %v, %v", deleted, err)
	for n := range row {
		conformance.Refused(t, conformance.ErrorOf(Walk(row[:n], nil, nil)), "", "the first %d bytes are a row", n)
	}
}

type seenRow struct {
	key, cells []Column
	deleted    bool
}

type sink struct{ rows []seenRow }

func (s *sink) BeginRow()           { s.rows = append(s.rows, seenRow{}) }
func (s *sink) last() *seenRow      { return &s.rows[len(s.rows)-1] }
func (s *sink) KeyColumn(c *Column) { s.last().key = append(s.last().key, *c) }
func (s *sink) Cell(c *Column)      { s.last().cells = append(s.last().cells, *c) }
func (s *sink) EndRow(deleted bool) { s.last().deleted = deleted }

// plain reports whether the row can be in a table.
func (r *seenRow) plain() bool {
	isPlain := func(c Column) bool {
		return c.Op == Set && c.Value.Type != table.Null && (c.Value.Type != table.Boolean || c.Value.Int <= 1)
	}
	return !r.deleted && !slices.ContainsFunc(slices.Concat(r.key, r.cells), func(c Column) bool { return !isPlain(c) }) &&
		!slices.ContainsFunc(r.key, func(c Column) bool { return !c.Value.Type.KeyType() })
}

var hasher = NewHasher()

// splitIsRead compares Split and Cells with Read, and reports whether the rows are plain.
func splitIsRead(t *testing.T, b []byte) (plain bool) {
	t.Helper()
	var want sink
	_, wantErr := new(RowReader).Read(b, &want)
	split := Rows{Keys: []byte("of a page before"), Least: 9, Most: 9}
	plain, err := (&RowReader{Hasher: hasher}).Split(b, &split)
	conformance.MustEqual(t, err == nil, wantErr == nil, "%x: %v, want %v", b, err, wantErr)
	if err != nil || !plain {
		conformance.MustTrue(t, err != nil || slices.ContainsFunc(want.rows, func(r seenRow) bool { return !r.plain() }),
			"%x: all rows are plain", b)
		return false
	}
	n := len(want.rows)
	conformance.MustTrue(t, len(split.Ends) == n && len(split.KeyEnds) == n && len(split.Sums) == n, "%x: %v", b, split)
	from, keys, least, most := 0, []byte{}, math.MaxInt, 0
	for i, end := range split.Ends {
		row, w := b[from:end], want.rows[i]
		from = end
		conformance.MustEqual(t, w.plain(), true, "%x: row %d is not plain", b, i)
		for _, c := range w.key {
			keys = table.AppendKey(keys, c.Value)
		}
		least, most = min(least, len(w.key)), max(most, len(w.key))
		conformance.MustEqual(t, split.KeyEnds[i], len(keys), "%x: end of the key of row %d", b, i)
		c, sum := CellsOf(row), uint64(0)
		for n := range w.cells {
			w := &w.cells[n]
			conformance.MustTrue(t, c.Next() && string(c.Name()) == w.Name && c.Timestamp == w.Timestamp && c.Op == Set &&
				sameValue(c.Value(), w.Value),
				"%x: cell %d of row %d is %q at %d, want %+v", b, n, i, c.Content, c.Timestamp, w)
			sum += hasher.Cell(hasher.Column(w.Name), &w.Value)
		}
		conformance.MustEqual(t, c.Next(), false, "%x: row %d has a cell more", b, i)
		again, _ := hasher.Row(CellsOf(row))
		conformance.MustTrue(t, split.Sums[i] == sum && again == sum, "%x: row %d: %x, want %x", b, i, again, sum)
	}
	conformance.MustTrue(t, bytes.Equal(split.Keys, keys) && split.Least == least && split.Most == most,
		"%x: keys %x of %d to %d columns, want %x of %d to %d", b, split.Keys, split.Least, split.Most, keys, least, most)
	return true
}

// sameValue reports whether two values are equal. It compares doubles by their bits.
func sameValue(a, b table.Value) bool {
	return a.Type == b.Type && a.Int == b.Int && math.Float64bits(a.Double) == math.Float64bits(b.Double) &&
		bytes.Equal(a.Bytes, b.Bytes)
}

// drawnRows returns random rows. Most of them could be in a table.
func drawnRows(r *rand.Rand) (b []byte) {
	names := []Name{NewName("a"), NewName("b"), NewName("long name"), NewName(""), NewName("é"),
		NewName("a long name: 1 of both"), NewName("a long name: 2 of both")}
	name := func() *Name { return &names[r.IntN(len(names))] }
	text := func() []byte {
		t := make([]byte, r.IntN(20))
		for i := range t {
			t[i] = byte(r.IntN(4)) // including zeros
		}
		return t
	}
	keyValue := func() table.Value {
		return []table.Value{num(int64(r.Uint64())), str(string(text())), bin(text()...)}[r.IntN(3)]
	}
	for range r.IntN(4) {
		var row Row
		row.Begin(nil)
		for range 1 + r.IntN(3) {
			row.Key(name(), keyValue())
		}
		if r.IntN(20) == 0 {
			row.KeyAutoIncrement(name())
		}
		for range r.IntN(5) {
			v := []table.Value{keyValue(), {Type: table.Double, Double: math.Float64frombits(r.Uint64())},
				{Type: table.Boolean, Int: int64(r.IntN(41) / 20)}}[r.IntN(3)] // 2 is not canonical
			switch at := []int64{0, 1, 1, 1 << 40, math.MaxInt64}[r.IntN(5)]; r.IntN(24) {
			case 0:
				row.DeleteColumn(name())
			case 1:
				row.DeleteVersion(name(), at)
			case 2:
				row.Increment(name(), at)
			case 3, 4, 5:
				row.Cell(name(), v)
			default:
				row.CellAt(name(), v, at)
			}
		}
		made := row.End()
		if r.IntN(20) == 0 {
			row.Begin(nil)
			row.Key(name(), keyValue())
			made = row.EndDelete()
		}
		if len(b) > 0 {
			made = made[4:]
		}
		b = append(b, made...)
	}
	return b
}

func TestSplitEqualsRead(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	plain, damaged := 0, 0
	for range 5000 {
		b := drawnRows(r)
		if splitIsRead(t, b) {
			plain++
		}
		if len(b) == 0 {
			continue
		}
		b = bytes.Clone(b)
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		splitIsRead(t, b)
		damaged++
		splitIsRead(t, b[:r.IntN(len(b))])
	}
	conformance.True(t, plain >= 1000 && damaged >= 1000, "%d of the texts were plain, %d damaged", plain, damaged)
}

func FuzzSplitIsRead(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		f.Add(drawnRows(r))
	}
	f.Fuzz(func(t *testing.T, b []byte) { splitIsRead(t, b) })
}

// drawnCell is a cell for encoded, which builds a row with a placeholder or a value in its key. A stamp that is not
// negative is added to the cells that put a value and have no timestamp.
type drawnCell struct {
	name  string
	kind  int
	value table.Value
	stamp int64
}

func encoded(cells []drawnCell, auto bool, stamp int64, mark string) []byte {
	var r Row
	r.Begin(nil)
	user, seq := NewName("user"), NewName("seq")
	r.Key(&user, table.Value{Type: table.String, Bytes: []byte("u")})
	if auto {
		r.KeyAutoIncrement(&seq)
	} else {
		r.Key(&seq, table.Value{Type: table.Integer, Int: -7})
	}
	for _, c := range cells {
		n := NewName(c.name)
		switch {
		case c.kind == 0 && stamp >= 0:
			r.CellAt(&n, c.value, stamp)
		case c.kind == 0:
			r.Cell(&n, c.value)
		case c.kind == 1:
			r.CellAt(&n, c.value, c.stamp)
		case c.kind == 2:
			r.DeleteColumn(&n)
		case c.kind == 3:
			r.DeleteVersion(&n, c.stamp)
		default:
			r.Increment(&n, 4)
		}
	}
	if mark != "" {
		n := NewName("_mark")
		r.Cell(&n, table.Value{Type: table.String, Bytes: []byte(mark)})
	}
	return r.End()
}

func drawCells(t *rapid.T, kinds int) (cells []drawnCell) {
	for range rapid.IntRange(0, 6).Draw(t, "cells") {
		c := drawnCell{name: rapid.StringN(1, 5, 20).Draw(t, "name"), kind: rapid.IntRange(0, kinds-1).Draw(t, "kind"),
			stamp: rapid.Int64Range(0, 1<<50).Draw(t, "stamp")}
		switch rapid.IntRange(0, 3).Draw(t, "type") {
		case 0:
			c.value = table.Value{Type: table.Integer, Int: rapid.Int64().Draw(t, "integer")}
		case 1:
			c.value = table.Value{Type: table.Boolean, Int: 1}
		case 2:
			c.value = table.Value{Type: table.Double, Double: 1.5}
		default:
			c.value = table.Value{Type: table.Binary, Bytes: rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "binary")}
		}
		cells = append(cells, c)
	}
	return cells
}

func TestAddedCellEqualsEncodedCell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells, auto := drawCells(t, 2), rapid.Bool().Draw(t, "auto")
		n := NewName("_mark")
		got, err := AppendWithCell([]byte("x"), encoded(cells, auto, -1, ""), &n, str("m"))
		want := append([]byte("x"), encoded(cells, auto, -1, "m")...)
		conformance.MustTrue(t, err == nil && bytes.Equal(got, want), "got %x, %v; want %x", got, err, want)
	})
}

func TestRemovingAddedCellRestoresRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells, auto := drawCells(t, 5), rapid.Bool().Draw(t, "auto")
		plain := encoded(cells, auto, -1, "")
		n := NewName("#it")
		with, err := AppendWithCell(nil, plain, &n, bin(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "added")...))
		conformance.Must(t, err)
		for _, row := range [][]byte{with, plain} {
			got, err := AppendWithout([]byte("x"), row, "#it")
			conformance.MustTrue(t, err == nil && bytes.Equal(got, append([]byte("x"), plain...)), "%x, %v: %x", got, err, plain)
		}
	})
}

// Only values with a timestamp expire. A deleted version names a timestamp, too.
func TestRowWithoutExpiredCellsEqualsEncodedRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells, auto := drawCells(t, 5), rapid.Bool().Draw(t, "auto")
		before := int64(1 << 49)
		var left []drawnCell
		var want Since
		for i := range cells {
			c := &cells[i]
			if c.stamp = before + rapid.Int64Range(-2, 2).Draw(t, "from the limit"); c.kind == 1 && c.stamp < before {
				want.Dropped, want.Newest = want.Dropped+1, max(want.Newest, c.stamp)
				continue
			}
			left = append(left, *c)
		}
		want.Left = len(left)
		n := NewName(table.UnchangedColumn)
		row := conformance.Try(AppendWithCell([]byte{}, encoded(cells, auto, -1, ""), &n, str("m"))).Must(t)
		kept := conformance.Try(AppendWithCell([]byte("x"), encoded(left, auto, -1, ""), &n, str("m"))).Must(t)
		got, text, err := AppendSince([]byte("x"), row, before)
		conformance.MustTrue(t, err == nil && got == want && bytes.Equal(text, kept), "%+v, %x, %v; want %+v, %x", got, text,
			err, want, kept)
	})
}

func TestStampedRowEqualsEncodedRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells, auto := drawCells(t, 5), rapid.Bool().Draw(t, "auto")
		plain := encoded(cells, auto, -1, "")
		got, err := AppendStamped([]byte("x"), plain, 1700000000123)
		conformance.MustEqual(t, len(got)-1-len(plain), StampBytes(plain), "bytes longer")
		want := append([]byte("x"), encoded(cells, auto, 1700000000123, "")...)
		conformance.MustTrue(t, err == nil && bytes.Equal(got, want), "got %x, %v; want %x", got, err, want)
	})
}

func TestMalformedRowIsNotAnnotated(t *testing.T) {
	row := encoded([]drawnCell{{name: "a", value: table.Value{Type: table.Integer}}}, true, -1, "")
	n := NewName("m")
	for cut := range row {
		got, err := AppendStamped([]byte("x"), row[:cut], 1)
		conformance.True(t, err != nil && string(got[:1]) == "x", "the first %d bytes are stamped", cut)
		conformance.Refused(t, conformance.ErrorOf(AppendWithout(nil, row[:cut], "m")), "", "a row cut at %d is taken", cut)
		conformance.Refused(t, conformance.ErrorOf(AppendWithCell(nil, row[:cut], &n, num(0))), "", "cut at %d", cut)
	}
	var r Row
	r.Begin(nil)
	r.Key(&n, table.Value{Type: table.Integer})
	conformance.Refused(t, conformance.ErrorOf(AppendStamped(nil, r.EndDelete(), 1)), "", "a delete is stamped")
}

// Similar values, and strings that differ in a bit, in length or by a swap, have different hashes. One run in 10⁹ fails
// by chance.
func TestDifferentCellsHaveDifferentHashes(t *testing.T) {
	h := NewHasher()
	type cell struct {
		column string
		value  table.Value
	}
	of := map[uint64]cell{}
	add := func(column string, v table.Value) {
		t.Helper()
		hash := h.Cell(h.Column(column), &v)
		before, known := of[hash]
		conformance.MustTrue(t, !known, "%+v and %s: %+v have the hash %x", before, column, v, hash)
		of[hash] = cell{column, v}
	}
	for _, column := range []string{"", "a", "b"} {
		for _, kind := range []table.Type{table.String, table.Binary} {
			for n := range 100 {
				text := bytes.Repeat([]byte{0}, n)
				add(column, table.Value{Type: kind, Bytes: bytes.Clone(text)})
				for bit := range 8 * n {
					text[bit/8] ^= 1 << (bit % 8)
					add(column, table.Value{Type: kind, Bytes: bytes.Clone(text)})
					text[bit/8] ^= 1 << (bit % 8)
				}
			}
		}
		for n := range int64(1000) {
			add(column, table.Value{Type: table.Integer, Int: n - 500})
			add(column, table.Value{Type: table.Double, Double: math.Float64frombits(uint64(n - 500))})
		}
		for n := range int64(2) {
			add(column, table.Value{Type: table.Boolean, Int: n})
		}
	}
	conformance.True(t, len(of) >= 50_000, "%d cells", len(of))
}

// Sums differ if two columns swap their values or change by opposite amounts.
func TestSumsDistinguishColumns(t *testing.T) {
	h := NewHasher()
	integer := func(n int64) *table.Value { return &table.Value{Type: table.Integer, Int: n} }
	a, b := h.Column("a"), h.Column("b")
	seen := map[uint64][2]int64{}
	for x := range int64(300) {
		for y := range int64(300) {
			sum := h.Cell(a, integer(x)) + h.Cell(b, integer(y))
			before, known := seen[sum]
			conformance.MustTrue(t, !known, "%d and %d have the sum of %v", x, y, before)
			seen[sum] = [2]int64{x, y}
		}
	}
}
