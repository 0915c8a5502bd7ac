package sqltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
)

// Open opens the parts of a table. They are closed when the test ends. change may be nil.
func Open(t testing.TB, s sqltable.Server, change func(*sqltable.Config)) (*sqltable.Origin, []source.Source) {
	t.Helper()
	c := sqltable.Config{Server: s}
	if change != nil {
		change(&c)
	}
	o := sqltable.New(c)
	division, err := o.Divide(context.Background())
	conformance.Must(t, err)
	parts, err := o.Open(context.Background(), division)
	conformance.Must(t, err)
	t.Cleanup(func() {
		for _, p := range parts {
			conformance.Must(t, p.Close())
		}
	})
	return o, parts
}

// Each reads parts to their ends, one after the other, and calls each for every record. onPage may be nil.
func Each(t testing.TB, parts []source.Source, onPage func(n int), each func(*record.Record)) {
	t.Helper()
	n := 0
	for _, p := range parts {
		parser := p.NewParser(nil)
		for {
			next, err := p.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			var splits []source.Split
			if err == nil {
				splits, err = p.Add(next)
			}
			if err == nil {
				_, _, err = parser.Parse(splits[0], each)
			}
			conformance.Must(t, err)
			p.About().GiveBack(splits[0])
			if n++; onPage != nil {
				onPage(n)
			}
		}
		if err := p.Close(); err != nil { // as a load does: other parts keep the snapshot
			t.Error(err)
		}
	}
}

// All reads parts and returns all records as text.
func All(t *testing.T, parts []source.Source, onPage func(n int)) (rows []string) {
	t.Helper()
	Each(t, parts, onPage, func(r *record.Record) {
		text := ""
		for i := range r.Fields {
			d := &r.Fields[i]
			text += fmt.Sprintf("%d %d %v %q|", d.Kind, d.Int, d.Double, d.Bytes)
		}
		rows = append(rows, text)
	})
	return rows
}

// Values reads a table and returns the named columns of each row, formatted by Show, in sorted order.
func Values(t *testing.T, s sqltable.Server, names []string) (rows []string) {
	t.Helper()
	_, parts := Open(t, s, nil)
	var places []int
	for _, name := range names {
		places = append(places, slices.Index(parts[0].About().Columns, name))
	}
	Each(t, parts, nil, func(r *record.Record) { rows = append(rows, Show(r, places)) })
	slices.Sort(rows)
	return rows
}

// Show formats values of a record with their kinds. Nil places means all values.
func Show(r *record.Record, places []int) string {
	if places == nil {
		for i := range r.Fields {
			places = append(places, i)
		}
	}
	text := ""
	for _, i := range places {
		d := &r.Fields[i]
		if d.Kind == record.Null {
			text += "null|"
			continue
		}
		text += fmt.Sprintf("%d %q|", d.Kind, convert.Text(d))
	}
	return text
}
