package store

import (
	"bytes"
	"math"

	"example.com/tsimport/engine/wire"
)

// rules decides whether a stored version is visible now, by the table's time to live and maximum number of versions.
type rules struct {
	ttl         int64 // seconds; -1 means forever
	maxVersions int
	now         int64 // milliseconds
}

func (r *rules) expired(timestamp int64) bool {
	return r.ttl >= 0 && r.now/1000-timestamp/1000 > r.ttl
}

// visible keeps the cells that are neither expired nor surplus, in place.
func (r *rules) visible(cells []wire.Cell) []wire.Cell {
	return newestOf(cells, r.maxVersions, func(c *wire.Cell) bool { return !r.expired(c.Timestamp) })
}

// newestOf keeps, in place, the newest versions of each column among the wanted ones, up to the limit versions.
func newestOf(cells []wire.Cell, versions int, wanted func(*wire.Cell) bool) []wire.Cell {
	kept := cells[:0]
	n := 0
	for i := range cells {
		c := &cells[i]
		if !wanted(c) {
			continue
		}
		if last := len(kept) - 1; last < 0 || !bytes.Equal(kept[last].Name, c.Name) {
			n = 0
		}
		if n++; n <= versions {
			kept = keep(kept, cells, i)
		}
	}
	return kept
}

// keep appends cell i to kept, a prefix of cells. It does not copy a cell that is already in place, as most are.
func keep(kept, cells []wire.Cell, i int) []wire.Cell {
	if n := len(kept); n == i {
		return cells[:n+1]
	}
	return append(kept, cells[i])
}

// selector applies a read's selection to visible cells.
type selector struct {
	*wire.Selection
	wanted  map[string]bool // nil means every column
	withKey bool            // a key column is wanted, so rows without cells are returned, too
}

func newSelector(s *wire.Selection, key []wire.KeyColumn) *selector {
	sel := &selector{Selection: s, withKey: true}
	if len(s.Columns) == 0 {
		return sel
	}
	sel.withKey = false
	sel.wanted = make(map[string]bool, len(s.Columns))
	for _, name := range s.Columns {
		sel.wanted[string(name)] = true
	}
	for i := range key {
		sel.withKey = sel.withKey || sel.wanted[key[i].Name]
	}
	return sel
}

// cells keeps the selected cells, in place. returned reports whether the row is returned at all.
func (s *selector) cells(cells []wire.Cell) (kept []wire.Cell, returned bool) {
	wanted := func(c *wire.Cell) bool { return s.column(c.Name) && s.time(c.Timestamp) }
	kept = newestOf(cells, int(s.MaxVersions.Or(math.MaxInt32)), wanted)
	return kept, s.withKey || len(kept) > 0
}

func (s *selector) column(name []byte) bool {
	return (s.wanted == nil || s.wanted[string(name)]) &&
		(s.StartColumn == nil || bytes.Compare(name, s.StartColumn) >= 0) &&
		(s.EndColumn == nil || bytes.Compare(name, s.EndColumn) < 0)
}

func (s *selector) time(t int64) bool {
	if s.TimeExact.Set {
		return t == s.TimeExact.Value
	}
	return !s.TimeStart.Set || t >= s.TimeStart.Value && t < s.TimeEnd.Value
}
