package reader

import (
	"fmt"
	"io"

	"tsimport/reader/compress"
	"tsimport/reader/parquet"
	"tsimport/reader/source"
)

// Anywhere reports whether splits can be read in any order once it is known where they are: rows of Parquet, and files of
// text that are neither compressed nor in an encoding that must be read from the beginning. To find splits of text all of it
// is read, so one that comes over a network is not worth it.
func (s *File) Anywhere() bool {
	if !s.item.Seekable() {
		return false
	}
	return s.Format == Parquet || s.item.Local() && s.Compression == compress.None && !s.text.transcode && s.Dialect.Parallel()
}

// Reopen makes the source ready for Load. It is not safe for concurrent use.
func (s *File) Reopen() error {
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
func (s *File) Load(sp source.Split) (source.Split, error) {
	if sp.Part != nil {
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
func (s *File) Finished() error {
	err := s.item.Check()
	if closeErr := s.Close(); err == nil {
		err = closeErr
	}
	return err
}

// Head returns the first record of a split with which a row group of Parquet begins, and false for all other splits.
func (s *File) Head(sp source.Split) (source.Split, bool) {
	rows := rowsOf(sp)
	if rows == nil || rows.First > 0 {
		return sp, false
	}
	head := *rows
	head.Rows = min(head.Rows, 1)
	sp.Part, sp.Rows = &head, head.Rows
	return sp, true
}
