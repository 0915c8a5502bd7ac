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
func (a *jsonText) datum(d *record.Datum, v *vector, i int64) (bad *table.Reason) {
	a.out, a.bad, a.keys = a.out[:0], nil, a.keys[:0]
	defer func() {
		switch x := recover(); x {
		case nil:
		case errLong:
			*d = record.Datum{} // out is not all of it
			bad = &table.Reason{Column: v.f.path, Code: table.CodeValueTooLong, Message: errLong.Error()}
		default:
			panic(x)
		}
	}()
	a.value(v, i)
	*d = record.Datum{Kind: record.JSON, Bytes: a.out}
	return a.bad
}

func (a *jsonText) refuse(column, code, message string) {
	if a.bad == nil {
		a.bad = &table.Reason{Column: column, Code: code, Message: message}
	}
}

// value writes a value, null or not.
func (a *jsonText) value(v *vector, i int64) {
	if len(a.out) > maxTextBytes {
		panic(errLong)
	}
	v, i = v.find(i)
	if v.f.typ == typeNull || v.null(i) {
		a.out = append(a.out, "null"...)
		return
	}
	switch v.f.typ {
	case typeList, typeLargeList:
		a.list(v.fields[0], v.offsets.at(i)-v.base[0], v.offsets.at(i+1)-v.base[0])
	case typeListView, typeLargeListView:
		at, n := v.offsets.at(i)-v.base[0], v.sizes.at(i)
		if n == 0 {
			at = 0
		}
		a.list(v.fields[0], at, at+n)
	case typeFixedList:
		a.list(v.fields[0], i*int64(v.f.width), (i+1)*int64(v.f.width))
	case typeMap:
		a.mapping(v, v.offsets.at(i)-v.base[0], v.offsets.at(i+1)-v.base[0])
	case typeStruct:
		a.object(v, i)
	case typeUnion:
		member := v.f.codes[int8(v.data[i])]
		if v.f.flavor == dense {
			i = v.offsets.at(i) - v.base[member]
		}
		a.out = append(a.out, '{')
		a.name(v.f.fields[member].name)
		a.value(v.fields[member], i)
		a.out = append(a.out, '}')
	default:
		if v.f.typ == typeInterval && v.f.kind == record.JSON {
			a.interval(v, i)
		} else {
			a.plain(v, i)
		}
	}
}

// maxElements is how many elements a text has at most: each takes two bytes.
const maxElements = maxTextBytes / 2

func (a *jsonText) list(v *vector, from, to int64) {
	if to-from > maxElements {
		panic(errLong)
	}
	a.each('[', ']', from, to, func(i int64) { a.value(v, i) })
}

// each writes what one writes of each number, with commas between them.
func (a *jsonText) each(before, after byte, from, to int64, one func(i int64)) {
	a.out = append(a.out, before)
	for i := from; i < to; i++ {
		if i > from {
			a.out = append(a.out, ',')
		}
		one(i)
	}
	a.out = append(a.out, after)
}

func (a *jsonText) object(v *vector, i int64) {
	if v.f.twice != "" {
		a.refuse(v.f.path, table.CodeType, fmt.Sprintf("two fields of a struct are called %q", v.f.twice))
	}
	a.each('{', '}', 0, int64(len(v.f.fields)), func(k int64) {
		a.name(v.f.fields[k].name)
		a.value(v.fields[k], i)
	})
}

func (a *jsonText) name(name string) { a.out = append(jsontext.Quoted(a.out, []byte(name)), ':') }

// mapping writes an object when the keys are text, else an array of pairs.
func (a *jsonText) mapping(v *vector, from, to int64) {
	pairs := v.fields[0]
	keys, others := pairs.fields[0], pairs.fields[1]
	if keys.f.kind != record.String {
		a.each('[', ']', from, to, func(i int64) {
			a.out = append(a.out, `{"key":`...)
			a.value(keys, i)
			a.out = append(a.out, `,"value":`...)
			a.value(others, i)
			a.out = append(a.out, '}')
		})
		return
	}
	first := len(a.keys)
	a.each('{', '}', from, to, func(i int64) {
		at := len(a.out)
		if a.value(keys, i); a.out[at] != '"' {
			a.refuse(keys.f.path, table.CodeType, "key of a map is null")
		}
		a.keys = append(a.keys, jsontext.Span{From: at, To: len(a.out)})
		a.out = append(a.out, ':')
		a.value(others, i)
	})
	if twice := jsontext.Twice(a.out, a.keys[first:]); twice != nil {
		a.refuse(keys.f.path, table.CodeType, fmt.Sprintf("key %s occurs twice in a map", table.Show(twice)))
	}
	a.keys = a.keys[:first]
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
func (a *jsonText) plain(v *vector, i int64) {
	var d record.Datum
	if bad := a.scratch.scalar(&d, v, i); a.bad == nil {
		a.bad = bad
	}
	switch {
	case len(a.out)+len(d.Bytes) > maxTextBytes:
		panic(errLong)
	case d.Kind == record.Double && v.f.width == 4:
		a.out = jsontext.Float(a.out, d.Double, 32)
	case d.Kind == record.String:
		if a.out = jsontext.Quoted(a.out, d.Bytes); !utf8.Valid(d.Bytes) {
			a.refuse(v.f.path, table.CodeUTF8, "string is not valid UTF-8")
		}
	default:
		a.out = jsontext.Append(a.out, &d)
	}
}
