package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source/sourcetest"
)

// draft is a random input, with the table that a sequential load of it should produce.
type draft struct {
	mode       table.Mode
	deleteNull bool
	text       string
	after      map[string]cells
	keys       map[string]bool   // keys of accepted records
	absent     map[string]string // the column that was deleted last, by key
}

func (d *draft) draw(t *rapid.T) {
	d.mode = rapid.SampledFrom([]table.Mode{table.Put, table.Update, table.Delete}).Draw(t, "mode")
	d.deleteNull = d.mode == table.Update && rapid.Bool().Draw(t, "delete null")
	d.after, d.keys, d.absent = map[string]cells{}, map[string]bool{}, map[string]string{}
	var b strings.Builder
	b.WriteString("id,a,b,c\n")
	value := rapid.SampledFrom([]string{"", `""`, "x", "y", "long text of a cell"})
	for range rapid.IntRange(0, 40).Draw(t, "records") {
		id := rapid.SampledFrom([]string{"", "k", "k1", "k2", "k3", "l", "m\x00", "中", "z"}).Draw(t, "id")
		fields := []string{value.Draw(t, "a"), value.Draw(t, "b"), value.Draw(t, "c")}
		fmt.Fprintf(&b, "%s,%s\n", id, strings.Join(fields, ","))
		d.apply(id, fields)
	}
	d.text = b.String()
}

func (d *draft) apply(id string, fields []string) {
	if id == "" {
		return // the record is rejected
	}
	row := cells{}
	if d.mode == table.Update {
		maps.Copy(row, d.after[id])
	}
	named := 0
	for i, f := range fields {
		column := string(rune('a' + i))
		switch {
		case f != "":
			row[column] = strings.Trim(f, `"`)
			named++
		case d.deleteNull:
			delete(row, column)
			named++
		}
	}
	if d.mode == table.Update && named == 0 {
		return // the record is rejected
	}
	d.keys[id] = true
	delete(d.absent, id)
	for i, f := range fields {
		if d.deleteNull && f == "" {
			d.absent[id] = string(rune('a' + i))
		}
	}
	if d.mode != table.Delete {
		if _, exists := d.after[id]; len(row) > 0 || exists || d.mode == table.Put {
			d.after[id] = row
		}
	}
}

func TestVerifyFindsExactDifferences(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		var d draft
		d.draw(rt)
		name := w.make(rt, table.Definition{})
		defer w.Admin.Drop(name)
		for id, row := range d.after {
			w.put(rt, name, id, row)
		}
		cfg := w.config(rt, name, d.text)
		cfg.Request.Mode, cfg.Request.DeleteNull = d.mode, d.deleteNull
		cfg.Request.Read.SplitBytes = rapid.SampledFrom([]int{64, 1 << 20}).Draw(rt, "split")
		cfg.Memory = rapid.SampledFrom([]int64{1, 1 << 30}).Draw(rt, "memory")
		for _, c := range []string{"a", "b", "c"} {
			cfg.Request.Columns.Types[c] = plan.Type{Type: table.String}
		}
		r := run(rt, cfg)
		if r.Differ || r.Extra != 0 || len(r.Examples) > 0 || r.RowsExpected != int64(len(d.keys)) ||
			r.Equal != r.RowsExpected {
			rt.Fatalf("%s\n%+v\nof an untouched table of %d keys, after\n%s", r.counts(), r.Examples, len(d.keys), d.text)
		}
		if len(d.keys) == 0 {
			return
		}
		id := rapid.SampledFrom(slices.Sorted(maps.Keys(d.keys))).Draw(rt, "where")
		kind, columns := d.damage(rt, w, name, id)
		r = run(rt, cfg)
		var found []Example
		for _, e := range r.Examples {
			found = append(found, Example{Kind: e.Kind, Key: e.Key, Columns: e.Columns})
		}
		if kind == "" {
			conformance.MustTrue(rt, len(found) == 0 && !r.Differ, "%s: %+v, though untouched, after\n%s", r.counts(),
				found, d.text)
			return
		}
		conformance.MustTrue(rt, len(found) == 1 && found[0].Kind == kind &&
			(columns == nil || slices.Equal(found[0].Columns, columns)) && r.Differ == (kind != Extra),
			"%s: %+v, want %s %q %v, after\n%s", r.counts(), found, kind, id, columns, d.text)
		conformance.MustTrue(rt, kind == Extra || string(found[0].Key[0].Value.Bytes) == id, "%v, want %q", found[0].Key, id)
	})
}

// damage changes the table and returns the difference that a comparison should find.
func (d *draft) damage(t *rapid.T, w *world, name, id string) (kind string, columns []string) {
	row, exists := d.after[id]
	damage := rapid.SampledFrom([]string{"extra", "row", "cell", "column", "another", "deleted"}).Draw(t, "damage")
	switch damage {
	case "extra":
		w.put(t, name, "l3", cells{"a": "x"})
		return Extra, nil
	case "row":
		if d.mode == table.Delete {
			w.put(t, name, id, cells{})
			return Different, nil
		}
		w.delete(t, name, id)
		// If an update leaves no columns, no row is missing.
		if !exists || d.mode == table.Update && len(row) == 0 {
			return "", nil
		}
		return Missing, nil
	case "cell":
		if len(row) == 0 {
			return "", nil
		}
		c := rapid.SampledFrom(slices.Sorted(maps.Keys(row))).Draw(t, "column")
		w.update(t, name, id, cells{c: row[c].(string) + "!"})
		return Different, []string{c}
	case "column":
		if len(row) == 0 || len(row) == 1 && d.mode == table.Update {
			return "", nil // a row without cells, or no row, would remain
		}
		c := rapid.SampledFrom(slices.Sorted(maps.Keys(row))).Draw(t, "column")
		w.update(t, name, id, cells{c: nil})
		return Different, []string{c}
	}
	if c := d.absent[id]; damage == "deleted" {
		if c != "" {
			w.update(t, name, id, cells{c: "x"})
			return Different, []string{c}
		}
		return "", nil
	}
	if d.mode == table.Delete || !exists {
		return "", nil
	}
	w.update(t, name, id, cells{"other": "x"})
	if d.mode == table.Update {
		return "", nil // no record writes that column
	}
	return Different, []string{"other"}
}

