package scan

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/klauspost/compress/zstd"

	"tsimport/client"
	"tsimport/plainbuffer"
)

// Spool keeps the rows of a scan on disk, compressed, until their columns are known: a Tablestore table has no list of
// its columns, and a CSV file begins with one. Reading the table twice instead would cost its read capacity twice and
// could see two different tables.
type Spool struct {
	file    *os.File
	buffer  *bufio.Writer
	packer  *zstd.Encoder
	names   map[string]*plainbuffer.Name
	columns map[string]bool
	buf     []byte
	rows    int64
}

// NewSpool makes a spool in dir ("" is the system's directory for temporary files).
func NewSpool(dir string) (*Spool, error) {
	f, err := os.CreateTemp(dir, "tsimport-export-*")
	if err != nil {
		return nil, fmt.Errorf("create export spool: %w", err)
	}
	s := &Spool{file: f, buffer: bufio.NewWriterSize(f, 1<<16), names: map[string]*plainbuffer.Name{}, columns: map[string]bool{}}
	if s.packer, err = zstd.NewWriter(s.buffer, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1)); err != nil {
		s.Close()
		return nil, fmt.Errorf("create export spool: %w", err)
	}
	return s, nil
}

// Write keeps a row: its length and its PlainBuffer bytes.
func (s *Spool) Write(r *Row) error {
	var row plainbuffer.Row
	row.Begin(append(s.buf[:0], 0, 0, 0, 0))
	for _, k := range r.PrimaryKey.PrimaryKeys {
		row.Key(s.name(k.ColumnName), client.ValueOf(k.Value))
	}
	for _, c := range r.Columns {
		s.columns[c.ColumnName] = true
		row.Cell(s.name(c.ColumnName), client.ValueOf(c.Value))
	}
	s.buf = row.End()
	binary.LittleEndian.PutUint32(s.buf, uint32(len(s.buf)-4))
	if _, err := s.packer.Write(s.buf); err != nil {
		return fmt.Errorf("write export spool: %w", err)
	}
	s.rows++
	return nil
}

func (s *Spool) name(column string) *plainbuffer.Name {
	n := s.names[column]
	if n == nil {
		prepared := plainbuffer.NewName(column)
		n = &prepared
		s.names[column] = n
	}
	return n
}

// Columns returns the names of all attribute columns seen, sorted.
func (s *Spool) Columns() []string {
	names := make([]string, 0, len(s.columns))
	for n := range s.columns {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Replay calls each with every row kept, in order.
func (s *Spool) Replay(each func(*Row) error) error {
	if err := errors.Join(s.packer.Close(), s.buffer.Flush()); err != nil {
		return fmt.Errorf("write export spool: %w", err)
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read export spool: %w", err)
	}
	unpacker, err := zstd.NewReader(bufio.NewReaderSize(s.file, 1<<16), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return fmt.Errorf("read export spool: %w", err)
	}
	defer unpacker.Close()
	in := bufio.NewReaderSize(unpacker, 1<<16)
	for n := int64(0); ; n++ {
		row, err := s.readRow(in)
		if errors.Is(err, io.EOF) && n == s.rows {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read export spool: %w", err)
		}
		if err := each(row); err != nil {
			return err
		}
	}
}

// readRow returns io.EOF only between two rows.
func (s *Spool) readRow(in io.Reader) (*Row, error) {
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.LittleEndian.Uint32(length[:]))
	if _, err := io.ReadFull(in, b); err != nil {
		return nil, fmt.Errorf("cut row: %w", io.ErrUnexpectedEOF)
	}
	d, err := plainbuffer.Decode(b)
	if err != nil {
		return nil, err
	}
	r := &Row{PrimaryKey: new(tablestore.PrimaryKey)}
	for _, k := range d.Key {
		r.PrimaryKey.AddPrimaryKeyColumn(k.Name, client.SDKValue(k.Value))
	}
	for _, c := range d.Cells {
		r.Columns = append(r.Columns, &tablestore.AttributeColumn{ColumnName: c.Name, Value: client.SDKValue(c.Value)})
	}
	return r, nil
}

// Close removes the spool.
func (s *Spool) Close() error {
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}
