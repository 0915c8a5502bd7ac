package runfile

import (
	"bytes"
	"context"
	"hash/crc32"

	"example.com/tsimport/internal/jobdir"
)

// Frame is one frame of rows in key order.
type Frame struct {
	Extent
	First, Last []byte // first and last ordering key
}

// sortedFrame limits the uncompressed rows of a frame, which may be read alone.
const sortedFrame = 512 << 10

// Sorted makes objects of rows that are added in key order. It is not safe for concurrent use.
type Sorted struct {
	Made
	Frames []Frame

	raw   []byte
	rows  int
	first []byte
	last  []byte
	body  []byte // body of the current object
}

// NewSorted returns a Sorted with objects called name, name.2, …. The name must be unique to the attempt.
func NewSorted(ctx context.Context, store jobdir.Store, name string) *Sorted {
	return &Sorted{Made: Made{ctx: ctx, store: store, name: name}, raw: buffer(), body: buffer()}
}

func (s *Sorted) Add(r *Row) error {
	if s.rows > 0 && len(s.raw)+len(r.Key)+len(r.Body) > sortedFrame {
		if err := s.pack(); err != nil {
			return err
		}
	}
	if s.rows == 0 {
		s.first = bytes.Clone(r.Key)
	}
	s.last = append(s.last[:0], r.Key...)
	s.raw = s.add(s.raw, r)
	s.rows++
	return nil
}

func (s *Sorted) pack() error {
	at := len(s.body)
	s.body = s.Made.pack(s.body, s.raw, s.rows)
	packed := s.body[at:]
	s.Frames = append(s.Frames, Frame{
		Extent: Extent{Object: len(s.Objects), Offset: int64(at), Length: int64(len(packed)), Rows: int64(s.rows),
			Sum: crc32.Checksum(packed, castagnoli)},
		First: s.first, Last: bytes.Clone(s.last),
	})
	s.raw, s.rows = s.raw[:0], 0
	if len(s.body) < objectBytes {
		return nil
	}
	err := s.put(s.body)
	s.body = s.body[:0]
	return err
}

// Close writes the remaining rows. Without Close, no added row can be read.
func (s *Sorted) Close() error {
	if s.rows > 0 {
		if err := s.pack(); err != nil {
			return err
		}
	}
	keepBuffer(s.raw)
	s.raw = nil
	if len(s.body) == 0 {
		return nil
	}
	err := s.put(s.body)
	keepBuffer(s.body)
	s.body = nil
	return err
}
