package arrow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// body is a batch's data after the metadata, in memory or in a file.
type body struct {
	data []byte
	r    io.ReaderAt // nil if data is in memory
	at   int64
}

// loader makes vectors for a range of rows of a batch's fields and reads only the bytes that they need. It walks the
// schema: at is the current field, next its position in the batch's lists. It panics with a failure if data is damaged.
type loader struct {
	*batch
	body     body
	next     struct{ node, buffer, view int }
	at       *field // nil before the first field
	dicts    map[int64]*dictionary
	wanted   map[*field]bool         // wanted children of flattened structs; nil for all
	unpacked map[int][]byte          // decompressed buffers, by index
	hold     func(bytes int64) error // called before memory is allocated
}

// failure is the value of panics about damaged data. Callers of code that decodes data defer damaged.
type failure struct{ error }

// fail panics with an error about the field; f may be nil.
func (f *field) fail(err error) {
	if f != nil {
		err = fmt.Errorf("column %s: %w", f.path, err)
	}
	panic(failure{err})
}

func (f *field) failf(format string, a ...any) { f.fail(fmt.Errorf(format, a...)) }

func (l *loader) check(err error) {
	if err != nil {
		l.at.fail(err)
	}
}

func (l *loader) failf(format string, a ...any) { l.at.failf(format, a...) }

var errShort = errors.New("it has fewer values than its batch has rows")

// node returns the number of values and the number of nulls of the next field.
func (l *loader) node() (length, nulls int64) {
	i := 2 * l.next.node
	if i+2 > len(l.nodes) {
		l.failf("the batch has fewer fields than the schema")
	}
	l.next.node++
	if length, nulls = l.nodes[i], l.nodes[i+1]; length < 0 {
		l.failf("it has %d values", length)
	}
	return length, nulls
}

func (l *loader) buffer() int {
	if 2*l.next.buffer+2 > len(l.buffers) {
		l.failf("the batch has fewer buffers than the schema needs")
	}
	l.next.buffer++
	return l.next.buffer - 1
}

func (l *loader) empty(i int) bool { return l.buffers[2*i+1] == 0 }

// window returns the items from to from+count-1, of width bytes each, in buffer i.
func (l *loader) window(i int, from, count, width int64) []byte {
	if count == 0 || width == 0 {
		return nil
	}
	if from+count > math.MaxInt64/width {
		l.check(errShort)
	}
	from, n := from*width, count*width
	if l.codec != codecNone {
		all := l.unpack(i)
		if from+n > int64(len(all)) {
			l.check(errShort)
		}
		return all[from : from+n]
	}
	if from+n > l.buffers[2*i+1] {
		l.check(errShort)
	}
	return l.read(l.buffers[2*i]+from, n)
}

func (l *loader) read(from, n int64) []byte {
	if l.body.r == nil {
		if from+n > int64(len(l.body.data)) {
			l.check(io.ErrUnexpectedEOF)
		}
		return l.body.data[from : from+n]
	}
	l.check(l.hold(n))
	b := make([]byte, n)
	if k, err := l.body.r.ReadAt(b, l.body.at+from); k < len(b) {
		l.check(noEOF(err))
	}
	return b
}

// unpack decompresses the whole of buffer i. Later splits of the batch reuse the result.
func (l *loader) unpack(i int) []byte {
	if all, ok := l.unpacked[i]; ok || l.empty(i) {
		return all
	}
	all, size, err := unpackedSize(l.read(l.buffers[2*i], l.buffers[2*i+1]))
	l.check(err)
	if size >= 0 {
		l.check(l.hold(size))
		all, err = unpack(l.codec, all, size)
		l.check(err)
	}
	l.unpacked[i] = all
	return all
}

// buffersOf returns the number of f's own buffers, without those of child fields or the data buffers of views.
func (l *loader) buffersOf(f *field) int {
	if f.dict != nil {
		return 2
	}
	switch f.typ {
	case typeNull, typeRuns:
		return 0
	case typeStruct, typeFixedList:
		return 1
	case typeBinary, typeLargeBinary, typeText, typeLargeText, typeListView, typeLargeListView:
		return 3
	case typeUnion:
		n := 1
		if f.flavor == dense {
			n++
		}
		if l.version < version5 {
			n++
		}
		return n
	}
	return 2
}

