package model

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// model is one partition key of a table whose key is a pair of integers, with one version of each cell.
type model struct {
	rows     rows
	sessions map[string]*session // by their ids

	// Of a history:
	ahead int64  // that the clock was moved on, in milliseconds
	kept  *model // what a loss of power leaves; nil: it has not struck
}

// rows are cells by the second column of the key and by name.
type rows map[int64]map[string]int64

// session is a local transaction: the rows as it sees them.
type session struct {
	rows  rows
	began int64
	wrote bool
}

func newModel() *model { return &model{rows: rows{}, sessions: map[string]*session{}} }

func (r rows) clone() rows {
	c := rows{}
	for n, cells := range r {
		c[n] = maps.Clone(cells)
	}
	return c
}

// text is a row as answers show it.
func (r rows) text(n int64) string {
	cells, there := r[n]
	if !there {
		return ""
	}
	text := fmt.Sprint("n=", n)
	for _, name := range slices.Sorted(maps.Keys(cells)) {
		text += fmt.Sprintf(" %s=%d", name, cells[name])
	}
	return text
}

func (m *model) clone() *model {
	c := &model{rows: m.rows.clone(), sessions: map[string]*session{}, kept: m.kept, ahead: m.ahead}
	for id, s := range m.sessions {
		c.sessions[id] = &session{s.rows.clone(), s.began, s.wrote}
	}
	return c
}

// answer is what the service says. Units are 0 if it refused.
type answer struct {
	code        string // of a refusal; "" is none
	read, write int    // capacity units
	rows        string
}

// kindOfWrite is put, add (to a column), drop (a column) or remove.
type kindOfWrite int

const (
	put kindOfWrite = iota
	add
	drop
	remove
)

// existence is what a change expects of the old row.
type existence int

const (
	ignored existence = iota
	exists
	absent
)

// change is one row of a write.
type change struct {
	kind   kindOfWrite
	n      int64
	column string
	value  int64
	expect existence
}

func randomChange(rng *rand.Rand, n int64) *change {
	c := &change{n: n, expect: existence(rng.IntN(5) % 3), kind: kindOfWrite(rng.IntN(4)), column: string(rune('a' + rng.IntN(2)))}
	if c.value = rng.Int64N(100); rng.IntN(3) == 0 {
		c.kind = add
	}
	return c
}

const oneMinute = 60_000

const (
	conflicts = "OTSRowOperationConflict"
	gone      = "OTSSessionNotExist"
)

// seen returns the rows that a request of a transaction sees, "" is none.
func (m *model) seen(id string, now int64) (rows, string) {
	if id == "" {
		return m.rows, ""
	}
	if s := m.sessions[id]; s != nil && now-s.began < oneMinute {
		return s.rows, ""
	}
	return nil, gone
}

// locked reports whether a transaction keeps others from the partition key.
func (m *model) locked(now int64) bool {
	for _, s := range m.sessions {
		if now-s.began < oneMinute {
			return true
		}
	}
	return false
}

func (m *model) change(c *change, id string, now int64) answer {
	r, refused := m.seen(id, now)
	if refused != "" {
		return answer{code: refused}
	}
	if id == "" && m.locked(now) {
		return answer{code: conflicts}
	}
	cells, there := r[c.n]
	if c.expect == exists && !there || c.expect == absent && there {
		return answer{code: "OTSConditionCheckFail"}
	}
	a := answer{write: 1}
	if c.expect != ignored {
		a.read = 1
	}
	switch c.kind {
	case put:
		r[c.n] = map[string]int64{c.column: c.value}
	case add:
		if !there {
			cells = map[string]int64{}
			r[c.n] = cells
		}
		cells[c.column] += c.value
		a.rows = fmt.Sprintf("%s=%d", c.column, cells[c.column])
	case drop:
		delete(cells, c.column)
	case remove:
		delete(r, c.n)
	}
	return a
}

func (m *model) get(n int64, id string, now int64) answer {
	r, refused := m.seen(id, now)
	if refused != "" {
		return answer{code: refused}
	}
	return answer{read: 1, rows: r.text(n)}
}

func (m *model) scan(id string, now int64) answer {
	r, refused := m.seen(id, now)
	if refused != "" {
		return answer{code: refused}
	}
	var texts []string
	for _, n := range slices.Sorted(maps.Keys(r)) {
		texts = append(texts, r.text(n))
	}
	return answer{read: 1, rows: strings.Join(texts, "\n")}
}

func (m *model) start(id string, now int64) answer {
	if m.locked(now) {
		return answer{code: conflicts}
	}
	m.sessions[id] = &session{rows: m.rows.clone(), began: now}
	return answer{}
}

func (m *model) end(id string, commit bool, now int64) answer {
	r, refused := m.seen(id, now)
	if refused != "" {
		return answer{code: refused}
	}
	if delete(m.sessions, id); commit {
		m.rows = r
	}
	return answer{}
}
