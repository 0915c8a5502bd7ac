package plan

import (
	"fmt"
	"slices"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/source"
)

// Decision is inferred from all inputs together and applies to every record. Plans and inspect show it.
type Decision struct {
	What    string `json:"what"`              // format, encoding, dialect …, or a column
	As      string `json:"as"`                // the decision; if inputs differ, the number of each
	Against string `json:"against,omitempty"` // values in the sample that contradict it, with their number
	Flag    string `json:"flag,omitempty"`    // flag that changes it

	differ bool // inputs differ
}

// Disputed reports whether inputs or sampled values contradict the decision.
func (d Decision) Disputed() bool { return d.differ || d.Against != "" }

func (d Decision) String() string {
	text := d.What + ": " + d.As
	if d.Against != "" {
		text += ", but " + d.Against
	}
	if d.Flag != "" {
		text += "; " + d.Flag + " changes this"
	}
	return text
}

// tally counts inputs by a property.
type tally struct {
	what  string
	as    []string // properties in order of appearance
	count map[string]int
	first map[string]string // first input with the property
}

func (t *tally) add(as, input string) {
	if t.count == nil {
		t.count, t.first = map[string]int{}, map[string]string{}
	}
	if t.count[as]++; t.count[as] == 1 {
		t.as = append(t.as, as)
		t.first[as] = input
	}
}

// decision returns the tally as a decision: the majority first, then every other property with an example input.
func (t *tally) decision() Decision {
	if len(t.as) == 1 {
		return Decision{What: t.what, As: t.as[0]}
	}
	as := slices.Clone(t.as)
	slices.SortStableFunc(as, func(a, b string) int { return t.count[b] - t.count[a] })
	var texts []string
	for i, one := range as {
		files := "files"
		if t.count[one] == 1 {
			files = "file"
		}
		text := fmt.Sprintf("%s %s %s", counted(t.count[one]), files, one)
		if i > 0 {
			text += " (" + t.first[one] + ")"
		}
		texts = append(texts, text)
	}
	return Decision{What: t.what, As: strings.Join(texts, ", "), differ: true}
}

// found tallies the properties of inputs.
func found(each func(yield func(name string, found []source.Found))) (all []Decision) {
	var tallies []*tally
	each(func(name string, found []source.Found) {
		for _, f := range found {
			i := slices.IndexFunc(tallies, func(t *tally) bool { return t.what == f.What })
			if i < 0 {
				i = len(tallies)
				tallies = append(tallies, &tally{what: f.What})
			}
			tallies[i].add(f.As, name)
		}
	})
	for _, t := range tallies {
		all = append(all, t.decision())
	}
	return all
}

// dispute returns the decision on a column's type that some sampled values contradict.
func dispute(name string, t table.Type, few convert.Minority) Decision {
	d := Decision{What: "column " + name, As: typeText(t)}
	if d.Against = fmt.Sprintf("%s others (%s) beside %s", counted(few.Others), quoted(few.Examples),
		values(few.Most, few.Type)); t != few.Type {
		d.Flag = fmt.Sprintf("--type %s=%s", name, few.Type)
	} else {
		d.Flag = fmt.Sprintf("--type %s=string", name)
	}
	return d
}

// numbers returns the decision on a column of numbers with trailing zeros or points, which the type may keep or drop.
func numbers(in *convert.Inference, at int, name string, t table.Type) (d Decision, ok bool) {
	example, ok := in.Numbers(at)
	d = Decision{What: "column " + name, As: t.String()}
	switch {
	case ok && t == table.String:
		d.Against = fmt.Sprintf("all values in the sample are numbers, some with trailing zeros (%q)", example)
		d.Flag = fmt.Sprintf("--type %s=double", name)
	case ok && t == table.Double:
		d.Against = fmt.Sprintf("all values in the sample are whole numbers, some with a decimal point (%q)", example)
		d.Flag = fmt.Sprintf("--type %s=string", name)
	default:
		return d, false
	}
	return d, true
}

func mixedKeyText(name string, few convert.Minority) string {
	text := fmt.Sprintf("primary-key column %s: %s, %s others (%s) in the sample; loaded as %s, rejecting the others; ",
		name, values(few.Most, few.Type), counted(few.Others), quoted(few.Examples), few.Type)
	if few.Type != table.Integer {
		text += fmt.Sprintf("--type %s=integer rejects what is not an integer, at most %s; ", name, counted(few.Most))
	}
	return text + fmt.Sprintf("--type %s=string makes text of all %s", name, counted(few.Most+few.Others))
}

// showDecisions puts decisions about inputs before those about columns.
func (p *planner) showDecisions() {
	all := found(func(yield func(string, []source.Found)) {
		for _, s := range p.plan.Sources {
			yield(s.Name, s.About().Found)
		}
	})
	p.plan.Decisions = append(all, p.plan.Decisions...)
}

// together lists the differences between inspected inputs.
func together(inspected []Inspection) (differ []Decision) {
	for _, d := range found(func(yield func(string, []source.Found)) {
		for i := range inspected {
			in := &inspected[i]
			all := slices.Clone(in.found)
			for _, c := range in.Columns {
				all = append(all, source.Found{What: "column " + c.Name, As: c.Type + UnitText(c.Type, c.Unit)})
			}
			yield(in.Path, all)
		}
	}) {
		if d.differ {
			differ = append(differ, d)
		}
	}
	return differ
}
