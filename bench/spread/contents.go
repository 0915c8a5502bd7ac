package spread

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
)

// contents is what a table must hold: a hash of each row by a hash of its key. Sixteen bytes a row let a million rows be
// compared one by one, so that what is missing and what is wrong can be distinguished.
type contents struct {
	seed    maphash.Seed
	rows    map[uint64]uint64
	records int64 // added, keys that came again included
}

func newContents() *contents {
	return &contents{seed: maphash.MakeSeed(), rows: map[uint64]uint64{}}
}

// rowHash gathers the hashes of a row's cells. The cells may come in any order.
type rowHash struct{ key, all uint64 }

func (c *contents) cell(r *rowHash, name string, isKey bool, v table.Value) {
	var h maphash.Hash
	h.SetSeed(c.seed)
	h.WriteString(name)
	h.WriteByte(0)
	h.WriteByte(byte(v.Type))
	var number [8]byte
	switch v.Type {
	case table.Integer, table.Boolean:
		binary.LittleEndian.PutUint64(number[:], uint64(v.Int))
		h.Write(number[:])
	case table.Double:
		binary.LittleEndian.PutUint64(number[:], math.Float64bits(v.Double))
		h.Write(number[:])
	default:
		h.Write(v.Bytes)
	}
	sum := h.Sum64()
	r.all += sum
	if isKey {
		r.key += sum
	}
}

// add puts a row; a later one with the same key replaces it.
func (c *contents) add(r rowHash) {
	c.records++
	c.rows[r.key] = r.all
}

// row is the hash of a row that was read from a table.
func (c *contents) row(r *scan.Row) (h rowHash) {
	for _, k := range r.PrimaryKey.PrimaryKeys {
		c.cell(&h, k.ColumnName, true, client.ValueOf(k.Value))
	}
	for _, a := range r.Columns {
		c.cell(&h, a.ColumnName, false, client.ValueOf(a.Value))
	}
	return h
}

// Comparison is a table against what it must hold.
type Comparison struct {
	Rows    int64 `json:"rows"`    // of the table
	Missing int64 `json:"missing"` // not in the table
	Extra   int64 `json:"extra"`   // keys that the file does not have
	Changed int64 `json:"changed"` // other attributes than in the file
}

// see counts a row of the table.
func (c *Comparison) see(want *contents, r rowHash) {
	c.Rows++
	switch all, ok := want.rows[r.key]; {
	case !ok:
		c.Extra++
	case all != r.all:
		c.Changed++
	}
}

// Exact says that the table holds what it must.
func (c *Comparison) Exact() bool { return c.Missing == 0 && c.Extra == 0 && c.Changed == 0 }

func (c *Comparison) String() string {
	if c.Exact() {
		return fmt.Sprintf("exact: %d rows, each as in the file", c.Rows)
	}
	return fmt.Sprintf("not exact: %d rows missing, %d with other attributes, %d too many", c.Missing, c.Changed, c.Extra)
}
