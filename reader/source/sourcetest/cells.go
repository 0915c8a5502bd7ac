package sourcetest

import (
	"fmt"
	"slices"
	"testing"
	"unicode/utf8"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

func checkCells(t *testing.T, open func() source.Source) {
	s := open()
	defer s.Close()
	columns := s.About().Columns
	plain := described(t, s, all(s), columns)
	if !s.About().Wide {
		return
	}
	if s.About().AddColumns == nil {
		t.Fatal("its records describe themselves, so they may lack columns: it has no AddColumns")
	}

	few := open()
	defer few.Close()
	for i, r := range described(t, few, []int{0}, columns) {
		if r.cells != plain[i].cells {
			t.Fatalf("with one column used record %d has the cells %s, want %s", i, r.cells, plain[i].cells)
		}
	}

	names := []string{"a name that no cell has"}
	for _, r := range plain {
		for name := range r.newest {
			if len(names) < 100 && !slices.Contains(names, name) && !slices.Contains(columns, name) {
				names = append(names, name)
			}
		}
	}
	asked := open()
	defer asked.Close()
	asked.About().AddColumns(names)
	has := asked.About().Columns
	for _, name := range append(slices.Clone(columns), names...) {
		if !slices.Contains(has, name) {
			t.Fatalf("after AddColumns(%q) it has the columns %q", names, has)
		}
	}
	for i, r := range described(t, asked, all(asked), has) {
		if r.cells != plain[i].cells {
			t.Fatalf("with columns added record %d has the cells %s, want %s", i, r.cells, plain[i].cells)
		}
		for _, name := range columns {
			if r.fields[name] != plain[i].fields[name] {
				t.Errorf("with added columns, record %d has %s in %s, want %s", i, r.fields[name], name, plain[i].fields[name])
			}
		}
		for _, name := range names {
			want, there := plain[i].newest[name]
			if !there {
				want = datum(&record.Datum{Kind: record.Absent})
			}
			if r.fields[name] != want && !plain[i].bad {
				t.Errorf("record %d has %s in the requested column %q, want %s", i, r.fields[name], name, want)
			}
		}
	}
}

type selfDescribed struct {
	bad    bool
	cells  string
	fields map[string]string
	newest map[string]string // newest cells, by name
}

// described reads a source and checks the cells of each record. If the source is Wide, it returns the records.
func described(t *testing.T, s source.Source, used []int, columns []string) (all []selfDescribed) {
	t.Helper()
	splits, err := cut(s)
	conformance.Must(t, err)
	wide := s.About().Wide
	p := s.NewParser(used)
	defer p.Close()
	for _, sp := range splits {
		if _, _, err := p.Parse(sp, func(rec *record.Record) {
			if !wide {
				if rec.Cells != nil {
					t.Error("a record has cells, and the source does not say Wide")
				}
				return
			}
			r := selfDescribed{bad: rec.Bad != nil, fields: map[string]string{}, newest: map[string]string{}}
			if all = append(all, r); r.bad {
				return
			}
			if len(rec.Fields) != len(columns) {
				t.Fatalf("record %d has %d fields, of %d columns", len(all)-1, len(rec.Fields), len(columns))
			}
			for i, name := range columns {
				r.fields[name] = datum(&rec.Fields[i])
			}
			all[len(all)-1].cells = checkedCells(t, rec.Cells, r.newest)
		}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// checkedCells returns the cells of a record as text, and adds the newest cell of each name to newest.
func checkedCells(t *testing.T, cells []record.Cell, newest map[string]string) string {
	var s []byte
	times := map[string][]int64{}
	null := map[string]bool{}
	for i := range cells {
		c := &cells[i]
		name, at := string(c.Name), max(c.At, -1)
		switch {
		case !utf8.ValidString(name):
			t.Errorf("the name %q of a cell is not UTF-8", name)
		case c.Kind == record.Text || c.Kind == record.Absent:
			t.Errorf("cell %q has kind %d, which has no type", name, c.Kind)
		case slices.Contains(times[name], at):
			t.Errorf("two cells %q have the timestamp %d", name, at)
		case null[name], c.Kind == record.Null && times[name] != nil:
			t.Errorf("cell %q has no value, but is not the only one", name)
		}
		newer := !slices.ContainsFunc(times[name], func(other int64) bool { return other < 0 || at >= 0 && other > at })
		if times[name], null[name] = append(times[name], at), null[name] || c.Kind == record.Null; newer {
			newest[name] = datum(&c.Datum)
		}
		s = fmt.Appendf(s, "%q at %d ", name, at)
		s = appendDatum(s, &c.Datum)
	}
	return string(s)
}
