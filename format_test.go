package tsimport

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader"
	inputs "example.com/tsimport/reader/input"
	"example.com/tsimport/reader/open"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
	"example.com/tsimport/reader/sqltable"
)

// avro is a new format: uncompressed Avro files with records of plain types and unions. Besides this value, a format
// needs an entry in reader.Formats and a line in the docs.
var avro = &reader.RowFormat{
	Name:   "avro",
	Begins: func(head []byte) bool { return bytes.HasPrefix(head, []byte(avroMagic)) },
	Open:   openAvro,
}

const (
	avroMagic = "Obj\x01"
	avroHead  = 1 << 20 // maximum bytes of the header, which holds the schema
	avroSync  = 16
)

// avroFile is an open file.
type avroFile struct {
	in      reader.RowInput
	columns [][]string // types of each column
	rows    reader.RowFile
	data    []avroBlock
}

// avroBlock is the position and size of a block's records in the file.
type avroBlock struct{ at, bytes int64 }

func openAvro(in reader.RowInput) (*reader.RowFile, error) {
	f := &avroFile{in: in}
	if err := avroPanics(f.open); err != nil {
		return nil, fmt.Errorf("open %s: %w", in.Name, err)
	}
	f.rows.NewParser = func([]int) reader.RowParser {
		return &avroParser{avroFile: f, Memory: source.Memory{What: "blocks", Limit: in.Memory}}
	}
	return &f.rows, nil
}

// open reads the schema and finds the blocks.
func (f *avroFile) open() error {
	at := int64(len(avroMagic))
	c := f.read(at, min(avroHead, f.in.Size-at))
	head := len(c)
	var schema struct {
		Fields []struct {
			Name string
			Type json.RawMessage
		}
	}
	for n := c.long(); n != 0; n = c.long() {
		if n < 0 {
			n = -n
			c.long() // bytes of the block
		}
		for range n {
			switch key, value := string(c.take(c.long())), c.take(c.long()); key {
			case "avro.codec":
				if string(value) != "null" {
					return fmt.Errorf("its blocks are compressed as %q, which is not supported", value)
				}
			case "avro.schema":
				if err := json.Unmarshal(value, &schema); err != nil {
					return fmt.Errorf("its schema: %w", err)
				}
			}
		}
	}
	for _, field := range schema.Fields {
		var types []string
		if field.Type[0] != '[' {
			field.Type = fmt.Appendf(nil, "[%s]", field.Type)
		}
		if json.Unmarshal(field.Type, &types) != nil || slices.ContainsFunc(types,
			func(t string) bool { return avroTypes[t] == nil }) {
			return fmt.Errorf("column %q has the type %s, which is not supported", field.Name, field.Type)
		}
		f.columns, f.rows.Columns = append(f.columns, types), append(f.rows.Columns, field.Name)
	}
	mark := c.take(avroSync)
	for at += int64(head - len(c)); at < f.in.Size; {
		c := f.read(at, min(2*binary.MaxVarintLen64, f.in.Size-at))
		was := len(c)
		block := record.Rows{Number: len(f.data), Group: len(f.data), Rows: c.long(), FirstRow: f.rows.Rows, Bytes: c.long()}
		at += int64(was - len(c))
		if block.Rows < 0 || block.Bytes < 0 || block.Bytes > f.in.Size-at-avroSync ||
			!bytes.Equal(f.read(at+block.Bytes, avroSync), mark) {
			return fmt.Errorf("block %d has no end: the file is cut short or damaged", len(f.data))
		}
		f.data = append(f.data, avroBlock{at, block.Bytes})
		f.rows.Rows, f.rows.Splits = f.rows.Rows+block.Rows, append(f.rows.Splits, block)
		at += block.Bytes + avroSync
	}
	return nil
}

func (f *avroFile) read(at, bytes int64) avroBytes {
	b := make([]byte, bytes)
	if n, err := f.in.At.ReadAt(b, at); n < len(b) {
		panic(avroError{cmp.Or(err, io.ErrUnexpectedEOF)})
	}
	return b
}

// avroParser reads the records of blocks.
type avroParser struct {
	*avroFile
	source.Memory
}

func (*avroParser) Close() error { return nil }
func (p *avroParser) Release()   { p.Held = 0 }

