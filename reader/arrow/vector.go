package arrow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/jsontext"
	"example.com/tsimport/reader/record"
)

// vector holds values of a field, counted from 0. The type of the field determines which members are used.
type vector struct {
	f       *field
	valid   bitmap
	bools   bitmap
	data    []byte // fixed-width values, bytes of strings, views, or type codes of unions
	offsets integers
	sizes   integers
	views   [][]byte // data buffers that views refer to
	fields  []*vector
	base    []int64 // index of the first loaded item of data, or of each of views or fields
	first   int64   // for runs: the row of value 0
	dict    *dictionary
}

// bitmap holds a bit for each value. If bits is nil, all are true.
type bitmap struct {
	bits  []byte
	first int64 // number of bits before value 0
}

func (m bitmap) is(i int64) bool {
	i += m.first
	return m.bits == nil || m.bits[i/8]>>(i%8)&1 == 1
}

// integers is a list of signed 32-bit or 64-bit integers.
type integers struct {
	b    []byte
	wide bool
}

func (n integers) at(i int64) int64 {
	if n.wide {
		return int64(binary.LittleEndian.Uint64(n.b[8*i:]))
	}
	return int64(int32(binary.LittleEndian.Uint32(n.b[4*i:])))
}

func (v *vector) null(i int64) bool { return !v.valid.is(i) }

