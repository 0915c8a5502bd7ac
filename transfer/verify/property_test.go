package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
)

// draft is a random input and the table that a sequential load of it leaves.
type draft struct {
	mode       table.Mode
	deleteNull bool
	text       string
	after      map[string]cells
	keys       map[string]bool   // of accepted records
	absent     map[string]string // a column that was deleted last, by key
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

// apply is what one record does.
func (d *draft) apply(id string, fields []string) {
	if id == "" {
		return // rejected
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
		return // rejected
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

func TestVerifyFindsDifferencesExactlyWhereTheyAre(t *testing.T) {
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
		if !r.OK || r.Extra != 0 || len(r.Examples) > 0 || r.RowsExpected != int64(len(d.keys)) || r.Equal != r.RowsExpected {
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
			if len(found) > 0 || !r.OK {
				rt.Fatalf("%s: %+v where nothing that was written is touched, after\n%s", r.counts(), found, d.text)
			}
			return
		}
		if len(found) != 1 || found[0].Kind != kind || columns != nil && !slices.Equal(found[0].Columns, columns) || r.OK != (kind == Extra) {
			rt.Fatalf("%s: %+v, want %s %q %v, after\n%s", r.counts(), found, kind, id, columns, d.text)
		}
		if kind != Extra && string(found[0].Key[0].Value.Bytes) != id {
			rt.Fatalf("found %v, want %q", found[0].Key, id)
		}
	})
}

// damage changes the table and says what is to be found.
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
		// Of a row whose columns are all to be absent, nothing is missing.
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
			return "", nil // a row without cells would be left, or none
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
		return "", nil // nobody has written that column
	}
	return Different, []string{"other"}
}

func TestWithoutAnOrderAnyRecordOfAKeyIsRight(t *testing.T) {
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
		if r := run(rt, cfg); r.OK != (said[wrong] == nil) {
			rt.Fatalf("%s after\n%s", r.counts(), text)
		}
	})
}
