package scan

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Spool stores the rows of a scan, compressed, until their columns and types are known, which begin a Parquet file.
// Reading the table twice would double the cost and could return other rows. Output up to a Flush can be replayed.
type Spool struct {
	w      io.Writer
	packer *zstd.Encoder
	chunk  []byte // rows not written yet
	packed []byte
	err    error // error of the first failed write, which may have written a part; the rest would be unreadable
}

// spoolChunk is the number of bytes of rows that are compressed together.
const spoolChunk = 256 << 10

func NewSpool(w io.Writer) (*Spool, error) {
	packer, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("create export spool: %w", err)
	}
	return &Spool{w: w, packer: packer}, nil
}

func (s *Spool) Write(r *Fields) error {
	if s.chunk = appendRow(s.chunk, r.Row); len(s.chunk) < spoolChunk {
		return nil
	}
	return s.Flush()
}

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

func appendRow(dst, row []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(row))), row...)
}

// Replay calls each for every row of a spool's output, and checks their number. A row is valid during the call.
func Replay(r io.Reader, rows int64, each func(row []byte) error) error {
	unpacker, err := zstd.NewReader(bufio.NewReaderSize(r, 1<<16), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return fmt.Errorf("read export spool: %w", err)
	}
	defer unpacker.Close()
	in := bufio.NewReaderSize(unpacker, 1<<16)
	checker, row := new(plainbuffer.RowReader), []byte(nil)
	for n := int64(0); ; n++ {
		row, err = readRow(in, row)
		if errors.Is(err, io.EOF) && n == rows {
			return nil
		}
		if err == nil {
			err = checker.ReadRow(row, nil)
		}
		if err != nil {
			return fmt.Errorf("read export spool: %w", err)
		}
		if err := each(row); err != nil {
			return err
		}
	}
}

// readRow reads a row into the memory of the previous row. It returns io.EOF only between two rows.
func readRow(in *bufio.Reader, row []byte) ([]byte, error) {
	length, err := in.Peek(4)
	if err != nil {
		if len(length) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	n := int(binary.LittleEndian.Uint32(length))
	_, _ = in.Discard(4) // cannot fail after Peek
	row = slices.Grow(row[:0], n)[:n]
	if _, err := io.ReadFull(in, row); err != nil {
		return nil, fmt.Errorf("read row: %w", io.ErrUnexpectedEOF)
	}
	return plainbuffer.WithoutHeader(row), nil // earlier versions wrote a header
}
