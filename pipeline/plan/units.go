package plan

import (
	"fmt"
	"strings"

	"tsimport/internal/table"
	"tsimport/reader/convert"
)

// noteMeasures tallies the measure of each column in a source, from its schema or else its sample. A column without values has none if the
// sample was the whole source.
func (p *planner) noteMeasures(src *Source, in *convert.Inference, first []string) {
	about := src.About()
	if p.request.Read.Sources != nil || about.Declared != nil {
		return // of one table, whose columns have one type each
	}
	if p.measures == nil {
		p.measures = make([]tally, len(first))
	}
	at := places(about.Columns)
	for i, name := range first {
		if src.looked.whole && !in.Seen(i) {
			continue
		}
		measure := in.Measure(i)
		if k, ok := at[name]; ok && k < len(about.Measures) {
			measure = convert.Measure(&about.Measures[k])
		}
		if measure != "" {
			p.measures[i].add(measure, src.Name)
		}
	}
}

// settleUnit refuses inputs that would mix units, scales, instants and local times, or bytes and texts in one column, where readers of the
// table could not tell them apart. Else it sets the column's unit.
func (p *planner) settleUnit(i, at int, last string) error {
	col := &p.plan.Fields[i]
	from := "the last run"
	if p.request.Columns.Known == KnownIgnored || p.request.Written {
		last = ""
	}
	if col.Unit = last; col.Time != nil {
		unit := "timestamp, " + timeUnit(col.Time.Unit)
		if last != "" && last != unit {
			return p.mixed(col, from, last, "--type", unit)
		}
		col.Unit = unit
		return nil
	}
	if p.measures == nil {
		return nil
	}
	for _, measure := range p.measures[at].as {
		unit, input := kept(col, measure), p.measures[at].first[measure]
		if mixes(col.Unit, unit) {
			return p.mixed(col, from, col.Unit, input, unit)
		}
		if col.Unit == "" || isMeasured(unit) {
			col.Unit, from = unit, input
		}
	}
	return nil
}

// kept is the part of a measure that values of the column's type do not show.
func kept(col *table.Column, measure string) string {
	decimal, duration := strings.HasPrefix(measure, "decimal"), strings.HasPrefix(measure, "duration")
	number := measure == convert.Numbers || measure == convert.NumericTexts
	switch {
	case col.Type == table.Boolean || col.Type == table.Binary,
		col.Type == table.Double && isMeasured(measure) && !decimal && !duration, // is rejected
		col.Type == table.String && !col.Exact && !number && !duration:
		return ""
	case col.Type == table.Double && decimal, col.Type == table.Integer && (measure == "decimal, scale 0" || !isMeasured(measure)):
		return convert.Numbers
	}
	return measure
}

// isMeasured reports whether values are more than numbers, texts or bytes.
func isMeasured(measure string) bool { return strings.Contains(measure, ", ") }

// mixes reports whether values of two measures could not be distinguished in one column.
func mixes(a, b string) bool {
	switch {
	case a == b || a == "" || b == "":
		return false
	case !isMeasured(a) && !isMeasured(b):
		return a == convert.Texts && b == convert.Bytes || a == convert.Bytes && b == convert.Texts
	case isMeasured(a) && isMeasured(b):
		return true
	case isMeasured(b):
		a, b = b, a
	}
	return b != convert.Texts && (b != convert.NumericTexts || !strings.HasPrefix(a, "decimal"))
}

func (p *planner) mixed(col *table.Column, a, is, b, other string) error {
	way := "load them separately, into two columns, with --rename"
	isTime := func(m string) bool { return strings.Contains(m, "timestamp") || strings.HasPrefix(m, "date") }
	switch {
	case isTime(is) && isTime(other) && col.Time == nil:
		way = fmt.Sprintf("--type '%s=timestamp(,UTC,ns)' loads all as nanoseconds, and reads local times in that zone", col.Name)
	case !isMeasured(is) && !isMeasured(other):
		way = fmt.Sprintf("--type %s=string loads all as text", col.Name)
	case strings.HasPrefix(is, "decimal") || strings.HasPrefix(other, "decimal"):
		way = fmt.Sprintf("--type %s=double loads all as numbers", col.Name)
	}
	if a == "the last run" {
		way += "; --types infer ignores the last run"
	}
	return usagef("column %s: %s has it as %s, and %s as %s, which one column cannot hold together; %s", col.Name, a, is, b, other, way)
}

// timeUnit names a unit of time by its number per second.
func timeUnit(perSecond int64) string {
	return map[int64]string{1: "s", 1e3: "ms", 1e6: "µs", 1e9: "ns"}[perSecond]
}

// UnitText is the unit as lists of columns show it after the type; empty without one.
func UnitText(of, unit string) string {
	what, short, ok := strings.Cut(unit, ", ")
	switch {
	case !ok:
		return ""
	case of == table.Integer.String() || of == table.Double.String():
		return " (" + short + ")"
	}
	return " (" + what + ", " + short + ")"
}
