package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The encodings, with the format's numbers.
const (
	encPlain           = 0
	encPlainDictionary = 2
	encRLE             = 3
	encBitPacked       = 4
	encDelta           = 5
	encDeltaLength     = 6
	encDeltaByteArray  = 7
	encDictionary      = 8
	encSplit           = 9
)

// batch is the number of values decoded together. They fit in the cache, and a false count in a header costs little.
const batch = 512

var (
	errBeforeDictionary = errors.New("page precedes the dictionary that it uses")
	errByteArray        = errors.New("value extends beyond its page")
)

// values decodes the non-null values of a page, batch by batch. Numbers are in ints (a FLOAT or DOUBLE as its bits),
// all other values in bins, which point into the page, its dictionary, or scratch. It has many fields because each
// encoding needs some of its own; all memory is reused.
type values struct {
	physical physical
	length   int // size of FIXED_LEN_BYTE_ARRAY values
	ints     [batch]int64
	bins     [][]byte // nil if the type is numeric

	encoding int32
	b        []byte
	body     int    // size of the values in the page, in bytes
	bit      uint64 // for booleans: position of the next bit
	stride   int    // for BYTE_STREAM_SPLIT: number of values in the page
	at       int    // for BYTE_STREAM_SPLIT: index of the next value
	levels   hybrid // for dictionary indexes and booleans
	indices  [batch]uint32
	lengths  delta
	prefixes delta
	scratch  []byte
	last     []byte // for DELTA_BYTE_ARRAY: the previous value
	kept     []byte // memory of last between batches

	writer writer // program that wrote the file

	dictionary bool // whether there is a dictionary
	dictInts   []int64
	dictBins   [][]byte
}

func (v *values) init(l *leaf) {
	v.physical, v.length = l.physical, l.length
	if !l.numeric() {
		v.bins = make([][]byte, batch)
	}
}

// open begins a page. An empty body is valid if no value is taken.
func (v *values) open(encoding int32, b []byte) error {
	v.encoding, v.b, v.body, v.bit, v.at, v.stride = encoding, b, len(b), 0, 0, 0
	switch encoding {
	case encPlain:
		return nil
	case encDictionary, encPlainDictionary:
		v.encoding = encDictionary
		if !v.dictionary {
			return errBeforeDictionary
		}
		if len(b) == 0 {
			return v.levels.reset(nil, 1)
		}
		err := v.levels.reset(b[1:], uint(b[0]))
		// Some writers omit the runs if the dictionary has a single value.
		v.levels.sole = len(b) == 1 && b[0] == 0 && v.dictionarySize() == 1
		return err
	case encRLE:
		if v.physical != physBoolean {
			break
		}
		if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
			return v.levels.reset(nil, 1)
		}
		size := 4 + binary.LittleEndian.Uint32(b)
		v.b = b[size:]
		return v.levels.reset(b[4:size], 1)
	case encDelta:
		if v.physical != physInt32 && v.physical != physInt64 {
			break
		}
		return v.openDelta(&v.lengths)
	case encDeltaLength, encDeltaByteArray:
		if encoding == encDeltaLength && v.physical != physByteArray ||
			encoding == encDeltaByteArray && v.physical != physByteArray && v.physical != physFixed {
			break
		}
		return v.openDeltaBytes()
	case encSplit:
		width := v.width()
		if width <= 0 {
			break
		}
		if len(b)%width != 0 {
			return fmt.Errorf("%d bytes are not a multiple of the value size %d", len(b), width)
		}
		v.stride = len(b) / width
		return nil
	}
	return fmt.Errorf("encoding %d of %s is not supported", encoding, v.physical)
}

func (v *values) openDelta(d *delta) error {
	if len(v.b) == 0 {
		*d = delta{}
		return nil
	}
	return d.reset(v.b)
}

func (v *values) openDeltaBytes() (err error) {
	v.last = v.last[:0]
	v.prefixes = delta{}
	if v.encoding == encDeltaByteArray {
		if err = v.openDelta(&v.prefixes); err == nil {
			d := v.prefixes
			v.b, err = d.rest()
		}
	}
	if err == nil {
		err = v.openDelta(&v.lengths)
	}
	if err == nil {
		d := v.lengths
		v.b, err = d.rest()
	}
	return err
}

