package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// WriteRow is PutRow, UpdateRow or DeleteRow.
func (m *Model) WriteRow(c Change, now int64) Outcome {
	if r := checkShape(&c, false); r != nil {
		return Outcome{Refusal: r}
	}
	outcomes, r := m.write([]Change{c}, false, now)
	if r != nil {
		return Outcome{Refusal: r}
	}
	return outcomes[0]
}

// WriteBatch is BatchWriteRow. The changes of one table keep their order; a refusal is the whole request's.
func (m *Model) WriteBatch(changes []Change, atomic bool, now int64) ([]Outcome, *Refusal) {
	if len(changes) == 0 {
		return nil, invalid("No row is specified in BatchWriteRow.")
	}
	if len(changes) > 200 {
		return nil, invalid("Rows count exceeds the upper limit: 200.")
	}
	for i := range changes {
		if r := checkShape(&changes[i], true); r != nil {
			return nil, r
		}
	}
	return m.write(changes, atomic, now)
}

// checkShape returns the refusal of a request without looking at a table.
func checkShape(c *Change, inBatch bool) *Refusal {
	switch {
	case len(c.Key) > 4: // only an index has more, which is not written to
		return invalid("The number of primary key columns must be in range: [1, 4].")
	case c.Kind == UpdateRow && len(c.Ops) == 0 && inBatch:
		return invalid("Invalid update row request: missing cells in request.")
	case c.Kind == UpdateRow && len(c.Ops) == 0:
		return invalid("Attribute column is missing.")
	}
	touched := map[string]int{}
	for _, op := range c.Ops {
		for _, k := range c.Key {
			if op.Name == k.Name {
				return invalid(fmt.Sprintf("Duplicated attribute column name with primary key column: '%s'.", op.Name))
			}
		}
		if op.Timestamp < 0 || op.Timestamp >= math.MaxInt64/1000 {
			return invalid("Timestamp must be in range [0, INT64_MAX/1000).")
		}
		touched[op.Name]++
	}
	for _, op := range c.Ops {
		if op.Kind == Increment && touched[op.Name] > 1 {
			return invalid("")
		}
	}
	return nil
}

// write applies rows in order, separately unless they are atomic, all at one time.
func (m *Model) write(changes []Change, atomic bool, now int64) ([]Outcome, *Refusal) {
	outcomes := make([]Outcome, len(changes))
	id := changes[0].Txn
	if id != "" {
		s, r := m.session(id, now)
		if r != nil {
			return nil, r
		}
		m.swap(s)
		defer m.swap(s)
	}
	for i := range changes {
		c := &changes[i]
		t := m.Tables[c.Table]
		if _, x := m.index(c.Table); x != nil {
			outcomes[i].Refusal = invalid("Can't write index table directly.")
		} else if t == nil {
			outcomes[i].Refusal = noTable()
		} else if r := t.checkKey(c.Key); r != nil {
			outcomes[i].Refusal = r
		} else if r := t.checkOps(c, now); r != nil {
			outcomes[i].Refusal = r
		} else if r := t.checkNumber(c); r != nil {
			outcomes[i].Refusal = r
		} else if id != "" {
			outcomes[i].Refusal = m.sessions[id].holds(c.Table, c.Key)
		} else if m.locked(c.Table, c.Key[0].Value, now) {
			outcomes[i].Refusal = conflict()
		}
	}
	if atomic {
		return m.writeAtomic(changes, outcomes, now)
	}
	if r := m.checkRepeats(changes, outcomes); r != nil {
		return nil, r
	}
	for i := range changes {
		if outcomes[i].Refusal == nil {
			outcomes[i] = m.Tables[changes[i].Table].apply(&changes[i], now)
		}
	}
	return outcomes, nil
}

// checkNumber refuses a number chosen by the client for a possibly new row.
func (t *Table) checkNumber(c *Change) *Refusal {
	for i, k := range t.Key {
		if k.Auto && !isPlaceholder(c.Key[i].Value) && !c.Numbered && c.Kind != DeleteRow && c.Expect != Exist {
			return invalid("")
		}
	}
	return nil
}

// checkOps refuses a row's operations by its table. It keeps explicit timestamps within the deviation and the time to
// live: max(now − deviation, now − time to live) ≤ stamp < now + deviation, in seconds.
func (t *Table) checkOps(c *Change, now int64) *Refusal {
	if c.Kind == UpdateRow && t.Options.NoUpdate {
		return invalid("Update operation is not allowed in this table")
	}
	for _, op := range c.Ops {
		if r := t.checkStamp(op, now); r != nil {
			return r
		}
		if r := t.checkDefined(op); r != nil {
			return r
		}
	}
	return nil
}

