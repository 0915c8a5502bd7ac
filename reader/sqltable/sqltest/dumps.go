package sqltest

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqldump"
	"example.com/tsimport/reader/sqltable"
)

// Index finds the tables in a dump.
type Index func(io.Reader) (*sqldump.Dump, error)

// Parser reads the rows in a dump.
type Parser interface {
	Reset(rows []byte, begun bool)
	Next() (*record.Record, bool)
}

// Read returns every row that a parser finds, formatted by show.
func Read(p Parser, rows []byte, begun bool, show func(*record.Record) string) (shown []string) {
	p.Reset(rows, begun)
	for rec, ok := p.Next(); ok; rec, ok = p.Next() {
		shown = append(shown, show(rec))
	}
	return shown
}

// Text formats the values of a row, or the reason why it has none.
func Text(rec *record.Record) string {
	if rec.Bad != nil {
		return rec.Bad.Code + " " + rec.Bad.Column
	}
	fields := []string{}
	for i := range rec.Fields {
		if rec.Fields[i].Kind == record.Null {
			fields = append(fields, "null")
			continue
		}
		fields = append(fields, convert.Text(&rec.Fields[i]))
	}
	return strings.Join(fields, "|")
}

// CutAnywhere checks that dumps cut at any length are recognised as incomplete, and that tables have their first rows.
func CutAnywhere(t *testing.T, text []byte, first, complete int, index Index, rowsOf func(*sqldump.Table) []string) {
	t.Helper()
	whole, err := index(bytes.NewReader(text))
	conformance.Must(t, err)
	for n := first; n < complete; n += 1 + n%11 {
		d, err := index(bytes.NewReader(text[:n]))
		if err != nil || d.Truncated == nil {
			t.Fatalf("%d bytes are a whole dump, or none: %v", n, err)
		}
		for _, table := range d.Tables {
			if table.Refused != "" || table.Rows == 0 {
				continue
			}
			all := rowsOf(whole.Find(table.Name))
			if rows := rowsOf(table); len(rows) != int(table.Rows) || !slices.Equal(rows, all[:len(rows)]) {
				t.Fatalf("%d bytes: table %s has %q of %d", n, table.Name, rows, table.Rows)
			}
		}
	}
	for _, n := range []int{complete, complete + 1, len(text)} {
		if d, err := index(bytes.NewReader(text[:n])); err != nil || d.Truncated != nil {
			t.Errorf("%d bytes: err %v, truncated %v", n, err, d.Truncated)
		}
	}
}

// RefusedDumps checks that each dump, or the table a in it, is refused with the wanted text.
func RefusedDumps(t *testing.T, index Index, dumps, tables map[string]string) {
	t.Helper()
	for text, want := range dumps {
		_, err := index(strings.NewReader(text))
		conformance.Refused(t, err, want, "%.60q", text)
	}
	for text, want := range tables {
		d, err := index(strings.NewReader(text))
		if err == nil {
			_, err = d.Choose("a")
		}
		if d == nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: err = %v, want %q", text, err, want)
		}
	}
}

// Compare compares the rows of a dumped table with those of the live table.
func Compare(t *testing.T, live sqltable.Server, dump []byte, of *sqldump.Table, p Parser) {
	t.Helper()
	columns, key, err := sqltable.New(sqltable.Config{Server: live}).Describe(t.Context())
	conformance.Must(t, err)
	for i, k := range key {
		if of.Key[i] != columns[k].Name {
			t.Errorf("key %q differs from the live table's", of.Key)
		}
	}
	var names []string
	for _, c := range of.Columns {
		at := slices.IndexFunc(columns, func(l sqltable.Column) bool { return l.Name == c.Name })
		if at < 0 || columns[at].Type != c.Type() {
			t.Fatalf("column %s is %v, live at %d", c.Name, c.Type(), at)
		}
		names = append(names, c.Name)
	}
	want := Values(t, live, names)
	dumped := Read(p, dump[of.From:of.To], false, func(rec *record.Record) string {
		if rec.Bad != nil {
			t.Fatal(rec.Bad)
		}
		return Show(rec, nil)
	})
	slices.Sort(dumped)
	if len(want) != len(dumped) || len(want) != int(of.Rows) {
		t.Fatalf("%s: %d rows live, %d in the dump, which says %d", of.Name, len(want), len(dumped), of.Rows)
	}
	for i := range want {
		if want[i] != dumped[i] {
			t.Fatalf("%s: live\n%s\ndump\n%s", of.Name, want[i], dumped[i])
		}
	}
	t.Logf("%s: %d rows of %d columns are equal", of.Name, len(want), len(names))
}
