package arrow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/jsontext"
	"example.com/tsimport/reader/record"
)

var errLong = errors.New("JSON text is longer than 4 MiB")

type jsonText struct {
	jsontext.Nested
	scratch scratch
}

// datum sets d to a nested value. The text is valid until the next call of datum.
func (a *jsonText) datum(d *record.Datum, v *vector, i int64) (bad *table.Reason) {
	a.Reset()
	defer func() {
		switch x := recover(); x {
		case nil:
		case errLong:
			*d = record.Datum{} // Out is incomplete, so drop it
			bad = &table.Reason{Column: v.f.path, Code: table.CodeValueTooLong, Message: errLong.Error()}
		default:
			panic(x)
		}
	}()
	a.value(v, i)
	*d = record.Datum{Kind: record.JSON, Bytes: a.Out}
	return a.Bad
}

func (a *jsonText) value(v *vector, i int64) {
	if len(a.Out) > jsontext.MaxNested {
		panic(errLong)
	}
	v, i = v.find(i)
	if v.f.typ == typeNull || v.null(i) {
		a.Out = append(a.Out, "null"...)
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
		a.Out = append(a.Out, '{')
		a.Name(v.f.fields[member].name)
		a.value(v.fields[member], i)
		a.Out = append(a.Out, '}')
	default:
		if v.f.typ == typeInterval && v.f.kind == record.JSON {
			a.interval(v, i)
		} else {
			a.plain(v, i)
		}
	}
}

// maxElements is the largest number of elements in a text, because each takes at least two bytes.
const maxElements = jsontext.MaxNested / 2

func (a *jsonText) list(v *vector, from, to int64) {
	if to-from > maxElements {
		panic(errLong)
	}
	a.each('[', ']', from, to, func(i int64) { a.value(v, i) })
}

// each writes elements from to to-1, separated by commas.
func (a *jsonText) each(before, after byte, from, to int64, one func(i int64)) {
	a.Out = append(a.Out, before)
	for i := from; i < to; i++ {
		if i > from {
			a.Out = append(a.Out, ',')
		}
		one(i)
	}
	a.Out = append(a.Out, after)
}

func (a *jsonText) object(v *vector, i int64) {
	if v.f.twice != "" {
		a.Refuse(v.f.path, table.CodeType, fmt.Sprintf("two fields of a struct are named %q", v.f.twice))
	}
	a.each('{', '}', 0, int64(len(v.f.fields)), func(k int64) {
		a.Name(v.f.fields[k].name)
		a.value(v.fields[k], i)
	})
}

// mapping writes an object if the keys are strings, otherwise an array of pairs.
func (a *jsonText) mapping(v *vector, from, to int64) {
	pairs := v.fields[0]
	keys, others := pairs.fields[0], pairs.fields[1]
	if keys.f.kind != record.String {
		a.each('[', ']', from, to, func(i int64) {
			a.Out = append(a.Out, `{"key":`...)
			a.value(keys, i)
			a.Out = append(a.Out, `,"value":`...)
			a.value(others, i)
			a.Out = append(a.Out, '}')
		})
		return
	}
	first := len(a.Keys)
	a.each('{', '}', from, to, func(i int64) {
		at := len(a.Out)
		if a.value(keys, i); a.Out[at] != '"' {
			a.Refuse(keys.f.path, table.CodeType, "key of a map is null")
		}
		a.Key(at)
		a.value(others, i)
	})
	a.EndKeys(first, keys.f.path)
}

func (a *jsonText) interval(v *vector, i int64) {
	b := v.data[i*int64(v.f.width):]
	number := func(name string, n int64) {
		a.Name(name)
		a.Out = strconv.AppendInt(a.Out, n, 10)
	}
	one, two := int64(int32(binary.LittleEndian.Uint32(b))), int64(int32(binary.LittleEndian.Uint32(b[4:])))
	a.Out = append(a.Out, '{')
	if v.f.flavor == daysMillis {
		number("days", one)
		a.Out = append(a.Out, ',')
		number("milliseconds", two)
	} else {
		number("months", one)
		a.Out = append(a.Out, ',')
		number("days", two)
		a.Out = append(a.Out, ',')
		number("nanoseconds", int64(binary.LittleEndian.Uint64(b[8:])))
	}
	a.Out = append(a.Out, '}')
}

func (a *jsonText) plain(v *vector, i int64) {
	var d record.Datum
	if bad := a.scratch.scalar(&d, v, i); a.Bad == nil {
		a.Bad = bad
	}
	if len(a.Out)+len(d.Bytes) > jsontext.MaxNested {
		panic(errLong)
	}
	a.Scalar(v.f.path, &d, v.f.width == 4)
}
