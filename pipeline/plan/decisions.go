package plan

import (
	"fmt"
	"slices"
	"strings"

	"tsimport/internal/table"
	"tsimport/reader/convert"
	"tsimport/reader/source"
)

// Decision is something that was inferred once, from all inputs together, and holds for every record. Plans and inspect show it.
type Decision struct {
	What    string `json:"what"`              // format, encoding, dialect …, or a column
	As      string `json:"as"`                // what was decided; of several inputs how many are what
	Against string `json:"against,omitempty"` // what of the sample speaks against it, with its number
	Flag    string `json:"flag,omitempty"`    // that decides otherwise

	differ bool // inputs do
}

// Disputed reports whether inputs or values of the sample are different from what was decided.
func (d Decision) Disputed() bool { return d.differ || d.Against != "" }

func (d Decision) String() string {
	text := d.What + ": " + d.As
	if d.Against != "" {
		text += "; against it: " + d.Against
	}
	if d.Flag != "" {
		text += "; " + d.Flag + " decides otherwise"
	}
	return text
}

// tally counts what inputs are.
type tally struct {
	what  string
	as    []string // in the order in which they first come
	count map[string]int
	first map[string]string // the first input that is it
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

// decision is the tally as users read it: the many first, each but them with an input that is it.
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

// found tallies what was found out about inputs.
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

// dispute says what of the sample speaks against the type of a column.
func dispute(name string, t table.Type, few convert.Minority) Decision {
	d := Decision{What: "column " + name, As: typeText(t)}
	if d.Against = fmt.Sprintf("%s others (%s) beside %s", counted(few.Others), quoted(few.Examples), values(few.Most, few.Type)); t != few.Type {
		d.Flag = fmt.Sprintf("--type %s=%s", name, few.Type)
	} else {
		d.Flag = fmt.Sprintf("--type %s=string", name)
	}
	return d
}

// numbers says of a column of texts that their numbers have zeros or points which the type of the column keeps, or does not.
func numbers(in *convert.Inference, at int, name string, t table.Type) (d Decision, ok bool) {
	example, ok := in.Numbers(at)
	d = Decision{What: "column " + name, As: t.String()}
	switch {
	case ok && t == table.String:
		d.Against = fmt.Sprintf("all values in the sample are numbers, some with zeros at the end (%q)", example)
		d.Flag = fmt.Sprintf("--type %s=double", name)
	case ok && t == table.Double:
		d.Against = fmt.Sprintf("all values in the sample are whole numbers, some with a point (%q)", example)
		d.Flag = fmt.Sprintf("--type %s=string", name)
	default:
		return d, false
	}
	return d, true
}

// keyText says which type a key column gets whose values no key type takes together.
func mixedKeyText(name string, few convert.Minority) string {
	text := fmt.Sprintf("primary-key column %s: %s, %s others (%s) in the sample; loaded as %s, which rejects the others; ",
		name, values(few.Most, few.Type), counted(few.Others), quoted(few.Examples), few.Type)
	if few.Type != table.Integer {
		text += fmt.Sprintf("--type %s=integer rejects what is not an integer, at most %s; ", name, counted(few.Most))
	}
	return text + fmt.Sprintf("--type %s=string makes text of all %s", name, counted(few.Most+few.Others))
}

// showDecisions lists what was found out about the inputs before what was decided about columns.
func (p *planner) showDecisions() {
	all := found(func(yield func(string, []source.Found)) {
		for _, s := range p.plan.Sources {
			yield(s.Name, s.About().Found)
		}
	})
	p.plan.Decisions = append(all, p.plan.Decisions...)
}

// together is what was found out about several inputs that inspect has looked at, where they differ.
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
