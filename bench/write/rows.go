package write

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"example.com/tsimport/bench"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/encode"
	"example.com/tsimport/pipeline/plan"
)

// rows generates the rows of a shape. It is not safe for concurrent use.
type rows struct {
	schema  table.Schema
	keys    *bench.Keys
	text    int // index of the string key column; -1 means none
	lengths []int
	letters []byte
	random  *rand.PCG
	encoder *encode.Encoder

	integers []int64
	word     []byte
	values   []table.Value
}

// leastLetters is the minimum length of the text from which values are cut.
const leastLetters = 1 << 16

// newRows returns a generator tuned for about n rows of the named table.
func newRows(s Shape, n uint64, name string) (*rows, error) {
	if s.Columns < 1 || s.Columns > table.MaxColumns {
		return nil, plan.Usagef("--columns %d: want 1 to %d", s.Columns, table.MaxColumns)
	}
	keys, err := bench.NewKeys(s.Keys, n, s.Seed)
	if err != nil {
		return nil, plan.Usagef("--%v", err)
	}
	r := &rows{schema: table.Schema{Table: name}, keys: keys, text: -1, random: rand.NewPCG(s.Seed, 1)}
	size := 0
	for i, k := range keys.Columns() {
		t := table.Integer
		if k.Text {
			t, r.text = table.String, i
		}
		r.schema.Key = append(r.schema.Key, table.KeyColumn{Name: k.Name, Type: t})
		r.schema.Columns = append(r.schema.Columns, table.Column{Source: k.Name, Name: k.Name, Type: t})
		size += len(k.Name) + 8
	}
	if r.text >= 0 {
		size -= 4 // a seller's name has four bytes
	}
	for i := range s.Columns {
		name := "c" + strconv.Itoa(i)
		r.schema.Columns = append(r.schema.Columns, table.Column{Source: name, Name: name, Type: table.String})
		size += len(name)
	}
	if err := r.divide(s, size); err != nil {
		return nil, err
	}
	r.encoder = encode.New(&r.schema, table.Put, false)
	return r, nil
}

// divide divides the bytes that remain for values among the columns.
func (r *rows) divide(s Shape, fixed int) error {
	left := s.RowSize - fixed
	if left < s.Columns {
		return plan.Usagef("--row-size %d: too small; keys and names take %d bytes, and each of %d columns at least one",
			s.RowSize, fixed, s.Columns)
	}
	longest := (left + s.Columns - 1) / s.Columns
	if longest > table.MaxValueBytes || s.RowSize > table.MaxRowBytes {
		return plan.Usagef("--row-size %d: the service accepts at most %d bytes a row and %d a value", s.RowSize,
			table.MaxRowBytes, table.MaxValueBytes)
	}
	for i := range s.Columns {
		r.lengths = append(r.lengths, (left+i)/s.Columns) // they add up to left
	}
	r.letters = make([]byte, max(leastLetters, 2*longest))
	for i := range r.letters {
		r.letters[i] = byte('a' + r.random.Uint64()%26)
	}
	return nil
}

func (r *rows) next(b *table.Block) error {
	r.integers, r.word = r.keys.Next(r.integers, r.word)
	r.values = r.values[:0]
	for i, n := range r.integers {
		v := table.Value{Type: table.Integer, Int: n}
		if i == r.text {
			v = table.Value{Type: table.String, Bytes: r.word}
		}
		r.values = append(r.values, v)
	}
	for _, n := range r.lengths {
		at := r.random.Uint64() % uint64(len(r.letters)-n+1)
		r.values = append(r.values, table.Value{Type: table.String, Bytes: r.letters[at : at+uint64(n)]})
	}
	if why := r.encoder.Append(b, r.values, nil, table.Span{}, nil); why != nil {
		return fmt.Errorf("generate a row: %w", why)
	}
	return nil
}
