package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

var schema = []wire.KeyColumn{{Name: "s", Type: wire.KeyString}, {Name: "i", Type: wire.KeyInteger}, {Name: "b", Type: wire.KeyBinary}}

func integer(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

// drawKey draws a key of few distinct parts, so that prefixes and equal columns are common.
func drawKey(t *rapid.T, name string) []wire.Cell {
	part := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0xFE, 0xFF, 'a'}), 0, 4)
	number := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{-1 << 63, -1, 0, 1, 1<<63 - 1}))
	key := []wire.Cell{
		{Name: []byte("s"), Type: wire.String, Value: part.Draw(t, name+".s")},
		{Name: []byte("i"), Type: wire.Integer, Value: integer(number.Draw(t, name+".i"))},
		{Name: []byte("b"), Type: wire.Binary, Value: part.Draw(t, name+".b")},
	}
	for i := range key {
		switch rapid.IntRange(0, 9).Draw(t, name+".bound") {
		case 0:
			key[i].Type, key[i].Value = wire.InfMin, nil
		case 1:
			key[i].Type, key[i].Value = wire.InfMax, nil
		}
	}
	return key
}

// compareKeys is Tablestore's order, said without the encoding.
func compareKeys(a, b []wire.Cell) int {
	rank := func(c *wire.Cell) int {
		switch c.Type {
		case wire.InfMin:
			return 0
		case wire.InfMax:
			return 2
		}
		return 1
	}
	for i := range a {
		x, y := &a[i], &b[i]
		if c := cmp.Compare(rank(x), rank(y)); c != 0 {
			return c
		}
		c := 0
		switch {
		case rank(x) != 1:
		case x.Type == wire.Integer:
			c = cmp.Compare(x.Int(), y.Int())
		default:
			c = bytes.Compare(x.Value, y.Value)
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

func TestEncodedKeysAreOrderedAsTheirValues(t *testing.T) {
	m := &meta{ID: 7, Key: schema}
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawKey(t, "a"), drawKey(t, "b")
		x, err := m.appendKey(nil, a)
		must(t, err)
		y, err := m.appendKey(nil, b)
		must(t, err)
		conformance.MustEqual(t, bytes.Compare(x, y), compareKeys(a, b), "comparison of %x and %x", x, y)
	})
}

func TestKeysSurviveTheRoundTrip(t *testing.T) {
	m := &meta{ID: 1 << 31, Key: schema}
	rapid.Check(t, func(t *rapid.T) {
		key := drawKey(t, "key")
		for i := range key {
			if key[i].Type == wire.InfMin || key[i].Type == wire.InfMax {
				t.Skip("a bound is not a row")
			}
		}
		b, _ := m.appendKey(nil, key)
		got, ok := decodeKey(b, schema)
		if !ok || compareKeys(key, got) != 0 {
			t.Fatalf("%x: %v", b, got)
		}
		part := appendColumn(appendRowPrefix(nil, m.ID), &key[0])
		if !bytes.Equal(partitionPart(b), part) || columnAt(b, 0) != rowPrefixBytes || columnAt(b, 1) != len(part) || columnAt(b, 2) != len(appendColumn(part, &key[1])) {
			t.Fatalf("%x: partition key %x, columns at %d, %d, %d", b, partitionPart(b), columnAt(b, 0), columnAt(b, 1), columnAt(b, 2))
		}
		for n := range b {
			if _, ok := decodeKey(b[:n], schema); ok {
				t.Fatalf("%d of %d bytes were mistaken for a key", n, len(b))
			}
		}
	})
}
