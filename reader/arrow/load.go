package arrow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// body is the bytes after the metadata of a batch: in memory, or in a file.
type body struct {
	data []byte
	r    io.ReaderAt // nil if they are in memory
	at   int64
}

// loader makes vectors of the fields of one batch, a range of rows of each. It reads what they need and nothing else. It walks the schema:
// next is where it has come to in the lists of the batch.
type loader struct {
	*batch
	body     body
	next     struct{ node, buffer, view int }
	dicts    map[int64]*dictionary
	wanted   map[*field]bool         // fields of structs whose fields are columns; nil is all
	unpacked map[int][]byte          // buffers that were compressed
	hold     func(bytes int64) error // is told of memory before it is taken
}

var errShort = errors.New("it has fewer values than its batch has rows")

// node returns the length of the next field and how many of its values are null.
func (l *loader) node() (length, nulls int64, err error) {
	i := 2 * l.next.node
	if i+2 > len(l.nodes) {
		return 0, 0, errors.New("the batch has fewer fields than the schema")
	}
	l.next.node++
	if length, nulls = l.nodes[i], l.nodes[i+1]; length < 0 {
		return 0, 0, fmt.Errorf("it has %d values", length)
	}
	return length, nulls, nil
}

// buffer returns the next buffer's number.
func (l *loader) buffer() (int, error) {
	if 2*l.next.buffer+2 > len(l.buffers) {
		return 0, errors.New("the batch has fewer buffers than the schema needs")
	}
	l.next.buffer++
	return l.next.buffer - 1, nil
}

// empty reports whether a buffer has no bytes.
func (l *loader) empty(i int) bool { return l.buffers[2*i+1] == 0 }

// window returns count items of a buffer from one on, each of width bytes.
func (l *loader) window(i int, from, count, width int64) ([]byte, error) {
	if count == 0 || width == 0 {
		return nil, nil
	}
	if from+count > math.MaxInt64/width {
		return nil, errShort
	}
	from, n := from*width, count*width
	if l.codec != codecNone {
		all, err := l.unpack(i)
		if err != nil {
			return nil, err
		}
		if from+n > int64(len(all)) {
			return nil, errShort
		}
		return all[from : from+n], nil
	}
	if from+n > l.buffers[2*i+1] {
		return nil, errShort
	}
	return l.read(l.buffers[2*i]+from, n)
}

// read returns bytes of the body.
func (l *loader) read(from, n int64) ([]byte, error) {
	if l.body.r == nil {
		if from+n > int64(len(l.body.data)) {
			return nil, io.ErrUnexpectedEOF
		}
		return l.body.data[from : from+n], nil
	}
	if err := l.hold(n); err != nil {
		return nil, err
	}
	b := make([]byte, n)
	if k, err := l.body.r.ReadAt(b, l.body.at+from); k < len(b) {
		return nil, noEOF(err)
	}
	return b, nil
}

// unpack returns all bytes of a compressed buffer, which are kept for later ranges of the batch.
func (l *loader) unpack(i int) ([]byte, error) {
	if all, ok := l.unpacked[i]; ok || l.empty(i) {
		return all, nil
	}
	raw, err := l.read(l.buffers[2*i], l.buffers[2*i+1])
	if err != nil {
		return nil, err
	}
	all, size, err := unpackedSize(raw)
	if err != nil {
		return nil, err
	}
	if size >= 0 {
		if err := l.hold(size); err != nil {
			return nil, err
		}
		if all, err = unpack(l.codec, all, size); err != nil {
			return nil, err
		}
	}
	l.unpacked[i] = all
	return all, nil
}

// buffersOf is how many buffers a field has, without those of data of views and of its fields.
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