// integer returns value i as an integer with f's width and signedness.
func (v *vector) integer(i int64, f *field) int64 {
	b := v.data[i*int64(f.width):]
	switch {
	case f.width == 1 && f.flavor == signed, f.flavor == byteBoolean:
		return int64(int8(b[0]))
	case f.width == 1:
		return int64(b[0])
	case f.width == 2 && f.flavor == signed:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case f.width == 2:
		return int64(binary.LittleEndian.Uint16(b))
	case f.width == 4 && f.kind == record.Integer && f.flavor == plain:
		return int64(binary.LittleEndian.Uint32(b))
	case f.width == 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

// find follows dictionaries and runs to the vector that holds value i, and returns that vector and the index in it.
func (v *vector) find(i int64) (*vector, int64) {
	for {
		switch {
		case v.f.dict != nil:
			if v.null(i) {
				return v, i
			}
			at := v.integer(i, v.f.dict.index)
			chunk, k := v.dict.find(at)
			if chunk == nil {
				v.f.failf("its dictionary has no value %d", at)
			}
			if chunk.null(k) || chunk.f.typ != typeRuns {
				return chunk, k
			}
			v, i = chunk, k
		case v.f.typ == typeRuns:
			ends := v.fields[0]
			n := len(ends.data) / ends.f.width
			row := v.first + i
			run := int64(sort.Search(n, func(k int) bool { return ends.integer(int64(k), ends.f) > row }))
			v, i = v.fields[1], run-v.base[1]
		default:
			return v, i
		}
	}
}

// dictionary holds the values of a dictionary. It never changes: a delta makes a new one.
type dictionary struct {
	chunks []*vector
	ends   []int64 // number of values up to the end of each chunk
	bytes  int64
}

func (d *dictionary) find(i int64) (*vector, int64) {
	if d == nil || i < 0 {
		return nil, 0
	}
	c := sort.Search(len(d.ends), func(c int) bool { return d.ends[c] > i })
	if c == len(d.chunks) {
		return nil, 0
	}
	if c > 0 {
		i -= d.ends[c-1]
	}
	return d.chunks[c], i
}

func (d *dictionary) with(v *vector, n, bytes int64) *dictionary {
	if d == nil {
		d = &dictionary{}
	}
	last := int64(0)
	if len(d.ends) > 0 {
		last = d.ends[len(d.ends)-1]
	}
	return &dictionary{append(slices.Clone(d.chunks), v), append(slices.Clone(d.ends), last+n), d.bytes + bytes}
}

// values sets datums to values of vectors. scratch holds bytes that the file does not have in this form.
type values struct {
	scratch scratch
	text    jsonText
}

type scratch []byte

// datum sets d to a value. Its bytes are valid until the next call. A refused value stays as stored, for the rejects.
func (s *values) datum(d *record.Datum, v *vector, i int64) *table.Reason {
	v, i = v.find(i)
	if v.f.typ == typeNull || v.null(i) {
		*d = record.Datum{}
		return nil
	}
	if v.f.kind == record.JSON {
		return s.text.datum(d, v, i)
	}
	return s.scratch.scalar(d, v, i)
}

// scalar sets d to a value that is neither null nor nested.
func (s *scratch) scalar(d *record.Datum, v *vector, i int64) *table.Reason {
	f := v.f
	*d = record.Datum{Kind: f.kind}
	switch f.typ {
	case typeBool:
		if v.bools.is(i) {
			d.Int = 1
		}
	case typeInt, typeInterval, typeDuration:
		if d.Int = v.integer(i, f); f.flavor == byteBoolean && d.Int != 0 {
			d.Int = 1
		}
	case typeFloat:
		d.Double = v.double(i)
	case typeDecimal:
		*s = append((*s)[:0], v.data[i*int64(f.width):(i+1)*int64(f.width)]...)
		slices.Reverse(*s)
		d.Scale, d.Bytes = f.scale, *s
	case typeDate, typeTime, typeTimestamp:
		return v.time(d, i)
	default:
		if d.Bytes = v.bytes(i); f.flavor == uuid {
			*s = record.AppendUUID((*s)[:0], d.Bytes)
			d.Bytes = *s
		}
	}
	return nil
}

func (v *vector) double(i int64) float64 {
	b := v.data[i*int64(v.f.width):]
	switch v.f.width {
	case 2:
		return jsontext.Half(binary.LittleEndian.Uint16(b))
	case 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

// Limits of times.
const (
	dayMillis  = 86_400_000
	daySeconds = 86_400
	maxSeconds = 1 << 53 // in seconds since 1970, 285 million years: the range of 64-bit milliseconds
)

// time sets d to a date, time of day or timestamp. It refuses values that cannot be represented exactly.
func (v *vector) time(d *record.Datum, i int64) *table.Reason {
	f := v.f
	n := v.integer(i, f)
	d.Int, d.Unit, d.Local = n, f.unit, f.local
	wrong := ""
	switch {
	case f.typ == typeDate && f.width == 8:
		if d.Int, d.Unit = n/dayMillis, 0; n%dayMillis != 0 {
			wrong = "a date: its milliseconds are not whole days"
		}
	case f.typ == typeTime && (n < 0 || n >= daySeconds*int64(f.unit)):
		wrong = fmt.Sprintf("a time of day, which has %d units of a second", f.unit)
	case f.typ == typeTimestamp && f.unit == record.Seconds && (n > maxSeconds || n < -maxSeconds):
		wrong = "within 285 million years of 1970"
	}
	if wrong == "" {
		return nil
	}
	*d = record.Datum{Kind: record.Integer, Int: n}
	return &table.Reason{Column: f.path, Code: table.CodeRange, Message: "the value is not " + wrong,
		Value: strconv.FormatInt(n, 10)}
}

var errBytes = errors.New("the bytes of a value differ from its prefix in the view")

func (v *vector) bytes(i int64) []byte {
	switch v.f.typ {
	case typeFixedBinary:
		w := int64(v.f.width)
		return v.data[i*w : (i+1)*w]
	case typeBinaryView, typeTextView:
		own := v.data[16*i:]
		size, buffer, at := view(own)
		if size <= inlined {
			return own[4 : 4+size]
		}
		from := int64(at) - v.base[buffer]
		b := v.views[buffer][from : from+int64(size)]
		if string(b[:4]) != string(own[4:8]) {
			v.f.fail(errBytes)
		}
		return b
	}
	return v.data[v.offsets.at(i)-v.base[0] : v.offsets.at(i+1)-v.base[0]]
}
