package plainbuffer

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"

	"example.com/tsimport/internal/table"
)

// Hasher hashes the name, type and value of cells, but not the timestamp, to 64 bits. The sum over a row's cells does
// not depend on their order. Short values take two multiplications, as in wyhash; long ones use hash/maphash. The
// secrets are random, so two cells or sums collide with a probability of about 2⁻⁶⁴. It is safe for concurrent use.
type Hasher struct {
	seed  maphash.Seed
	kinds [8]uint64 // secrets by variant type
	a, b  uint64
	c     uint64
}

// NewHasher makes a Hasher with random secrets.
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

// ColumnBytes is like Column for a name in bytes.
func (h *Hasher) ColumnBytes(name []byte) uint64 { return maphash.Bytes(h.seed, name) }

func (h *Hasher) Key(key []byte) uint64 { return maphash.Bytes(h.seed, key) }

// Cell hashes a cell, given the hash of its column. The value may be Null. Doubles are hashed by their bits.
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

// Row returns the sum of a row's cells, except deletions of whole columns, and reports whether any has a timestamp.
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

// value is like Cell for an encoded value in a plain row.
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

// longText is the length, in bytes, from which hash/maphash is faster.
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

// mix multiplies two numbers and folds the product to 64 bits.
func mix(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return hi ^ lo
}
