package jsontext

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"example.com/tsimport/reader/record"
)

// MaxNested is the size of the largest text of a nested value, in bytes. No table can hold a longer one.
const MaxNested = 4 << 20

// Nested is the text of a nested value being written.
type Nested struct {
	record.Refusal
	Out  []byte
	Keys []Span // keys of maps that are not complete
}

// Span is a range of a text.
type Span struct{ From, To int }

// Reset begins a new value. It reuses the memory.
func (n *Nested) Reset() { n.Out, n.Bad, n.Keys = n.Out[:0], nil, n.Keys[:0] }

// Name appends a member's name.
func (n *Nested) Name(name string) {
	if n.Out = Quoted(n.Out, []byte(name)); !utf8.ValidString(name) {
		n.RefuseUTF8("", "field name")
	}
	n.Out = append(n.Out, ':')
}

// Scalar appends a column's scalar. single means that it is a 32-bit float.
func (n *Nested) Scalar(column string, d *record.Datum, single bool) {
	switch {
	case d.Kind == record.Double && single:
		n.Out = Float(n.Out, d.Double, 32)
	case d.Kind == record.String:
		if n.Out = Quoted(n.Out, d.Bytes); !utf8.Valid(d.Bytes) {
			n.RefuseUTF8(column, "string")
		}
	default:
		n.Out = Append(n.Out, d)
	}
}

// Key records that the text since from is a key of a map. The key's value must follow.
func (n *Nested) Key(from int) {
	n.Keys = append(n.Keys, Span{from, len(n.Out)})
	n.Out = append(n.Out, ':')
}

// EndKeys ends a map whose keys begin at index first of Keys. It refuses the value if a key is repeated.
func (n *Nested) EndKeys(first int, column string) {
	if n.Bad == nil {
		if key := n.twice(n.Keys[first:]); key != nil {
			n.RefuseTwice(column, key)
		}
	}
	n.Keys = n.Keys[:first]
}

// twice returns a repeated key, or nil. It sorts the keys.
func (n *Nested) twice(keys []Span) []byte {
	at := func(s Span) []byte { return n.Out[s.From:s.To] }
	slices.SortFunc(keys, func(x, y Span) int { return bytes.Compare(at(x), at(y)) })
	for i := 1; i < len(keys); i++ {
		if bytes.Equal(at(keys[i-1]), at(keys[i])) {
			return at(keys[i])
		}
	}
	return nil
}
