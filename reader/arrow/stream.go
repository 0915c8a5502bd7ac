package arrow

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Stream is an Arrow stream or file that is read in order.
type Stream struct {
	layout
	r       *bufio.Reader
	o       Options
	file    bool // whether it has a file's header
	dicts   map[int64]*dictionary
	batches int
	rows    int64
	ended   error // returned by all further calls of Next
}

// Batch is a record batch of a stream.
type Batch struct {
	meta  *batch
	body  []byte
	dicts map[int64]*dictionary
	rows  []Split
	first int64
}

// NewStream reads up to the end of the schema. Errors include name.
func NewStream(r io.Reader, name string, o Options) (*Stream, error) {
	s := &Stream{r: bufio.NewReaderSize(r, 64<<10), o: o}
	s.name = name
	if err := s.begin(); err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return s, nil
}

func (s *Stream) begin() (err error) {
	defer damaged(&err)
	head, _ := s.r.Peek(len(Magic))
	if err := refuseFeather1(head); err != nil {
		return err
	}
	if string(head) == Magic {
		s.file = true
		if _, err := s.r.Discard(8); err != nil {
			return unexpected(err)
		}
		// Arrow before 0.15 and Polars write no end mark before the footer; Polars also omits the length before the schema.
		if mark, err := s.r.Peek(4); err == nil && binary.LittleEndian.Uint32(mark) != continuation {
			return errors.New("a file of Arrow before 0.15, or of Polars, cannot be read in order, as from a pipe or " +
				"decompressed: save it to a file first and load that, or write a stream (in Polars write_ipc_stream)")
		}
	}
	if !s.file && !mayBegin(head) {
		return errNeither
	}
	b, _, err := nextMetadata(s.r, s.o.metadata())
	if err != nil {
		return unexpected(err)
	}
	if b == nil {
		return errors.New("it has no schema")
	}
	m, err := readMessage(b)
	if err != nil {
		return err
	}
	if m.kind != messageSchema || m.body != 0 {
		return errOrder
	}
	s.layout = newLayout(s.name, m.schema, s.o.Flatten)
	return nil
}

// Next returns the next record batch, or io.EOF after the last.
func (s *Stream) Next() (*Batch, error) {
	if s.ended != nil {
		return nil, s.ended
	}
	b, err := s.next()
	if err != nil && err != io.EOF {
		err = fmt.Errorf("read %s: after %d record batches: %w", s.name, s.batches, err)
	}
	s.ended = err
	return b, err
}

func (s *Stream) next() (_ *Batch, err error) {
	defer damaged(&err)
	for {
		b, _, err := nextMetadata(s.r, s.o.metadata())
		switch {
		case err == io.EOF:
			return nil, errNoEnd
		case err != nil:
			return nil, unexpected(err)
		case b == nil:
			return nil, s.end()
		}
		m, err := readMessage(b)
		if err != nil {
			return nil, err
		}
		if m.kind == messageSchema {
			return nil, errOrder
		}
		if limit := s.o.MaxBody; limit > 0 && m.body > limit {
			return nil, fmt.Errorf("the next one takes %d MiB, but memory allows %d MiB of a stream; give more with --memory, "+
				"write smaller batches, or write an uncompressed file", m.body>>20+1, limit>>20)
		}
		data, err := s.readBody(m.body)
		if err != nil {
			return nil, unexpected(err)
		}
		if m.kind == messageDictionary {
			if s.dicts, err = s.takeDictionary(m, body{data: data}, s.dicts, s.o.MaxDictionary); err != nil {
				return nil, err
			}
			continue
		}
		meta, err := readBatch(m.head, m.body, s.schema.version)
		if err != nil {
			return nil, err
		}
		whole := Split{Group: s.batches, Rows: meta.rows, FirstRow: s.rows, Bytes: m.body}
		made := &Batch{meta: meta, body: data, dicts: s.dicts, first: s.rows, rows: whole.Cut(s.o.SplitRows, m.body)}
		s.batches++
		if s.rows += meta.rows; s.rows > maxRows {
			return nil, fmt.Errorf("impossible number of rows: %d", s.rows)
		}
		return made, nil
	}
}

// readBody reads n bytes: at once if their number is limited, otherwise into memory that grows as data arrives.
func (s *Stream) readBody(n int64) ([]byte, error) {
	if s.o.MaxBody == 0 {
		return readBytes(s.r, n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(s.r, b)
	return b, err
}

// end checks that nothing but a file's footer follows the end mark. It then returns io.EOF.
func (s *Stream) end() error {
	if !s.file {
		if _, err := s.r.Peek(1); err != io.EOF {
			if err != nil {
				return err
			}
			return errMore
		}
		return io.EOF
	}
	b, err := io.ReadAll(io.LimitReader(s.r, s.o.metadata()+1))
	if err != nil {
		return err
	}
	n := len(b) - 4 - len(Magic)
	if n < 0 || int64(len(b)) > s.o.metadata() || string(b[n+4:]) != Magic ||
		int64(binary.LittleEndian.Uint32(b[n:])) != int64(n) {
		return errors.New("the footer is truncated, or data follows it")
	}
	if listed := len(blocks(newFlat(b[:n]).root(), 3)); listed != s.batches {
		return fmt.Errorf("the footer lists %d record batches; if batches are not in order, save and load the file", listed)
	}
	return io.EOF
}

// Splits returns the batch's splits in row order.
func (b *Batch) Splits() []Split { return b.rows }

func (b *Batch) Bytes() int64 { return int64(len(b.body)) }

func (b *Batch) Rows() int64 { return b.meta.rows }

// First returns the number of records before the batch.
func (b *Batch) First() int64 { return b.first }

// Release frees memory that only Next needs. Parsers can still be created.
func (s *Stream) Release() { s.r, s.dicts = nil, nil }

// Rows returns the number of records that Next has returned.
func (s *Stream) Rows() int64 { return s.rows }
