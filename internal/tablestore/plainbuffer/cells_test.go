package plainbuffer

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tsimport/internal/table"
)

// seenRow is what a sink saw of a row.
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

// plain reports whether a row is one that a table can have.
func (r *seenRow) plain() bool {
	isPlain := func(c Column) bool { return c.Op == Set && c.Value.Type != table.Null }
	return !r.deleted && !slices.ContainsFunc(slices.Concat(r.key, r.cells), func(c Column) bool { return !isPlain(c) }) &&
		!slices.ContainsFunc(r.key, func(c Column) bool { return !c.Value.Type.KeyType() })
}

// splitIsRead compares Split, CutKey and Cells with Read.
func splitIsRead(t *testing.T, b []byte) (plain bool) {
	t.Helper()
	var want sink
	_, wantErr := new(RowReader).Read(b, &want)
	ends, plain, err := new(RowReader).Split(b, nil)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%x: %v, want %v", b, err, wantErr)
	}
	if err != nil || !plain {
		return false
	}
	if len(ends) != len(want.rows) {
		t.Fatalf("%x: %d rows, want %d", b, len(ends), len(want.rows))
	}
	from := 0
	for i, end := range ends {
		row, w := b[from:end], want.rows[i]
		from = end
		if !w.plain() {
			t.Fatalf("%x: row %d is not plain", b, i)
		}
		var ordering []byte
		for _, c := range w.key {
			ordering = table.AppendKey(ordering, c.Value)
		}
		key, columns, cells := CutKey(nil, row)
		if !bytes.Equal(key, ordering) || columns != len(w.key) {
			t.Fatalf("%x: key %x of %d columns, want %x", b, key, columns, ordering)
		}
		for _, c := range []Cells{cells, CellsOf(row)} {
			for n := range w.cells {
				if !c.Next() || string(c.Name()) != w.cells[n].Name || c.Timestamp != w.cells[n].Timestamp || c.Op != Set ||
					!bytes.Equal(c.Content, AppendContent(nil, w.cells[n].Name, w.cells[n].Value)) {
					t.Fatalf("%x: cell %d of row %d is %q at %d, want %+v", b, n, i, c.Content, c.Timestamp, w.cells[n])
				}
			}
			if c.Next() {
				t.Fatalf("%x: row %d has a cell more", b, i)
			}
		}
	}
	return true
}

// drawnRows are rows of which most are such as tables have.
func drawnRows(r *rand.Rand) (b []byte) {
	names := []Name{NewName("a"), NewName("b"), NewName("long name"), NewName(""), NewName("é")}
	name := func() *Name { return &names[r.IntN(len(names))] }
	text := func() []byte {
		t := make([]byte, r.IntN(20))
		for i := range t {
			t[i] = byte(r.IntN(4)) // zeros too
		}
		return t
	}
	keyValue := func() table.Value {
		return []table.Value{{Type: table.Integer, Int: int64(r.Uint64())}, {Type: table.String, Bytes: text()}, {Type: table.Binary, Bytes: text()}}[r.IntN(3)]
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
			v := []table.Value{keyValue(), {Type: table.Double, Double: math.Float64frombits(r.Uint64())}, {Type: table.Boolean, Int: int64(r.IntN(2))}}[r.IntN(3)]
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

func TestSplitRowsAreThoseThatAreRead(t *testing.T) {
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
	if plain < 1000 || damaged < 1000 {
		t.Errorf("%d of the texts were plain, %d damaged", plain, damaged)
	}
}

func FuzzSplitIsRead(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		f.Add(drawnRows(r))
	}
	f.Fuzz(func(t *testing.T, b []byte) { splitIsRead(t, b) })
}

// A boolean that is neither 0 nor 1 is not plain: equal rows would have different bytes.
func TestOddBooleansAreNotPlain(t *testing.T) {
	var r Row
	id, flag := NewName("id"), NewName("f")
	r.Begin(nil)
	r.Key(&id, table.Value{Type: table.Integer, Int: 1})
	r.Cell(&flag, table.Value{Type: table.Boolean, Int: 2})
	if _, plain, err := new(RowReader).Split(r.End(), nil); plain || err != nil {
		t.Errorf("plain %v, %v", plain, err)
	}
}
