package keyexpr

import (
	"fmt"
	"slices"
	"strings"

	"example.com/tsimport/internal/table"
)

// Design is a primary key, or its first columns, computed from input columns.
type Design struct {
	Columns  []Column
	Programs []*Program // programs of Columns, compiled against the same Env; nil for a column that the service numbers
	Inputs   []Input    // the Columns of that Env
}

// Explanation explains a key design.
type Explanation struct {
	Key         []KeyColumn  `json:"key"`
	PythonSetup []string     `json:"python_setup,omitempty"` // lines that the Python formulas need before them
	Order       string       `json:"order"`                  // order of rows in a range read
	Ranges      []Range      `json:"ranges"`                 // readable ranges of input columns
	Examples    []Example    `json:"examples"`               // the sample rows with their keys
	Notes       []string     `json:"notes"`                  // warnings
	Files       []LookupFile `json:"files,omitempty"`        // the files that the keys depend on
}

type KeyColumn struct {
	Name       string    `json:"name"`
	Type       string    `json:"type"`
	Expression string    `json:"expression"`
	Separator  string    `json:"separator,omitempty"` // chosen for splice(auto, …)
	Recipe     string    `json:"recipe"`              // how a reader of the table computes it, in words
	Python     string    `json:"python,omitempty"`    // the same as a Python expression, if there is one
	Order      []Segment `json:"order"`
}

// Range says whether GetRange over the key can read a range of an input column.
type Range struct {
	Column string  `json:"column"`
	Use    string  `json:"use"` // "yes", "with a prefix", "many" (one range for each value of the parts before) or "no"
	How    string  `json:"how"`
	Bounds *Bounds `json:"bounds,omitempty"` // bounds of the rows with given values
}

// Example is a row and its key.
type Example struct {
	Input    []string `json:"input"` // NAME=value of the columns in the key
	Key      []string `json:"key,omitempty"`
	Rejected string   `json:"rejected,omitempty"`
}

// Explain describes a design, with the keys of samples (rows in the order of d.Inputs) and bounds of values or ranges.
func Explain(d Design, samples [][]table.Value, given Given, upto Upto) Explanation {
	x := Explanation{Examples: []Example{}, Ranges: []Range{}}
	var segments []Segment
	for i, p := range d.Programs {
		if p == nil {
			x.Key = append(x.Key, KeyColumn{Name: d.Columns[i].Name, Type: table.Integer.String(), Expression: "auto",
				Order: []Segment{},
				Recipe: "the service numbers the rows of a partition key as they are written; a reader takes a range over all " +
					"numbers, or the number that the load noted (--returned-keys)"})
			segments = append(segments, Segment{Text: writingOrder, Order: NoOrder})
			continue
		}
		k := KeyColumn{Name: d.Columns[i].Name, Type: p.Type.String(), Expression: d.Columns[i].Source(),
			Recipe: p.root.recipe, Order: p.root.order}
		if p.Auto && p.env.Separator != 0 {
			k.Separator = string(p.env.Separator)
		}
		if !strings.Contains(p.root.python, noPython) {
			k.Python = p.root.python
		}
		x.Key = append(x.Key, k)
		segments = append(segments, p.root.order...)
		for _, f := range p.Files {
			if !slices.Contains(x.Files, f) {
				x.Files = append(x.Files, f)
			}
		}
	}
	x.PythonSetup = pythonSetup(x.Key)
	x.Order = orderSentence(segments)
	for _, name := range d.sources() {
		r := rangeOf(name, segments)
		if to, ranged := upto[name]; ranged {
			r.Bounds = d.RangeBounds(name, given, to)
		} else if r.Bounds = d.Bounds(name, given); r.Bounds != nil && r.Use == "no" {
			r.How = "the key does not preserve its order; rows with the same value are adjacent"
		}
		x.Ranges = append(x.Ranges, r)
	}
	for _, row := range samples {
		x.Examples = append(x.Examples, d.Example(row))
	}
	x.Notes = d.notes(segments)
	return x
}

// sources returns the input columns that the design uses, in input order.
func (d Design) sources() []string {
	var names []string
	for i, in := range d.Inputs {
		for _, p := range d.Programs {
			if p != nil && slices.Contains(p.columns, i) {
				names = append(names, in.Name)
				break
			}
		}
	}
	return names
}

// Example returns the key of one row.
func (d Design) Example(row []table.Value) Example {
	var x Example
	sources := d.sources()
	for i, in := range d.Inputs {
		if slices.Contains(sources, in.Name) {
			x.Input = append(x.Input, in.Name+"="+shownValue(row[i]))
		}
	}
	for i, p := range d.Programs {
		if p == nil {
			x.Key = append(x.Key, "(a number)")
			continue
		}
		v, why := p.KeyValue(p.NewEvaluator(), row, i == 0)
		if why != nil {
			x.Key, x.Rejected = nil, why.Error()
			return x
		}
		x.Key = append(x.Key, shownValue(v))
	}
	return x
}