func TestWithoutOrderAnyRecordOfAKeyMatches(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		name := w.make(rt, table.Definition{})
		defer w.Admin.Drop(name)
		text := "id,a\n"
		said := map[string][]string{}
		for i := range rapid.IntRange(1, 20).Draw(rt, "records") {
			id, a := rapid.SampledFrom([]string{"j", "k", "l"}).Draw(rt, "id"), fmt.Sprint("v", i)
			text += id + "," + a + "\n"
			said[id] = append(said[id], a)
		}
		wrong := rapid.SampledFrom([]string{"", "j"}).Draw(rt, "wrong")
		for id, values := range said {
			v := rapid.SampledFrom(values).Draw(rt, "value")
			if id == wrong {
				v = "nobody has said this"
			}
			w.put(rt, name, id, cells{"a": v})
		}
		cfg := w.config(rt, name, text)
		cfg.Request.Mode = rapid.SampledFrom([]table.Mode{table.Put, table.Update}).Draw(rt, "mode")
		cfg.Request.Order = plan.OrderNone
		r := run(rt, cfg)
		conformance.MustEqual(rt, r.OK, said[wrong] == nil, "%s after\n%s", r.counts(), text)
	})
}

// valueOf converts a datum to the SDK's type.
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

// makeWide creates a table with an integer key, and returns a Config that compares it with the source.
func (w *world) makeWide(t *testing.T, rows *sourcetest.Wide, versions int) (name string, cfg Config) {
	t.Helper()
	name = fmt.Sprintf("t%d", w.tables.Add(1))
	err := w.Admin.Create(name, []table.KeyColumn{{Name: "id", Type: table.Integer}},
		table.Definition{TimeToLive: -1, MaxVersions: versions})
	must(t, err)
	cfg = Config{Client: w.SDK, Examples: 10, Memory: 1 << 30, TempDir: w.dir, Request: &plan.Request{
		Inputs: []string{rows.Name}, Target: plan.Target{Table: name}, Columns: plan.Columns{Types: map[string]plan.Type{}},
		Read: plan.Read{Sources: rows}}}
	return name, cfg
}

func idKey(id int64) *tablestore.PrimaryKey {
	key := new(tablestore.PrimaryKey)
	key.AddPrimaryKeyColumn("id", id)
	return key
}

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

func TestSelfDescribingPutsAreComparedByCell(t *testing.T) {
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
			"a value":               {4, []record.Cell{cellOf("always", "other", -1)}, []string{"always"}},
			"a type":                {4, []record.Cell{cellOf("empty", 0, -1)}, []string{"empty"}},
			"a column that is gone": {4, []record.Cell{cellOf("always", nil, -1)}, []string{"always"}},
			"a name of one row":     {4, []record.Cell{cellOf("only in 4", nil, -1)}, []string{"only in 4"}},
			"a column more":         {4, []record.Cell{cellOf("more", 1, -1)}, []string{"more"}},
			"several columns": {7, []record.Cell{cellOf("more", 1, -1), cellOf("empty", nil, -1),
				cellOf("only in 7", nil, -1)}, []string{"empty", "more", "only in 7"}},
			"a version that is newer": {3, []record.Cell{cellOf("versions", 5, at)}, []string{"versions"}},
			"versions that are gone":  {3, []record.Cell{cellOf("versions", nil, -1)}, []string{"versions"}},
			"a row without cells":     {10, []record.Cell{cellOf("more", 1, -1)}, []string{"more"}},
			"of a version, its value": {3, []record.Cell{cellOf("versions", 5, at-10)}, []string{"versions"}},
		} {
			w.write(t, name, damage.row, true, damage.cells)
			for _, cfg.Sample = range []float64{0, 0.9999999} {
				r := run(t, cfg)
				conformance.True(t, !r.OK && r.Different == 1 && r.Equal == 39 && len(r.Examples) == 1 &&
					slices.Equal(r.Examples[0].Columns, damage.columns),
					"%d versions, %s: %s, %+v, want %q", versions+1, what, r.counts(), r.Examples, damage.columns)
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

func TestSelfDescribingUpdatesAreCompared(t *testing.T) {
	w := newWorld(t)
	at := time.Now().Add(-time.Minute).UnixMilli()
	rows := &sourcetest.Wide{Rows: sourcetest.Rows{Name: "wide", Columns: []string{"id"}}}
	for i := range int64(20) { // two records for each key
		rows.Append(record.Datum{Kind: record.Integer, Int: i / 2}, cellOf(fmt.Sprint("c", i), int(i), -1),
			cellOf("v", int(i), at-i), cellOf("v", "x", at-i-100),
			cellOf("gone", map[bool]any{false: nil, true: "x"}[i%2 == 0], -1))
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
		conformance.True(t, !r.OK && r.Different == 1 && len(r.Examples) == 1 &&
			slices.Equal(r.Examples[0].Columns, []string{column}), "%s: %s, %+v", column, r.counts(), r.Examples)
		w.write(t, name, 3, true, []record.Cell{cellOf("gone", nil, -1), cellOf("v", nil, -1)})
		for _, i := range []int{6, 7} {
			w.write(t, name, 3, true, rows.Cells[i])
		}
	}
}
