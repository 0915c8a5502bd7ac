package verify

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source/sourcetest"
)

// valueOf is a datum as the SDK takes it.
func valueOf(d record.Datum) any {
	switch d.Kind {
	case record.Integer:
		return d.Int
	case record.Double:
		return d.Double
	case record.Boolean:
		return d.Int != 0
	case record.String:
		return string(d.Bytes)
	}
	return d.Bytes
}

// makeWide makes a table with an integer key, and config compares it with the source.
func (w *world) makeWide(t *testing.T, rows *sourcetest.Wide, versions int) (name string, cfg Config) {
	t.Helper()
	name = fmt.Sprintf("t%d", w.tables.Add(1))
	err := w.Admin.Create(name, []table.KeyColumn{{Name: "id", Type: table.Integer}}, table.Definition{TimeToLive: -1, MaxVersions: versions})
	must(t, err)
	cfg = Config{Client: w.SDK, Examples: 10, Memory: 1 << 30, TempDir: w.dir, Request: &plan.Request{
		Inputs: []string{rows.Name}, Target: plan.Target{Table: name}, Columns: plan.Columns{Types: map[string]plan.Type{}}, Read: plan.Read{Sources: rows},
	}}
	return name, cfg
}

func idKey(id int64) *tablestore.PrimaryKey {
	key := new(tablestore.PrimaryKey)
	key.AddPrimaryKeyColumn("id", id)
	return key
}

// write puts a row, or updates it with its cells.
func (w *world) write(t *testing.T, name string, id int64, update bool, cells []record.Cell) {
	t.Helper()
	put := &tablestore.PutRowChange{TableName: name, PrimaryKey: idKey(id)}
	put.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	change := &tablestore.UpdateRowChange{TableName: name, PrimaryKey: idKey(id)}
	change.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	for _, c := range cells {
		name, value := string(c.Name), valueOf(c.Datum)
		switch {
		case c.Kind == record.Null && update:
			change.DeleteColumn(name)
		case c.Kind == record.Null:
		case c.At >= 0:
			put.AddColumnWithTimestamp(name, value, c.At)
			change.PutColumnWithTimestamp(name, value, c.At)
		default:
			put.AddColumn(name, value)
			change.PutColumn(name, value)
		}
	}
	var err error
	if update {
		_, err = w.SDK.UpdateRow(&tablestore.UpdateRowRequest{UpdateRowChange: change})
	} else {
		_, err = w.SDK.PutRow(&tablestore.PutRowRequest{PutRowChange: put})
	}
	must(t, err)
}

func cellOf(name string, v any, at int64) record.Cell {
	d := record.Datum{Kind: record.Null}
	switch v := v.(type) {
	case int:
		d = record.Datum{Kind: record.Integer, Int: int64(v)}
	case float64:
		d = record.Datum{Kind: record.Double, Double: v}
	case string:
		d = record.Datum{Kind: record.String, Bytes: []byte(v)}
	}
	return sourcetest.WideCell(name, d, at)
}