func shownValue(v table.Value) string {
	switch v.Type {
	case table.Null:
		return "null"
	case table.Binary:
		return fmt.Sprintf("0x%.80x", v.Bytes)
	}
	return table.Show(appendText(nil, v))
}

// KeyValue is like Eval, but refuses values that a key column cannot hold, and an empty value in the first column.
func (p *Program) KeyValue(e *Evaluator, row []table.Value, first bool) (table.Value, *table.Reason) {
	v, why := e.Eval(row)
	switch {
	case why != nil:
		return v, why
	case v.Type == table.Null:
		return v, &table.Reason{Column: p.name, Code: table.CodeNullKey, Message: brief(p.source) +
			" is null, but a primary-key column needs a value; give one with ??"}
	case !v.Type.KeyType():
		return v, &table.Reason{Column: p.name, Code: table.CodeType, Message: brief(p.source) +
			": a primary-key column cannot be " + a(v.Type) + "; use int(…) or text(…)"}
	case len(v.Bytes) > table.MaxKeyBytes:
		return v, &table.Reason{Column: p.name, Code: table.CodeKeyTooLong, Value: table.Show(v.Bytes),
			Message: fmt.Sprintf("%s has %d bytes, but the limit of a key value is %d; shorten it with substr, lookup or a hash",
				brief(p.source), len(v.Bytes), table.MaxKeyBytes)}
	case first && v.Type != table.Integer && len(v.Bytes) == 0:
		return v, &table.Reason{Column: p.name, Code: CodeEmptyKey, Message: brief(p.source) +
			" is empty, so the partition key would be empty; give a value, as in x == \"\" ? \"none\" : x"}
	}
	return v, nil
}

// writingOrder names the order of an auto-increment column.
const writingOrder = "the order of writing"

func orderSentence(segments []Segment) string {
	var parts []string
	for _, s := range segments {
		switch s.Order {
		case Constant:
			continue
		case NoOrder:
			if s.Text == writingOrder {
				parts = append(parts, "in "+writingOrder)
				continue
			}
			parts = append(parts, "by the value of "+s.Text+", which preserves no column's order")
		case Ascending:
			parts = append(parts, "by "+s.Column)
		case Descending:
			parts = append(parts, "by "+s.Column+", largest first")
		case CoarseAscending:
			parts = append(parts, "by ranges of "+s.Column+" ("+s.Text+")")
		case CoarseDescending:
			parts = append(parts, "by ranges of "+s.Column+", largest first ("+s.Text+")")
		}
	}
	return "Rows are sorted " + strings.Join(parts, "; within that ") + "."
}

// mostRanges is the largest number of ranges that a reader can reasonably be asked to read.
const mostRanges = 4096

// rangeOf describes how to read the rows with a range of a column's values.
func rangeOf(column string, segments []Segment) Range {
	values, known := 1, true
	var before []string
	for _, s := range segments {
		if s.Order == Constant {
			continue
		}
		if s.Column == column && s.Order != NoOrder {
			return foundRange(column, s, before, values, known)
		}
		before = append(before, s.Text)
		if values *= max(s.Values, 1); s.Values == 0 || values > mostRanges {
			known, values = false, 1
		}
	}
	return Range{Column: column, Use: "no",
		How: "the key does not preserve its order; look for single values, or use a table or index"}
}

func foundRange(column string, s Segment, before []string, values int, known bool) Range {
	how := "a range of " + column + " is one range of the key"
	switch s.Order {
	case Descending:
		how += ", from its largest value to its smallest"
	case CoarseAscending, CoarseDescending:
		how = "one range of " + s.Text + " holds a range of " + column + " and some other rows, which the reader filters out"
	}
	switch {
	case len(before) == 0:
		return Range{Column: column, Use: "yes", How: how}
	case known:
		return Range{Column: column, Use: "many", How: fmt.Sprintf(
			"in up to %d ranges, one for each value of %s; in each, %s", values, strings.Join(before, ", "), how)}
	}
	return Range{Column: column, Use: "with a prefix", How: "only among rows with the same value of " +
		strings.Join(before, ", ") + "; there, " + how}
}

