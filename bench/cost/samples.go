package cost

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"encoding/csv"
	"slices"
	"strconv"

	"example.com/tsimport/bench"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/encode"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/writer"
)

// samples are what the stages of a floor work with. No stage changes them.
type samples struct {
	file   string
	text   []byte // of the first rows
	schema *table.Schema
	rows   [][]table.Value // of the text
	bodies [][]byte        // of full requests with those rows, as large as the rows make them
	pages  [][]byte        // of answers
	stored int             // rows in those
}

// sampleBytes is how many bytes of CSV the samples have at most, unless one row has more.
const sampleBytes = 32 << 20

// gather makes the samples of an input of so many rows of a shape.
func gather(file string, shape bench.Shape, rows uint64) (*samples, error) {
	length := 0
	for _, c := range shape.Columns {
		length += c.Length + 1
	}
	rows = min(rows, floorRows, uint64(max(1, sampleBytes/length)))
	s := &samples{file: file, schema: SchemaOf(shape)}
	var text bytes.Buffer
	err := shape.WriteCSV(context.Background(), &text, rows, seed)
	if err == nil {
		err = eachRow(shape, rows, func(row []table.Value) { s.rows = append(s.rows, slices.Clone(row)) })
	}
	if err != nil {
		return nil, err
	}
	s.text = text.Bytes()
	block := new(table.Block)
	s.encode(encode.New(s.schema, table.Put, false), block)
	var refs []table.Ref
	for i := range block.Rows {
		refs = append(refs, table.Ref{Block: block, Index: int32(i)})
		if len(refs) == table.MaxBatchRows || i == len(block.Rows)-1 {
			s.bodies = append(s.bodies, writer.AppendRequest(nil, "t", table.Put, table.Ignore, refs))
			refs = refs[:0]
		}
	}
	return s, s.store(shape)
}

// store makes pages of rows as a table has them.
func (s *samples) store(shape bench.Shape) error {
	rows := max(10, min(floorRows, 32e6*float64(len(s.rows))/max(bytesOf(s.bodies), 1)))
	stored, err := StoredRows(shape, uint64(rows))
	if err != nil {
		return err
	}
	stored.Pages(func(page []byte, count int) {
		s.pages = append(s.pages, page)
		s.stored += count
	})
	return nil
}

func bytesOf(texts [][]byte) (n float64) {
	for _, b := range texts {
		n += float64(len(b))
	}
	return n
}

// readCSV finds the fields of the text.
func (s *samples) readCSV() {
	r := csv.NewReader(bytes.NewReader(s.text))
	r.ReuseRecord = true
	for {
		if _, err := r.Read(); err != nil {
			return
		}
	}
}

// encode makes PlainBuffer bytes of the rows.
func (s *samples) encode(e *encode.Encoder, block *table.Block) {
	block.Reset()
	for _, values := range s.rows {
		e.Append(block, values, nil, table.Span{}, nil)
	}
}

func hash(texts [][]byte) {
	for _, b := range texts {
		md5.Sum(b)
	}
}

// decode makes values of the pages, and checks their checksums.
func (s *samples) decode() (err error) {
	for _, page := range s.pages {
		if _, e := new(plainbuffer.RowReader).Read(page, nil); e != nil {
			err = e
		}
	}
	return err
}

// SchemaOf is the table schema of a shape.
func SchemaOf(shape bench.Shape) *table.Schema {
	s := &table.Schema{Table: "t"}
	for i, c := range shape.Columns {
		t := [...]table.Type{table.Integer, table.Double, table.String, table.String}[c.Kind]
		if i == 0 {
			s.Key = append(s.Key, table.KeyColumn{Name: c.Name, Type: t})
		}
		s.Columns = append(s.Columns, table.Column{Source: c.Name, Name: c.Name, Type: t})
	}
	return s
}

// eachRow calls each with the values of rows of a shape, which are valid during the call.
func eachRow(shape bench.Shape, rows uint64, each func([]table.Value)) (failed error) {
	values := make([]table.Value, len(shape.Columns))
	err := shape.EachRow(rows, seed, func(fields []string) {
		for i, c := range shape.Columns {
			var err error
			if values[i], err = valueOf(c.Kind, fields[i]); err != nil {
				failed = err
			}
		}
		each(values)
	})
	return cmp.Or(err, failed)
}

func valueOf(kind bench.Kind, text string) (v table.Value, err error) {
	switch kind {
	case bench.IntegerValues:
		v.Type = table.Integer
		v.Int, err = strconv.ParseInt(text, 10, 64)
	case bench.DoubleValues:
		v.Type = table.Double
		v.Double, err = strconv.ParseFloat(text, 64)
	case bench.NoValues:
	default:
		v = table.Value{Type: table.String, Bytes: []byte(text)}
	}
	return v, err
}