func (t *Table) checkStamp(op Op, now int64) *Refusal {
	if op.Kind == Put && op.Timestamp != 0 {
		stamp, second := op.Timestamp/1000, now/1000
		oldest, newest := second-t.Options.Deviation, second+t.Options.Deviation
		if live := t.Options.TTL; live > 0 {
			oldest = max(oldest, second-int64(live))
		}
		if stamp < oldest || stamp >= newest {
			return invalid(fmt.Sprintf("Invalid timestamp. Cell:%s. Timestamp:%d. MinTimestamp:%d. MaxTimestamp:%d.", op.Name, op.Timestamp, 1000*oldest+now%1000, 1000*newest+now%1000))
		}
	}
	return nil
}

// checkRepeats refuses a batch that names a row twice if one of the two is conditional or their table has indexes. Rows
// that have already failed take no part.
func (m *Model) checkRepeats(changes []Change, outcomes []Outcome) *Refusal {
	for i := range changes {
		for j := range i {
			a, b := &changes[i], &changes[j]
			if outcomes[i].Refusal != nil || outcomes[j].Refusal != nil || a.Table != b.Table || compareKeys(a.Key, b.Key) != 0 {
				continue
			}
			if len(m.Tables[a.Table].Indexes) > 0 {
				return invalid("")
			}
			for _, c := range []*Change{b, a} {
				if c.Expect != Ignore || c.Condition != nil {
					return invalid("") // the text names one of the reasons; a batch can have several
				}
			}
		}
	}
	return nil
}

// apply carries out one change of a row that fits the table.
func (t *Table) apply(c *Change, now int64) Outcome {
	at, r := t.find(c.Key)
	exists := t.exists(r, now)
	before := t.visible(r, now)
	if c.Expect == Exist && !exists || c.Expect == NotExist && exists || c.Condition != nil && !c.Condition.keeps(withKey(r, before, exists)) {
		return Outcome{Refusal: conditionFailed()}
	}
	o := Outcome{Write: units(c.Key.dataBytes() + opBytes(c.Ops))}
	if c.Expect != Ignore || c.Condition != nil {
		o.Read = units(c.Key.dataBytes())
	}
	var after []Cell
	var answered []Cell
	creates := c.Kind == PutRow
	switch c.Kind {
	case DeleteRow:
		if r != nil {
			t.rows = slices.Delete(t.rows, at, at+1)
		}
		return o
	case PutRow:
		for _, op := range c.Ops {
			after = put(after, Cell{op.Name, op.Value, stampOf(op, now)})
		}
	case UpdateRow:
		var refusal *Refusal
		if after, answered, refusal = update(before, c, now); refusal != nil {
			return Outcome{Refusal: refusal}
		}
		for _, op := range c.Ops {
			creates = creates || op.Kind == Put || op.Kind == Increment
		}
	}
	if exists || creates {
		if refusal := t.tooLong(c.Key, after); refusal != nil {
			return Outcome{Refusal: refusal}
		}
		t.keep(at, r, c.Key, after)
	}
	if c.ReturnKey {
		o.Row = &Row{Key: c.Key}
	}
	if c.ReturnColumns != nil {
		o.Row = &Row{Key: c.Key, Cells: answered}
	}
	return o
}

// keep stores the row's new cells: of each column the newest MaxVersions.
func (t *Table) keep(at int, r *row, key Key, cells []Cell) {
	if r == nil {
		r = &row{key: key}
		t.rows = slices.Insert(t.rows, at, r)
	}
	r.without = nil
	r.gone = append(r.gone, r.cells...)
	sortCells(cells)
	r.cells = nil
	versions := map[string]int{}
	for _, c := range cells {
		if versions[c.Name]++; versions[c.Name] <= t.Options.MaxVersions {
			r.cells = append(r.cells, c)
		} else {
			r.gone = append(r.gone, c)
		}
	}
}

func stampOf(op Op, now int64) int64 {
	if op.Timestamp != 0 {
		return op.Timestamp
	}
	return now
}

// put adds a version and replaces one with the same name and timestamp.
func put(cells []Cell, c Cell) []Cell {
	cells = slices.DeleteFunc(cells, func(x Cell) bool { return x.Name == c.Name && x.Timestamp == c.Timestamp })
	return append(cells, c)
}

func sortCells(cells []Cell) {
	slices.SortFunc(cells, func(a, b Cell) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return int(min(1, max(-1, b.Timestamp-a.Timestamp)))
	})
}

