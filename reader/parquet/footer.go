package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"example.com/tsimport/reader/record"
)

// physical is the storage type of the values of a leaf.
type physical int32

// The physical types, with the format's numbers.
const (
	physBoolean physical = iota
	physInt32
	physInt64
	physInt96
	physFloat
	physDouble
	physByteArray
	physFixed
)

var physicalNames = [...]string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY",
	"FIXED_LEN_BYTE_ARRAY"}

func (p physical) String() string {
	if p < 0 || int(p) >= len(physicalNames) {
		return fmt.Sprintf("physical type %d", int32(p))
	}
	return physicalNames[p]
}

// annotation is the meaning of a column. Its values are the field numbers of LogicalType.
type annotation int16

// The annotations. The last one has only a ConvertedType.
const (
	annNone      annotation = 0
	annString    annotation = 1
	annMap       annotation = 2
	annList      annotation = 3
	annEnum      annotation = 4
	annDecimal   annotation = 5
	annDate      annotation = 6
	annTime      annotation = 7
	annTimestamp annotation = 8
	annInteger   annotation = 10
	annNull      annotation = 11
	annJSON      annotation = 12
	annBSON      annotation = 13
	annUUID      annotation = 14
	annFloat16   annotation = 15
	annInterval  annotation = 100
)

const (
	required = 0
	optional = 1
	repeated = 2
)

// element is a node of the schema, as listed in the footer.
type element struct {
	name       string
	physical   physical
	leaf       bool // whether it has a physical type
	length     int32
	repetition int32
	children   int32
	converted  int32 // -1 if there is none
	scale      int32
	ann        annotation
	unit       record.Unit
	utc        bool
	width      int32
	signed     bool
}

// chunkMeta says where the values of a column in a row group are.
type chunkMeta struct {
	physical physical
	codec    int32
	values   int64
	bytes    int64 // compressed size, including page headers
	unpacked int64 // decompressed size, according to the footer
	data     int64
	dict     int64
	external bool // whether the values are in another file
}

type rowGroup struct {
	columns []chunkMeta
	rows    int64
	bytes   int64 // compressed size
}

type footer struct {
	rows   int64
	schema []element
	groups []rowGroup
	writer writer
	spark  map[string]string // Spark's entries about calendars
	arrow  string            // Arrow schema with which the file was written, in base64; it has the units of durations
	start  int64             // offset of the footer, which is the end of the pages

	encrypted bool // whether the file, or a column of it, is encrypted
}

var (
	errEncrypted = errors.New("file is encrypted, which is not supported")
	errNoParquet = errors.New("not a Parquet file")
)

