package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/record"
)

// lastRun is how messages name the run that wrote the table's values.
const lastRun = "the last run"

// noteMeasures tallies the measures of a source's columns and of their parts, from its schema or sample.
func (p *planner) noteMeasures(src *Source, in *convert.Inference, first []string) {
	about := src.About()
	if p.request.Read.Sources != nil || about.Declared != nil || p.plan.Wide {
		return // columns of a table, each with one type, or its cells
	}
	at := places(about.Columns)
	for i, name := range first {
		if src.looked.whole && about.Bytes >= 0 && !in.Seen(i) { // of a stream, only the beginning was sampled
			continue
		}
		of := map[string]string{}
		if k, ok := at[name]; !ok || k >= len(about.Measures) {
			of[""] = in.Measure(i)
		} else {
			for path, d := range about.Measures[k] {
				of[path] = convert.Measure(d)
			}
		}
		if p.measures[name] == nil {
			p.measures[name] = map[string]tally{}
		}
		for path, measure := range of {
			t := p.measures[name][path]
			t.add(measure, src.Name)
			p.measures[name][path] = t
		}
	}
}

// use is a measure and the input, or the last run, that uses it.
type use struct{ unit, by string }

// settleUnit refuses inputs that would mix units, scales, instants and local times, or bytes and texts in one column or
// a part of its values, because readers of the table could not tell them apart. Otherwise it sets the column's unit.
func (p *planner) settleUnit(i int) error {
	col := &p.plan.Fields[i]
	last := func(path string) use {
		if p.request.Columns.Known == KnownIgnored || p.request.Written && !p.request.RejectedKeys {
			return use{}
		}
		return use{p.plan.units[col.Name+path], lastRun}
	}
	col.Unit = last("").unit
	_, decided := p.request.Inferred[col.Source] // by the run that is resumed or whose rejects are loaded
	parts := p.measures[col.Source]
	if col.Time != nil {
		unit := convert.Measure(record.Datum{Kind: record.Timestamp, Unit: record.Unit(col.Time.Unit)})
		parts = map[string]tally{"": {as: []string{unit}, first: map[string]string{unit: "--type"}}}
	}
	for _, path := range slices.Sorted(maps.Keys(parts)) {
		uses, unit := []use{last(""), last(path)}, last(path).unit
		// If the schema of a file lacks the part, its texts may have it.
		for _, of := range slices.Compact([]string{"", path}) {
			for _, measure := range parts[of].as {
				one := use{p.kept(i, path, measure), parts[of].first[measure]}
				for _, other := range uses {
					if mixes(other.unit, one.unit) && !(decided && other.by == lastRun) {
						return p.mixed(i, path, other, one)
					}
				}
				if uses = append(uses, one); unit == "" || isMeasured(one.unit) {
					unit = one.unit
				}
			}
		}
		if path == "" {
			col.Unit = unit
		} else if unit != "" && unit != convert.Texts {
			p.plan.units[col.Name+path] = unit
		}
	}
	return nil
}

// kept returns the part of a measure that values do not show, as in JSON. In a key, other texts would make other rows.
func (p *planner) kept(i int, path, measure string) string {
	col := &p.plan.Fields[i]
	of, decimal, duration := col.Type, strings.HasPrefix(measure, "decimal"), strings.HasPrefix(measure, "duration")
	if path != "" {
		of = table.Double
	}
	switch {
	case of == table.Boolean || of == table.Binary,
		of == table.Double && isMeasured(measure) && !decimal && !duration, // the value is rejected
		of == table.String && !col.Exact && i >= p.plainKeys() && !duration &&
			(isMeasured(measure) || measure == convert.Bytes):
		return ""
	case of == table.Double && decimal, of == table.Integer && (measure == "decimal, scale 0" || measure != "" &&
		!isMeasured(measure)):
		return convert.Numbers
	}
	return measure
}

// isMeasured reports whether values have a unit or scale, in contrast to plain numbers, texts or bytes.
func isMeasured(measure string) bool { return strings.Contains(measure, ", ") }

// mixes reports whether values of two measures could not be told apart in one column.
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
	return strings.HasPrefix(a, "duration") || b != convert.Texts &&
		(b != convert.NumericTexts || !strings.HasPrefix(a, "decimal"))
}

func (p *planner) mixed(i int, path string, a, b use) error {
	col := &p.plan.Fields[i]
	way, keep := "load them separately, into two columns, with --rename",
		fmt.Sprintf("--type %s=string keeps the text of each", col.Name)
	of := family(a.unit)
	switch key := i < p.plainKeys(); {
	case of != family(b.unit) || path != "" || a.by == lastRun && (key || col.Type != table.String):
	case of == "text" && !key:
		way = keep
	case of == "number" && !key:
		way = fmt.Sprintf("%s; --type %s=double loads all as numbers", keep, col.Name)
	case of == "time":
		way = fmt.Sprintf("%s; --type '%s=timestamp(,UTC,ns)' loads nanoseconds and reads local times in that zone",
			keep, col.Name)
		if key {
			_, way, _ = strings.Cut(way, "; ")
		}
	}
	if a.by == lastRun {
		way, _, _ = strings.Cut(way, "; ") // the table already has texts
		way += "; --types infer ignores the last run"
	}
	return usagef("column %s: %s has it as %s, and %s as %s, which one column cannot hold; %s", col.Name+path,
		a.by, a.unit, b.by, b.unit, way)
}

// family returns what measures that one column type can hold have in common, or "".
func family(measure string) string {
	switch what, _, _ := strings.Cut(measure, ", "); what {
	case "timestamp", "local timestamp", "date":
		return "time"
	case "decimal", convert.Numbers:
		return "number"
	case convert.Texts, convert.Bytes:
		return "text"
	}
	return "" // durations have no common type
}

// Units returns the units of the table's columns by name, including columns that are not in this load.
func (p *Plan) Units() map[string]string {
	units := maps.Clone(p.units)
	for _, c := range p.Schema.Columns {
		if c.Unit != "" {
			units[c.Name] = c.Unit
		}
	}
	return units
}

// UnitText returns the unit as column lists show it after the type, or "" if there is none.
func UnitText(of, unit string) string {
	_, short, ok := strings.Cut(unit, ", ")
	if !ok {
		return ""
	} else if of == table.Integer.String() || of == table.Double.String() {
		return " (" + short + ")"
	}
	return " (" + unit + ")"
}