// finish checks that nothing follows the last value of the page.
func (v *values) finish() error {
	left := false
	switch v.encoding {
	case encDictionary:
		return v.levels.finish(v.writer.group())
	case encRLE:
		if err := v.levels.finish(v.writer.group()); err != nil {
			return err
		}
		left = len(v.b) > 0
	case encDelta:
		if v.lengths.left > 0 {
			return errLeft
		}
		rest, err := v.lengths.rest()
		if err != nil {
			return err
		}
		left = len(rest) > 0
	case encDeltaLength, encDeltaByteArray:
		left = v.lengths.left > 0 || v.prefixes.left > 0 || len(v.b) > 0
	case encSplit:
		left = v.at < v.stride
	default:
		rest := v.b
		if v.physical == physBoolean {
			rest = rest[min((v.bit+7)/8, uint64(len(rest))):]
		}
		left = len(rest) > 0 && !v.writer.padding(rest)
	}
	if left {
		return errLeft
	}
	return nil
}

func (v *values) dictionarySize() int { return max(len(v.dictInts), len(v.dictBins)) }

// width returns the size of each value in bytes, or 0 if sizes differ.
func (v *values) width() int {
	switch v.physical {
	case physInt32, physFloat:
		return 4
	case physInt64, physDouble:
		return 8
	case physInt96:
		return 12
	case physFixed:
		return v.length
	}
	return 0
}

// batch returns the number of values to take together. It is small if each value may repeat all of the previous one.
func (v *values) batch() int {
	if v.encoding == encDeltaByteArray {
		return min(max(deltaScratch/max(v.body, 1), 1), batch/8)
	}
	return batch
}

// deltaScratch limits the memory of a batch of values that repeat one another. No value is longer than its page.
const deltaScratch = 4 << 20

// forget frees the memory of the page and its values.
func (v *values) forget() {
	v.b, v.scratch, v.last, v.kept, v.levels, v.lengths, v.prefixes = nil, nil, nil, nil, hybrid{}, delta{}, delta{}
	clear(v.bins)
}

// take decodes the next n values, at most batch.
func (v *values) take(n int) error {
	if n == 0 {
		return nil
	}
	switch v.encoding {
	case encDictionary:
		return v.takeIndices(n)
	case encRLE:
		if err := v.levels.read(v.indices[:n]); err != nil {
			return err
		}
		for i, x := range v.indices[:n] {
			v.ints[i] = int64(x)
		}
		return nil
	case encDelta:
		if err := v.lengths.read(v.ints[:n]); err != nil || v.physical == physInt64 {
			return err
		}
		for i, x := range v.ints[:n] {
			v.ints[i] = int64(int32(x)) // differences of 32-bit numbers wrap around
		}
		return nil
	case encDeltaLength, encDeltaByteArray:
		return v.takeDeltaBytes(n)
	case encSplit:
		return v.takeSplit(n)
	}
	if v.bins != nil {
		rest, err := plainBins(v.bins[:n], v.b, v.width(), v.physical == physByteArray)
		v.b = rest
		return err
	}
	if v.physical == physBoolean {
		if v.bit+uint64(n) > uint64(len(v.b))*8 {
			return errShort
		}
		for i := range v.ints[:n] {
			v.ints[i] = int64(v.b[v.bit/8] >> (v.bit % 8) & 1)
			v.bit++
		}
		return nil
	}
	rest, err := plainInts(v.ints[:n], v.b, v.width())
	v.b = rest
	return err
}

