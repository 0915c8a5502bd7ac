package verify

import (
	"slices"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/scan"
)

// verdict is what was found of an expected row.
type verdict uint8

const (
	isEqual verdict = iota
	isMissing
	isDifferent
	isExpired
)

// judge compares rows of the table with what is expected. It is not safe for concurrent use.
type judge struct {
	hasher
	mode     table.Mode
	names    []string // of the schema's attributes
	versions int      // that the table keeps
	oldest   int64    // timestamp in milliseconds that the table still keeps; cells before it may be gone
	loaded   int64    // when cells without a timestamp of their own were written at the earliest; -1 unknown

	hashes map[string]uint64 // of column names
	got    map[string][]got
}

// got is a version of a cell in the table.
type got struct {
	at   int64
	hash uint64
}

func (j *judge) columnOf(name string) uint64 {
	h, ok := j.hashes[name]
	if !ok {
		h = j.column(name)
		if len(j.hashes) < 1<<16 { // a table can have a name for each row
			j.hashes[name] = h
		}
	}
	return h
}

// sum is the hash of a row's newest cells.
func (j *judge) sum(r *scan.Row) (sum uint64) {
	for i, c := range r.Columns {
		if i > 0 && r.Columns[i-1].ColumnName == c.ColumnName {
			continue // an older version
		}
		sum += j.delivered(j.columnOf(c.ColumnName), c.Value)
	}
	return sum
}

// read takes the versions of a row's cells, newest first; nil if there is no row.
func (j *judge) read(r *scan.Row) {
	clear(j.got)
	if r == nil {
		return
	}
	for _, c := range r.Columns {
		j.got[c.ColumnName] = append(j.got[c.ColumnName], got{c.Timestamp, j.delivered(j.columnOf(c.ColumnName), c.Value)})
	}
}

// cells are the newest cells of a row, to be compared with an expected row later.
func (j *judge) cells(r *scan.Row) map[string]uint64 {
	j.read(r)
	cells := map[string]uint64{}
	for name, versions := range j.got {
		cells[name] = versions[0].hash
	}
	return cells
}

// compare judges a row of the table, nil if there is none, against what is expected of its key. The columns that differ are nil
// where only the input itself can tell them.
func (j *judge) compare(w *want, r *scan.Row) (verdict, []string) {
	switch j.mode {
	case table.Delete:
		if r != nil {
			return isDifferent, []string{}
		}
		return isEqual, nil
	case table.Update:
		return j.updated(w, r)
	}
	return j.replaced(w, r)
}

func (j *judge) replaced(w *want, r *scan.Row) (v verdict, columns []string) {
	if r == nil {
		return j.gone(w), nil
	}
	sum, summed, read := uint64(0), false, false
	for _, version := range w.versions {
		if version.whole {
			if !summed {
				sum, summed = j.sum(r), true
			}
			if version.hash == sum {
				return isEqual, nil
			}
			columns = nil
			continue
		}
		if !read {
			j.read(r)
			read = true
		}
		if columns = j.differ(version.cells); len(columns) == 0 {
			return isEqual, nil
		}
	}
	return isDifferent, columns
}

// gone says what a missing row means.
func (j *judge) gone(w *want) verdict {
	for _, v := range w.versions {
		if v.whole && !j.expired(-1) {
			return isMissing
		}
		for _, c := range v.cells {
			if !j.expired(c.stamp) {
				return isMissing
			}
		}
	}
	return isExpired
}

// expired reports whether a cell of that timestamp, -1 for the time of the load, may be gone.
func (j *judge) expired(stamp int64) bool {
	if stamp < 0 {
		stamp = j.loaded
	}
	return stamp >= 0 && stamp < j.oldest
}

// differ compares cells that have replaced a row with what was read.
func (j *judge) differ(cells []cell) []string {
	var columns []string
	known := 0
	for _, c := range cells {
		name := j.names[c.column]
		have, ok := j.got[name]
		if ok {
			known++
		}
		if !ok && j.expired(c.stamp) {
			continue
		}
		if len(have) == 0 || have[0].hash != c.hash || c.stamp >= 0 && (len(have) != 1 || have[0].at != c.stamp) {
			columns = append(columns, name)
		}
	}
	if known < len(j.got) {
		for name := range j.got {
			if !slices.ContainsFunc(cells, func(c cell) bool { return j.names[c.column] == name }) {
				columns = append(columns, name)
			}
		}
	}
	slices.Sort(columns)
	return columns
}

// updated compares the cells that updates leave with a row of the table.
func (j *judge) updated(w *want, r *scan.Row) (verdict, []string) {
	j.read(r)
	var columns []string
	expired := false
	for i, s := range w.columns {
		ok, gone := j.holds(s, j.got[j.names[i]])
		expired = expired || gone
		if !ok {
			columns = append(columns, j.names[i])
		}
	}
	switch {
	case len(columns) > 0 && r == nil:
		return isMissing, nil
	case len(columns) > 0:
		slices.Sort(columns)
		return isDifferent, columns
	case r == nil && expired:
		return isExpired, nil
	}
	return isEqual, nil
}

// holds reports whether the versions of a cell are those that updates leave, and whether one of them has expired.
func (j *judge) holds(s *state, have []got) (ok, expired bool) {
	kept := max(j.versions, 1)
	if len(s.values) > 0 {
		kept--
		at := slices.IndexFunc(have, func(g got) bool { return slices.Contains(s.values, g.hash) })
		switch {
		case at == 0, at > 0 && len(s.stamped) > 0: // a version may be stamped with a time to come
		case len(have) == 0 && s.absent:
		case len(have) == 0 && j.expired(-1):
			expired = true
		default:
			return false, false
		}
	}
	if len(s.values) == 0 && len(s.stamped) == 0 {
		return len(have) == 0, false
	}
	for _, v := range s.stamped[:min(kept, len(s.stamped))] {
		at := slices.IndexFunc(have, func(g got) bool { return g.at == v.at && slices.Contains(v.values, g.hash) })
		switch {
		case at >= 0, s.absent && len(have) == 0:
		case j.expired(v.at):
			expired = true
		default:
			return false, false
		}
	}
	return true, expired
}
