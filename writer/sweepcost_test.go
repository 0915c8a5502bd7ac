package writer

import (
	"testing"

	"tsimport/internal/table"
)

// What stood there before the load is not read: the sweep begins with the newest rows.
func TestTheSweepEndsWithARowThatIsOlderThanTheLoad(t *testing.T) {
	f, n, _ := newNumbered()
	f.longPages, f.last = true, 20_000
	n.Begun = f.last + 1 + clockSpread
	rows := numberedRows(t, 1)
	for i := range int64(10_000) {
		f.rows[f.last-i] = string(table.Marker{Job: "job", Run: "other"}.Append(nil, rows[0]))
	}
	mark := string(n.Marker.Append(nil, rows[0]))
	for number := n.Begun; number < n.Begun+2; number++ {
		f.rows[number], f.last = mark, number
	}
	d, err := n.Doubt(rows[0], table.Outcome{Number: f.last})
	must(t, err)
	deleted, err := n.Sweep([]Doubt{d})
	if err != nil || deleted != 1 || f.rows[f.last] != mark || len(f.searched) != 1 {
		t.Errorf("%d deleted, %v, searched %v", deleted, err, f.searched)
	}
}
