package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"example.com/tsimport/engine/wire"
)

// drawStored is a change with up to five versions of up to nine columns, of all types and of sizes at the edges of their lengths.
func drawStored(rng *rand.Rand, k, now int64) wire.Change {
	c := wire.Change{Op: wire.PutRow, Row: wire.Row{Key: rowKey(k)}}
	for column := range rng.IntN(10) {
		for version := range 1 + rng.IntN(5) {
			cell := wire.Cell{Name: fmt.Appendf(nil, "column%.*d", 1+rng.IntN(3), column)}
			switch rng.IntN(5) {
			case 0:
				cell.Type, cell.Value = wire.Integer, integer(rng.Int64())
			case 1:
				cell.Type, cell.Value = wire.Double, integer(rng.Int64N(1<<60))
			case 2:
				cell.Type, cell.Value = wire.Boolean, []byte{byte(rng.IntN(2))}
			case 3:
				cell.Type, cell.Value = wire.String, bytes.Repeat([]byte("s"), []int{0, 1, 7, 127, 128, 300}[rng.IntN(6)])
			case 4:
				cell.Type, cell.Value = wire.Binary, bytes.Repeat([]byte{0, 0xff}, []int{0, 1, 63, 64, 200}[rng.IntN(5)])
			}
			if cell.Stamped = rng.IntN(3) > 0; cell.Stamped {
				cell.Timestamp = now - 1000*rng.Int64N(200_000) - int64(version)
			}
			c.Row.Cells = append(c.Row.Cells, cell)
		}
	}
	return c
}

// A column that no name comes before leaves nothing out, but its rows are read cell by cell.
func TestRowsThatAreCopiedAreThoseThatAreReadCellByCell(t *testing.T) {
	const now = 1_700_000_000_000
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var c clock
		c.ms.Store(now)
		s := open(t, Options{Now: c.now})
		ttl := []int32{-1, 86_400, 172_800}[rng.IntN(3)]
		tab := newTable(t, s, ttl, 1+rng.Int32N(4))
		for k := range int64(150) {
			change := drawStored(rng, k, now)
			apply(t, s, tab, change)
			if rng.IntN(10) == 0 {
				apply(t, s, tab, wire.Change{Op: wire.PutRow, Row: wire.Row{Key: rowKey(k), Cells: []wire.Cell{at("a", string(make([]byte, 200_000)), 0)}}})
			}
		}
		for k := range int64(600) { // the keys alone take two units
			apply(t, s, tab, change(wire.PutRow, 1000+k, at("a", "", now-86_000_000)))
		}
		c.ms.Add(rng.Int64N(90_000_000)) // some of it expires
		for _, versions := range []int32{0, 1, 2, 9} {
			q := &wire.GetRange{Backward: rng.IntN(2) == 0, Limit: rng.IntN(60), Start: []wire.Cell{{Name: []byte("k"), Type: wire.InfMin}}, End: []wire.Cell{{Name: []byte("k"), Type: wire.InfMax}}}
			if q.Backward {
				q.Start, q.End = q.End, q.Start
			}
			q.Selection.MaxVersions = wire.Optional[int32]{Value: versions, Set: versions > 0}
			for pages := 0; ; pages++ {
				cell := *q
				cell.Selection.StartColumn = []byte{}
				copied, err := s.Range(ctx, tab, q, nil)
				must(t, err)
				want, err := s.Range(ctx, tab, &cell, nil)
				must(t, err)
				if !bytes.Equal(copied.Rows, want.Rows) || !bytes.Equal(copied.Next, want.Next) || copied.Consumed != want.Consumed {
					t.Fatalf("seed %d, %d versions, page %d: %d bytes of rows, %v, want %d, %v", seed, versions, pages, len(copied.Rows), copied.Consumed, len(want.Rows), want.Consumed)
				}
				next := bytes.Clone(copied.Next)
				copied.Release()
				want.Release()
				if next == nil {
					break
				}
				var d wire.Decoder
				row, err := d.Row(next)
				must(t, err)
				q.Start = row.Key
			}
		}
	}
}

func TestAPageIsReadBetweenTwoPieces(t *testing.T) {
	s := open(t, Options{})
	tab := newTable(t, s, -1, 1)
	apply(t, s, tab, change(wire.PutRow, 1, at("a", "x", 0)))
	q := &wire.GetRange{Start: []wire.Cell{{Name: []byte("k"), Type: wire.InfMin}}, End: []wire.Cell{{Name: []byte("k"), Type: wire.InfMax}}}
	for _, end := range []string{"", "after", string(make([]byte, 1<<20))} {
		p, err := s.Range(ctx, tab, q, nil)
		must(t, err)
		rows := string(p.Rows)
		before := bytes.Repeat([]byte("b"), pageMargin)
		if got := string(p.Between(before, []byte(end))); len(rows) == 0 || got != string(before)+rows+end {
			t.Errorf("%d bytes, want %d", len(got), pageMargin+len(rows)+len(end))
		}
		p.Release()
		p.Release() // a second time it does nothing
		if got := p.Rows; got != nil {
			t.Errorf("the rows are still there: %v", got)
		}
	}
}
