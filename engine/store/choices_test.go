package store

import (
	"testing"

	"example.com/tsimport/engine/wire"
)

func TestBothAnswersOfUndocumentedBehaviour(t *testing.T) {
	put := func(value string, ms int64) wire.Cell {
		return wire.Cell{Name: []byte("c"), Type: wire.String, Value: []byte(value), Op: wire.PutCell, Timestamp: ms, Stamped: true}
	}
	drop := wire.Cell{Name: []byte("c"), Op: wire.DeleteColumn}
	for _, tt := range []struct {
		choices Choices
		ops     []wire.Cell
		want    string
	}{
		{Choices{}, []wire.Cell{put("first", 5), put("later", 5)}, "later"},
		{Choices{FirstWriteWins: true}, []wire.Cell{put("first", 5), put("later", 5)}, "first"},
		{Choices{FirstWriteWins: true}, []wire.Cell{put("first", 5), put("later", 6)}, "later"},
		{Choices{}, []wire.Cell{drop, put("earlier", 99)}, "earlier"},
		{Choices{DeletionsHideEarlier: true}, []wire.Cell{drop, put("earlier", 99)}, ""},
		{Choices{DeletionsHideEarlier: true}, []wire.Cell{drop, put("same", 100)}, ""},
		{Choices{DeletionsHideEarlier: true}, []wire.Cell{drop, put("above", 101)}, "above"},
	} {
		u := update{now: 100, row: []byte("r"), chosen: new(chosen), choices: tt.choices}
		must(t, u.apply(tt.ops))
		sortCells(u.cells)
		value := appendRow(nil, u.cells, 100, 1)
		cells, ok := readRow(value, nil)
		got := ""
		if len(cells) > 0 {
			got = string(cells[0].Value)
		}
		if !ok || got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.choices, got, tt.want)
		}
	}
	m := &meta{Deviation: 10}
	for ms, want := range map[int64]string{90_000: "in", 89_999: "out", 91_000: "in"} {
		for _, exclusive := range []bool{false, true} {
			refused := m.checkCells(&wire.Change{Row: wire.Row{Cells: []wire.Cell{put("", ms)}}}, 100_000, Choices{ExclusiveLowerEdge: exclusive}) != nil
			if refused != (want == "out" || exclusive && ms == 90_000) {
				t.Errorf("%d, exclusive %v: refused %v", ms, exclusive, refused)
			}
		}
	}
}