func TestAPutOfRowsThatDescribeThemselvesIsComparedCellByCell(t *testing.T) {
	w := newWorld(t)
	now := time.Now().Add(-time.Minute)
	at := now.UnixMilli()
	for _, versions := range []int{0, 4} {
		rows := sourcetest.NewWide("wide", 40, now)
		name, cfg := w.makeWide(t, rows, versions+1)
		for i, cells := range rows.Cells {
			w.write(t, name, int64(i), false, cells)
		}
		if r := run(t, cfg); !r.OK || r.Equal != 40 || r.Extra != 0 || len(r.Examples) > 0 {
			t.Fatalf("%d versions: %s of an untouched table, %+v", versions+1, r.counts(), r.Examples)
		}
		for what, damage := range map[string]struct {
			row     int64
			cells   []record.Cell
			columns []string
		}{
			"a value":                 {4, []record.Cell{cellOf("always", "other", -1)}, []string{"always"}},
			"a type":                  {4, []record.Cell{cellOf("empty", 0, -1)}, []string{"empty"}},
			"a column that is gone":   {4, []record.Cell{cellOf("always", nil, -1)}, []string{"always"}},
			"a name of one row":       {4, []record.Cell{cellOf("only in 4", nil, -1)}, []string{"only in 4"}},
			"a column more":           {4, []record.Cell{cellOf("more", 1, -1)}, []string{"more"}},
			"several columns":         {7, []record.Cell{cellOf("more", 1, -1), cellOf("empty", nil, -1), cellOf("only in 7", nil, -1)}, []string{"empty", "more", "only in 7"}},
			"a version that is newer": {3, []record.Cell{cellOf("versions", 5, at)}, []string{"versions"}},
			"versions that are gone":  {3, []record.Cell{cellOf("versions", nil, -1)}, []string{"versions"}},
			"a row without cells":     {10, []record.Cell{cellOf("more", 1, -1)}, []string{"more"}},
			"of a version, its value": {3, []record.Cell{cellOf("versions", 5, at-10)}, []string{"versions"}},
		} {
			w.write(t, name, damage.row, true, damage.cells)
			for _, cfg.Sample = range []float64{0, 0.9999999} {
				r := run(t, cfg)
				if r.OK || r.Different != 1 || r.Equal != 39 || len(r.Examples) != 1 || !slices.Equal(r.Examples[0].Columns, damage.columns) {
					t.Errorf("%d versions, %s: %s, %+v, want %q", versions+1, what, r.counts(), r.Examples, damage.columns)
				}
			}
			cfg.Sample = 0
			w.write(t, name, damage.row, false, rows.Cells[damage.row])
		}
		if versions == 0 {
			continue
		}
		w.write(t, name, 4, true, []record.Cell{cellOf("empty", "old", at-100)})
		if r := run(t, cfg); r.Different != 1 || !slices.Equal(r.Examples[0].Columns, []string{"empty"}) {
			t.Errorf("%d versions, one more that is older: %s, %+v", versions+1, r.counts(), r.Examples)
		}
	}
}

// Doubles are distinguished by their bits, and 5 from 5.0 and "5".
func TestTypesOfCellsAreCompared(t *testing.T) {
	w := newWorld(t)
	values := []any{5, 5.0, "5", math.Copysign(0, -1), 0.0, 0, ""}
	for i, expected := range values {
		for j, has := range values {
			rows := &sourcetest.Wide{Rows: sourcetest.Rows{Name: "wide", Columns: []string{"id"}}}
			rows.Append(record.Datum{Kind: record.Integer}, cellOf("c", expected, -1))
			name, cfg := w.makeWide(t, rows, 1)
			w.write(t, name, 0, false, []record.Cell{cellOf("c", has, -1)})
			if r := run(t, cfg); r.OK != (i == j) {
				t.Errorf("%T %v and %T %v: %s", expected, expected, has, has, r.counts())
			}
		}
	}
}

func TestUpdatesOfRowsThatDescribeThemselvesAreCompared(t *testing.T) {
	w := newWorld(t)
	at := time.Now().Add(-time.Minute).UnixMilli()
	rows := &sourcetest.Wide{Rows: sourcetest.Rows{Name: "wide", Columns: []string{"id"}}}
	for i := range int64(20) { // two records of each key
		rows.Append(record.Datum{Kind: record.Integer, Int: i / 2}, cellOf(fmt.Sprint("c", i), int(i), -1), cellOf("v", int(i), at-i), cellOf("v", "x", at-i-100), cellOf("gone", map[bool]any{false: nil, true: "x"}[i%2 == 0], -1))
	}
	name, cfg := w.makeWide(t, rows, 9)
	cfg.Request.Mode, cfg.Request.DeleteNull = table.Update, true
	for i := range rows.Data {
		w.write(t, name, rows.Data[i][0].Int, true, append(slices.Clone(rows.Cells[i]), cellOf("of somebody else", i, -1)))
	}
	if r := run(t, cfg); !r.OK || r.Equal != 10 || r.Superseded != 10 || len(r.Examples) > 0 {
		t.Fatalf("%s, %+v", r.counts(), r.Examples)
	}
	for column, damage := range map[string]record.Cell{
		"c6":   cellOf("c6", "6", -1),
		"c7":   cellOf("c7", nil, -1),
		"gone": cellOf("gone", "x", -1),
		"v":    cellOf("v", "other", at-6-100),
	} {
		w.write(t, name, 3, true, []record.Cell{damage})
		r := run(t, cfg)
		if r.OK || r.Different != 1 || len(r.Examples) != 1 || !slices.Equal(r.Examples[0].Columns, []string{column}) {
			t.Errorf("%s: %s, %+v", column, r.counts(), r.Examples)
		}
		w.write(t, name, 3, true, []record.Cell{cellOf("gone", nil, -1), cellOf("v", nil, -1)})
		for _, i := range []int{6, 7} {
			w.write(t, name, 3, true, rows.Cells[i])
		}
	}
}
