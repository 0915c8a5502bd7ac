package reader

import (
	"cmp"
	"errors"
	"io"

	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Sample calls each with the first records of the source, about budget bytes of them, and returns how many bytes it
// looked at: 0 only if there are no records. What a record has beside the named columns may be Null. Errors of reading are left for the load to meet, after the records before
// them; SampleError returns them. Suspend goes back to the start.
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

// SampleError is the error of reading that the last Sample has met after the records that it found; nil is none. A load that reads from
// the same place meets it too.
func (s *File) SampleError() error { return s.sample }

// sampleStream looks at the first chunk of a stream and puts it back.
func (s *File) sampleStream(p *piece, used []int, each func(*record.Record)) (int, error) {
	if p.batch != nil {
		s.inOrder.back = p
		read := s.parseSample(s.inOrder.splits(p), used, 0, each)
		s.inOrder.counted = 0 // it comes again
		return max(read, int(min(p.batch.Rows(), 1))), nil
	}
	data := p.data[min(int(s.text.offset), len(p.data)):]
	if head := s.utf8Head(); s.form.lacks && !s.reader.ended && len(head) > len(data) {
		data = head // which was read on to the end of a long record
	}
	n := len(data)
	if !s.reader.ended {
		if n = s.Dialect.LastEnd(data); !s.inLines() { // the last record may be cut
			n, _ = s.form.cutter(false).Cut(data) // what is wrong is found when it is read
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
		read += cmp.Or(len(sp.Data), int(sp.Bytes)) // of text, as it is decoded
		if err != nil {
			return read
		}
	}
	return read
}