func (l *loader) skip(f *field) {
	l.next.node++
	l.next.buffer += l.buffersOf(f)
	if f.dict != nil {
		return
	}
	if f.typ == typeBinaryView || f.typ == typeTextView {
		l.next.buffer += l.viewBuffers()
	}
	for _, c := range f.fields {
		l.skip(c)
	}
}

func (l *loader) viewBuffers() int {
	if l.next.view == len(l.views) {
		l.failf("the batch does not say how many buffers a column of views has")
	}
	l.next.view++
	return int(l.views[l.next.view-1])
}

// vector loads the values from to from+count-1 of f, which must be the next field.
func (l *loader) vector(f *field, from, count int64) *vector {
	length, nulls := l.node()
	if from > length || count > length-from {
		l.check(errShort)
	}
	v := &vector{f: f}
	if f.typ != typeNull && (f.typ != typeUnion || l.version < version5) && f.typ != typeRuns || f.dict != nil {
		l.validity(v, from, count, length, nulls)
	}
	if f.dict != nil {
		v.dict = l.dicts[f.dict.id]
		l.fixed(v, from, count, int64(f.dict.index.width))
	} else {
		l.values(v, from, count)
	}
	return v
}

func (l *loader) alone(f *field) (v *vector, err error) {
	defer damaged(&err)
	return l.vector(f, 0, l.rows), nil
}

// column is like vector, but errors name f.
func (l *loader) column(f *field, from, count int64) *vector {
	outer := l.at
	l.at = f
	v := l.vector(f, from, count)
	l.at = outer
	return v
}

func (l *loader) validity(v *vector, from, count, length, nulls int64) {
	i := l.buffer()
	if l.empty(i) && nulls > 0 {
		l.failf("%d of its %d values are null, but it does not say which", nulls, length)
	}
	if l.empty(i) || count == 0 {
		return
	}
	if v.valid = l.bitmap(i, from, count); nulls != 0 {
		return
	}
	for k := range count {
		if !v.valid.is(k) {
			l.failf("it says that no value is null, but some are")
		}
	}
}

func (l *loader) bitmap(i int, from, count int64) bitmap {
	return bitmap{l.window(i, from/8, (from+count+7)/8-from/8, 1), from % 8}
}

func (l *loader) values(v *vector, from, count int64) {
	f := v.f
	switch f.typ {
	case typeNull:
	case typeBool:
		if i := l.buffer(); count > 0 {
			v.bools = l.bitmap(i, from, count)
		}
	case typeBinary, typeText, typeLargeBinary, typeLargeText:
		start, n := l.offsets(v, from, count, f.typ == typeLargeBinary || f.typ == typeLargeText)
		v.base = []int64{start}
		v.data = l.window(l.buffer(), start, n, 1)
	case typeBinaryView, typeTextView:
		l.viewed(v, from, count)
	case typeList, typeLargeList, typeMap:
		start, n := l.offsets(v, from, count, f.typ == typeLargeList)
		l.child(v, f.fields[0], start, n)
	case typeListView, typeLargeListView:
		l.listViews(v, from, count, f.typ == typeLargeListView)
	case typeFixedList:
		size := int64(f.width)
		if size > 0 && from+count > math.MaxInt64/size {
			l.check(errShort)
		}
		l.child(v, f.fields[0], from*size, count*size)
	case typeStruct:
		for _, c := range f.fields {
			if f.opened && !c.opened && l.wanted != nil && !l.wanted[c] {
				l.skip(c)
				v.fields, v.base = append(v.fields, nil), append(v.base, 0)
			} else {
				l.child(v, c, from, count)
			}
		}
	case typeUnion:
		l.union(v, from, count)
	case typeRuns:
		l.runs(v, from, count)
	default:
		l.fixed(v, from, count, int64(f.width))
	}
}

// child loads values of v's next child field.
func (l *loader) child(v *vector, f *field, from, count int64) {
	v.fields, v.base = append(v.fields, l.column(f, from, count)), append(v.base, from)
}

func (l *loader) fixed(v *vector, from, count, width int64) {
	v.data = l.window(l.buffer(), from, count, width)
}

