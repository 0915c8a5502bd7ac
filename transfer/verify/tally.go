package verify

import (
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
)

// tally counts the results in one range of keys. It is not safe for concurrent use.
type tally struct {
	v     *verifier
	table *target
	judge *judge
	err   error
	told  RangeChanges // if not nil, receives differences

	memory client.PageMemory                           // memory for a row that is compared by cell
	whole  func([]table.Value, []byte) ([]byte, error) // makes complete rows from kept bytes

	Counts
	superseded, ofRejects, units int64
	examples                     map[string][]Example
	found                        map[int]*Counts // counts by range of the source; nil if these are not counted
}

func (v *verifier) newTally(of *target) *tally {
	t := &tally{v: v, table: of, judge: v.newJudge(of), examples: map[string][]Example{}}
	if v.bySource != nil {
		t.found = map[int]*Counts{}
	}
	return t
}

// present counts a key of the inputs that the table has.
func (t *tally) present(w *want, row tableRow) {
	if row.packed != nil && t.judge.same(w, row.sum) {
		if t.key(w, true) {
			t.judged(w, nil, isEqual, difference{})
		}
		return
	}
	if row.packed != nil {
		var err error
		if row.made, err = t.memory.Unpack(row.packed); err != nil {
			t.err = err
			return
		}
	}
	t.expected(w, t.v.unmarked(row.made))
}

// expected counts a key of the inputs, given its row in the table, which is nil if missing.
func (t *tally) expected(w *want, row *scan.Row) {
	if t.key(w, row != nil) {
		t.v.age(t.judge, t.table)
		verdict, differs := t.judge.compare(w, row)
		t.judged(w, row, verdict, differs)
	}
}

// key counts a key of the inputs, and reports whether a row is expected for it.
func (t *tally) key(w *want, stored bool) bool {
	if stored {
		t.RowsInTable++
	}
	if w.rows == 0 { // only rejected records have the key
		if stored {
			t.ofRejects++
		}
		return false
	}
	t.RowsExpected++
	t.units += w.units
	t.superseded += w.rows - 1
	return true
}

func (t *tally) judged(w *want, row *scan.Row, verdict verdict, differs difference) {
	if t.found != nil {
		t.foundOf(t.v.splits[w.position>>32].Ordinal).judged(verdict)
	}
	t.Counts.judged(verdict)
	switch verdict {
	case isMissing:
		t.v.unsettled.add(w.key)
		t.change(w, nil, differs)
		t.example(Missing, w.key, w.position, nil)
	case isDifferent:
		t.v.unsettled.add(w.key)
		t.change(w, row, differs)
		e := t.example(Different, w.key, w.position, differs.columns)
		if e == nil {
			return
		}
		if e.stored = shownRow(row); differs.columns == nil {
			e.cells = t.judge.cells(row)
		} else {
			e.unnamed = differs.unnamed
		}
	}
}

// extra counts a row of the table whose key no record has.
func (t *tally) extra(key []byte) {
	t.RowsInTable++
	t.Extra++
	if t.v.cfg.ExtraFails {
		t.v.unsettled.add(key)
	}
	t.example(Extra, key, 0, nil)
	if t.told == nil && t.found == nil || t.err != nil {
		return
	}
	values, err := decodeKey(t.table.Key, key[len(t.table.prefix):])
	if err == nil && t.told != nil {
		err = t.told.Surplus(values)
	}
	if err == nil {
		t.surplus(values)
	}
	t.err = err
}

func (t *tally) change(w *want, row *scan.Row, differs difference) {
	if t.told == nil || t.err != nil {
		return
	}
	c := Change{Stored: row}
	if c.Rows, t.err = t.bodies(w); t.err != nil {
		return
	}
	if t.v.plan.Request.Mode == table.Update && row != nil {
		c.Differs = func(column []byte) bool { return slices.Contains(differs.reduced, t.judge.ColumnBytes(column)) }
	}
	t.err = t.told.Expected(&c)
}

// example adds an example and returns it, or returns nil if there are enough.
func (t *tally) example(kind string, key []byte, position uint64, columns []string) *Example {
	if len(t.examples[kind]) >= t.v.cfg.Examples {
		return nil
	}
	k, err := keyOf(t.table.Key, key[len(t.table.prefix):])
	if err != nil {
		t.err = err
	}
	e := Example{Kind: kind, Key: k, Columns: columns, position: position}
	if t.table.prefix != nil {
		e.Table = t.table.Name
	}
	if kind != Extra {
		e.Input = t.v.splits.place(position)
	}
	t.examples[kind] = append(t.examples[kind], e)
	return &t.examples[kind][len(t.examples[kind])-1]
}

// add adds up the results of all ranges, in key order.
func (v *verifier) add(tallies []*tally) {
	r := v.result
	examples := map[string][]Example{}
	for _, t := range tallies {
		if i := slices.IndexFunc(r.Tables, func(of TableResult) bool { return of.Name == t.table.Name }); i >= 0 {
			r.Tables[i].add(t.Counts)
		}
		r.Counts.add(t.Counts)
		r.Superseded += t.superseded
		r.OfRejects += t.ofRejects
		r.Units += t.units
		for n, f := range t.found {
			v.bySource.found[n].add(*f)
		}
		for kind, list := range t.examples {
			examples[kind] = append(examples[kind], list[:min(len(list), v.cfg.Examples-len(examples[kind]))]...)
		}
	}
	for _, kind := range []string{Missing, Different, Extra} {
		r.Examples = append(r.Examples, examples[kind]...)
	}
	if v.plan.Request.Mode == table.Delete && r.Different > 0 {
		r.Notes = append(r.Notes, "with --mode delete, rows that still exist count as different")
	}
}
