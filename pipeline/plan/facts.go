package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
)

// Facts returns everything that the load's rows depend on: the inputs, how they are read, and how columns are used.
func (p *Plan) Facts() ([]progress.Fact, error) {
	r := p.Request
	facts := []progress.Fact{
		{Name: "--mode", Value: modeNames[r.Mode]}, {Name: "--on-null delete", Value: strconv.FormatBool(r.DeleteNull)},
		{Name: "--order", Value: r.Order.String()}, {Name: "--limit", Value: strconv.FormatInt(r.Records, 10)},
	}
	if p.Tables != nil {
		facts = append(facts, progress.Fact{Name: "--age-policy", Value: policyText(r.Target.Policy)})
	}
	if p.Schema.Numbered > 0 || r.Mode == table.Increment {
		facts = append(facts, progress.Fact{Name: "--mark-column", Value: p.Mark}) // "" with --at-least-once
	}
	facts = append(facts, readFacts(&r.Read)...)
	if p.Wide {
		facts = append(facts, cellFacts(&r.Columns)...)
	}
	for i, k := range p.Schema.Key {
		facts = append(facts, progress.Fact{Name: fmt.Sprintf("primary-key column %d", i+1), Value: k.Name + ":" +
			k.Type.String()})
	}
	for i, c := range p.Schema.Columns {
		value := c.Source + " as " + c.Type.String()
		switch {
		case p.Expression(i) != "":
			value = p.Expression(i) + " as " + c.Type.String()
			for _, f := range p.Makers[i].Program.Files {
				value += ", " + f.Name + " with the SHA-256 " + f.SHA256
			}
			if p.Makers[i].Program.Auto {
				value += fmt.Sprintf(", joined with %q", p.env.Separator)
			}
		case c.Hex:
			value += " of hexadecimal digits"
		case c.Time != nil:
			value += " of a " + timeText(c.Time)
		}
		facts = append(facts, progress.Fact{Name: "column " + c.Name, Value: value})
	}
	if p.Live {
		facts = append(facts, progress.Fact{Name: "what inputs are", Value: "live"})
	}
	if p.Parallel {
		facts = append(facts, progress.Fact{Name: "the order of reading", Value: "several inputs at a time"})
	}
	for i, s := range p.Sources {
		id, err := s.Identity()
		if err != nil {
			return nil, err
		}
		name := progress.Fact{Name: fmt.Sprintf("input %d", i+1), Value: s.Name, Input: !p.Live}
		if p.Live {
			// A live source's content may change. No flag accepts changed records.
			facts = append(facts, name, progress.Fact{Name: "schema of " + s.Name, Value: id.Schema})
			continue
		}
		facts = append(facts, name,
			progress.Fact{Name: "size of " + s.Name, Value: strconv.FormatInt(id.Bytes, 10), Input: true},
			progress.Fact{Name: "version of " + s.Name, Value: id.Version, Input: true},
			progress.Fact{Name: "content of " + s.Name, Value: "one with the hash " + id.Content, Input: true},
		)
	}
	return facts, nil
}

// cellFacts returns the options for cells, which are not in the schema.
func cellFacts(c *Columns) []progress.Fact {
	var types []string
	for _, name := range slices.Sorted(maps.Keys(c.Types)) {
		of := c.Types[name].Type.String()
		switch t := c.Types[name]; {
		case t.Hex:
			of += "(hex)"
		case t.Time != nil:
			of = timeText(t.Time)
		}
		types = append(types, name+"="+of)
	}
	given := cmp.Or(strings.Join(types, ","), "map[]") // as earlier versions wrote it
	return []progress.Fact{
		{Name: "--columns", Value: fmt.Sprintf("%q", c.Only)}, {Name: "--exclude", Value: fmt.Sprintf("%q", c.Exclude)},
		{Name: "--rename", Value: fmt.Sprintf("%q", c.Rename)}, {Name: "--type", Value: given},
	}
}

// timeText returns the type of a time as users write it.
func timeText(t *table.Time) string {
	unit := map[int64]string{1: "s", 1e3: "ms", 1e6: "us", 1e9: "ns"}[t.Unit]
	return fmt.Sprintf("timestamp(%s,%v,%s)", t.Layout, t.Zone, unit)
}

func readFacts(r *Read) []progress.Fact {
	o, c := &r.Options, &r.Convert
	var facts []progress.Fact
	for _, one := range []struct {
		name  string
		value any
	}{
		{"--format", o.FormatName()}, {"the dialect", o.Dialect}, {"--dialect auto", o.Sniff}, {"--no-header", o.NoHeader},
		{"--names", o.Names}, {"the line of the header", o.HeaderLine}, {"--encoding", o.Encoding}, {"--flatten", o.Flatten},
		{"columns named by flags", o.Named.Known},
		{"--null", c.Nulls}, {"empty fields as text", c.EmptyIsText},
		{"quoted empty fields as null", slices.Contains(c.QuotedNulls, "")},
		{"--trim", c.Trim}, {"--ragged", c.Ragged}, {"--version-column", c.VersionColumn},
		{"columns of folders", r.Find.PathColumns},
	} {
		text, _ := json.Marshal(one.value) // plain values always marshal
		facts = append(facts, progress.Fact{Name: one.name, Value: strings.Trim(string(text), `"`)})
	}
	if len(r.Convert.QuotedNulls) > 0 {
		facts = append(facts, progress.Fact{Name: "texts of quoted fields that mean null",
			Value: fmt.Sprintf("%q", r.Convert.QuotedNulls)})
	}
	if r.Convert.Missing {
		facts = append(facts, progress.Fact{Name: "--missing", Value: "null"})
	}
	if c := r.Changes; c != nil {
		facts = append(facts, progress.Fact{Name: "--op-column", Value: fmt.Sprint(c.Column, c.Values)})
	}
	if r.Named.Table != "" {
		facts = append(facts, progress.Fact{Name: "--source-table", Value: r.Named.Table})
	}
	return facts
}
