package sourcetest

import (
	"testing"

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
