package intake

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/encode"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/record"
)

func TestMain(m *testing.M) { conformance.Main(m) }

// cellsOf returns the cells of a load of self-describing rows, and its values.
func cellsOf(t *testing.T, change func(*plan.Request)) (*cells, *values) {
	t.Helper()
	r := ask(file(t, "a.ndjson",
		`{"Wide":true,"PK":{"Values":[{"C":"id","V":1,"IsInt":true}]},"Attr":{"Values":[{"C":"version","V":1617242400000,"IsInt":true}]}}`+"\n"))
	r.Target.Key = []table.KeyColumn{{Name: "id", Type: table.Integer}}
	if change != nil {
		change(r)
	}
	p := conformance.Try(plan.Make(t.Context(), r, nil)).Must(t)
	t.Cleanup(p.Close)
	return newCells(p), conformance.Try(newValues(p, p.Sources[0])).Must(t)
}

func cellOf(name string, n, at int64) record.Cell {
	return record.Cell{Name: []byte(name), Datum: record.Datum{Kind: record.Integer, Int: n}, At: at}
}

func shown(made []encode.Cell) (all []string) {
	for _, c := range made {
		all = append(all, fmt.Sprintf("%s=%s %d %s at %d", c.Name, c.Value.Type, c.Value.Int, c.Value.Bytes, c.At))
	}
	return all
}

func TestFlagsApplyToCellsByTheirNames(t *testing.T) {
	rec := &record.Record{Fields: []record.Datum{{Kind: record.Integer}}, Cells: []record.Cell{cellOf("a", 1, -1),
		cellOf("b", 2, 5), cellOf("b", 3, 4), cellOf("c", 4, -1), {Name: []byte("n")}, cellOf("new c", 5, 7)}}
	for name, tt := range map[string]struct {
		change func(*plan.Request)
		want   string
	}{
		"none": {nil, "[a=integer 1  at -1 b=integer 2  at 5 b=integer 3  at 4 c=integer 4  at -1 n=null 0  at 0 new " +
			"c=integer 5  at 7]"},
		"only": {func(r *plan.Request) { r.Columns.Only = []string{"b", "no"} }, "[b=integer 2  at 5 b=integer 3  at 4]"},
		"exclude": {func(r *plan.Request) { r.Columns.Exclude = []string{"b", "n", "new c", "none"} },
			"[a=integer 1  at -1 c=integer 4  at -1]"},
		"type": {func(r *plan.Request) {
			r.Columns.Types = map[string]plan.Type{"b": {Type: table.String}}
			r.Columns.Only = []string{"b"}
		}, "[b=string 0 2 at 5 b=string 0 3 at 4]"},
		"rename": {func(r *plan.Request) {
			r.Columns.Rename = map[string]string{"b": "c"}
			r.Columns.Only = []string{"a", "b"}
		}, "[a=integer 1  at -1 c=integer 2  at 5 c=integer 3  at 4]"},
		"its type": {func(r *plan.Request) {
			r.Columns.Rename = map[string]string{"a": "x"}
			r.Columns.Types = map[string]plan.Type{"x": {Type: table.Double}}
			r.Columns.Only = []string{"a"}
		}, "[x=double 0  at -1]"},
		"to a name": {func(r *plan.Request) {
			r.Columns.Rename = map[string]string{"b": "new c", "new c": "b"}
			r.Columns.Only = []string{"b", "new c"}
		}, "[new c=integer 2  at 5 new c=integer 3  at 4 b=integer 5  at 7]"},
	} {
		c, v := cellsOf(t, tt.change)
		_, why := v.rowValues(rec)
		conformance.MustTrue(t, why == nil, "%v", why)
		made, why := c.make(v, rec)
		got := fmt.Sprint(shown(made))
		conformance.True(t, why == nil && got == tt.want, "%s: %s, %v\nwant %s", name, got, why, tt.want)
	}
}

// Their cells would be versions of one column, and the table may keep only one.
func TestRenameThatMergesColumnsIsRefused(t *testing.T) {
	c, v := cellsOf(t, func(r *plan.Request) { r.Columns.Rename = map[string]string{"a": "c", "b": "c"} })
	for _, tt := range []struct {
		cells []record.Cell
		want  string
	}{
		{[]record.Cell{cellOf("a", 1, 5), cellOf("a", 2, 4)}, "[c=integer 1  at 5 c=integer 2  at 4]"},
		{[]record.Cell{cellOf("c", 1, 5)}, "[c=integer 1  at 5]"},
		{[]record.Cell{cellOf("a", 1, 5), cellOf("c", 2, 4)}, "--rename makes the columns a and c of the record one"},
		{[]record.Cell{cellOf("a", 1, 5), cellOf("x", 1, 5), cellOf("b", 2, 4)},
			"--rename makes the columns a and b of the record one"},
		{[]record.Cell{cellOf("b", 1, 5), cellOf("x", 1, 5)}, "[c=integer 1  at 5 x=integer 1  at 5]"},
	} {
		made, why := c.make(v, &record.Record{Fields: []record.Datum{{Kind: record.Integer}}, Cells: tt.cells})
		got := fmt.Sprint(shown(made))
		if why != nil {
			got = why.Message
		}
		conformance.True(t, strings.HasPrefix(got, tt.want) && (why == nil || why.Code == table.CodeSameCell),
			"%s, %v, want %s", got, why, tt.want)
	}
}

