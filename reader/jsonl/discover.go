package jsonl

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"example.com/tsimport/reader/record"
)

// Columns collects column names in the order in which they first appear.
type Columns struct {
	Why string // why the first refused record was refused

	names []string
	keys  []string
	index map[string]int
	weak  []bool // by name: whether it is flattened and was only null or {} so far

	flatten bool

	pending     []string // names in the current record; discarded if it is refused
	pendingWeak []bool
	pendingKeys []string
}

// Names returns the names so far. If objects are flattened, an object's own name is omitted if some record showed its
// members and none showed another value than null or {}.
func (c *Columns) Names() []string {
	out := make([]string, 0, len(c.names))
	for i, name := range c.names {
		inIt := func(other string) bool { return strings.HasPrefix(other, name+".") }
		if !c.weak[i] || !slices.ContainsFunc(c.names, inIt) {
			out = append(out, name)
		}
	}
	return out
}

// Keys returns the names of the values under PK in rows exported by Tablestore's tool.
func (c *Columns) Keys() []string { return c.keys }

func (c *Columns) note(name []byte, d record.Datum) {
	c.pending = append(c.pending, string(name))
	empty := d.Kind == record.JSON && d.Bytes[0] == '{' && len(bytes.TrimSpace(d.Bytes[1:len(d.Bytes)-1])) == 0
	c.pendingWeak = append(c.pendingWeak, c.flatten && (empty || d.Kind == record.Null))
}

// take makes columns of the pending names if ok is set, and otherwise discards them.
func (c *Columns) take(ok bool) {
	if ok {
		for i, name := range c.pending {
			at, known := c.index[name]
			if !known {
				if c.index == nil {
					c.index = map[string]int{}
				}
				at = len(c.names)
				c.index[name] = at
				c.names = append(c.names, name)
				c.weak = append(c.weak, true)
			}
			c.weak[at] = c.weak[at] && c.pendingWeak[i]
		}
		for _, name := range c.pendingKeys {
			if !slices.Contains(c.keys, name) {
				c.keys = append(c.keys, name)
			}
		}
	}
	c.pending, c.pendingWeak, c.pendingKeys = c.pending[:0], c.pendingWeak[:0], c.pendingKeys[:0]
}

// Discover adds the columns of sample lines to into. It returns the number of records, and of the refused
// ones among them.
func Discover(data []byte, o Options, into *Columns) (records, bad int) {
	o.Columns = nil
	p := NewParser(o)
	p.columns, into.flatten = into, o.Flatten
	p.Reset(data)
	for r, ok := p.Next(); ok; r, ok = p.Next() {
		if r.Bad != nil {
			if bad++; bad == 1 {
				into.Why = fmt.Sprintf("the first record, on line %d: %s", r.Span.Line+1, r.Bad.Message)
			}
		}
		into.take(r.Bad == nil)
	}
	return p.Records(), bad
}
