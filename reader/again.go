package reader

import (
	"cmp"
	"errors"
	"io"

	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// ReadAgain opens the input again and reads all its records, the pages of formats that have them in so much memory. It returns the error
// that this reading meets, nil if it comes to the end.
func (s *File) ReadAgain(memory int64) error {
	again, err := Open(s.ctx, s.item, s.o)
	if err != nil {
		return err
	}
	defer again.Close()
	columns := make([]int, len(again.Columns))
	for i := range columns {
		columns[i] = i
	}
	parser := again.NewParser(columns)
	defer parser.Close()
	parser.LimitMemory(memory)
	for {
		splits, err := again.nextSplits()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		for _, split := range splits {
			if _, _, err := parser.Parse(split, func(*record.Record) {}); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
	}
}

// nextSplits reads the splits that the next piece completes; with io.EOF they are the last ones.
func (s *File) nextSplits() ([]source.Split, error) {
	piece, err := s.Next()
	if errors.Is(err, io.EOF) {
		splits, wrong := s.Finish()
		return splits, cmp.Or(wrong, err)
	}
	if err == nil {
		err = piece.Prepare()
	}
	if err != nil {
		return nil, err
	}
	return s.Add(piece)
}
