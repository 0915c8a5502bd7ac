package intake

import (
	"slices"
	"testing"

	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/record"
)

// computing makes the values of a file with the columns id, n and at, whose key and an attribute are computed.
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
	p, err := plan.Make(t.Context(), r, nil)
	must(t, err)
	t.Cleanup(p.Close)
	v, err := newValues(p, p.Sources[0])
	must(t, err)
	return v
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
	if why != nil || len(row) != 4 || string(row[0].Bytes) != "c05" || row[1].Int != 5 || row[2].Int != 1 || string(row[3].Bytes) != "C" {
		t.Errorf("%v, %v", row, why)
	}
	if !slices.Equal(v.fields(), []int{0, 1, 2}) {
		t.Errorf("fields %v: the excluded column is needed", v.fields())
	}
	var want []byte
	want = table.AppendKey(want, table.Value{Type: table.String, Bytes: []byte("c05")})
	want = table.AppendKey(want, table.Value{Type: table.Integer, Int: 5})
	if got := v.appendKey(nil, fields("c", "5", "1")); !slices.Equal(got, want) {
		t.Errorf("ordering key %x, want %x", got, want)
	}
}

func TestARowWhoseKeyCannotBeComputedIsRefused(t *testing.T) {
	v := computing(t, nil)
	for code, rec := range map[string]*record.Record{
		table.CodeNullKey: fields("", "5", "1"),
		table.CodeRange:   fields("c", "500", "1"),
		table.CodeType:    fields("c", "x", "1"),
	} {
		if _, why := v.rowValues(rec); why == nil || why.Code != code {
			t.Errorf("%v, want %s", why, code)
		}
		if got := v.appendKey(nil, rec); got != nil {
			t.Errorf("%s: ordering key: %v", code, got)
		}
	}
}

func TestComputedCellsHaveTheirRowsVersionAndElseTheServersTime(t *testing.T) {
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
	if got, why := v.stamps(fields("c", "5", "1")); why != nil || got != nil {
		t.Errorf("without any: %v, %v", got, why)
	}
}