func TestTheVersionColumnIsTheTimestampOfAllCells(t *testing.T) {
	c, v := cellsOf(t, func(r *plan.Request) { r.Read.Convert.VersionColumn = "version" })
	rec := &record.Record{Fields: []record.Datum{{Kind: record.Integer}, {Kind: record.Integer, Int: 77}},
		Cells: []record.Cell{cellOf("a", 1, -1), cellOf("version", 77, 5)}}
	made, why := c.make(v, rec)
	got := fmt.Sprint(shown(made))
	conformance.True(t, why == nil && got == "[a=integer 1  at 77 version=integer 77  at 77]", "%s, %v", got, why)
	rec.Fields[1].Kind = record.Absent
	_, why = c.make(v, rec)
	conformance.True(t, why != nil && why.Code == table.CodeType, "without a version: %v", why)
}

// A repeated name costs nothing, and names that never repeat are forgotten.
func TestRememberedNamesAreBounded(t *testing.T) {
	c, v := cellsOf(t, nil)
	rec := &record.Record{Fields: []record.Datum{{Kind: record.Integer}}}
	for i := range 5 * maxCellNames {
		rec.Cells = []record.Cell{cellOf("always", 1, -1), cellOf(fmt.Sprint("only in ", i), 1, -1),
			cellOf(fmt.Sprintf("%0300d", i), 1, -1)}
		rec.Cells = rec.Cells[:2+i%2]
		made, why := c.make(v, rec)
		conformance.MustTrue(t, why != nil == (i%2 == 1) && (why == nil || why.Code == table.CodeColumnName),
			"record %d: %d cells, %v", i, len(made), why)
		conformance.MustTrue(t, len(c.names) <= maxCellNames+3, "%d names are remembered after %d records", len(c.names), i)
	}
	rec.Cells = []record.Cell{cellOf("always", 1, -1), cellOf("b", 1, 5), cellOf("b", 1, 6)}
	if n := testing.AllocsPerRun(100, func() {
		if _, why := c.make(v, rec); why != nil {
			t.Fatal(why)
		}
	}); n != 0 {
		t.Errorf("%v allocations a record", n)
	}
}

// computing makes the values of a file with the columns id, n and at, with a computed key and attribute.
func computing(t *testing.T, change func(*plan.Request)) *values {
	t.Helper()
	r := ask(file(t, "a.csv", "id,n,at\nb,7,1617242400000\n"))
	r.Target.Key = []table.KeyColumn{{Name: "k"}, {Name: "n"}}
	r.Columns.Keys = []keyexpr.Column{{Name: "k", Expr: `id + pad(n, 2)`}}
	r.Columns.Set = []keyexpr.Column{{Name: "up", Expr: `upper(id)`}}
	r.Columns.Exclude = []string{"id"}
	if change != nil {
		change(r)
	}
	p := conformance.Try(plan.Make(t.Context(), r, nil)).Must(t)
	t.Cleanup(p.Close)
	return conformance.Try(newValues(p, p.Sources[0])).Must(t)
}

func fields(texts ...string) *record.Record {
	rec := &record.Record{}
	for _, text := range texts {
		rec.Fields = append(rec.Fields, record.Datum{Kind: record.Text, Bytes: []byte(text)})
	}
	return rec
}

func TestRowsHaveTheirComputedValues(t *testing.T) {
	v := computing(t, nil)
	row, why := v.rowValues(fields("c", "5", "1"))
	conformance.True(t, why == nil && len(row) == 4 && string(row[0].Bytes) == "c05" && row[1].Int == 5 &&
		row[2].Int == 1 && string(row[3].Bytes) == "C", "%v, %v", row, why)
	conformance.Same(t, v.fields(), []int{0, 1, 2}, "fields: the excluded column is needed")
	var want []byte
	want = table.AppendKey(want, table.Value{Type: table.String, Bytes: []byte("c05")})
	want = table.AppendKey(want, table.Value{Type: table.Integer, Int: 5})
	conformance.Same(t, v.appendKey(nil, fields("c", "5", "1")), want, "ordering key")
}

func TestARowWhoseKeyCannotBeComputedIsRefused(t *testing.T) {
	v := computing(t, nil)
	for code, rec := range map[string]*record.Record{
		table.CodeNullKey: fields("", "5", "1"),
		table.CodeRange:   fields("c", "500", "1"),
		table.CodeType:    fields("c", "x", "1"),
	} {
		_, why := v.rowValues(rec)
		conformance.True(t, why != nil && why.Code == code, "%v, want %s", why, code)
		got := v.appendKey(nil, rec)
		conformance.True(t, got == nil, "%s: ordering key: %v", code, got)
	}
}

func TestComputedCellsTakeVersionColumnOrServerTime(t *testing.T) {
	versioned := computing(t, func(r *plan.Request) { r.Read.Convert.VersionColumn = "at" })
	if got, why := versioned.stamps(fields("c", "5", "77")); why != nil || !slices.Equal(got, []int64{77, 77, 77, 77}) {
		t.Errorf("with a version column: %v, %v", got, why)
	}
	v := computing(t, nil)
	rec := fields("c", "5", "1")
	rec.Timestamps = []int64{1, 2, 3}
	if got, why := v.stamps(rec); why != nil || !slices.Equal(got, []int64{-1, 2, 3, -1}) {
		t.Errorf("with the file's own timestamps: %v, %v", got, why)
	}
	got, why := v.stamps(fields("c", "5", "1"))
	conformance.True(t, why == nil && got == nil, "without any: %v, %v", got, why)
}
