package tablescan

import (
	"context"
	"errors"
	"io"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/reader/source"
)

// Reread returns the rows of keys, each as it is when it is read.
func (o *Origin) Reread(ctx context.Context, keys [][]table.Value) (source.Source, error) {
	return &some{&part{of: o, ctx: ctx, name: o.cfg.Name, one: true}, keys}, nil
}

// some are rows by their keys: one range after the other.
type some struct {
	*part
	keys [][]table.Value // that are still to be read
}

// Next reads the next row.
func (s *some) Next() (pg source.Piece, err error) {
	for len(s.keys) > 0 || s.pager != nil {
		if s.pager == nil {
			s.from, s.keys = s.keys[0], s.keys[1:]
			if s.to, err = scan.After(s.from); err != nil {
				return nil, err
			}
		}
		if pg, err = s.part.Next(); !errors.Is(err, io.EOF) {
			return pg, err
		}
		s.pager = nil
	}
	if err := s.of.same(s.ctx, true); err != nil {
		return nil, err
	}
	return nil, io.EOF
}
