package export

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/reader/archivefile"
)

// heldRows holds the rows of one file before they are encoded. Some columns may not be known yet.
type heldRows struct {
	rows  [][]byte
	chunk []byte // memory of the last rows
}

// chunkBytes is the largest allocation for rows, except a larger row. The first is smaller: many files may be small.
const chunkBytes = 1 << 20

func (h *heldRows) add(row []byte) {
	if cap(h.chunk)-len(h.chunk) < len(row) {
		h.chunk = make([]byte, 0, max(min(2*cap(h.chunk), chunkBytes), 4<<10, len(row)))
	}
	h.chunk = append(h.chunk, row...)
	h.rows = append(h.rows, h.chunk[len(h.chunk)-len(row):])
}

func (l *lake) encode(h *heldRows) (*archive.Encoded, error) {
	columns, fields := l.known(), scan.Fields{Wanted: l.wanted}
	var body bytes.Buffer
	var f scan.Formatter
	to, err := l.compressor(&body)
	switch {
	case err != nil:
	case l.Lake.Format == Parquet:
		f, err = newParquet(to, l.Scan.Table.Key, nil, seenColumns(columns))
	default:
		f, err = scan.NewCSV(to, l.header, names(columns))
	}
	for i := 0; i < len(h.rows) && err == nil; i++ {
		fields.Read(h.rows[i])
		err = f.Write(&fields)
	}
	if err != nil {
		return nil, err
	}
	err = errors.Join(f.Flush(), to.Close())
	return &archive.Encoded{Body: body.Bytes(), Rows: int64(len(h.rows)), Width: len(columns)}, err
}

func names(columns []archive.FileColumn) (names []string) {
	for i := range columns {
		names = append(names, columns[i].Name)
	}
	return names
}

// seenColumns converts columns to the form used for exports to one file, as if each type had one value.
func seenColumns(columns []archive.FileColumn) (seen []Column) {
	for _, c := range columns {
		types := map[string]int64{}
		for _, t := range c.Types {
			types[t.String()] = 1
		}
		seen = append(seen, Column{c.Name, types})
	}
	return seen
}

// open is a writer whose Close leaves it open.
type open struct{ io.Writer }

func (open) Close() error { return nil }

func (l *lake) compressor(to io.Writer) (io.WriteCloser, error) {
	switch l.Lake.Format {
	case CSVGzip:
		return gzip.NewWriter(to), nil
	case CSVZstd:
		return zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
	}
	return open{to}, nil
}

func (l *lake) unpack(body []byte) (text []byte, err error) {
	var r io.Reader = bytes.NewReader(body)
	switch l.Lake.Format {
	case CSVGzip:
		r, err = gzip.NewReader(r)
	case CSVZstd:
		r, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
	default:
		return body, nil
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// widenCSV adds the missing columns to a file that has width attribute columns.
func (l *lake) widenCSV(body []byte, width int, rows int64) (*archive.Encoded, error) {
	all := names(l.known())
	file := &archive.Encoded{Body: body, Rows: rows, Width: len(all)}
	text, err := l.unpack(body)
	if err != nil {
		return nil, err
	}
	var header, to bytes.Buffer
	if f, err := scan.NewCSV(&header, l.header, all); err != nil || f.Flush() != nil ||
		bytes.HasPrefix(text, header.Bytes()) {
		return file, err
	}
	w, err := l.compressor(&to)
	if err != nil {
		return nil, err
	}
	g := scan.Growth{Order: all, Sections: []scan.Section{{Attributes: width}}}
	err = errors.Join(g.Rewrite(w, bytes.NewReader(text), l.header, all, rows), w.Close())
	file.Body = to.Bytes()
	return file, err
}

func widenParquet(body []byte, key []table.KeyColumn, columns []archive.FileColumn) (*archive.Encoded, error) {
	in, err := parquet.OpenFile(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return nil, err
	}
	file := &archive.Encoded{Body: body, Rows: in.NumRows(), Width: len(columns)}
	had := len(in.Root().Columns())
	if had == len(key)+len(columns) {
		return file, nil
	}
	var to bytes.Buffer
	out, err := newParquet(&to, key, nil, seenColumns(columns))
	if err != nil {
		return nil, err
	}
	out.clear()
	for _, group := range in.RowGroups() {
		if err := widenRows(out, group.Rows(), had); err != nil {
			return nil, err
		}
	}
	err = out.Flush()
	file.Body = to.Bytes()
	return file, err
}

// widenRows copies rows, which have had columns, and adds nulls for the missing columns.
func widenRows(out *parquetFile, in parquet.Rows, had int) (err error) {
	defer func() { err = errors.Join(err, in.Close()) }()
	rows := make([]parquet.Row, 64)
	for {
		n, err := in.ReadRows(rows)
		for _, row := range rows[:n] {
			if len(row) != had {
				return fmt.Errorf("a row has %d values, but there are %d columns", len(row), had)
			}
			copy(out.row, row)
			if err := out.writeRow(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
