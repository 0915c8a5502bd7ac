package table

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
)

// AppendKey appends one primary-key column to an ordering key. Comparing the bytes of ordering keys gives Tablestore's
// order of rows: integers numerically, strings and binary values by unsigned bytes, a prefix first. Two rows have the
// same primary key if and only if their ordering keys are equal.
//
// An integer is 8 bytes, big endian, with the sign bit flipped. In a string or binary value, 0x00 becomes 0x00 0xff,
// and 0x00 0x01 ends the value. So no value is a prefix of another, and the next column cannot affect the order.
func AppendKey(dst []byte, v Value) []byte {
	if v.Type == Integer {
		return binary.BigEndian.AppendUint64(dst, uint64(v.Int)^(1<<63))
	}
	for _, b := range v.Bytes {
		if b == 0 {
			dst = append(dst, 0, 0xff)
			continue
		}
		dst = append(dst, b)
	}
	return append(dst, 0, 1)
}

// FirstColumn returns the length of an ordering key's first column, of type t, or -1 if the key is shorter.
func FirstColumn(t Type, key []byte) int {
	if t == Integer {
		if len(key) < 8 {
			return -1
		}
		return 8
	}
	for i := 0; i+1 < len(key); i++ {
		if key[i] != 0 {
			continue
		}
		if key[i+1] == 1 {
			return i + 2
		}
		i++ // an escaped zero
	}
	return -1
}

var errCutKey = errors.New("decode ordering key: it ends within its first column")

// DecodeKey returns the value of an ordering key's first column and its encoded length. It copies the value's bytes.
func DecodeKey(t Type, key []byte) (Value, int, error) {
	if !t.KeyType() {
		return Value{}, 0, fmt.Errorf("decode ordering key: no key column is of type %s", t)
	}
	n := FirstColumn(t, key)
	if n < 0 {
		return Value{}, 0, errCutKey
	}
	if t == Integer {
		return Value{Type: t, Int: int64(binary.BigEndian.Uint64(key) ^ (1 << 63))}, n, nil
	}
	v := Value{Type: t, Bytes: make([]byte, 0, n-2)}
	for i := 0; i < n-2; i++ {
		v.Bytes = append(v.Bytes, key[i])
		if key[i] != 0 {
			continue
		}
		if i++; key[i] != 0xff {
			return Value{}, 0, fmt.Errorf("decode ordering key: invalid byte %#x at %d, after a zero", key[i], i)
		}
	}
	return v, n, nil
}

// KeyRange is the range of ordering keys from Lower up to Upper, exclusive. Nil means no bound.
type KeyRange struct{ Lower, Upper []byte }

// Within returns the intersection of two ranges, or false if it is empty.
func (r KeyRange) Within(o KeyRange) (KeyRange, bool) {
	if bytes.Compare(o.Lower, r.Lower) > 0 {
		r.Lower = o.Lower
	}
	if o.Upper != nil && (r.Upper == nil || bytes.Compare(o.Upper, r.Upper) < 0) {
		r.Upper = o.Upper
	}
	return r, r.Upper == nil || bytes.Compare(r.Lower, r.Upper) < 0
}

var hashSeed = maphash.MakeSeed()

// HashKey hashes an ordering key. Hashes differ between processes, and different keys may have the same hash.
func HashKey(key []byte) uint64 { return maphash.Bytes(hashSeed, key) }

// OrderingKey returns the ordering key of a primary key, or of its first columns.
func OrderingKey(values []Value) (key []byte) {
	for _, v := range values {
		key = AppendKey(key, v)
	}
	return key
}

// In a load into several tables, ordering keys begin with the table's name and a zero byte, which no name contains. So
// each table's keys are contiguous, and code that orders, queues or remembers keys need not know about tables.

// AppendTable appends the prefix of the ordering keys of a table's rows.
func AppendTable(dst []byte, name string) []byte { return append(append(dst, name...), 0) }

// AppendTableEnd appends the exclusive upper bound of the ordering keys of a table's rows.
func AppendTableEnd(dst []byte, name string) []byte { return append(append(dst, name...), 1) }

// CutTable splits an ordering key into the table's name and the rest. The name is nil if key has none.
func CutTable(key []byte) (name, rest []byte) {
	i := bytes.IndexByte(key, 0)
	if i < 0 {
		return nil, key
	}
	return key[:i], key[i+1:]
}

// SharedPrefix returns how many leading bytes two keys share.
func SharedPrefix(a, b []byte) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Compare compares two values of the same key column type in Tablestore's order.
func Compare(a, b Value) int {
	if a.Type == Integer {
		return cmp.Compare(a.Int, b.Int)
	}
	return bytes.Compare(a.Bytes, b.Bytes)
}

// SortDistinct sorts values of one key column and removes duplicates. It reuses the slice.
func SortDistinct(values []Value) []Value {
	slices.SortFunc(values, Compare)
	return slices.CompactFunc(values, func(a, b Value) bool { return Compare(a, b) == 0 })
}

// Head returns the first eight bytes, padded with zeros, as an integer that sorts like them. Equal heads prove nothing.
func Head(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var h uint64
	for i, c := range b {
		h |= uint64(c) << (56 - 8*i)
	}
	return h
}
