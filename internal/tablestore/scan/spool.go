package scan

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Spool keeps the rows of a scan, compressed, until their columns and types are known: a Tablestore table has no list of its
// columns, and a Parquet file begins with one. Reading the table twice instead would cost its read capacity twice and could
// see two different tables. It is a Formatter; what it has written up to a Flush can be replayed.
type Spool struct {
	w      io.Writer
	packer *zstd.Encoder
	rows   rowEncoder
	chunk  []byte // rows that are not written yet
	packed []byte
	err    error // of the first write that failed: what it has written may be a part, after which nothing can be read
}

// spoolChunk is how many bytes of rows are compressed together.
const spoolChunk = 256 << 10

// NewSpool writes to w.
func NewSpool(w io.Writer) (*Spool, error) {
	s := &Spool{w: w, rows: newRowEncoder()}
	var err error
	if s.packer, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1)); err != nil {
		return nil, fmt.Errorf("create export spool: %w", err)
	}
	return s, nil
}

// Write keeps a row.
func (s *Spool) Write(r *Row) error {
	if s.chunk = s.rows.append(s.chunk, r); len(s.chunk) < spoolChunk {
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

// rowEncoder makes bytes of rows.
type rowEncoder struct{ names plainbuffer.Names }

func newRowEncoder() rowEncoder { return rowEncoder{plainbuffer.Names{}} }

// append appends the length of a row and its PlainBuffer bytes.
func (e *rowEncoder) append(dst []byte, r *Row) []byte {
	var row plainbuffer.Row
	start := len(dst)
	row.Begin(append(dst, 0, 0, 0, 0))
	for _, k := range r.PrimaryKey.PrimaryKeys {
		row.Key(e.names.Of(k.ColumnName), client.ValueOf(k.Value))
	}
	for _, c := range r.Columns {
		row.Cell(e.names.Of(c.ColumnName), client.ValueOf(c.Value))
	}
	dst = row.End()
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

// cutRow reads the first of the rows that a rowEncoder has appended.
func cutRow(b []byte, memory *client.PageMemory) (r *Row, rest []byte, err error) {
	n := int(binary.LittleEndian.Uint32(b))
	b = b[4:]
	r, err = memory.ReadRow(n, func(to []byte) error { copy(to, b); return nil })
	return r, b[n:], err
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
	return memory.ReadRow(n, func(b []byte) error {
		if _, err := io.ReadFull(in, b); err != nil {
			return fmt.Errorf("cut row: %w", io.ErrUnexpectedEOF)
		}
		return nil
	})
}
