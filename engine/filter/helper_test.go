package filter

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

// Protobuf, by hand: what the engine decodes is not encoded by its own code.

func number(id protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, id, protowire.VarintType), uint64(v))
}

func raw(id protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, id, protowire.BytesType), b)
}

func flag(on bool) int64 {
	if on {
		return 1
	}
	return 0
}

func envelope(typ int64, body []byte) []byte { return slices.Concat(number(1, typ), raw(2, body)) }

// leaf is a SingleColumnValueFilter in the making.
type leaf struct {
	op                      comparator
	column                  string
	value                   any
	filterIfMissing, latest bool
	rule                    []byte // a ValueTransferRule
}

func (l leaf) body() []byte {
	b := slices.Concat(number(1, int64(l.op)), raw(2, []byte(l.column)), raw(3, variant(l.value)),
		number(4, flag(l.filterIfMissing)), number(5, flag(l.latest)))
	if l.rule != nil {
		b = append(b, raw(6, l.rule)...)
	}
	return b
}

func (l leaf) bytes() []byte { return envelope(typeSingle, l.body()) }

func transfer(regex string, cast wire.ValueType) []byte {
	return slices.Concat(raw(1, []byte(regex)), number(2, int64(cast)))
}

func composite(combinator int64, subs ...[]byte) []byte {
	b := number(1, combinator)
	for _, s := range subs {
		b = append(b, raw(2, s)...)
	}
	return envelope(typeComposite, b)
}

func pagination(offset, limit int64) []byte {
	return envelope(typePagination, slices.Concat(number(1, offset), number(2, limit)))
}

// payload is a value as a cell has it.
func payload(v any) (wire.ValueType, []byte) {
	switch v := v.(type) {
	case int:
		return wire.Integer, binary.LittleEndian.AppendUint64(nil, uint64(v))
	case float64:
		return wire.Double, binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
	case bool:
		return wire.Boolean, []byte{byte(flag(v))}
	case string:
		return wire.String, []byte(v)
	case []byte:
		return wire.Binary, v
	}
	panic(fmt.Sprintf("no value: %T", v))
}

func variant(v any) []byte {
	typ, b := payload(v)
	head := []byte{byte(typ)}
	if typ == wire.String || typ == wire.Binary {
		head = binary.LittleEndian.AppendUint32(head, uint32(len(b)))
	}
	return append(head, b...)
}

// cells are versions of columns: names and values in turn, newest first within a name.
func cells(namesAndValues ...any) (list []wire.Cell) {
	for i := 0; i < len(namesAndValues); i += 2 {
		typ, b := payload(namesAndValues[i+1])
		list = append(list, wire.Cell{Name: []byte(namesAndValues[i].(string)), Type: typ, Value: b, Timestamp: int64(1000 - i), Stamped: true})
	}
	slices.SortStableFunc(list, func(a, b wire.Cell) int { return bytes.Compare(a.Name, b.Name) })
	return list
}

func names(list []wire.Cell) string {
	var out []string
	for i := range list {
		out = append(out, string(list[i].Name))
	}
	return strings.Join(out, " ")
}

func decode(t testing.TB, b []byte) *Filter {
	t.Helper()
	f, err := Decode(b)
	conformance.MustEqual(t, err, nil, "%x", b)
	return f
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	conformance.MustEqual(t, err, nil, "error")
	return b
}
