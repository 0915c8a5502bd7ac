package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/plan"
)

// ReportTable counts how the rows of one of several tables ended. Rejected rows without a table are in none.
type ReportTable struct {
	Name            string `json:"name"`
	Class           int    `json:"class,omitempty"` // class in the age policy, from 1
	Created         bool   `json:"created"`         // the run created the table
	Written         int64  `json:"written"`
	Superseded      int64  `json:"superseded"`
	ConditionFailed int64  `json:"condition_failed,omitempty"`
	Rejected        int64  `json:"rejected"`
	Archived        int64  `json:"archived"`
	Unfinished      int64  `json:"unfinished,omitempty"` // rows that a dry run would have written
}

// openTables are the existing tables of a load.
type openTables interface {
	WasMade(name string) bool // reports whether this attempt created the table
	Class(name string) int    // returns its class in the age policy, from 1; 0 means none
}

// Tables counts the rows of each table, over all attempts. It belongs to the dispatcher's goroutine.
type Tables struct {
	byName map[string]*ReportTable
	last   *ReportTable
	Wanted map[string]bool // tables that rows were sent to or wait for
	max    int
}

func NewTables(most int) *Tables {
	return &Tables{byName: map[string]*ReportTable{}, Wanted: map[string]bool{}, max: cmp.Or(most, plan.DefaultMaxTables)}
}

func (l *Tables) named(name string) *ReportTable {
	t := l.byName[name]
	if t == nil {
		t = &ReportTable{Name: name}
		l.byName[name] = t
	}
	return t
}

func (l *Tables) row(key []byte) *ReportTable {
	name, _ := table.CutTable(key)
	if l.last == nil || l.last.Name != string(name) {
		l.last = l.named(string(name))
	}
	return l.last
}

// Add notes a table. It returns whether the table is new to this attempt, or an error if there would be too many.
func (l *Tables) Add(name string) (isNew bool, err error) {
	if l.Wanted[name] {
		return false, nil
	}
	if len(l.Wanted) >= l.max {
		return false, fmt.Errorf("table %s would exceed --max-tables %d; raise it, or correct --table", name, l.max)
	}
	l.Wanted[name] = true
	return true, nil
}

func (t *ReportTable) counters() map[string]*int64 {
	return map[string]*int64{"written": &t.Written, "superseded": &t.Superseded, "rejected": &t.Rejected,
		"archived": &t.Archived, "condition_failed": &t.ConditionFailed}
}

// Keep adds the counts to a checkpoint.
func (l *Tables) Keep(counters map[string]int64, from openTables) {
	if l == nil {
		return
	}
	for name, t := range l.byName {
		for what, n := range t.counters() {
			counters[tableCounter(name, what)] = *n
		}
	}
	for name := range l.Wanted {
		if from.WasMade(name) || l.named(name).Created {
			counters[tableCounter(name, "created")] = 1
		}
	}
}

func tableCounter(name, what string) string { return "table " + name + " " + what }

// Resume takes over the counts of earlier attempts.
func (l *Tables) Resume(s *checkpoint.Snapshot) {
	if l == nil || s == nil {
		return
	}
	for name, n := range s.Counters {
		parts := strings.Split(name, " ")
		if len(parts) != 3 || parts[0] != "table" {
			continue
		}
		t := l.named(parts[1])
		if to := t.counters()[parts[2]]; to != nil {
			*to = n
		} else {
			t.Created = n > 0
		}
	}
}

// Complete adds the tables to the counts of the load.
func (l *Tables) Complete(r *Counted, from openTables) {
	if l == nil {
		return
	}
	for name := range l.Wanted {
		l.named(name)
	}
	for _, t := range l.byName {
		t.Created = t.Created || from.WasMade(t.Name)
		t.Class = from.Class(t.Name)
		r.Created = r.Created || t.Created
		r.Tables = append(r.Tables, *t)
	}
	slices.SortFunc(r.Tables, func(a, b ReportTable) int { return cmp.Compare(a.Name, b.Name) })
}
