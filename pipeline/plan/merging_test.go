package plan

import (
	"context"
	"errors"
	"strings"
	"testing"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
)

// keyedRows are rows with a key of several columns, and perhaps another one.
type keyedRows struct {
	*sourcetest.Rows
	unique []source.KeyColumn
	also   [][]string
}

func (r keyedRows) Open(context.Context, []byte) ([]source.Source, error) {
	return []source.Source{r}, nil
}
func (r keyedRows) Suspend() error { return nil }
func (r keyedRows) About() source.About {
	a := r.Rows.About()
	a.Unique, a.AlsoUnique = r.unique, r.also
	return a
}

// TestKeysOfASourceAreKeptApartOrRefused: the source's key is a, a text, and n, a number; b is binary and part of a longer key.
func TestKeysOfASourceAreKeptApartOrRefused(t *testing.T) {
	a, n, b := source.KeyColumn{Name: "a", Kind: record.String}, source.KeyColumn{Name: "n", Kind: record.Integer}, source.KeyColumn{Name: "b", Kind: record.Binary}
	for _, c := range []struct {
		keys   string // separated by spaces; NAME=EXPRESSION is computed
		unique []source.KeyColumn
		also   [][]string
		change func(*Request)
		lost   string
	}{
		{keys: "a n"},
		{keys: "n a"},
		{keys: "n", lost: "a"},
		{keys: "a", lost: "n"},
		{keys: "a b n", unique: []source.KeyColumn{a, n, b}},
		{keys: "a n", unique: []source.KeyColumn{a, n, b}, lost: "b"},
		{keys: "a n", unique: []source.KeyColumn{a, n, b}, also: [][]string{{"a", "n"}}},
		{keys: "a", unique: []source.KeyColumn{a, n, b}, also: [][]string{{"a", "n"}}, lost: "n,b"},
		{keys: "h=md5(a,4) a n"},
		{keys: "h=md5(a,4)+a n"},
		{keys: "h=md5(a,32) n", lost: "a"},
		{keys: "h=sha256(a,32) n"},
		{keys: "h=sha256(a,31) n", lost: "a"},
		{keys: "h=lower(a) n", lost: "a"},
		{keys: "h=bucket(n,8)+a", lost: "n"},
		{keys: `k=splice(auto,a,n)`},
		{keys: `k=splice(",",a,pad(n,9))`},
		{keys: `k=a+pad(n,9)`},
		{keys: `k=a+text(n)`, lost: "a,n"},
		{keys: `k=text(n)+"/"+a`},
		{keys: `k=text(n)+a`, lost: "a,n"},
		{keys: `k=text(n)+"0"+a`, lost: "a,n"},
		{keys: `a k=n+1`},
		{keys: `a k=int(n/2)`, lost: "n"},
		{keys: "a n", change: func(r *Request) { r.Target.Key[1].Type = table.String }},
		{keys: "x n", change: func(r *Request) { r.Columns.Rename = map[string]string{"a": "x"} }},
		{keys: "a n", lost: "a", change: func(r *Request) { r.Read.Convert.Trim = true }},
		{keys: "a n", lost: "a", change: func(r *Request) { r.Target.Key[0].Type = table.Binary }},
		{keys: "a n", lost: "n", change: func(r *Request) {
			r.Columns.Types = map[string]Type{"n": {Type: table.Integer, Time: &table.Time{}}}
		}},
		{keys: "n", change: func(r *Request) { r.Target.Table = "t_{a}" }},
		{keys: "n", lost: "a", change: func(r *Request) { r.Target.Table = "t_{lower(a)}" }},
		{keys: "n", lost: "a", change: func(r *Request) { r.Target.Table = "t_{a}_{n}" }},
		{keys: "n", change: func(r *Request) { r.Mode = table.Delete }},
		{keys: "a", change: func(r *Request) { r.Mode, r.Columns.Exclude = table.Increment, []string{"b"} }},
		{keys: "n seq", change: func(r *Request) {
			r.Read.Archived, r.Target.Key[1] = true, table.KeyColumn{Name: "seq", Type: table.Integer, Auto: true}
		}},
		{keys: "n", change: func(r *Request) { r.Keep = KeepKeyFields }},
		{keys: "h=md5(a,2) i=md5(a,3) j=md5(a,4)", lost: "a,n"},
	} {
		rows := keyedRows{&sourcetest.Rows{Name: "rows", Columns: []string{"a", "n", "b"}}, c.unique, c.also}
		rows.Data = [][]record.Datum{{{Kind: record.String, Bytes: []byte("x")}, {Kind: record.Integer, Int: 1}, {Kind: record.Binary, Bytes: []byte{1}}}}
		if rows.unique == nil {
			rows.unique = []source.KeyColumn{a, n}
		}
		r := &Request{Inputs: []string{"rows"}, Mode: table.Put, Target: Target{Table: "t", Create: true, Absent: true}}
		r.Read.Sources = rows
		for _, k := range strings.Fields(c.keys) {
			name, expr, computed := strings.Cut(k, "=")
			if r.Target.Key = append(r.Target.Key, table.KeyColumn{Name: name}); computed {
				r.Columns.Keys = append(r.Columns.Keys, Column{Name: name, Expr: expr})
			}
		}
		if c.change != nil {
			c.change(r)
		}
		p, err := Make(t.Context(), r, nil)
		if c.lost == "" {
			if err != nil {
				t.Errorf("%s: %v", c.keys, err)
				continue
			}
			p.Close()
			continue
		}
		usage := new(UsageError)
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), "differ only in "+strings.ReplaceAll(c.lost, ",", ", ")+" may become one row") ||
			strings.Contains(err.Error(), "splice(auto, …)") != (len(r.Target.Key)+strings.Count(c.lost, ",")+1 > table.MaxKeyColumns) {
			t.Errorf("%s: %v, and %s is lost", c.keys, err, c.lost)
		}
		looked := 0
		r.Read.Look = func(context.Context) error { looked++; return errors.New("seen") }
		if _, err := Make(t.Context(), r, nil); err == nil || err.Error() != "seen" || looked != 1 {
			t.Errorf("%s: looked %d times: %v", c.keys, looked, err)
		}
		r.Written = true
		if p, err = Make(t.Context(), r, nil); err != nil || p.Merging == nil || looked != 1 {
			t.Errorf("%s: a comparison: %v", c.keys, err)
		}
	}
}
