package verify

import (
	"slices"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/internal/tablestore/scan"
)

// verdict is the result for an expected row.
type verdict uint8

const (
	isEqual verdict = iota
	isMissing
	isDifferent
	isExpired
)

// judge compares rows of the table with expected rows. It is not safe for concurrent use.
type judge struct {
	*plainbuffer.Hasher
	mode     table.Mode
	sums     bool              // rows with equal sums are equal
	wide     bool              // records are self-describing, so cells may have several versions
	names    map[uint64]string // names of the schema's attributes, by hash
	versions int               // number of versions that the table keeps
	oldest   int64             // oldest timestamp that the table keeps, in milliseconds; older cells may be gone
	loaded   int64             // earliest time at which cells without a timestamp were written; -1 if unknown

	hashes map[string]uint64 // hashes of column names
	got    map[uint64][]got  // versions read, newest first, by column hash
}

type difference struct {
	columns []string // known names; nil if the record must be reread to find the columns that differ
	unnamed []uint64 // hashes of names that only the records have
	reduced []uint64 // hashes of all differing columns of an update
}

type got struct {
	at   int64
	hash uint64
}

func (j *judge) columnOf(name string) uint64 {
	h, ok := j.hashes[name]
	if !ok {
		h = j.Column(name)
		if len(j.hashes) < 1<<16 { // rows of a table may all have different columns
			j.hashes[name] = h
		}
	}
	return h
}

// sum returns the sum of a row's newest cells.
func (j *judge) sum(r *scan.Row) (sum uint64) {
	for i, c := range r.Columns {
		if i > 0 && r.Columns[i-1].ColumnName == c.ColumnName {
			continue // an older version
		}
		sum += j.delivered(j.columnOf(c.ColumnName), c.Value)
	}
	return sum
}

// delivered hashes a cell whose value has the SDK's type.
func (j *judge) delivered(column uint64, v any) uint64 {
	value := client.ValueOf(v)
	return j.Cell(column, &value)
}

// same reports whether a row with the given sum is known to equal an expected one. If it is not, compare decides.
func (j *judge) same(w *want, sum uint64) bool {
	return j.sums && slices.ContainsFunc(w.versions, func(v version) bool { return v.whole && v.hash == sum })
}

// read stores the versions of a row's cells in j.got. r may be nil.
func (j *judge) read(r *scan.Row) {
	clear(j.got)
	if r == nil {
		return
	}
	for _, c := range r.Columns {
		column := j.columnOf(c.ColumnName)
		j.got[column] = append(j.got[column], got{c.Timestamp, j.delivered(column, c.Value)})
	}
}

// named returns the names of the columns in which a row of the table differs. r may be nil.
func (j *judge) named(columns []uint64, r *scan.Row) difference {
	if len(columns) == 0 {
		return difference{}
	}
	d := difference{columns: []string{}}
	for _, column := range columns {
		name, ok := j.names[column]
		if !ok && r != nil {
			i := slices.IndexFunc(r.Columns,
				func(c *tablestore.AttributeColumn) bool { return j.columnOf(c.ColumnName) == column })
			if ok = i >= 0; ok {
				name = r.Columns[i].ColumnName
			}
		}
		if ok {
			d.columns = append(d.columns, name)
		} else {
			d.unnamed = append(d.unnamed, column)
		}
	}
	slices.Sort(d.columns)
	return d
}

// cells returns hashes of the newest cells of a row, for a later comparison.
func (j *judge) cells(r *scan.Row) map[string]uint64 {
	cells := map[string]uint64{}
	for _, c := range r.Columns {
		if _, newer := cells[c.ColumnName]; !newer {
			cells[c.ColumnName] = j.delivered(j.columnOf(c.ColumnName), c.Value)
		}
	}
	return cells
}

// compare compares a row of the table, nil if missing, with the expectation for its key.
func (j *judge) compare(w *want, r *scan.Row) (verdict, difference) {
	switch j.mode {
	case table.Delete:
		if r != nil {
			return isDifferent, difference{columns: []string{}}
		}
		return isEqual, difference{}
	case table.Update:
		return j.updated(w, r)
	}
	return j.replaced(w, r)
}

func (j *judge) replaced(w *want, r *scan.Row) (v verdict, d difference) {
	if r == nil {
		return j.gone(w), d
	}
	sum, summed, read := uint64(0), false, false
	var older []uint64
	for _, version := range w.versions {
		if version.whole {
			if !summed {
				sum, summed = j.sum(r), true
				if j.wide {
					older = j.older(r)
				}
			}
			switch d = (difference{}); {
			case version.hash == sum && len(older) == 0:
				return isEqual, d
			case version.hash == sum:
				d = j.named(older, r)
			}
			continue
		}
		if !read {
			j.read(r)
			read = true
		}
		columns := j.differ(version.cells)
		if len(columns) == 0 {
			return isEqual, difference{}
		}
		d = j.named(columns, r)
	}
	return isDifferent, d
}

// gone returns the verdict on a missing row.
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

// expired reports whether a cell with a timestamp may have expired. -1 stands for the time of the load.
func (j *judge) expired(stamp int64) bool {
	if stamp < 0 {
		stamp = j.loaded
	}
	return stamp >= 0 && stamp < j.oldest
}

// differ compares the cells of a put row with the cells read, and returns the columns that differ.
func (j *judge) differ(cells []cell) (columns []uint64) {
	if j.wide {
		return j.versionsDiffer(cells)
	}
	known := 0
	for _, c := range cells {
		have, ok := j.got[c.column]
		if ok {
			known++
		}
		if !ok && j.expired(c.stamp) {
			continue
		}
		if len(have) == 0 || have[0].hash != c.hash || c.stamp >= 0 && (len(have) != 1 || have[0].at != c.stamp) {
			columns = append(columns, c.column)
		}
	}
	if known < len(j.got) {
		for column := range j.got {
			if !slices.ContainsFunc(cells, func(c cell) bool { return c.column == column }) {
				columns = append(columns, column)
			}
		}
	}
	return columns
}

// updated compares the cells that updates should leave with a row of the table.
func (j *judge) updated(w *want, r *scan.Row) (verdict, difference) {
	j.read(r)
	var columns []uint64
	expired := false
	for column, s := range w.columns {
		ok, gone := j.holds(s, j.got[column])
		expired = expired || gone
		if !ok {
			columns = append(columns, column)
		}
	}
	switch {
	case len(columns) > 0 && r == nil:
		return isMissing, difference{}
	case len(columns) > 0:
		d := j.named(columns, r)
		d.reduced = columns
		return isDifferent, d
	case r == nil && expired:
		return isExpired, difference{}
	}
	return isEqual, difference{}
}

// holds reports whether a cell has the versions that updates should leave, and whether one has expired.
func (j *judge) holds(s *state, have []got) (ok, expired bool) {
	kept := max(j.versions, 1)
	if len(s.values) > 0 {
		kept--
		at := slices.IndexFunc(have, func(g got) bool { return slices.Contains(s.values, g.hash) })
		switch {
		case at == 0, at > 0 && len(s.stamped) > 0: // a version with a future timestamp may precede it
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
