package plan

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"tsimport/reader/source"
)

// TestPagesThatDoNotFitAreRefusedBeforeATableIsMade reads a page of 24 MB. No type can be found in a sample of it either: the table would be made with the
// wrong ones.
func TestPagesThatDoNotFitAreRefusedBeforeATableIsMade(t *testing.T) {
	type row struct {
		ID   int64  `parquet:"id"`
		Text string `parquet:"text,zstd"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.PageBufferSize(64<<20), parquet.DataPageStatistics(false))
	rows := make([]row, 2400)
	for i := range rows {
		rows[i] = row{int64(i), strings.Repeat("t", 10_000)}
	}
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	must(t, w.Close())
	in := file(t, "a.parquet", b.String())
	for _, c := range []struct {
		memory  int64
		columns []string
		refused bool
	}{
		{48 << 20, nil, true},
		{48 << 20, []string{"id"}, false},
		{128 << 20, nil, false},
	} {
		r := ask(in)
		r.Memory, r.Columns.Only = c.memory, c.columns
		p, err := Make(t.Context(), r, nil)
		if refused := errors.Is(err, source.ErrMemory) && strings.Contains(err.Error(), "give more with --memory"); refused != c.refused || !refused && err != nil {
			t.Errorf("memory of %d MiB, columns %q: %v", c.memory>>20, c.columns, err)
		}
		if err == nil {
			p.Close()
		}
	}
}
