package plainbuffer

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"

	"example.com/tsimport/internal/table"
)

// Hasher reduces cells to 64 bits: the name, the type and the value, not the time. The sum of a row's cells is the same
// in any order. Short values, the usual ones, take two multiplications, as in wyhash; all others hash/maphash. Its
// secrets are random: two cells, or sums, collide with a chance of about 2⁻⁶⁴. It is safe for concurrent use.
type Hasher struct {
	seed  maphash.Seed
	kinds [8]uint64 // by variant
	a, b  uint64
	c     uint64
}

// NewHasher makes a Hasher with new secrets.
func NewHasher() *Hasher {
	h := &Hasher{seed: maphash.MakeSeed()}
	secret := func(n int) uint64 { return maphash.Comparable(h.seed, n) }
	for i := range h.kinds {
		h.kinds[i] = secret(i)
	}
	h.a, h.b, h.c = secret(-1)|1, secret(-2), secret(-3)
	return h
}

func (h *Hasher) Column(name string) uint64 { return maphash.String(h.seed, name) }

// ColumnBytes is Column for a name as bytes.
func (h *Hasher) ColumnBytes(name []byte) uint64 { return maphash.Bytes(h.seed, name) }

func (h *Hasher) Key(key []byte) uint64 { return maphash.Bytes(h.seed, key) }

// Cell hashes a cell with a value, given its column's hash; one without is its column. Doubles differ by bits.
func (h *Hasher) Cell(column uint64, v *table.Value) uint64 {
	switch v.Type {
	case table.Integer:
		return h.word(column, variantInteger, uint64(v.Int))
	case table.Double:
		return h.word(column, variantDouble, math.Float64bits(v.Double))
	case table.Boolean:
		return h.word(column, variantBoolean, uint64(byte(v.Int)))
	case table.String:
		return h.text(column, variantString, v.Bytes)
	case table.Binary:
		return h.text(column, variantBinary, v.Bytes)
	}
	return h.word(column, variantNull, 0)
}

// Row hashes a row's cells with values, and reports whether one of them has a timestamp.
func (h *Hasher) Row(c Cells) (sum uint64, stamped bool) {
	for c.Next() {
		if c.Op != DeleteAll {
			v := c.Value()
			sum += h.Cell(h.ColumnBytes(c.Name()), &v)
			stamped = stamped || c.Timestamp >= 0
		}
	}
	return sum, stamped
}

// value is Cell for an encoded value of a plain row.
func (h *Hasher) value(column uint64, b []byte) uint64 {
	switch b[0] {
	case variantString, variantBinary:
		return h.text(column, b[0], b[5:])
	case variantBoolean:
		return h.word(column, variantBoolean, uint64(b[1]))
	}
	return h.word(column, b[0], binary.LittleEndian.Uint64(b[1:]))
}

func (h *Hasher) word(column uint64, variant byte, w uint64) uint64 {
	hi, lo := bits.Mul64(w^column^h.kinds[variant&7], h.a)
	return mix(lo^h.b, hi^h.c^column)
}

// longText is the shortest text for which hash/maphash is faster.
const longText = 64

func (h *Hasher) text(column uint64, variant byte, b []byte) uint64 {
	seed := column ^ h.kinds[variant&7]
	n := len(b)
	var x, y uint64
	switch {
	case n >= longText:
		x = maphash.Bytes(h.seed, b)
	case n > 16:
		for rest := b; len(rest) > 16; rest = rest[16:] {
			seed = mix(binary.LittleEndian.Uint64(rest)^h.b, binary.LittleEndian.Uint64(rest[8:])^seed)
		}
		x, y = binary.LittleEndian.Uint64(b[n-16:]), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 8:
		x, y = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		x, y = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))
	case n > 0:
		x = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	hi, lo := bits.Mul64(x^h.b, y^seed)
	return mix(lo^h.a^uint64(n), hi^h.c^column)
}

// mix multiplies and folds the product.
func mix(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return hi ^ lo
}