// offsets loads the bounds of values. It returns the start of the first and the total length, in bytes or elements.
func (l *loader) offsets(v *vector, from, count int64, wide bool) (start, n int64) {
	i := l.buffer()
	if count == 0 {
		return 0, 0
	}
	v.offsets = l.integers(i, from, count+1, wide)
	start = v.offsets.at(0)
	last := start
	for k := range count + 1 {
		at := v.offsets.at(k)
		if at < last || at < 0 {
			l.failf("its value %d ends before it begins", from+k-1)
		}
		last = at
	}
	return start, last - start
}

func (l *loader) integers(i int, from, count int64, wide bool) integers {
	width := int64(4)
	if wide {
		width = 8
	}
	return integers{b: l.window(i, from, count, width), wide: wide}
}

// reach is the range of a buffer or field that is used.
type reach struct{ from, to int64 }

func (r *reach) add(from, n int64) {
	if n == 0 {
		return
	}
	if r.to == 0 {
		r.from = from
	}
	r.from, r.to = min(r.from, from), max(r.to, from+n)
}

func (l *loader) viewed(v *vector, from, count int64) {
	l.fixed(v, from, count, 16)
	used := make([]reach, l.viewBuffers())
	for k := range count {
		if v.null(k) {
			continue
		}
		size, buffer, at := view(v.data[16*k:])
		if size < 0 || size > inlined && (buffer < 0 || int(buffer) >= len(used) || at < 0) {
			l.failf("its value %d refers to no buffer", from+k)
		}
		if size > inlined {
			used[buffer].add(int64(at), int64(size))
		}
	}
	for _, r := range used {
		v.views, v.base = append(v.views, l.window(l.buffer(), r.from, r.to-r.from, 1)), append(v.base, r.from)
	}
}

// inlined is the size of the largest value that is stored in its view.
const inlined = 12

// view decodes a view into the size of its value, the index of its buffer, and its offset in that buffer.
func view(b []byte) (size, buffer, at int32) {
	word := func(i int) int32 { return int32(binary.LittleEndian.Uint32(b[i:])) }
	return word(0), word(8), word(12)
}

func (l *loader) listViews(v *vector, from, count int64, wide bool) {
	v.offsets = l.integers(l.buffer(), from, count, wide)
	v.sizes = l.integers(l.buffer(), from, count, wide)
	var used reach
	for k := range count {
		if v.null(k) {
			continue
		}
		at, n := v.offsets.at(k), v.sizes.at(k)
		if at < 0 || n < 0 || at > math.MaxInt64-n {
			l.failf("its value %d has %d elements at the invalid offset %d", from+k, n, at)
		}
		used.add(at, n)
	}
	l.child(v, v.f.fields[0], used.from, used.to-used.from)
}

func (l *loader) union(v *vector, from, count int64) {
	f := v.f
	l.fixed(v, from, count, 1)
	used := make([]reach, len(f.fields))
	if f.flavor == dense {
		v.offsets = l.integers(l.buffer(), from, count, false)
	}
	for k := range count {
		member, ok := f.codes[int8(v.data[k])]
		if !ok && !v.null(k) {
			l.failf("its value %d is of type %d, which the union does not have", from+k, int8(v.data[k]))
		}
		if f.flavor != dense || !ok {
			continue
		}
		at := v.offsets.at(k)
		if at < 0 {
			l.failf("its value %d has the invalid offset %d", from+k, at)
		}
		used[member].add(at, 1)
	}
	for i, c := range f.fields {
		if f.flavor != dense {
			used[i] = reach{from, from + count}
		}
		l.child(v, c, used[i].from, used[i].to-used[i].from)
	}
}

// runs loads run-end encoded values. It always reads all run ends.
func (l *loader) runs(v *vector, from, count int64) {
	if 2*l.next.node+2 > len(l.nodes) {
		l.check(errShort)
	}
	ends := l.column(v.f.fields[0], 0, l.nodes[2*l.next.node])
	n := int64(len(ends.data)) / int64(ends.f.width)
	var used reach
	last := int64(0)
	for k := range n {
		end := ends.integer(k, ends.f)
		if end <= last || ends.null(k) {
			l.failf("its runs are not in order")
		}
		if last < from+count && end > from {
			used.add(k, 1)
		}
		last = end
	}
	if last < from+count {
		l.check(errShort)
	}
	v.first = from
	v.fields, v.base = append(v.fields, ends), append(v.base, 0)
	l.child(v, v.f.fields[1], used.from, used.to-used.from)
}