func plainInts(dst []int64, b []byte, width int) ([]byte, error) {
	n := len(dst) * width
	if len(b) < n {
		return b, errShort
	}
	if width == 4 {
		for i := range dst {
			dst[i] = int64(int32(binary.LittleEndian.Uint32(b[4*i:])))
		}
	} else {
		for i := range dst {
			dst[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
		}
	}
	return b[n:], nil
}

func plainBins(dst [][]byte, b []byte, width int, prefixed bool) ([]byte, error) {
	for i := range dst {
		n := width
		if prefixed {
			if len(b) < 4 {
				return b, errShort
			}
			size := binary.LittleEndian.Uint32(b)
			if b = b[4:]; uint64(size) > uint64(len(b)) {
				return b, errByteArray
			}
			n = int(size)
		}
		if len(b) < n {
			return b, errShort
		}
		dst[i], b = b[:n:n], b[n:]
	}
	return b, nil
}

func (v *values) takeIndices(n int) error {
	if err := v.levels.read(v.indices[:n]); err != nil {
		return err
	}
	size := uint32(v.dictionarySize())
	for i, x := range v.indices[:n] {
		if x >= size {
			return fmt.Errorf("index %d goes beyond the dictionary of %d values", x, size)
		}
		if v.bins != nil {
			v.bins[i] = v.dictBins[x]
		} else {
			v.ints[i] = v.dictInts[x]
		}
	}
	return nil
}

func (v *values) takeDeltaBytes(n int) error {
	v.scratch = v.scratch[:0]
	var prefixes [batch]int64
	if v.encoding == encDeltaByteArray {
		if err := v.prefixes.read(prefixes[:n]); err != nil {
			return err
		}
	}
	if err := v.lengths.read(v.ints[:n]); err != nil {
		return err
	}
	for i, size := range v.ints[:n] {
		size = int64(int32(size)) // differences of 32-bit numbers wrap around
		prefix := int64(int32(prefixes[i]))
		if size < 0 || size > int64(len(v.b)) || prefix < 0 || prefix > int64(len(v.last)) {
			return errByteArray
		}
		suffix := v.b[:size:size]
		v.b = v.b[size:]
		if prefix > 0 {
			start := len(v.scratch)
			v.scratch = append(append(v.scratch, v.last[:prefix]...), suffix...)
			suffix = v.scratch[start:len(v.scratch):len(v.scratch)]
		}
		if v.physical == physFixed && len(suffix) != v.length {
			return fmt.Errorf("value of %d bytes in a column of %d-byte values", len(suffix), v.length)
		}
		v.bins[i], v.last = suffix, suffix
	}
	if v.encoding == encDeltaByteArray {
		v.kept = append(v.kept[:0], v.last...) // a copy, because scratch is reused
		v.last = v.kept
	}
	return nil
}

func (v *values) takeSplit(n int) error {
	if v.at+n > v.stride {
		return errShort
	}
	width := v.width()
	if v.bins != nil {
		v.scratch = grow(v.scratch, n*width)[:n*width]
	}
	for i := range n {
		if v.bins != nil {
			value := v.scratch[i*width : (i+1)*width : (i+1)*width]
			for k := range value {
				value[k] = v.b[k*v.stride+v.at]
			}
			v.bins[i] = value
		} else {
			u := uint64(0)
			for k := range width {
				u |= uint64(v.b[k*v.stride+v.at]) << (8 * k)
			}
			if width == 4 {
				u = uint64(int32(u))
			}
			v.ints[i] = int64(u)
		}
		v.at++
	}
	return nil
}

// setDictionary decodes the values of a dictionary page.
func (v *values) setDictionary(encoding int32, n int, b []byte) error {
	switch {
	case encoding != encPlain && encoding != encPlainDictionary:
		return fmt.Errorf("encoding %d of a dictionary is not supported", encoding)
	case v.physical == physBoolean:
		return errors.New("a dictionary of booleans is not allowed")
	case n < 0 || n > len(b)/max(1, v.width()) || v.physical == physByteArray && n > len(b)/4:
		return errShort
	}
	var err error
	if v.bins != nil {
		v.dictBins = make([][]byte, n)
		b, err = plainBins(v.dictBins, b, v.width(), v.physical == physByteArray)
	} else {
		v.dictInts = make([]int64, n)
		b, err = plainInts(v.dictInts, b, v.width())
	}
	if err == nil && len(b) > 0 {
		err = errLeft
	}
	v.dictionary = err == nil
	return err
}
