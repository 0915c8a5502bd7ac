package parquet

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/jsontext"
	"example.com/tsimport/reader/record"
)

var errLevels = errors.New("levels of the columns of one group do not go together")

// maxTextBytes bounds the text of one record: what is longer fits no table. A few bytes of levels can stand for
// billions of nulls, so a record maxTexts times as long is not even read to its end.
const (
	maxTextBytes = 4 << 20
	maxTexts     = 64
)

var errLongRecord = errors.New("one record has more than 256 MiB of JSON text")

// nested puts the entries of a group's leaves together again, one record at a time, as JSON text. Each leaf has one
// entry for each time the group around it repeats, and one that says at which level there is nothing.
type nested struct {
	root    *node
	columns []*column // of the leaves below, by index in the row group; nil elsewhere
	own     []*column
	out     []byte
	bad     *table.Reason
	texts   int // how often out was full
	keys    []jsontext.Span
}

// datum reads the next record's value. The text is valid until the next call.
func (a *nested) datum(d *record.Datum) (*table.Reason, error) {
	a.out, a.bad, a.texts, a.keys = a.out[:0], nil, 0, a.keys[:0]
	for _, c := range a.own {
		switch err := c.advance(); {
		case err == io.EOF:
			return nil, c.wrap(errShortColumn)
		case err != nil:
			return nil, c.wrap(err)
		case c.reps[c.at] != 0:
			return nil, c.wrap(errLevels)
		}
	}
	if a.root.repetition == optional && a.root.first != nil && a.absent(a.root) {
		*d = record.Datum{}
		return nil, a.pass(a.root)
	}
	if err := a.field(a.root); err != nil {
		return nil, err
	}
	if *d = (record.Datum{Kind: record.JSON, Bytes: a.out}); a.texts > 0 {
		*d = record.Datum{} // out is not all of it
	}
	return a.bad, nil
}

func (a *nested) column(l *leaf) *column { return a.columns[l.index] }

// absent says whether the entry at hand ends above n.
func (a *nested) absent(n *node) bool {
	c := a.column(n.first)
	return c.defs[c.at] < uint32(n.def)
}

// pass steps over the entry that says that n is absent, in all leaves below n, which must agree.
func (a *nested) pass(n *node) error { return a.passBelow(n, uint32(n.def)) }

func (a *nested) passBelow(n *node, def uint32) error {
	if n.leaf == nil {
		for _, f := range n.fields {
			if err := a.passBelow(f, def); err != nil {
				return err
			}
		}
		return nil
	}
	c := a.column(n.leaf)
	if err := c.advance(); err != nil && err != io.EOF {
		return c.wrap(err)
	} else if err != nil || c.defs[c.at] >= def {
		return c.wrap(errLevels)
	}
	c.next()
	return nil
}

// ready makes sure that there is an entry to look at.
func (a *nested) ready(n *node) error {
	if n.first == nil {
		return nil
	}
	c := a.column(n.first)
	if err := c.advance(); err == io.EOF {
		return c.wrap(errLevels)
	} else if err != nil {
		return c.wrap(err)
	}
	return nil
}

// field writes what stands at n: null, a value, or for a repeated field an array.
func (a *nested) field(n *node) error {
	if err := a.ready(n); err != nil {
		return err
	}
	switch {
	case n.repetition == repeated:
		return a.repeat(n, '[', ']', func() error { return a.value(n) })
	case n.repetition == optional && n.first != nil && a.absent(n):
		a.out = append(a.out, "null"...)
		return a.pass(n)
	}
	return a.value(n)
}

// repeat calls one for each time n repeats.
func (a *nested) repeat(n *node, before, after byte, one func() error) error {
	a.out = append(a.out, before)
	if n.first == nil || a.absent(n) {
		a.out = append(a.out, after)
		if n.first == nil {
			return nil
		}
		return a.pass(n)
	}
	c := a.column(n.first)
	for {
		if err := one(); err != nil {
			return err
		}
		switch err := c.advance(); {
		case err == io.EOF:
			a.out = append(a.out, after)
			return nil
		case err != nil:
			return c.wrap(err)
		case c.reps[c.at] < uint32(n.rep):
			a.out = append(a.out, after)
			return nil
		case c.reps[c.at] > uint32(n.rep), a.absent(n):
			return c.wrap(errLevels)
		}
		if len(a.out) > maxTextBytes {
			if err := a.overflow(n.first); err != nil {
				return err
			}
		}
		a.out = append(a.out, ',')
	}
}