// readFooter reads the footer of a file. It refuses an impossible length before allocating memory.
func readFooter(r io.ReaderAt, size, limit int64) (*footer, error) {
	if size < 12 {
		return nil, fmt.Errorf("%w: %d bytes are too few", errNoParquet, size)
	}
	var head [4]byte
	var tail [8]byte
	if err := readFull(r, head[:], 0); err != nil {
		return nil, fmt.Errorf("read magic: %w", err)
	}
	if err := readFull(r, tail[:], size-8); err != nil {
		return nil, fmt.Errorf("read magic: %w", err)
	}
	for _, magic := range [...]string{string(head[:]), string(tail[4:])} {
		switch magic {
		case "PARE":
			return nil, errEncrypted
		case "PAR1":
		default:
			return nil, fmt.Errorf("%w: want PAR1, found %q", errNoParquet, magic)
		}
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-12 {
		return nil, fmt.Errorf("%w: a footer of %d bytes in a file of %d", errNoParquet, n, size)
	}
	if limit > 0 && n > limit {
		return nil, fmt.Errorf("its footer of %d MiB takes more memory than allowed; give more with --memory", n>>20)
	}
	b := make([]byte, n)
	if err := readFull(r, b, size-8-n); err != nil {
		return nil, fmt.Errorf("read footer: %w", err)
	}
	f, err := parseFooter(b)
	if err != nil {
		return nil, fmt.Errorf("read footer: %w", err)
	}
	f.start = size - 8 - n
	return f, nil
}

func readFull(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func parseFooter(b []byte) (*footer, error) {
	f := &footer{spark: map[string]string{}}
	c := &compact{b: b}
	var schema, rows, groups bool // whether each of these fields is present
	c.fields(thriftStruct,
		field{2, func(t byte) {
			schema = true
			c.list(t, func(t byte) { f.schema = append(f.schema, parseElement(c, t)) })
		}},
		field{3, func(t byte) { f.rows, rows = c.integer(t), true }},
		field{4, func(t byte) {
			groups = true
			c.list(t, func(t byte) { f.groups = append(f.groups, f.rowGroup(c, t)) })
		}},
		field{5, func(t byte) { c.list(t, func(t byte) { f.note(c, t) }) }},
		field{6, (*string)(&f.writer)},
		field{8, f.encrypts(c)}, // encryption_algorithm, in a file whose footer is not encrypted
	)
	switch {
	case c.err != nil:
		return nil, c.err
	case f.encrypted:
		return nil, errEncrypted
	case !schema || !rows || !groups:
		return nil, fmt.Errorf("%w: schema, number of rows or row groups are missing", errThrift)
	}
	return f, nil
}

// encrypts returns a function that sets encrypted, for a field that only encrypted files have, and skips the field.
func (f *footer) encrypts(c *compact) func(byte) {
	return func(t byte) {
		f.encrypted = true
		c.skip(t, false)
	}
}

const arrowKey = "ARROW:schema"

// note stores the metadata entries of Spark and Arrow. Some writers have keys that are not strings.
func (f *footer) note(c *compact, t byte) {
	var pair [3][]byte
	c.nested(t, func(id int16, t byte) bool {
		if t != thriftBinary || id != 1 && id != 2 {
			return false
		}
		pair[id] = c.text(t)
		return true
	})
	if string(pair[1]) == arrowKey {
		f.arrow = string(pair[2])
	}
	if key, is := strings.CutPrefix(string(pair[1]), sparkPrefix); is {
		f.spark[key] = string(pair[2][:min(len(pair[2]), maxSparkText)])
	}
}

func parseElement(c *compact, t byte) element {
	e := element{converted: -1, physical: -1}
	c.fields(t,
		field{1, func(t byte) { e.physical, e.leaf = physical(c.int32(t)), true }},
		field{2, &e.length}, field{3, &e.repetition}, field{4, &e.name}, field{5, &e.children},
		field{6, &e.converted}, field{7, &e.scale},
		field{10, func(t byte) { parseLogical(c, t, &e) }},
	)
	return e
}

// parseLogical reads a LogicalType. An unknown type leaves the element unchanged.
func parseLogical(c *compact, t byte, e *element) {
	c.nested(t, func(kind int16, t byte) bool {
		e.ann = annotation(kind)
		if t != thriftStruct {
			return false
		}
		var own []field
		switch e.ann {
		case annDecimal:
			own = []field{{1, &e.scale}}
		case annInteger:
			own = []field{{1, &e.width}, {2, &e.signed}}
		case annTime, annTimestamp:
			own = []field{{1, &e.utc}, {2, func(t byte) {
				c.nested(t, func(unit int16, _ byte) bool {
					e.unit = map[int16]record.Unit{1: record.Millis, 2: record.Micros, 3: record.Nanos}[unit]
					return false
				})
			}}}
		}
		c.fields(t, own...)
		return true
	})
}

func (f *footer) rowGroup(c *compact, t byte) (g rowGroup) {
	c.fields(t,
		field{1, func(t byte) {
			c.list(t, func(t byte) {
				m := f.chunk(c, t)
				g.columns = append(g.columns, m)
				g.bytes += max(0, m.bytes)
			})
		}},
		field{3, &g.rows},
	)
	return g
}

func (f *footer) chunk(c *compact, t byte) (m chunkMeta) {
	known := false // whether the position of the values is known, or that they are encrypted
	encrypts := func(t byte) {
		known = true
		f.encrypts(c)(t)
	}
	c.fields(t,
		field{1, func(t byte) { m.external = len(c.text(t)) > 0 }},
		field{3, func(t byte) {
			known = true
			c.fields(t, field{1, (*int32)(&m.physical)}, field{4, &m.codec}, field{5, &m.values},
				field{6, &m.unpacked}, field{7, &m.bytes}, field{9, &m.data}, field{11, &m.dict})
		}},
		field{8, encrypts}, field{9, encrypts}, // crypto_metadata, encrypted_column_metadata
	)
	if !known {
		c.fail(fmt.Errorf("%w: a column without metadata", errThrift))
	}
	return m
}
