package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Kind is the kind of a column's values.
type Kind uint8

const (
	IntegerValues Kind = iota
	DoubleValues
	StringValues
	NoValues
)

// ShapeColumn is a column of a shape. Its values have one kind and one length in characters.
type ShapeColumn struct {
	Name   string
	Kind   Kind
	Length int
}

// Shape describes uniform rows: a unique integer id as the key, and attribute columns. All rows have the same length.
type Shape struct {
	Name    string
	Columns []ShapeColumn
}

// The range of ids. The ids of a file are spread evenly over it.
const (
	FirstID = 100_000_000
	LastID  = 999_999_999
)

// Shapes returns the standard shapes for measurements: order-like rows (12 columns, 150 bytes of CSV), short rows (3
// columns, 60 bytes) and wide rows (60 columns).
func Shapes() []Shape {
	wide := Shape{Name: "60", Columns: []ShapeColumn{{"id", IntegerValues, 9}}}
	for i := 1; i < 60; i++ {
		c := ShapeColumn{fmt.Sprintf("c%02d", i), StringValues, 10}
		switch i % 6 {
		case 1, 4:
			c.Kind, c.Length = IntegerValues, 6
		case 2:
			c.Kind, c.Length = DoubleValues, 7
		}
		wide.Columns = append(wide.Columns, c)
	}
	return []Shape{
		{"12", []ShapeColumn{
			{"id", IntegerValues, 9}, {"user", IntegerValues, 8}, {"created", IntegerValues, 13}, {"count", IntegerValues, 3},
			{"price", DoubleValues, 7}, {"mass", DoubleValues, 6},
			{"status", StringValues, 8}, {"city", StringValues, 12}, {"product", StringValues, 20}, {"note", StringValues, 33},
			{"device", StringValues, 16}, {"currency", StringValues, 3},
		}},
		{"3", []ShapeColumn{{"id", IntegerValues, 9}, {"name", StringValues, 20}, {"note", StringValues, 28}}},
		wide,
	}
}

// OddShapes returns extreme shapes: a cell of 4 KiB, 64 KiB or just under 2 MiB; 1,000 short columns; eleven empty
// columns; and eleven columns with names of the maximum length.
func OddShapes() []Shape {
	id := ShapeColumn{"id", IntegerValues, 9}
	many, null, long := Shape{Name: "1000", Columns: []ShapeColumn{id}}, Shape{Name: "null", Columns: []ShapeColumn{id}},
		Shape{Name: "names", Columns: []ShapeColumn{id}}
	for i := 1; i <= 1000; i++ {
		many.Columns = append(many.Columns, ShapeColumn{fmt.Sprintf("c%03d", i), StringValues, 6})
	}
	for i := 1; i <= 11; i++ {
		null.Columns = append(null.Columns, ShapeColumn{fmt.Sprintf("c%02d", i), NoValues, 0})
		long.Columns = append(long.Columns, ShapeColumn{fmt.Sprintf("%s%02d", strings.Repeat("n", 253), i), StringValues, 12})
	}
	large := func(name string, n int) Shape {
		return Shape{Name: name, Columns: []ShapeColumn{id, {"body", StringValues, n}}}
	}
	return []Shape{large("4k", 4<<10), large("64k", 64<<10), large("2m", 2<<20-64), many, null, long}
}

func FindShape(name string) (Shape, error) {
	shapes := append(Shapes(), OddShapes()...)
	if i := slices.IndexFunc(shapes, func(s Shape) bool { return s.Name == name }); i >= 0 {
		return shapes[i], nil
	}
	return Shape{}, fmt.Errorf("--shape %q: want 12, 3, 60, 4k, 64k, 2m, 1000, null or names", name)
}

var errTooManyRows = errors.New("too many rows: a shape has at most 900,000,000 ids")

// WriteCSV writes rows with ids in random order. It stops when ctx ends.
func (s Shape) WriteCSV(ctx context.Context, w io.Writer, rows, seed uint64) error {
	rows = max(rows, 1) // an empty file would have no types
	if rows > LastID-FirstID+1 {
		return errTooManyRows
	}
	out := bufio.NewWriterSize(w, 1<<18)
	var line []byte
	for i, c := range s.Columns {
		if i > 0 {
			line = append(line, ',')
		}
		line = append(line, c.Name...)
	}
	_, err := out.Write(append(line, '\n'))
	order := newPermutation(rows, seed)
	step := (LastID - FirstID + 1) / rows
	for i := uint64(0); i < rows && err == nil; i++ {
		if i&0xfff == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line = s.appendRow(line[:0], FirstID+order.at(i)*step, seed)
		_, err = out.Write(line)
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("write dataset: %w", err)
	}
	return nil
}

// EachRow calls each with the fields of every row of WriteCSV, in the same order.
func (s Shape) EachRow(rows, seed uint64, each func(fields []string)) error {
	if rows == 0 || rows > LastID-FirstID+1 {
		return errTooManyRows
	}
	order, step := newPermutation(rows, seed), (LastID-FirstID+1)/rows
	for i := range rows {
		line := s.appendRow(nil, FirstID+order.at(i)*step, seed)
		each(strings.Split(string(line[:len(line)-1]), ","))
	}
	return nil
}

const letters = "abcdefghijklmnopqrstuvwxyz    -_"

func (s Shape) appendRow(dst []byte, id, seed uint64) []byte {
	dst = strconv.AppendUint(dst, id, 10)
	random := mix(id ^ seed)
	for _, c := range s.Columns[1:] {
		dst = append(dst, ',')
		random = mix(random)
		switch c.Kind {
		case IntegerValues:
			dst = appendDigits(dst, random, c.Length)
		case DoubleValues:
			// Neither the first nor the last digit is 0, so the text is the shortest form of its value.
			dst = append(appendDigits(dst, random, c.Length-3), '.')
			dst = append(dst, byte('0'+random>>60%10), byte('1'+random>>56%9))
		case StringValues:
			dst = append(dst, letters[random%26])
			for n := 1; n < c.Length; n++ {
				if n%12 == 0 {
					random = mix(random)
				}
				dst = append(dst, letters[random>>(5*(n%12))%32])
			}
		}
	}
	return append(dst, '\n')
}

func appendDigits(dst []byte, random uint64, n int) []byte {
	dst = append(dst, byte('1'+random%9))
	for range n - 1 {
		random /= 10
		dst = append(dst, byte('0'+random%10))
	}
	return dst
}
