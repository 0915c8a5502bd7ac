package store

import (
	"slices"
	"testing"

	"tsimport/engine/wire"
)

// keyed is a change of the table of newNumbered's shape, but without numbering.
func keyed(op wire.RowOp, p string, n int64, cells ...wire.Cell) wire.Change {
	return wire.Change{Op: op, Row: wire.Row{Key: numberedKey(p, n, ""), Cells: cells, Delete: op == wire.DeleteRow}}
}

func newKeyed(t testing.TB, s *Store, name string) *Table {
	t.Helper()
	r := tableRequest(name, -1, 1)
	r.Key = []wire.KeyColumn{{Name: "p", Type: wire.KeyString}, {Name: "n", Type: wire.KeyInteger}, {Name: "s", Type: wire.KeyString}}
	if err := s.CreateTable(ctx, r); err != nil {
		t.Fatal(err)
	}
	return s.Table(r.Name)
}

func writeAtomic(t testing.TB, s *Store, tables ...TableWrite) {
	t.Helper()
	for i := range tables {
		if tables[i].Outcomes == nil {
			tables[i].Outcomes = make([]wire.Outcome, len(tables[i].Changes))
		}
	}
	if err := s.WriteAtomic(ctx, tables); err != nil {
		t.Fatal(err)
	}
}

func outcomes(t TableWrite) (errs []string) {
	for _, o := range t.Outcomes {
		text := ""
		if o.Err != nil {
			text = o.Err.Error()
		}
		errs = append(errs, text)
	}
	return errs
}

func TestAnAtomicBatchIsAppliedAllOrNone(t *testing.T) {
	number := wire.Cell{Name: []byte("a"), Op: wire.Increment, Type: wire.Integer, Value: integer(1)}
	wrong := keyed(wire.PutRow, "p", 2)
	wrong.Row.Key = wrong.Row.Key[:2]
	mustExist := keyed(wire.PutRow, "p", 2)
	mustExist.Expect = wire.ExpectExist
	failed, size := "OTSConditionCheckFail: Condition check failed.", "OTSInvalidPK: Validate PK size fail. Input: 2, Meta: 3."
	for name, v := range map[string]struct {
		changes []wire.Change
		preset  *wire.Error // of the last row
		want    string
		rows    []int64
	}{
		"all fit":                     {[]wire.Change{keyed(wire.PutRow, "p", 1), keyed(wire.PutRow, "p", 2), keyed(wire.DeleteRow, "p", 9)}, nil, "", []int64{1, 2}},
		"the last one's condition":    {[]wire.Change{keyed(wire.PutRow, "p", 1), keyed(wire.DeleteRow, "p", 9), mustExist}, nil, failed, []int64{9}},
		"the first one's condition":   {[]wire.Change{mustExist, keyed(wire.DeleteRow, "p", 9)}, nil, failed, []int64{9}},
		"a key that does not fit":     {[]wire.Change{keyed(wire.PutRow, "p", 1), wrong, keyed(wire.DeleteRow, "p", 9)}, nil, size, []int64{9}},
		"an increment of text":        {[]wire.Change{keyed(wire.PutRow, "p", 1), keyed(wire.UpdateRow, "p", 9, number)}, nil, "OTSParameterInvalid: Increment is not allowed for column name:a, whose value is VT_STRING.", []int64{9}},
		"a row refused before":        {[]wire.Change{keyed(wire.PutRow, "p", 1), keyed(wire.PutRow, "p", 2)}, wire.Fail(wire.CodeServerBusy), "OTSServerBusy: Server is busy.", []int64{9}},
		"rows of two partition keys":  {[]wire.Change{keyed(wire.PutRow, "0", 1), keyed(wire.PutRow, "0", 2), keyed(wire.PutRow, "1", 3), keyed(wire.PutRow, "2", 3)}, nil, "OTSDataOutOfRange: Data out of scope of atomic. Atomic PartKey:0. Data PartKey:1", []int64{9}},
		"the same row twice, in turn": {[]wire.Change{keyed(wire.PutRow, "p", 1), keyed(wire.DeleteRow, "p", 1)}, nil, "", []int64{9}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{})
			tab := newKeyed(t, s, "t")
			if name != "all fit" {
				mustWrite(t, s, tab, keyed(wire.PutRow, "p", 9, at("a", "x", 0)))
			}
			w := TableWrite{Table: tab, Changes: v.changes, Outcomes: make([]wire.Outcome, len(v.changes))}
			w.Outcomes[len(v.changes)-1].Err = v.preset
			writeAtomic(t, s, w)
			for i, got := range outcomes(w) {
				if got != v.want {
					t.Errorf("row %d: got %q, want %q", i, got, v.want)
				}
			}
			if got, err := stored(s, tab, "p"); err != nil || !slices.Equal(got, v.rows) {
				t.Errorf("stored %d (%v), want %d", got, err, v.rows)
			}
		})
	}
}

func TestAnAtomicBatchIsAtomicTableByTable(t *testing.T) {
	s := open(t, Options{})
	good, bad := newKeyed(t, s, "good"), newKeyed(t, s, "bad")
	mustExist := keyed(wire.PutRow, "q", 2)
	mustExist.Expect = wire.ExpectExist
	tables := []TableWrite{
		{Table: bad, Changes: []wire.Change{keyed(wire.PutRow, "q", 1), mustExist}},
		{Changes: []wire.Change{keyed(wire.PutRow, "p", 1), keyed(wire.PutRow, "p", 2)}},
		{Table: good, Changes: []wire.Change{keyed(wire.PutRow, "p", 1), keyed(wire.PutRow, "p", 2)}},
	}
	writeAtomic(t, s, tables...)
	failed, missing := "OTSConditionCheckFail: Condition check failed.", "OTSObjectNotExist: Requested table does not exist."
	for i, want := range [][]string{{failed, failed}, {missing, missing}, {"", ""}} {
		if got := outcomes(tables[i]); !slices.Equal(got, want) {
			t.Errorf("table %d: got %q, want %q", i, got, want)
		}
	}
	if got, err := stored(s, bad, "q"); err != nil || len(got) != 0 {
		t.Error(got, err)
	}
	if got, err := stored(s, good, "p"); err != nil || !slices.Equal(got, []int64{1, 2}) {
		t.Error(got, err)
	}
}

func TestRowsOfAnAtomicBatchAreNumbered(t *testing.T) {
	s := open(t, Options{})
	tab := newNumbered(t, s)
	mustExist := keyed(wire.PutRow, "p", 5)
	mustExist.Expect = wire.ExpectExist
	failing := TableWrite{Table: tab, Changes: []wire.Change{numbered("p", ""), mustExist}}
	writeAtomic(t, s, failing)
	w := TableWrite{Table: tab, Changes: []wire.Change{numbered("p", ""), numbered("p", "")}, Outcomes: make([]wire.Outcome, 2)}
	writeAtomic(t, s, w)
	if got, err := stored(s, tab, "p"); err != nil || len(got) != 2 || w.Outcomes[0].Err != nil || len(w.Outcomes[1].Row) == 0 {
		t.Error(got, err, outcomes(w))
	}
}