// Parse implements reader.RowParser.
func (p *avroParser) Parse(rows record.Rows, each func(*record.Record) error) error {
	defer p.Release()
	err := avroPanics(func() error {
		block := p.data[rows.Group]
		if err := p.Hold(block.bytes); err != nil {
			return err
		}
		c := p.read(block.at, block.bytes)
		rec := record.Record{Fields: make([]record.Datum, len(p.columns))}
		for i := range rows.First + rows.Rows {
			for k, types := range p.columns {
				one := int64(0)
				if len(types) > 1 {
					one = c.long()
				}
				if one < 0 || one >= int64(len(types)) {
					return fmt.Errorf("a value of column %q has type %d of %d", p.rows.Columns[k], one, len(types))
				}
				rec.Fields[k] = avroTypes[types[one]](&c)
			}
			if i < rows.First {
				continue
			}
			if err := each(&rec); err != nil {
				return err
			}
		}
		if rows.First+rows.Rows == p.rows.Splits[rows.Group].Rows && len(c) > 0 {
			return fmt.Errorf("it has %d bytes after its last record", len(c))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read %s: block %d: %w", p.in.Name, rows.Group, err)
	}
	return nil
}

// avroTypes maps each supported type to a function that reads a value of it.
var avroTypes = map[string]func(*avroBytes) record.Datum{
	"null":    func(*avroBytes) record.Datum { return record.Datum{} },
	"boolean": func(c *avroBytes) record.Datum { return record.Datum{Kind: record.Boolean, Int: int64(c.take(1)[0])} },
	"int":     func(c *avroBytes) record.Datum { return record.Datum{Kind: record.Integer, Int: c.long()} },
	"long":    func(c *avroBytes) record.Datum { return record.Datum{Kind: record.Integer, Int: c.long()} },
	"double": func(c *avroBytes) record.Datum {
		return record.Datum{Kind: record.Double, Double: math.Float64frombits(binary.LittleEndian.Uint64(c.take(8)))}
	},
	"string": func(c *avroBytes) record.Datum { return record.Datum{Kind: record.String, Bytes: c.take(c.long())} },
	"bytes":  func(c *avroBytes) record.Datum { return record.Datum{Kind: record.Binary, Bytes: c.take(c.long())} },
}

// avroBytes is consumed from the front. Reading past its end panics; avroPanics turns that into an error.
type avroBytes []byte

type avroError struct{ error }

func avroPanics(do func() error) (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = x.(avroError).error
		}
	}()
	return do()
}

func (c *avroBytes) long() int64 {
	v, n := binary.Varint(*c)
	if n <= 0 {
		panic(avroError{errors.New("a number has no end")})
	}
	*c = (*c)[n:]
	return v
}

func (c *avroBytes) take(n int64) []byte {
	if n < 0 || n > int64(len(*c)) {
		panic(avroError{errors.New("a value goes beyond its end")})
	}
	taken := (*c)[:n:n]
	*c = (*c)[n:]
	return taken
}

// avroRows returns a file of blocks. Their records have an id, an optional number, and bytes.
func avroRows(codec string, blocks, each int) []byte {
	text := func(b []byte, s string) []byte { return append(binary.AppendVarint(b, int64(len(s))), s...) }
	b := binary.AppendVarint([]byte(avroMagic), 2)
	b = text(text(b, "avro.schema"),
		`{"type":"record","name":"r","fields":[{"name":"id","type":"string"},{"name":"n","type":["null","long"]},{"name":"v","type":"bytes"}]}`)
	b = append(text(text(b, "avro.codec"), codec), 0)
	const mark = "0123456789abcdef"
	b = append(b, mark...)
	for i := range blocks {
		var data []byte
		for k := i * each; k < (i+1)*each; k++ {
			data = text(data, fmt.Sprint("r", k))
			if data = binary.AppendVarint(data, int64(k%2)); k%2 == 1 {
				data = binary.AppendVarint(data, int64(-k))
			}
			data = text(data, fmt.Sprint("\x00", k))
		}
		b = append(append(binary.AppendVarint(binary.AppendVarint(b, int64(each)), int64(len(data))), data...), mark...)
	}
	return b
}

func addAvro(t *testing.T) {
	before := reader.Formats
	t.Cleanup(func() { reader.Formats = before })
	reader.Formats = append(slices.Clone(before), avro)
}

func TestNewFormatIsResumedAndReordered(t *testing.T) {
	addAvro(t)
	in := filepath.Join(t.TempDir(), "in.avro")
	must(t, os.WriteFile(in, avroRows("null", 9, 40), 0o600))
	set := conformance.Try(inputs.Expand(t.Context(), []string{in}, inputs.Options{})).Must(t)
	sourcetest.Check(t, func() source.Source {
		return conformance.Try(reader.Open(t.Context(), set.Items[0], reader.Options{})).Must(t)
	})
}

