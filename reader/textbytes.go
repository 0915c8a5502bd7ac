package reader

import (
	"fmt"
	"io"
	"sync/atomic"

	"example.com/tsimport/reader/compress"
)

// TextBytes returns about how many bytes of text the records of the source take, decompressed, as Sample counts them; -1 is unknown. Of
// a source that is not text as it is it decompresses about budget bytes, and takes the rest to be like them.
func (s *File) TextBytes(budget int64) (int64, error) {
	if s.text.part {
		return s.textEnd() - s.text.offset, nil
	}
	if s.Compression == compress.None && !s.text.transcode {
		if s.Size < 0 {
			return -1, nil
		}
		return max(0, s.Size-s.text.offset), nil
	}
	if s.Stream() || s.Size < 0 {
		return -1, nil // it can be read once
	}
	text, err := s.unpacked()
	if err != nil {
		return -1, err
	}
	defer text.Close()
	var from io.Reader = text
	if s.text.transcode {
		from = s.lines(text)
	}
	n, err := io.CopyN(io.Discard, from, budget)
	if err == io.EOF {
		return max(0, n-s.text.offset), nil
	}
	taken := compress.Taken(text.ReadCloser)
	if taken < 0 {
		taken = text.packed.n.Load()
	}
	switch {
	case n == 0 && err != nil:
		return -1, fmt.Errorf("read %s: %w", s.Name, err)
	case taken <= 0:
		return -1, nil
	}
	return max(0, int64(float64(n)*float64(s.Size)/float64(taken))-s.text.offset), nil
}

// metered counts what is read, perhaps by a goroutine of a decompressor.
type metered struct {
	r io.Reader
	n atomic.Int64
}

func (c *metered) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