// skip passes over a field.
func (l *loader) skip(f *field) error {
	l.next.node++
	l.next.buffer += l.buffersOf(f)
	if f.dict != nil {
		return nil
	}
	if f.typ == typeBinaryView || f.typ == typeTextView {
		n, err := l.viewBuffers()
		if err != nil {
			return err
		}
		l.next.buffer += n
	}
	for _, c := range f.fields {
		if err := l.skip(c); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) viewBuffers() (int, error) {
	if l.next.view == len(l.views) {
		return 0, errors.New("the batch does not say how many buffers a column of views has")
	}
	l.next.view++
	return int(l.views[l.next.view-1]), nil
}

// finished checks that the batch has nothing that the schema does not.
func (l *loader) finished() error {
	if 2*l.next.node != len(l.nodes) || 2*l.next.buffer != len(l.buffers) || l.next.view != len(l.views) {
		return errors.New("the batch has more fields or buffers than the schema")
	}
	return nil
}

// vector loads count values of the next field, which is f, from one on.
func (l *loader) vector(f *field, from, count int64) (*vector, error) {
	length, nulls, err := l.node()
	if err != nil {
		return nil, err
	}
	if from > length || count > length-from {
		return nil, errShort
	}
	v := &vector{f: f}
	if f.typ != typeNull && (f.typ != typeUnion || l.version < version5) && f.typ != typeRuns || f.dict != nil {
		if err := l.validity(v, from, count, length, nulls); err != nil {
			return nil, err
		}
	}
	if f.dict != nil {
		v.dict = l.dicts[f.dict.id]
		return v, l.fixed(v, from, count, int64(f.dict.index.width))
	}
	return v, l.values(v, from, count)
}

// validity loads the bits that say which values are there.
func (l *loader) validity(v *vector, from, count, length, nulls int64) error {
	i, err := l.buffer()
	if err != nil {
		return err
	}
	if l.empty(i) {
		if nulls > 0 {
			return fmt.Errorf("%d of its %d values are null, it does not say which", nulls, length)
		}
		return nil
	}
	if count == 0 {
		return nil
	}
	v.valid.bits, err = l.window(i, from/8, (from+count+7)/8-from/8, 1)
	v.valid.first = from % 8
	if err != nil || nulls != 0 {
		return err
	}
	for k := range count {
		if !v.valid.is(k) {
			return errors.New("it says that no value is null, but some are")
		}
	}
	return nil
}

func (l *loader) values(v *vector, from, count int64) (err error) {
	f := v.f
	switch f.typ {
	case typeNull:
	case typeBool:
		i, err := l.buffer()
		if err != nil || count == 0 {
			return err
		}
		v.bools.first = from % 8
		v.bools.bits, err = l.window(i, from/8, (from+count+7)/8-from/8, 1)
		return err
	case typeBinary, typeText, typeLargeBinary, typeLargeText:
		start, n, err := l.offsets(v, from, count, f.typ == typeLargeBinary || f.typ == typeLargeText)
		if err != nil {
			return err
		}
		i, err := l.buffer()
		if err != nil {
			return err
		}
		v.base = []int64{start}
		v.data, err = l.window(i, start, n, 1)
		return err
	case typeBinaryView, typeTextView:
		return l.viewed(v, from, count)
	case typeList, typeLargeList, typeMap:
		start, n, err := l.offsets(v, from, count, f.typ == typeLargeList)
		if err != nil {
			return err
		}
		return l.child(v, f.fields[0], start, n)
	case typeListView, typeLargeListView:
		return l.listViews(v, from, count, f.typ == typeLargeListView)
	case typeFixedList:
		size := int64(f.width)
		if size > 0 && from+count > math.MaxInt64/size {
			return errShort
		}
		return l.child(v, f.fields[0], from*size, count*size)
	case typeStruct:
		for _, c := range f.fields {
			if f.opened && !c.opened && l.wanted != nil && !l.wanted[c] {
				if err := l.skip(c); err != nil {
					return err
				}
				v.fields, v.base = append(v.fields, nil), append(v.base, 0)
				continue
			}
			if err := l.child(v, c, from, count); err != nil {
				return err
			}
		}
	case typeUnion:
		return l.union(v, from, count)
	case typeRuns:
		return l.runs(v, from, count)
	default:
		return l.fixed(v, from, count, int64(f.width))
	}
	return nil
}

// child loads values of the next field, which is one of v's.
func (l *loader) child(v *vector, f *field, from, count int64) error {
	c, err := l.vector(f, from, count)
	if err != nil {
		return within(f, err)
	}
	v.fields, v.base = append(v.fields, c), append(v.base, from)
	return nil
}

func (l *loader) fixed(v *vector, from, count, width int64) error {
	i, err := l.buffer()
	if err == nil {
		v.data, err = l.window(i, from, count, width)
	}
	return err
}

// offsets loads where values begin and end, and returns where the first one begins and how many bytes or elements they have together.
func (l *loader) offsets(v *vector, from, count int64, wide bool) (start, n int64, err error) {
	i, err := l.buffer()
	if err != nil || count == 0 {
		return 0, 0, err
	}
	if v.offsets, err = l.integers(i, from, count+1, wide); err != nil {
		return 0, 0, err
	}
	start = v.offsets.at(0)
	last := start
	for k := range count + 1 {
		at := v.offsets.at(k)
		if at < last || at < 0 {
			return 0, 0, fmt.Errorf("its value %d ends before it begins", from+k-1)
		}
		last = at
	}
	return start, last - start, nil
}

func (l *loader) integers(i int, from, count int64, wide bool) (integers, error) {
	width := int64(4)
	if wide {
		width = 8
	}
	b, err := l.window(i, from, count, width)
	return integers{b: b, wide: wide}, err
}

// reach is the part of a buffer or of a field that values use.
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

func (l *loader) viewed(v *vector, from, count int64) error {
	if err := l.fixed(v, from, count, 16); err != nil {
		return err
	}
	n, err := l.viewBuffers()
	if err != nil {
		return err
	}
	used := make([]reach, n)
	for k := range count {
		if v.null(k) {
			continue
		}
		size, buffer, at := view(v.data[16*k:])
		if size < 0 || size > inlined && (buffer < 0 || int(buffer) >= n || at < 0) {
			return fmt.Errorf("its value %d is in no buffer", from+k)
		}
		if size > inlined {
			used[buffer].add(int64(at), int64(size))
		}
	}
	for k := range used {
		i, err := l.buffer()
		if err != nil {
			return err
		}
		b, err := l.window(i, used[k].from, used[k].to-used[k].from, 1)
		if err != nil {
			return err
		}
		v.views, v.base = append(v.views, b), append(v.base, used[k].from)
	}
	return nil
}

// inlined is how long a view is at most that has its bytes in it.
const inlined = 12

// view reads a view: its length, the number of the buffer that has it, where it begins there.
func view(b []byte) (size, buffer, at int32) {
	word := func(i int) int32 { return int32(binary.LittleEndian.Uint32(b[i:])) }
	return word(0), word(8), word(12)
}

func (l *loader) listViews(v *vector, from, count int64, wide bool) error {
	for _, to := range []*integers{&v.offsets, &v.sizes} {
		i, err := l.buffer()
		if err != nil {
			return err
		}
		if *to, err = l.integers(i, from, count, wide); err != nil {
			return err
		}
	}
	var used reach
	for k := range count {
		if v.null(k) {
			continue
		}
		at, n := v.offsets.at(k), v.sizes.at(k)
		if at < 0 || n < 0 || at > math.MaxInt64-n {
			return fmt.Errorf("its value %d has %d elements from %d on", from+k, n, at)
		}
		used.add(at, n)
	}
	return l.child(v, v.f.fields[0], used.from, used.to-used.from)
}

func (l *loader) union(v *vector, from, count int64) error {
	f := v.f
	if err := l.fixed(v, from, count, 1); err != nil {
		return err
	}
	used := make([]reach, len(f.fields))
	if f.flavor == dense {
		i, err := l.buffer()
		if err != nil {
			return err
		}
		if v.offsets, err = l.integers(i, from, count, false); err != nil {
			return err
		}
	}
	for k := range count {
		member, ok := f.codes[int8(v.data[k])]
		if !ok && !v.null(k) {
			return fmt.Errorf("its value %d is of type %d, which the union does not have", from+k, int8(v.data[k]))
		}
		if f.flavor != dense || !ok {
			continue
		}
		at := v.offsets.at(k)
		if at < 0 {
			return fmt.Errorf("its value %d is at %d", from+k, at)
		}
		used[member].add(at, 1)
	}
	for i, c := range f.fields {
		if f.flavor != dense {
			used[i] = reach{from, from + count}
		}
		if err := l.child(v, c, used[i].from, used[i].to-used[i].from); err != nil {
			return err
		}
	}
	return nil
}

// runs loads values that are said once for a run of rows. All ends of runs are read.
func (l *loader) runs(v *vector, from, count int64) error {
	if 2*l.next.node+2 > len(l.nodes) {
		return errShort
	}
	ends, err := l.vector(v.f.fields[0], 0, l.nodes[2*l.next.node])
	if err != nil {
		return within(v.f.fields[0], err)
	}
	n := int64(len(ends.data)) / int64(ends.f.width)
	var used reach
	last := int64(0)
	for k := range n {
		end := ends.integer(k, ends.f)
		if end <= last || ends.null(k) {
			return errors.New("its runs are not in order")
		}
		if last < from+count && end > from {
			used.add(k, 1)
		}
		last = end
	}
	if last < from+count {
		return errShort
	}
	v.first = from
	v.fields, v.base = append(v.fields, ends), append(v.base, 0)
	return l.child(v, v.f.fields[1], used.from, used.to-used.from)
}

func within(f *field, err error) error {
	var known *columnError
	if errors.As(err, &known) {
		return err
	}
	return &columnError{f.path, err}
}

// columnError says which column an error is about.
type columnError struct {
	path string
	err  error
}

func (e *columnError) Error() string { return "column " + e.path + ": " + e.err.Error() }
func (e *columnError) Unwrap() error { return e.err }
