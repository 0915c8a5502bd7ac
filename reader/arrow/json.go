package arrow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/jsontext"
	"example.com/tsimport/reader/record"
)

// maxTextBytes bounds the text of one value: what is longer fits no table.
const maxTextBytes = 4 << 20

var errLong = errors.New("JSON text is longer than 4 MiB")

// jsonText writes nested values as JSON text.
type jsonText struct {
	out     []byte
	bad     *table.Reason
	keys    []jsontext.Span
	scratch scratch
}

// datum sets d to a nested value. The text is valid until the next call.
func (a *jsonText) datum(d *record.Datum, v *vector, i int64) (*table.Reason, error) {
	a.out, a.bad, a.keys = a.out[:0], nil, a.keys[:0]
	err := a.value(v, i)
	if errors.Is(err, errLong) {
		*d = record.Datum{} // out is not all of it
		return &table.Reason{Column: v.f.path, Code: table.CodeValueTooLong, Message: errLong.Error()}, nil
	}
	*d = record.Datum{Kind: record.JSON, Bytes: a.out}
	return a.bad, err
}

func (a *jsonText) refuse(column, code, message string) {
	if a.bad == nil {
		a.bad = &table.Reason{Column: column, Code: code, Message: message}
	}
}

// value writes a value, null or not.
func (a *jsonText) value(v *vector, i int64) error {
	if len(a.out) > maxTextBytes {
		return errLong
	}
	v, i, err := v.find(i)
	if err != nil {
		return err
	}
	if v.f.typ == typeNull || v.null(i) {
		a.out = append(a.out, "null"...)
		return nil
	}
	switch v.f.typ {
	case typeList, typeLargeList:
		return a.list(v.fields[0], v.offsets.at(i)-v.base[0], v.offsets.at(i+1)-v.base[0])
	case typeListView, typeLargeListView:
		at, n := v.offsets.at(i)-v.base[0], v.sizes.at(i)
		if n == 0 {
			at = 0
		}
		return a.list(v.fields[0], at, at+n)
	case typeFixedList:
		return a.list(v.fields[0], i*int64(v.f.width), (i+1)*int64(v.f.width))
	case typeMap:
		return a.mapping(v, v.offsets.at(i)-v.base[0], v.offsets.at(i+1)-v.base[0])
	case typeStruct:
		return a.object(v, i)
	case typeUnion:
		member := v.f.codes[int8(v.data[i])]
		if v.f.flavor == dense {
			i = v.offsets.at(i) - v.base[member]
		}
		a.out = append(a.out, '{')
		a.name(v.f.fields[member].name)
		err := a.value(v.fields[member], i)
		a.out = append(a.out, '}')
		return err
	case typeInterval:
		if v.f.kind == record.JSON {
			a.interval(v, i)
			return nil
		}
	}
	return a.plain(v, i)
}

// maxElements is how many elements a text has at most: each takes two bytes.
const maxElements = maxTextBytes / 2

func (a *jsonText) list(v *vector, from, to int64) error {
	if to-from > maxElements {
		return errLong
	}
	a.out = append(a.out, '[')
	for i := from; i < to; i++ {
		if i > from {
			a.out = append(a.out, ',')
		}
		if err := a.value(v, i); err != nil {
			return err
		}
	}
	a.out = append(a.out, ']')
	return nil
}

func (a *jsonText) object(v *vector, i int64) error {
	if v.f.twice != "" {
		a.refuse(v.f.path, table.CodeType, fmt.Sprintf("two fields of a struct are called %q", v.f.twice))
	}
	a.out = append(a.out, '{')
	for k, f := range v.f.fields {
		if k > 0 {
			a.out = append(a.out, ',')
		}
		a.name(f.name)
		if err := a.value(v.fields[k], i); err != nil {
			return err
		}
	}
	a.out = append(a.out, '}')
	return nil
}

func (a *jsonText) name(name string) { a.out = append(jsontext.Quoted(a.out, []byte(name)), ':') }

// mapping writes an object when the keys are text, else an array of pairs.
func (a *jsonText) mapping(v *vector, from, to int64) error {
	pairs := v.fields[0]
	keys, others := pairs.fields[0], pairs.fields[1]
	if keys.f.kind != record.String {
		return a.pairs(keys, others, from, to)
	}
	first := len(a.keys)
	a.out = append(a.out, '{')
	for i := from; i < to; i++ {
		if i > from {
			a.out = append(a.out, ',')
		}
		at := len(a.out)
		if err := a.value(keys, i); err != nil {
			return err
		}
		if a.out[at] != '"' {
			a.refuse(keys.f.path, table.CodeType, "key of a map is null")
		}
		a.keys = append(a.keys, jsontext.Span{From: at, To: len(a.out)})
		a.out = append(a.out, ':')
		if err := a.value(others, i); err != nil {
			return err
		}
	}
	a.out = append(a.out, '}')
	if twice := jsontext.Twice(a.out, a.keys[first:]); twice != nil {
		a.refuse(keys.f.path, table.CodeType, fmt.Sprintf("key %s occurs twice in a map", table.Show(twice)))
	}
	a.keys = a.keys[:first]
	return nil
}

func (a *jsonText) pairs(keys, others *vector, from, to int64) error {
	a.out = append(a.out, '[')
	for i := from; i < to; i++ {
		if i > from {
			a.out = append(a.out, ',')
		}
		a.out = append(a.out, `{"key":`...)
		if err := a.value(keys, i); err != nil {
			return err
		}
		a.out = append(a.out, `,"value":`...)
		if err := a.value(others, i); err != nil {
			return err
		}
		a.out = append(a.out, '}')
	}
	a.out = append(a.out, ']')
	return nil
}

func (a *jsonText) interval(v *vector, i int64) {
	b := v.data[i*int64(v.f.width):]
	number := func(name string, n int64) {
		a.name(name)
		a.out = strconv.AppendInt(a.out, n, 10)
	}
	one, two := int64(int32(binary.LittleEndian.Uint32(b))), int64(int32(binary.LittleEndian.Uint32(b[4:])))
	a.out = append(a.out, '{')
	if v.f.flavor == daysMillis {
		number("days", one)
		a.out = append(a.out, ',')
		number("milliseconds", two)
	} else {
		number("months", one)
		a.out = append(a.out, ',')
		number("days", two)
		a.out = append(a.out, ',')
		number("nanoseconds", int64(binary.LittleEndian.Uint64(b[8:])))
	}
	a.out = append(a.out, '}')
}

// plain writes a value that is not nested.
func (a *jsonText) plain(v *vector, i int64) error {
	var d record.Datum
	bad, err := a.scratch.scalar(&d, v, i)
	if err != nil {
		return err
	}
	if bad != nil && a.bad == nil {
		a.bad = bad
	}
	switch {
	case len(a.out)+len(d.Bytes) > maxTextBytes:
		return errLong
	case d.Kind == record.Double && v.f.width == 4:
		a.out = jsontext.Float(a.out, d.Double, 32)
	case d.Kind == record.String:
		if a.out = jsontext.Quoted(a.out, d.Bytes); !utf8.Valid(d.Bytes) {
			a.refuse(v.f.path, table.CodeUTF8, "string is not valid UTF-8")
		}
	default:
		a.out = jsontext.Append(a.out, &d)
	}
	return nil
}
