package filter

import (
	"bytes"
	"slices"

	"example.com/tsimport/engine/wire"
)

// Limits of one filter.
const (
	MaxNodes      = 32 // the filter and all its sub-filters
	MaxRegexBytes = 256
	// MaxRegexSize is the approximate limit of the instructions of all regular expressions in a filter. Without it, 256
	// bytes of nested repeats could compile to millions, and a match, which cannot be interrupted, would take as long.
	MaxRegexSize = 1_024
)

// Filter is a decoded filter: a condition on the row, or a page of its columns.
type Filter struct {
	root node // nil means every row
	page *page
}

type row struct {
	key, cells []wire.Cell
}

// versions returns the versions of a column, newest first. A missing column has none, a key column one.
func (r *row) versions(name []byte) []wire.Cell {
	for i := range r.key {
		if bytes.Equal(r.key[i].Name, name) {
			return r.key[i : i+1]
		}
	}
	from, found := slices.BinarySearchFunc(r.cells, name,
		func(c wire.Cell, name []byte) int { return bytes.Compare(c.Name, name) })
	if !found {
		return nil
	}
	end := from + 1
	for end < len(r.cells) && bytes.Equal(r.cells[end].Name, name) {
		end++
	}
	return r.cells[from:end]
}

// Match reports whether a row passes. Its cells are sorted by name, newest first. A missing row has no key and no
// cells.
func (f *Filter) Match(key, cells []wire.Cell) bool {
	return f.root == nil || f.root.match(&row{key, cells})
}

// Page returns the cells of the requested page of columns.
func (f *Filter) Page(cells []wire.Cell) []wire.Cell {
	if f.page == nil {
		return cells
	}
	from := skip(cells, f.page.offset)
	return cells[from : from+skip(cells[from:], f.page.limit)]
}

// page is a ColumnPaginationFilter. It counts columns, not versions.
type page struct{ offset, limit int }

// skip returns the number of cells in the first n columns.
func skip(cells []wire.Cell, n int) int {
	for i := range cells {
		if i > 0 && bytes.Equal(cells[i].Name, cells[i-1].Name) {
			continue
		}
		if n == 0 {
			return i
		}
		n--
	}
	return len(cells)
}
