package reader

import (
	"cmp"
	"fmt"
	"io"
	"sort"

	"example.com/tsimport/reader/compress"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Anywhere reports whether splits can be read in any order once their places are known. This applies to Parquet, Arrow,
// and uncompressed local text without transcoding. Finding the splits of text over a network takes too long.
func (s *File) Anywhere() bool {
	if !s.item.Seekable() {
		return false
	}
	return s.file != nil || s.inOrder == nil && s.item.Local() && s.Compression == compress.None && !s.text.transcode &&
		s.Dialect.Parallel()
}

// Reopen prepares the source for LoadStretch.
func (s *File) Reopen() error {
	at, err := s.item.OpenAt(s.ctx)
	if err != nil {
		return err
	}
	s.at = at
	if s.file != nil {
		err = s.openRows()
	}
	return err
}

func (s *File) readText(sp source.Split) (source.Split, error) {
	sp.Data = make([]byte, sp.Bytes)
	if n, err := s.at.ReadAt(sp.Data, sp.Offset); n < len(sp.Data) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return sp, fmt.Errorf("read %s at byte %d: %w", s.Name, sp.Offset+int64(n), err)
	}
	return sp, nil
}

// Divisible reports whether LoadStretch loads any range cheaply, as in CSV, JSON lines, Arrow and small-paged Parquet.
func (s *File) Divisible() bool {
	return s.Anywhere() && (s.file == nil && s.inLines() || s.file != nil && !s.file.Large)
}

// LoadStretch returns a stretch's records as one split, or one per row group. After Reopen, calls may be concurrent.
func (s *File) LoadStretch(to source.Stretch) ([]source.Split, error) {
	number := int(min(to.Record, 1)) // only the first split has number 0
	if s.file == nil {
		sp, err := s.readText(source.Split{Number: number, Offset: to.Offset, Bytes: to.Bytes})
		return []source.Split{sp}, err
	}
	var all []source.Split
	splits, end := s.file.Splits, to.Record+to.Records
	first := sort.Search(len(splits), func(i int) bool { return splits[i].FirstRow+splits[i].Rows > to.Record })
	for _, rows := range splits[first:] {
		if rows.FirstRow >= end {
			break
		}
		skip := max(0, to.Record-rows.FirstRow)
		n := min(rows.Rows, end-rows.FirstRow) - skip
		rows.Bytes = int64(float64(rows.Bytes) * float64(n) / float64(rows.Rows))
		rows.First, rows.FirstRow, rows.Rows, rows.Number = rows.First+skip, rows.FirstRow+skip, n, number
		number = 1
		all = append(all, splitOf(&rows, &rows))
	}
	return all, nil
}

// Finished closes a source whose splits have all been loaded. It returns an error if the source has changed.
func (s *File) Finished() error {
	return cmp.Or(s.item.Check(), s.Close())
}

// ReadAgain reopens the input and reads all records, with pages within a memory limit in bytes. It returns read errors.
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
	for split, err := range source.Splits(again) {
		if err == nil {
			_, _, err = parser.Parse(split, func(*record.Record) {})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
