package parquet

import (
	"errors"
	"fmt"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/jsontext"
	"example.com/tsimport/reader/record"
)

var errLevels = errors.New("levels of a group's columns do not match")

// maxTexts, times MaxNested, limits the JSON text of a record: a few bytes of levels can mean billions of nulls.
const maxTexts = 64

var errLongRecord = errors.New("one record has more than 256 MiB of JSON text")

// nested makes JSON from the leaves of a group, record by record. A leaf has an entry for each repetition or null.
type nested struct {
	jsontext.Nested
	root    *node
	columns []*column // by index in the row group; nil for leaves that are not read
	own     []*column
	texts   int // number of times that Out exceeded MaxNested
}

// datum reads the value of the next record. The text is valid until the next call of datum.
func (a *nested) datum(d *record.Datum) *table.Reason {
	a.Reset()
	a.texts = 0
	for _, c := range a.own {
		if c.need(errShortColumn); c.reps[c.at] != 0 {
			c.fail(errLevels)
		}
	}
	def := a.root.def
	if a.root.element.repetition == repeated {
		def-- // of the parent: without values, the field is an empty list
	}
	if l := a.root.first; l != nil && a.column(l).defs[a.column(l).at] < uint32(def) {
		*d = record.Datum{}
		a.pass(a.root, def)
		return nil
	}
	a.field(a.root)
	if *d = (record.Datum{Kind: record.JSON, Bytes: a.Out}); a.texts > 0 {
		*d = record.Datum{} // Out is incomplete, so discard it
	}
	return a.Bad
}

func (a *nested) column(l *leaf) *column { return a.columns[l.index] }

// absent reports whether, by the current entry, n or one of its parents is absent.
func (a *nested) absent(n *node) bool {
	c := a.column(n.first)
	return c.defs[c.at] < uint32(n.def)
}

// pass skips an entry of each leaf below n. The levels of all must say that definition level def is not reached.
func (a *nested) pass(n *node, def int) {
	for _, f := range n.fields {
		a.pass(f, def)
	}
	if n.leaf == nil {
		return
	}
	c := a.column(n.leaf)
	if c.need(errLevels); c.defs[c.at] >= uint32(def) {
		c.fail(errLevels)
	}
	c.next()
}

// ready makes sure that there is a current entry.
func (a *nested) ready(n *node) {
	if n.first != nil {
		a.column(n.first).need(errLevels)
	}
}

// field writes n as null, as a value, or as an array if it is repeated.
func (a *nested) field(n *node) {
	a.ready(n)
	switch {
	case n.element.repetition == repeated:
		a.repeat(n, '[', ']', func() { a.value(n) })
	case n.element.repetition == optional && n.first != nil && a.absent(n):
		a.Out = append(a.Out, "null"...)
		a.pass(n, n.def)
	default:
		a.value(n)
	}
}

// repeat calls one for every repetition of n.
func (a *nested) repeat(n *node, before, after byte, one func()) {
	a.Out = append(a.Out, before)
	if n.first == nil || a.absent(n) {
		if a.Out = append(a.Out, after); n.first != nil {
			a.pass(n, n.def)
		}
		return
	}
	c := a.column(n.first)
	for {
		one()
		if !c.advance() || c.reps[c.at] < uint32(n.rep) {
			a.Out = append(a.Out, after)
			return
		}
		if c.reps[c.at] > uint32(n.rep) || a.absent(n) {
			c.fail(errLevels)
		}
		if len(a.Out) > jsontext.MaxNested {
			a.overflow(n.first)
		}
		a.Out = append(a.Out, ',')
	}
}

// overflow discards the text, which is too long for any table. The record is still read to its end.
func (a *nested) overflow(l *leaf) {
	a.Refuse(l.path, table.CodeValueTooLong, "JSON text is longer than 4 MiB")
	a.Out = a.Out[:0]
	if a.texts++; a.texts == maxTexts {
		a.column(l).fail(errLongRecord)
	}
}

// value writes n, which must not be null.
func (a *nested) value(n *node) {
	switch {
	case n.leaf != nil:
		a.scalar(n)
		return
	case n.shape == shapeList:
		inner := n.fields[0]
		a.ready(inner)
		a.repeat(inner, '[', ']', func() {
			if n.item == inner {
				a.value(inner)
			} else {
				a.field(n.item)
			}
		})
		return
	case n.shape == shapeMap:
		a.mapping(n)
		return
	}
	if n.twice != "" {
		a.Refuse("", table.CodeType, fmt.Sprintf("two fields of a struct are named %q", n.twice))
	}
	a.Out = append(a.Out, '{')
	for i, f := range n.fields {
		if i > 0 {
			a.Out = append(a.Out, ',')
		}
		a.Name(f.element.name)
		a.field(f)
	}
	a.Out = append(a.Out, '}')
}

// mapping writes an object if the keys are strings, otherwise an array of pairs.
func (a *nested) mapping(n *node) {
	pair := n.item
	a.ready(pair)
	key := pair.fields[0]
	value := func() {
		if len(pair.fields) == 2 {
			a.field(pair.fields[1])
		} else {
			a.Out = append(a.Out, "null"...)
		}
	}
	if key.leaf == nil || key.leaf.kind != record.String {
		a.repeat(pair, '[', ']', func() {
			a.Out = append(a.Out, `{"key":`...)
			a.field(key)
			a.Out = append(a.Out, `,"value":`...)
			value()
			a.Out = append(a.Out, '}')
		})
		return
	}
	first := len(a.Keys)
	a.repeat(pair, '{', '}', func() {
		if a.ready(key); key.element.repetition == optional && a.absent(key) {
			a.Refuse(key.leaf.path, table.CodeType, "key of a map is null")
		}
		from := len(a.Out)
		a.field(key)
		a.Key(from)
		value()
	})
	a.EndKeys(first, key.leaf.path)
}

func (a *nested) scalar(n *node) {
	c := a.column(n.leaf)
	c.need(errLevels)
	i := c.next()
	if i < 0 {
		c.fail(errLevels)
	}
	var d record.Datum
	if why := c.datum(&d, i); a.Bad == nil {
		a.Bad = why
	}
	if len(a.Out)+len(d.Bytes) > jsontext.MaxNested {
		if a.overflow(n.leaf); len(d.Bytes) > jsontext.MaxNested {
			return
		}
	}
	a.Scalar(n.leaf.path, &d, n.element.physical == physFloat)
}
