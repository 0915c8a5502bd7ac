package partitioner

import (
	"fmt"
	"testing"
	"time"

	"tsimport/internal/table"
)

func tableKey(name string, n int64) []byte {
	return table.AppendKey(table.AppendTable(nil, name), table.Value{Type: table.Integer, Int: n})
}

func TestRowsOfTablesThatAreNotKnownWaitInTheGapsBetweenThose(t *testing.T) {
	m := NewTablesMap([]TableBounds{
		{Table: "a", Bounds: []table.Value{{Type: table.Integer, Int: 10}}},
		{Table: "aa"},
		{Table: "c", Bounds: []table.Value{{Type: table.Integer, Int: 5}, {Type: table.Integer, Int: -5}}},
	})
	for _, tt := range []struct {
		name string
		key  int64
		lane int
		of   string
	}{
		{"A", 99, 0, ""}, {"a", 9, 1, "a"}, {"a", 10, 2, "a"}, {"a0", 1, 3, ""}, {"a_", 1, 3, ""}, {"aa", -1 << 62, 4, "aa"}, {"aa", 1 << 62, 4, "aa"},
		{"aaa", 0, 5, ""}, {"b", 0, 5, ""}, {"c", -6, 6, "c"}, {"c", -5, 7, "c"}, {"c", 5, 8, "c"}, {"c0", 5, 9, ""}, {"z", 0, 9, ""},
	} {
		lane := m.Find(tableKey(tt.name, tt.key))
		if lane != tt.lane || m.Table(lane) != tt.of || m.Gap(lane) != (tt.of == "") {
			t.Errorf("key %d of %s: lane %d of %q, want %d of %q", tt.key, tt.name, lane, m.Table(lane), tt.lane, tt.of)
		}
	}
	if m.Len() != 10 {
		t.Errorf("%d lanes, want 10", m.Len())
	}
	for lane, want := range map[int]string{1: "none", 2: "10", 4: "none", 7: "-5", 9: "none"} {
		got := "none"
		if v, ok := m.LowerValue(lane); ok {
			got = fmt.Sprint(v.Int)
		}
		if got != want {
			t.Errorf("lane %d begins with %s, want %s", lane, got, want)
		}
	}
}

func TestAMapWithoutTablesIsOneGap(t *testing.T) {
	m := NewTablesMap(nil)
	if m.Len() != 1 || !m.Gap(0) || !m.Several() || m.Equal(NewMap(nil)) {
		t.Errorf("%d lanes, gap %v, several %v", m.Len(), m.Gap(0), m.Several())
	}
	if one := NewMap(nil); one.Gap(0) || one.Several() || one.Table(0) != "" {
		t.Error("a map of one table has gaps")
	}
}

// TestARowQueuedAfterOneOfAnotherTableLeavesInItsOwn gives two keys of different tables the same hash: a request carries
// one table, so the second may not be sent in the first one's lane.
func TestARowQueuedAfterOneOfAnotherTableLeavesInItsOwn(t *testing.T) {
	m := NewTablesMap([]TableBounds{{Table: "a"}, {Table: "b"}})
	first, second := tableKey("a", 1), tableKey("b", 2)
	blocks := rowsOf([]string{string(first), string(second)}, 1)
	blocks[1].Rows[0].Hash = blocks[0].Rows[0].Hash
	final := 0
	c := New(Options{
		Supersede: true, Lanes: m.Len(), Route: m.Find, Backoff: func(int) time.Duration { return 0 },
		Final: func(table.Ref, End, table.Outcome) { final++ },
	})
	now := time.Unix(0, 0)
	var f, g Flight
	if !c.Cut(now, 1, &oneRow{ref: table.Ref{Block: blocks[0]}}, &f, 100) {
		t.Fatal("the first row is not sent")
	}
	if c.Cut(now, 3, &oneRow{ref: table.Ref{Block: blocks[1]}}, &g, 100) {
		t.Fatal("a row of the same hash is sent beside the first")
	}
	f.Outcomes[0].Fate = table.Written
	c.Done(now, &f)
	if c.Ready(1) != 0 || c.Ready(3) != 1 || c.Held(1) != 0 || c.Held(3) != 1 {
		t.Fatalf("ready %d and %d, held %d and %d", c.Ready(1), c.Ready(3), c.Held(1), c.Held(3))
	}
	if !c.Cut(now, 3, &oneRow{sent: true}, &g, 100) || string(g.Rows[0].Key()) != string(second) {
		t.Fatal("the second row is not sent in its lane")
	}
	g.Outcomes[0].Fate = table.Written
	c.Done(now, &g)
	if final != 2 || c.Remaining() != 0 || c.Stalled(1) || c.Stalled(3) {
		t.Errorf("%d rows final, %d remain", final, c.Remaining())
	}
}

// oneRow is a queue of one row.
type oneRow struct {
	ref  table.Ref
	sent bool
}

func (q *oneRow) Front() (table.Ref, bool) { return q.ref, !q.sent }
func (q *oneRow) Advance()                 { q.sent = true }