func (d Design) notes(segments []Segment) []string {
	notes := []string{}
	if len(d.Columns) == mostKeyColumns {
		notes = append(notes, "a table has at most four primary-key columns: none can be added to this key later")
	}
	notes = append(notes, d.enumeration()...)
	for i, p := range d.Programs {
		if p == nil {
			continue
		}
		if p.Type == table.Double || p.Type == table.Boolean {
			notes = append(notes, fmt.Sprintf("%s: a primary-key column cannot be %s; wrap the expression in text(…) or int(…)",
				d.Columns[i].Name, a(p.Type)))
		}
		if p.Auto && p.env.Separator != 0 {
			notes = append(notes, fmt.Sprintf("%s: splice(auto, …) takes %q, which sorts below every character of the sample; "+
				"write it in place of auto, so that later files get the same keys", d.Columns[i].Name, string(p.env.Separator)))
		}
		for _, f := range p.Files {
			notes = append(notes, fmt.Sprintf("%s: the keys depend on %s (sha256 %s); changing a code changes the keys of "+
				"rows that are already loaded", d.Columns[i].Name, f.Name, f.SHA256[:12]))
			if f.Shared > 0 {
				notes = append(notes, fmt.Sprintf("%s: %d names in %s share a code with another name; where nothing else in the "+
					"key tells them apart, the last row replaces the others", d.Columns[i].Name, f.Shared, f.Name))
			}
		}
	}
	if len(segments) > 0 && segments[0].Order == NoOrder && segments[0].Values > 0 &&
		!strings.HasPrefix(segments[0].Text, "lookup(") {
		notes = append(notes, segments[0].Text+" gives a row the same key every time; with a random prefix, a rerun would "+
			"duplicate rows, and a later row would not replace an earlier one")
	}
	return notes
}

const mostKeyColumns = 4

// fewValues is the number of partition-key values up to which a note warns that a growing table will need more.
const fewValues = 1024

// enumeration warns about a partition key with few possible values.
func (d Design) enumeration() []string {
	p := d.Programs[0]
	values := 1
	for _, s := range p.root.order {
		if s.Values == 0 || s.Values > fewValues {
			values = 0
		}
		values *= s.Values
	}
	if p.Type == table.Boolean {
		values = 2
	}
	if values == 0 || values > fewValues {
		return nil
	}
	return []string{enumerationNote(d.Columns[0].Name, fmt.Sprintf("can have %d values at most", values))}
}

func enumerationNote(column, has string) string {
	return fmt.Sprintf("%s, the partition key, %s: a value is never split, so no more partitions than that ever share "+
		"the rows, and each value should stay below 10 GB; join a column of many values to it with splice, or begin with one",
		column, has)
}

// Limits for NoteSample, which takes a column for an enumeration if a large sample has few values, each of them often.
const (
	sampledRows  = 500
	sampledTimes = 20
	sampledMost  = 100
)

// NoteSample adds a warning if the partition key has few values in a sample of the given numbers of rows and values.
func (x *Explanation) NoteSample(rows, values int) {
	if rows < sampledRows || values > sampledMost || rows < sampledTimes*values || len(x.Key) == 0 {
		return
	}
	has := fmt.Sprintf("has %d values in the first %d records", values, rows)
	if values == 1 {
		has = fmt.Sprintf("has one value in the first %d records", rows)
	}
	note := enumerationNote(x.Key[0].Name, has)
	if !slices.ContainsFunc(x.Notes,
		func(n string) bool { return strings.HasPrefix(n, x.Key[0].Name+", the partition key, can have") }) {
		x.Notes = append(x.Notes, note)
	}
}

// Text formats the explanation for a terminal.
func (x Explanation) Text() string {
	var b strings.Builder
	for _, k := range x.Key {
		fmt.Fprintf(&b, "%s (%s) = %s\n  a reader computes it as: %s\n", k.Name, k.Type, k.Expression, k.Recipe)
		if k.Python != "" {
			fmt.Fprintf(&b, "  in Python: %s\n", k.Python)
		}
	}
	if len(x.PythonSetup) > 0 {
		fmt.Fprintf(&b, "The Python needs:\n  %s\n", strings.Join(x.PythonSetup, "\n  "))
	}
	fmt.Fprintf(&b, "\nOrder: %s\n", x.Order)
	for _, r := range x.Ranges {
		fmt.Fprintf(&b, "GetRange over %s: %s: %s\n", r.Column, r.Use, r.How)
		r.Bounds.text(&b)
	}
	if len(x.Examples) > 0 {
		b.WriteString("\nExamples:\n")
	}
	for _, e := range x.Examples {
		made := "rejected: " + e.Rejected
		if e.Key != nil {
			made = strings.Join(e.Key, " | ")
		}
		fmt.Fprintf(&b, "  %s -> %s\n", strings.Join(e.Input, ", "), made)
	}
	if len(x.Notes) > 0 {
		b.WriteString("\n")
	}
	for _, note := range x.Notes {
		fmt.Fprintf(&b, "Note: %s\n", note)
	}
	return b.String()
}
