package plainbuffer

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"example.com/tsimport/internal/table"
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

// hasher is that of all tests.
var hasher = NewHasher()

// splitIsRead compares Split and Cells with Read.
func splitIsRead(t *testing.T, b []byte) (plain bool) {
	t.Helper()
	var want sink
	_, wantErr := new(RowReader).Read(b, &want)
	split := Rows{Keys: []byte("of a page before"), Least: 9, Most: 9}
	plain, err := (&RowReader{Hasher: hasher}).Split(b, &split)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%x: %v, want %v", b, err, wantErr)
	}
	if err != nil || !plain {
		return false
	}
	if n := len(want.rows); len(split.Ends) != n || len(split.KeyEnds) != n || len(split.Sums) != n {
		t.Fatalf("%x: %d rows, %d keys, %d sums, want %d", b, len(split.Ends), len(split.KeyEnds), len(split.Sums), n)
	}
	from, keys, least, most := 0, []byte{}, math.MaxInt, 0
	for i, end := range split.Ends {
		row, w := b[from:end], want.rows[i]
		from = end
		if !w.plain() {
			t.Fatalf("%x: row %d is not plain", b, i)
		}
		for _, c := range w.key {
			keys = table.AppendKey(keys, c.Value)
		}
		least, most = min(least, len(w.key)), max(most, len(w.key))
		if split.KeyEnds[i] != len(keys) {
			t.Fatalf("%x: the key of row %d ends at %d, want %d", b, i, split.KeyEnds[i], len(keys))
		}
		c, sum := CellsOf(row), uint64(0)
		for n := range w.cells {
			w := &w.cells[n]
			if !c.Next() || string(c.Name()) != w.Name || c.Timestamp != w.Timestamp || c.Op != Set || !sameValue(c.Value(), w.Value) {
				t.Fatalf("%x: cell %d of row %d is %q at %d, want %+v", b, n, i, c.Content, c.Timestamp, w)
			}
			sum += hasher.Cell(hasher.Column(w.Name), &w.Value)
		}
		if c.Next() {
			t.Fatalf("%x: row %d has a cell more", b, i)
		}
		if again, _ := hasher.Row(CellsOf(row)); split.Sums[i] != sum || again != sum {
			t.Fatalf("%x: the sums of row %d are %x and %x, want %x", b, i, split.Sums[i], again, sum)
		}
	}
	if !bytes.Equal(split.Keys, keys) || split.Least != least || split.Most != most {
		t.Fatalf("%x: keys %x of %d to %d columns, want %x of %d to %d", b, split.Keys, split.Least, split.Most, keys, least, most)
	}
	return true
}

// sameValue compares doubles by their bits.
func sameValue(a, b table.Value) bool {
	return a.Type == b.Type && a.Int == b.Int && math.Float64bits(a.Double) == math.Float64bits(b.Double) && bytes.Equal(a.Bytes, b.Bytes)
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
	if plain, err := new(RowReader).Split(r.End(), new(Rows)); plain || err != nil {
		t.Errorf("plain %v, %v", plain, err)
	}
}