func TestNewFormatNeedsOnePackageAndOneLine(t *testing.T) {
	addAvro(t)
	for name, tt := range map[string]struct {
		file []byte
		want string // part of the error; "" means no error
	}{
		"whole":      {avroRows("null", 3, 400), ""},
		"compressed": {avroRows("deflate", 1, 1), `compressed as "deflate"`},
		"cut":        {avroRows("null", 3, 400)[:9000], "cut short"},
		"damaged": {bytes.Replace(avroRows("null", 3, 400), []byte("\x04r7"), []byte("\x7fr7"), 1),
			"block 0: a value goes beyond its end"},
	} {
		t.Run(name, func(t *testing.T) {
			w, in := newWorld(t), filepath.Join(t.TempDir(), "in.avro")
			must(t, os.WriteFile(in, tt.file, 0o600))
			s, err := Load(t.Context(), Request{
				From: []string{in}, Table: "t", Target: w.target(), Mapping: Mapping{PK: []string{"id"}},
				NewTable: NewTable{Create: true}, Running: Running{RunDir: filepath.Join(t.TempDir(), "run")},
			})
			if tt.want != "" {
				conformance.Refused(t, err, tt.want, "error")
				return
			}
			must(t, err)
			want := map[string]string{}
			for k := range 1200 {
				n := fmt.Sprintf("n=int64 %d ", -k)
				if k%2 == 0 {
					n = "" // null
				}
				want[fmt.Sprint("r", k)] = n + fmt.Sprintf("v=[]uint8 %d", fmt.Append([]byte{0}, k))
			}
			if got := w.rows(1); s.Written != 1200 || !maps.Equal(got, want) {
				t.Errorf("%+v, %d rows, %q %q", s, len(got), got["r7"], got["r8"])
			}
		})
	}
}

// squares is a new kind of source, a table of integers from 1 and their squares; also its server, session and snapshot.
type squares struct {
	sqltable.Server
	rows int
}

func openSquares(address string) (sqltable.Server, error) {
	rows, err := strconv.Atoi(address[len("squares:"):])
	return squares{rows: rows}, err
}

func (squares) table() *sqltable.Table {
	column := func(name string) sqltable.Column {
		return sqltable.Column{Name: name, Kind: record.Integer, Type: table.Integer}
	}
	return &sqltable.Table{Name: "squares", Key: []int{0}, Columns: []sqltable.Column{column("n"), column("square")}}
}

func (squares) Shown() string { return "squares:" }
func (squares) Name() string  { return "squares" }
func (s squares) Look(context.Context) (sqltable.Session, *sqltable.Table, error) {
	if s.rows == 0 {
		return nil, nil, errors.New("there is no such table")
	}
	return s, s.table(), nil
}
func (s squares) Snapshot(context.Context, int, sqltable.Snapshot) (sqltable.Snapshot, *sqltable.Table, error) {
	return s, s.table(), nil
}
func (squares) Sessions() []sqltable.Session                     { return nil }
func (s squares) Join(context.Context) (sqltable.Session, error) { return s, nil }
func (squares) Alive(context.Context) bool                       { return true }
func (squares) Close()                                           {}
func (s squares) Page(_ context.Context, _ *sqltable.Table, q sqltable.Query) (sqltable.Rows, error) {
	p := &squaresPage{last: s.rows}
	if q.Past {
		p.n, _ = strconv.Atoi(string(q.Lower[0]))
	}
	p.last = min(p.last, p.n+q.Limit)
	return p, nil
}

type squaresPage struct{ n, last int }

func (p *squaresPage) Next() bool { p.n++; return p.n <= p.last }
func (p *squaresPage) Values() [][]byte {
	return [][]byte{fmt.Append(nil, p.n), fmt.Append(nil, p.n*p.n)}
}
func (*squaresPage) Close() error { return nil }

func TestNewSchemeNeedsOnePackageAndOneLine(t *testing.T) {
	defer func(before []open.Scheme) { open.Schemes = before }(open.Schemes)
	open.Schemes = append(open.Schemes, open.Scheme{Begins: "squares:", Database: open.Database{Table: openSquares}})

	w := newWorld(t)
	s := conformance.Try(Load(t.Context(), Request{
		From: []string{"squares:1000"}, Table: "t", Target: w.target(), NewTable: NewTable{Create: true},
		Running: Running{RunDir: filepath.Join(t.TempDir(), "run")},
	})).Must(t)
	if rows := w.rows(1); s.Written != 1000 || len(rows) != 1000 || rows["999"] == "" {
		t.Errorf("%+v, %d rows, %q", s, len(rows), rows["999"])
	}
	_, err := Load(t.Context(), Request{From: []string{"squares:0"}, Table: "t", Target: w.target()})
	usage := new(plan.UsageError)
	conformance.True(t, errors.As(err, &usage) && usage.Input, "a source that cannot be described: %v", err)
}