// overflow drops the text: it is longer than any table takes. The rest is read, for the next record begins after it.
func (a *nested) overflow(l *leaf) error {
	a.refuse(l.path, table.CodeValueTooLong, "JSON text is longer than 4 MiB")
	a.out = a.out[:0]
	if a.texts++; a.texts == maxTexts {
		return a.column(l).wrap(errLongRecord)
	}
	return nil
}

// value writes n, which is there.
func (a *nested) value(n *node) error {
	switch {
	case n.leaf != nil:
		return a.scalar(n)
	case n.shape == shapeList:
		inner := n.fields[0]
		if err := a.ready(inner); err != nil {
			return err
		}
		if n.item == inner {
			return a.repeat(inner, '[', ']', func() error { return a.value(inner) })
		}
		return a.repeat(inner, '[', ']', func() error { return a.field(n.item) })
	case n.shape == shapeMap:
		return a.mapping(n)
	}
	if n.twice != "" {
		a.refuse("", table.CodeType, fmt.Sprintf("two fields of a struct are called %q", n.twice))
	}
	a.out = append(a.out, '{')
	for i, f := range n.fields {
		if i > 0 {
			a.out = append(a.out, ',')
		}
		a.name(f.name)
		if err := a.field(f); err != nil {
			return err
		}
	}
	a.out = append(a.out, '}')
	return nil
}

func (a *nested) name(name string) {
	if a.out = jsontext.Quoted(a.out, []byte(name)); !utf8.ValidString(name) {
		a.refuse("", table.CodeUTF8, "field name is not valid UTF-8")
	}
	a.out = append(a.out, ':')
}

func (a *nested) refuse(column, code, message string) {
	if a.bad == nil {
		a.bad = &table.Reason{Column: column, Code: code, Message: message}
	}
}

// mapping writes an object when the keys are text, else an array of pairs.
func (a *nested) mapping(n *node) error {
	pair := n.item
	if err := a.ready(pair); err != nil {
		return err
	}
	key := pair.fields[0]
	var value *node
	if len(pair.fields) == 2 {
		value = pair.fields[1]
	}
	second := func() error {
		if value == nil {
			a.out = append(a.out, "null"...)
			return nil
		}
		return a.field(value)
	}
	if key.leaf != nil && key.leaf.kind == record.String {
		first := len(a.keys)
		err := a.repeat(pair, '{', '}', func() error {
			if err := a.ready(key); err != nil {
				return err
			}
			if key.repetition == optional && a.absent(key) {
				a.refuse(key.leaf.path, table.CodeType, "key of a map is null")
			}
			from := len(a.out)
			if err := a.field(key); err != nil {
				return err
			}
			a.keys = append(a.keys, jsontext.Span{From: from, To: len(a.out)})
			a.out = append(a.out, ':')
			return second()
		})
		if a.texts == 0 {
			if twice := jsontext.Twice(a.out, a.keys[first:]); twice != nil {
				a.refuse(key.leaf.path, table.CodeType, fmt.Sprintf("key %s occurs twice in a map", table.Show(twice)))
			}
		}
		a.keys = a.keys[:first]
		return err
	}
	return a.repeat(pair, '[', ']', func() error {
		a.out = append(a.out, `{"key":`...)
		if err := a.field(key); err != nil {
			return err
		}
		a.out = append(a.out, `,"value":`...)
		if err := second(); err != nil {
			return err
		}
		a.out = append(a.out, '}')
		return nil
	})
}

func (a *nested) scalar(n *node) error {
	c := a.column(n.leaf)
	if err := c.advance(); err == io.EOF {
		return c.wrap(errLevels)
	} else if err != nil {
		return c.wrap(err)
	}
	i := c.next()
	if i < 0 {
		return c.wrap(errLevels)
	}
	var d record.Datum
	if why := c.datum(&d, i); a.bad == nil {
		a.bad = why
	}
	if len(a.out)+len(d.Bytes) > maxTextBytes {
		if err := a.overflow(n.leaf); err != nil || len(d.Bytes) > maxTextBytes {
			return err
		}
	}
	switch {
	case d.Kind == record.Double && n.physical == physFloat:
		a.out = jsontext.Float(a.out, d.Double, 32)
	case d.Kind == record.String:
		if a.out = jsontext.Quoted(a.out, d.Bytes); !utf8.Valid(d.Bytes) {
			a.refuse(n.leaf.path, table.CodeUTF8, "string is not valid UTF-8")
		}
	default:
		a.out = jsontext.Append(a.out, &d)
	}
	return nil
}