// update applies the operations of UpdateRow in order. answered is the incremented cells asked for.
func update(before []Cell, c *Change, now int64) (after, answered []Cell, r *Refusal) {
	after = slices.Clone(before)
	for _, op := range c.Ops {
		switch op.Kind {
		case Put:
			after = put(after, Cell{op.Name, op.Value, stampOf(op, now)})
		case DeleteColumn:
			after = slices.DeleteFunc(after, func(x Cell) bool { return x.Name == op.Name })
		case DeleteVersion:
			after = slices.DeleteFunc(after, func(x Cell) bool { return x.Name == op.Name && x.Timestamp == op.Timestamp })
		case Increment:
			sum, refusal := increment(after, op, now)
			if refusal != nil {
				return nil, nil, refusal
			}
			after = put(after, sum)
			if slices.Contains(c.ReturnColumns, op.Name) {
				answered = append(answered, sum)
			}
		}
	}
	sortCells(answered)
	return after, answered, nil
}

// increment adds to the newest version, 0 if there is none. The sum is a new version, stamped now; if the base has a
// later stamp, the sum replaces it, or it would not be seen.
func increment(cells []Cell, op Op, now int64) (Cell, *Refusal) {
	sum := Cell{op.Name, op.Value, now}
	var newest *Cell
	for i, c := range cells {
		if c.Name == op.Name && (newest == nil || c.Timestamp > newest.Timestamp) {
			newest = &cells[i]
		}
	}
	if newest == nil {
		return sum, nil
	}
	base, ok := newest.Value.(int64)
	if !ok {
		return sum, invalid("")
	}
	delta := op.Value.(int64)
	if delta > 0 && base > math.MaxInt64-delta || delta < 0 && base < math.MinInt64-delta {
		return sum, invalid("")
	}
	sum.Value, sum.Timestamp = base+delta, max(now, newest.Timestamp)
	return sum, nil
}

func opBytes(ops []Op) (n int) {
	for _, op := range ops {
		n += len(op.Name) + dataBytes(op.Value)
	}
	return n
}

// writeAtomic is write, but for each table either all rows are applied or none: then every row of the table has the
// first error. The rows of a table must share a partition key.
func (m *Model) writeAtomic(changes []Change, outcomes []Outcome, now int64) ([]Outcome, *Refusal) {
	first := map[string]*Change{}
	spread(changes, outcomes)
	for i := range changes {
		c := &changes[i]
		if outcomes[i].Refusal != nil {
			continue
		}
		if first[c.Table] == nil {
			first[c.Table] = c
		}
		if a, b := first[c.Table].Key[0].Value, c.Key[0].Value; compareValues(a, b) != 0 {
			outcomes[i].Refusal = &Refusal{400, "OTSDataOutOfRange", fmt.Sprintf("Data out of scope of atomic. Atomic PartKey:%s. Data PartKey:%s", keyText(a), keyText(b))}
		}
	}
	spread(changes, outcomes)
	if r := m.checkRepeats(changes, outcomes); r != nil {
		return nil, r
	}
	before := map[string][]*row{}
	for i := range changes {
		if outcomes[i].Refusal != nil {
			continue
		}
		t := m.Tables[changes[i].Table]
		if before[changes[i].Table] == nil {
			before[changes[i].Table] = copyRows(t.rows)
		}
		outcomes[i] = t.apply(&changes[i], now)
	}
	spread(changes, outcomes)
	for i := range changes {
		if rows := before[changes[i].Table]; rows != nil && outcomes[i].Refusal != nil {
			m.Tables[changes[i].Table].rows = rows
		}
	}
	return outcomes, nil
}

// spread gives all rows of a table the first error.
func spread(changes []Change, outcomes []Outcome) {
	first := map[string]*Refusal{}
	for i := range changes {
		if r := outcomes[i].Refusal; r != nil && first[changes[i].Table] == nil {
			first[changes[i].Table] = r
		}
	}
	for i := range changes {
		if r := first[changes[i].Table]; r != nil {
			outcomes[i] = Outcome{Refusal: r}
		}
	}
}

// keyText is a value in a message, with binaries in hex.
func keyText(v any) string {
	if b, ok := v.([]byte); ok {
		return fmt.Sprintf("%x", b)
	}
	return fmt.Sprint(v)
}

func copyRows(rows []*row) []*row {
	c := make([]*row, len(rows))
	for i, r := range rows {
		n := *r // cells and gone are replaced, never changed in place
		c[i] = &n
	}
	return c
}
