package scan

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"tsimport/internal/tablestore/client"
	"tsimport/internal/tablestore/plainbuffer"
)

// Spool keeps the rows of a scan, compressed, until their columns are known: a Tablestore table has no list of its
// columns, and a CSV file begins with one. Reading the table twice instead would cost its read capacity twice and could
// see two different tables. It is a Formatter; what it has written up to a Flush can be replayed.
type Spool struct {
	w      io.Writer
	packer *zstd.Encoder
	names  map[string]*plainbuffer.Name
	chunk  []byte // rows that are not written yet
	packed []byte
	err    error // of the first write that failed: what it has written may be a part, after which nothing can be read
}

// spoolChunk is how many bytes of rows are compressed together.
const spoolChunk = 256 << 10

// NewSpool writes to w.
func NewSpool(w io.Writer) (*Spool, error) {
	s := &Spool{w: w, names: map[string]*plainbuffer.Name{}}
	var err error
	if s.packer, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1)); err != nil {
		return nil, fmt.Errorf("create export spool: %w", err)
	}
	return s, nil
}

// Write keeps a row: its length and its PlainBuffer bytes.
func (s *Spool) Write(r *Row) error {
	var row plainbuffer.Row
	start := len(s.chunk)
	row.Begin(append(s.chunk, 0, 0, 0, 0))
	for _, k := range r.PrimaryKey.PrimaryKeys {
		row.Key(s.name(k.ColumnName), client.ValueOf(k.Value))
	}
	for _, c := range r.Columns {
		row.Cell(s.name(c.ColumnName), client.ValueOf(c.Value))
	}
	s.chunk = row.End()
	binary.LittleEndian.PutUint32(s.chunk[start:], uint32(len(s.chunk)-start-4))
	if len(s.chunk) < spoolChunk {
		return nil
	}
	return s.Flush()
}

// Flush writes what is held back.
func (s *Spool) Flush() error {
	if len(s.chunk) == 0 || s.err != nil {
		return s.err
	}
	s.packed = s.packer.EncodeAll(s.chunk, s.packed[:0])
	s.chunk = s.chunk[:0]
	if _, err := s.w.Write(s.packed); err != nil {
		s.err = fmt.Errorf("write export spool: %w", err)
	}
	return s.err
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

// Replay calls each with every row of what a spool has written, in order. There must be so many. A row is valid during the call.
func Replay(r io.Reader, rows int64, each func(*Row) error) error {
	unpacker, err := zstd.NewReader(bufio.NewReaderSize(r, 1<<16), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return fmt.Errorf("read export spool: %w", err)
	}
	defer unpacker.Close()
	in := bufio.NewReaderSize(unpacker, 1<<16)
	spooled := new(client.PageMemory)
	for n := int64(0); ; n++ {
		row, err := readRow(in, spooled)
		if errors.Is(err, io.EOF) && n == rows {
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
func readRow(in *bufio.Reader, memory *client.PageMemory) (*Row, error) {
	length, err := in.Peek(4)
	if err != nil {
		if len(length) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	n := int(binary.LittleEndian.Uint32(length))
	_, _ = in.Discard(4) // it has them
	return memory.Row(n, func(b []byte) error {
		if _, err := io.ReadFull(in, b); err != nil {
			return fmt.Errorf("cut row: %w", io.ErrUnexpectedEOF)
		}
		return nil
	})
}
