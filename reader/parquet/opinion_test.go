package parquet

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"example.com/tsimport/internal/conformance"
)

// fixed is what to do when parquet-go no longer makes a mistake.
const fixed = `parquet-go no longer reads this file wrongly. Once it reads all files of "Reports for parquet-go" in testdata/README.md rightly, ` +
	"see there whether its pages can take the place of ours"

// mistaken are the files of which parquet-go 0.32.0 reads wrong values without an error.
var mistaken = map[string]string{
	// The first value stands in Arrow's own test of the file.
	"lz4_raw_compressed_larger.parquet": `"c7ce6bef-d5b0-4863-b199-8ea8c7fb117b", parquet-go has ""`,
	// The page's body is 02000000 18 01: a run of twelve values, all true.
	"complex.parquet": "completed: 1, parquet-go has 0",
}

// TestParquetGoReadsTheSameEntries compares each entry of each leaf, levels and value, with what parquet-go makes of
// it, wherever parquet-go can read the file.
func TestParquetGoReadsTheSameEntries(t *testing.T) {
	dir := conformance.Dir(t)
	var same, silent, entries int
	for _, e := range files(t, dir) {
		if e.Expected != "ok" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(e.Path)))
		must(t, err)
		n, theirs, ours := compare(b, e.Path)
		switch {
		case mistaken[filepath.Base(e.Path)] != "":
			if ours == nil || !strings.Contains(ours.Error(), mistaken[filepath.Base(e.Path)]) {
				t.Errorf("%s: %v, %v: %s", e.Path, theirs, ours, fixed)
			}
		case theirs != nil:
			silent++
			t.Logf("parquet-go cannot say: %s: %v", e.Path, theirs)
		case ours != nil:
			t.Errorf("%s: %v", e.Path, ours)
		default:
			same++
			entries += n
		}
	}
	if same < 150 {
		t.Errorf("only %d files could be compared", same)
	}
	t.Logf("%d files with %d entries are the same, on %d parquet-go has no opinion", same, entries, silent)
}

func compare(b []byte, name string) (n int, theirs, ours error) {
	defer func() {
		if p := recover(); p != nil {
			theirs = fmt.Errorf("panic: %v", p)
		}
	}()
	f, err := Open(bytes.NewReader(b), int64(len(b)), name, Options{})
	if err != nil {
		return 0, nil, err
	}
	g, err := pq.OpenFile(bytes.NewReader(b), int64(len(b)), pq.SkipPageIndex(true), pq.SkipBloomFilters(true))
	if err != nil {
		return 0, err, nil
	}
	for i, group := range g.RowGroups() {
		if group.NumRows() == 0 {
			continue
		}
		for k, chunk := range group.ColumnChunks() {
			c := newColumn(f.leaves[k], &Parser{file: f})
			if err := c.open(bytes.NewReader(b), &f.footer.groups[i].columns[k], f.footer.start); err != nil {
				return n, nil, err
			}
			m, theirs, ours := compareChunk(c, chunk)
			if n += m; theirs != nil || ours != nil {
				return n, theirs, ours
			}
		}
	}
	return n, nil, nil
}

func compareChunk(c *column, chunk pq.ColumnChunk) (n int, theirs, ours error) {
	pages := chunk.Pages()
	defer pages.Close()
	defer func() {
		switch x := recover().(type) {
		case nil:
		case failure:
			ours = x.error
		default:
			panic(x)
		}
	}()
	values := make([]pq.Value, 100)
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			break
		}
		if err != nil {
			return n, err, nil
		}
		for r := page.Values(); ; {
			m, err := r.ReadValues(values)
			for _, v := range values[:m] {
				c.need(errShortColumn)
				if ours := same(c, v); ours != nil {
					return n, nil, fmt.Errorf("entry %d of column %s: %w", n, c.leaf.path, ours)
				}
				n++
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return n, err, nil
			}
		}
	}
	return n, nil, c.done()
}

func same(c *column, v pq.Value) error {
	rep, def := int(c.reps[c.at]), int(c.defs[c.at])
	i := c.next()
	if rep != v.RepetitionLevel() || def != v.DefinitionLevel() {
		return fmt.Errorf("levels %d %d, parquet-go has %d %d", rep, def, v.RepetitionLevel(), v.DefinitionLevel())
	}
	if i < 0 || v.IsNull() {
		if i >= 0 && c.leaf.ann != annNull {
			return fmt.Errorf("a value where parquet-go has none")
		}
		return nil
	}
	if c.values.bins != nil {
		theirs := v.ByteArray()
		if v.Kind() == pq.Int96 {
			theirs = nil
			for _, word := range v.Int96() {
				theirs = append(theirs, byte(word), byte(word>>8), byte(word>>16), byte(word>>24))
			}
		}
		if !bytes.Equal(theirs, c.values.bins[i]) {
			return fmt.Errorf("%q, parquet-go has %q", c.values.bins[i], theirs)
		}
		return nil
	}
	theirs := int64(0)
	switch v.Kind() {
	case pq.Boolean:
		if v.Boolean() {
			theirs = 1
		}
	case pq.Int32, pq.Float:
		theirs = int64(v.Int32())
	default:
		theirs = v.Int64()
	}
	if theirs != c.values.ints[i] {
		return fmt.Errorf("%d, parquet-go has %d", c.values.ints[i], theirs)
	}
	return nil
}
