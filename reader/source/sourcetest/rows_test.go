package sourcetest

import (
	"testing"
	"time"

	"tsimport/internal/table"
	"tsimport/reader/source"
)

func TestRowsKeepTheContract(t *testing.T) {
	Check(t, func() source.Source {
		r := NewRows("rows", 95)
		r.Bad = map[int64]*table.Reason{17: {Code: table.CodeRagged}}
		return r
	})
}

func TestWideRowsKeepTheContract(t *testing.T) {
	Check(t, func() source.Source {
		w := NewWide("wide", 95, time.UnixMilli(1e12))
		w.Bad = map[int64]*table.Reason{17: {Code: table.CodeRagged}}
		return w
	})
}

func TestRowsWithUniqueKeysKeepTheContract(t *testing.T) {
	Check(t, func() source.Source {
		r := NewRows("rows", 95)
		r.Unique = true
		return r
	})
}
