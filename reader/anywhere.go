package reader

import (
	"fmt"
	"io"

	"tsimport/reader/compress"
	"tsimport/reader/parquet"
)

// Anywhere reports whether splits can be read in any order once it is known where they are: rows of Parquet, and files of
// text that are neither compressed nor in an encoding that must be read from the beginning. To find splits of text all of it
// is read, so one that comes over a network is not worth it.
func (s *Source) Anywhere() bool {
	if !s.item.Seekable() {
		return false
	}
	return s.Format == Parquet || s.item.Local() && s.Compression == compress.None && !s.text.transcode && s.Dialect.Parallel()
}

// Reopen makes the source ready for Load. It is not safe for concurrent use.
func (s *Source) Reopen() error {
	at, err := s.item.OpenAt(s.ctx)
	if err != nil {
		return err
	}
	s.at = at
	if s.Format == Parquet {
		s.file, err = parquet.Open(s.at, s.Size, s.Name, parquet.Options{Flatten: s.o.Flatten, MaxFooter: s.o.Memory.PageBytes / 8})
	}
	return err
}

// Load returns a split of a source that can be read anywhere with its data. Safe for concurrent use, between Reopen and
// Finished.
func (s *Source) Load(sp Split) (Split, error) {
	if sp.rows != nil || sp.long != nil {
		return sp, nil
	}
	sp.Data = make([]byte, sp.Bytes)
	if n, err := s.at.ReadAt(sp.Data, sp.Offset); n < len(sp.Data) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return sp, fmt.Errorf("read %s at byte %d: %w", s.Name, sp.Offset+int64(n), err)
	}
	return sp, nil
}

// Finished closes a source of which every split was loaded, and reports whether it was changed meanwhile.
func (s *Source) Finished() error {
	err := s.item.Check()
	if closeErr := s.Close(); err == nil {
		err = closeErr
	}
	return err
}

// Place is the split without its data.
func (sp Split) Place() Split {
	sp.Data = nil
	return sp
}

// Rows returns how many records the split holds and how many of the source come before it, where the source states it, as
// Parquet does.
func (sp Split) Rows() (rows, before int64, ok bool) {
	if sp.rows == nil {
		return 0, 0, false
	}
	return sp.rows.Rows, sp.rows.FirstRow, true
}

// Head returns the first record of a split with which a row group of Parquet begins, and false for all other splits.
func (sp Split) Head() (Split, bool) {
	if sp.rows == nil || sp.rows.First > 0 {
		return sp, false
	}
	head := *sp.rows
	head.Rows = min(head.Rows, 1)
	sp.rows = &head
	return sp, true
}

// Group returns the row group of a split of Parquet: splits of one are best read one after the other.
func (sp Split) Group() int {
	if sp.rows == nil {
		return -1
	}
	return sp.rows.RowGroup
}
