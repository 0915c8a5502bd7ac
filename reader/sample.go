package reader

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"example.com/tsimport/reader/compress"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Sample calls each with about budget bytes of the first records. It returns the bytes examined, 0 only if there are no
// records. Other columns may be Null. SampleError returns read errors; Suspend goes back to the start.
func (s *File) Sample(budget int, columns []string, each func(*record.Record)) (read int, err error) {
	s.sample = nil
	wanted := make(map[string]bool, len(columns))
	for _, c := range columns {
		wanted[c] = true
	}
	var used []int
	for i, c := range s.Columns {
		if wanted[c] {
			used = append(used, i)
		}
	}
	look := func(splits []source.Split) {
		read += s.parseSample(splits, used, budget-read, each)
		for _, sp := range splits {
			s.giveBack(sp)
		}
	}
	for read < budget {
		p, err := s.nextPiece()
		if err == io.EOF {
			splits, err := s.Finish()
			if look(splits); err != nil {
				read, s.sample = max(read, 1), err
			}
			return read, nil
		}
		if err == nil && s.Stream() {
			return s.sampleStream(p, used, each)
		}
		var splits []source.Split
		if err == nil {
			prepareErr := p.Prepare()
			splits, err = s.Add(p)
			err = errors.Join(prepareErr, err)
			look(splits)
		}
		if err != nil {
			s.sample = err
			look(s.Whole())
			return max(read, 1), nil
		}
	}
	return read, nil
}

// SampleError returns the read error after the records of the last Sample, or nil. A load will fail there, too.
func (s *File) SampleError() error { return s.sample }

// sampleStream examines the first chunk of a stream and puts it back.
func (s *File) sampleStream(p *piece, used []int, each func(*record.Record)) (int, error) {
	if p.batch != nil {
		s.inOrder.back = p
		read := s.parseSample(s.inOrder.splits(p), used, 0, each)
		s.inOrder.counted = 0 // the batch will be read again
		return max(read, int(min(p.batch.Rows(), 1))), nil
	}
	data, head := p.data, s.text.head
	if s.text.transcode {
		head = s.utf8Head()
	}
	if !s.reader.ended && len(head) > len(data) {
		data = head // unlike the first piece, the head has all of a long first record
	}
	data = data[min(int(s.text.offset), len(data)):]
	n := len(data)
	if !s.reader.ended {
		if n = s.Dialect.LastEnd(data); !s.inLines() { // the last record may be incomplete
			n, _ = s.form.cutter(false).Cut(data) // errors are reported when the text is read
			n = max(n, 0)
		}
	}
	read := s.parseSample([]source.Split{{Data: data[:n]}}, nil, n, each)
	s.reader.back = p
	return max(read, len(data)), nil
}

func (s *File) parseSample(splits []source.Split, used []int, budget int, each func(*record.Record)) (read int) {
	parser := s.NewParser(used)
	defer parser.Close()
	for _, sp := range splits {
		_, _, err := parser.Parse(sp, func(rec *record.Record) {
			if sp.Part != nil || int(rec.Span.Start) <= budget {
				each(rec)
			}
		})
		read += cmp.Or(len(sp.Data), int(sp.Bytes)) // length of the decoded text
		if err != nil {
			return read
		}
	}
	return read
}

// TextBytes estimates the length of the records' text in bytes, by a sample if necessary. It returns -1 if unknown.
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
		return -1, nil // it can be read only once
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
		taken = text.packed.n
	}
	switch {
	case n == 0 && err != nil:
		return -1, fmt.Errorf("read %s: %w", s.Name, err)
	case taken <= 0:
		return -1, nil
	}
	return max(0, int64(float64(n)*float64(s.Size)/float64(taken))-s.text.offset), nil
}

// metered counts the bytes read.
type metered struct {
	r io.Reader
	n int64
}

func (c *metered) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
