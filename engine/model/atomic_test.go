package model

import "fmt"

// writeAtomic is write, but for each table either all rows are applied or none: then every row of the table has the
// error of the first that has one. The rows of a table must share a partition key.
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

// spread gives all rows of a table the first error that one of them has.
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

// keyText is a value in a message: binaries are in hex.
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
