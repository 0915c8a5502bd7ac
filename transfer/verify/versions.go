package verify

import (
	"cmp"
	"slices"

	"example.com/tsimport/internal/tablestore/scan"
)

// older returns the columns of a row that have an older version.
func (j *judge) older(r *scan.Row) (columns []uint64) {
	for i, c := range r.Columns {
		if i > 0 && r.Columns[i-1].ColumnName == c.ColumnName && (i < 2 || r.Columns[i-2].ColumnName != c.ColumnName) {
			columns = append(columns, j.columnOf(c.ColumnName))
		}
	}
	return columns
}

// versionsDiffer is like differ for cells with several versions. The row must have exactly those that the table keeps.
func (j *judge) versionsDiffer(cells []cell) (columns []uint64) {
	slices.SortFunc(cells, func(a, b cell) int { // cells without a timestamp sort last
		return cmp.Or(cmp.Compare(a.column, b.column), cmp.Compare(b.stamp, a.stamp))
	})
	all, known := cells, 0
	for len(cells) > 0 {
		n := 1
		for n < len(cells) && cells[n].column == cells[0].column {
			n++
		}
		have, ok := j.got[cells[0].column]
		if ok {
			known++
		}
		if !j.sameVersions(cells[:n], have) {
			columns = append(columns, cells[0].column)
		}
		cells = cells[n:]
	}
	if known < len(j.got) {
		for column := range j.got {
			if _, found := slices.BinarySearchFunc(all, column,
				func(c cell, column uint64) int { return cmp.Compare(c.column, column) }); !found {
				columns = append(columns, column)
			}
		}
	}
	return columns
}

// sameVersions reports whether the versions read are the ones that a record should leave. Both are sorted, newest
// first; a version without a timestamp is last in want.
func (j *judge) sameVersions(want []cell, have []got) bool {
	kept := max(j.versions, 1)
	last := len(want) - 1
	if want[last].stamp >= 0 {
		return j.areVersions(want, have, -1, kept)
	}
	// The version without a timestamp got the time of writing, so it may be any of the versions read.
	now, want := want[last], want[:last]
	for i := range have {
		if have[i].hash == now.hash && j.areVersions(want, have, i, kept-1) {
			return true
		}
	}
	later := len(want) >= kept && want[kept-1].stamp >= j.loaded // newer versions have displaced it
	return (later || j.expired(-1)) && j.areVersions(want, have, -1, kept)
}

// areVersions reports whether have, without have[skip], equals the newest kept versions of want, except expired ones.
func (j *judge) areVersions(want []cell, have []got, skip, kept int) bool {
	at := 0
	for _, c := range want[:min(kept, len(want))] {
		if at == skip {
			at++
		}
		if at < len(have) && have[at].at == c.stamp && have[at].hash == c.hash {
			at++
		} else if !j.expired(c.stamp) {
			return false
		}
	}
	if at == skip {
		at++
	}
	return at == len(have)
}
