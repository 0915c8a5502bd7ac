package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/record"
)

// Type inference samples about sampleBytes of all inputs together, but at least minSampleBytes of each.
const (
	sampleBytes    = 8 << 20
	minSampleBytes = 64 << 10
)

// checkMemory refuses inputs that are certain to need more than --memory.
func (p *planner) checkMemory() error {
	for _, s := range p.plan.Sources {
		if f, ok := s.Source.(interface {
			CheckMemory(columns []string, pages int64, whole bool) error
		}); ok {
			if err := f.CheckMemory(p.columns, p.plan.Shares().Pages, p.request.Records == 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// infer gives every column without a type a type, from a sample of every input.
func (p *planner) infer() error {
	first := p.columns
	in := convert.NewInference(len(first), p.request.Read.Convert)
	p.plan.Empty = true
	if err := p.checkWidth(); len(p.plan.Schema.Attributes()) > mostColumns && !p.lacking() {
		return err
	}
	share := max(sampleBytes/len(p.plan.Sources), minSampleBytes)
	for _, src := range p.plan.sampled() {
		if err := p.sample(in, src, first, share); err != nil {
			return err
		}
	}
	for _, src := range p.plan.Sources {
		// The sampled inputs have no records, but it matters whether others do.
		if !p.plan.Empty || p.plan.Live || len(p.plan.sampled()) == len(p.plan.Sources) {
			break
		}
		if err := p.sample(in, src, first, share); err != nil {
			return err
		}
	}
	if err := p.checkWidth(); err != nil {
		return err
	}
	place := places(first)
	p.warnOfUnseen(in, place)
	last, units := p.lastColumns()
	known, err := p.knownTypes(last)
	if err != nil {
		return err
	}
	if known != nil || !p.infers() { // if types were inferred, the values' form in the input is lost
		maps.Copy(p.plan.units, units)
	}
	for i := range p.plan.Fields {
		p.warnOfAsked(&p.plan.Fields[i], last)
		if err := p.settleType(i, in, place[p.plan.Fields[i].Source], known); err != nil {
			return err
		}
		p.settleOwn(i, in, place[p.plan.Fields[i].Source])
		if err := p.settleUnit(i); err != nil {
			return err
		}
	}
	return nil
}

// warnOfAsked warns if --type gives a column another type than the last run has.
func (p *planner) warnOfAsked(col *table.Column, last map[string]string) {
	was, err := table.ParseType(last[col.Name])
	asked := p.request.Columns.Types[col.Name].Type
	if err == nil && asked != table.Null && was != table.Any && was != table.Null && asked != was {
		p.warnf("column %s: the last run has written it as %s; with --type, it will hold %s values, too", col.Name, was,
			typeText(asked))
	}
}

// maxSampledParts limits the sampled parts of an origin, as there may be thousands, which are similar.
const maxSampledParts = 64

func (p *Plan) sampled() []*Source {
	n := len(p.Sources)
	if p.Request.Read.Sources == nil || n <= maxSampledParts {
		return p.Sources
	}
	some := make([]*Source, 0, maxSampledParts)
	for i := range maxSampledParts {
		some = append(some, p.Sources[i*n/maxSampledParts])
	}
	return some
}

// noKeyType returns the error for a new table's key column without a value in any sampled record.
func (p *planner) noKeyType(name string) error {
	first := ""
	if p.sampled.bad != nil {
		first = fmt.Sprintf(" (the first: %v)", p.sampled.bad)
	}
	return usagef("primary-key column %s of a new table: no sampled record has a value%s, so its type is unknown; give "+
		"--pk %s:TYPE", name, first, name)
}

// settleType gives field i a type if it has none: an earlier attempt's, the source's, the table's if it fits, or at's.
func (p *planner) settleType(i int, in *convert.Inference, at int, known map[string]knownType) error {
	col := &p.plan.Fields[i]
	if col.Type != table.Null {
		return nil
	}
	col.Exact, col.Inferred = true, true
	if earlier, ok := p.request.Inferred[col.Source]; ok {
		col.Type, col.Zeros = earlier.Type, earlier.Zeros
		col.Exact, col.Inferred = !earlier.Asked, !earlier.Asked
		return nil
	}
	if i < p.plainKeys() { // the table does not exist
		switch declared := p.declaredType(col.Source); {
		case in.Seen(at):
		case declared.KeyType():
			col.Type = declared
			return nil
		case declared == table.Null && p.sampled.records > 0:
			return p.noKeyType(col.Name)
		}
		var few convert.Minority
		var mixed bool
		if col.Type, few, mixed = in.KeyType(at); mixed {
			p.plan.Decisions = append(p.plan.Decisions, dispute(col.Name, col.Type, few))
			p.plan.Warnings = append(p.plan.Warnings, mixedKeyText(col.Name, few))
		}
		return nil
	}
	if col.Type = p.declaredType(col.Source); col.Type != table.Null {
		return nil
	}
	has, inTable := known[col.Name]
	inTable = inTable && p.request.Columns.Known != KnownIgnored
	if inTable && (!in.Seen(at) || in.Fits(at, has.Type)) {
		col.Type, col.Zeros = has.Type, has.Type == table.Double
		return nil
	}
	col.Type = in.Type(at)
	col.Zeros = inTable && has.Type == table.Double
	few, nearly := in.Minority(at, col.Zeros)
	if nearly && (p.request.Columns.Known == KnownStrict || inTable && has.Type == few.Type) {
		col.Type = few.Type
	}
	if inTable && has.Type != col.Type {
		if p.request.Columns.Known == KnownStrict {
			return usagef("column %s: %s it as %s, but these values are %s; give --type %s=%s, or leave out --types strict",
				col.Name, has.from, has.Type, typeText(col.Type), col.Name, has.Type)
		}
		p.warnf("column %s: %s it as %s, but this load writes it as %s, the type of its values; --type %s=%s keeps the "+
			"type and rejects values that do not fit",
			col.Name, has.from, has.Type, typeText(col.Type), col.Name, has.Type)
		p.plan.Changed = append(p.plan.Changed, p.plan.Warnings[len(p.plan.Warnings)-1])
	}
	if d, ok := numbers(in, at, col.Name, col.Type); ok { // the majority's type then accepts all values
		p.plan.Decisions = append(p.plan.Decisions, d)
		p.plan.Notes = append(p.plan.Notes, d.String())
	} else if nearly {
		p.plan.Decisions = append(p.plan.Decisions, dispute(col.Name, col.Type, few))
		p.plan.Warnings = append(p.plan.Warnings, minorityText(col, few))
	}
	col.Zeros = (col.Zeros || in.Joins(at)) && col.Type == table.Double
	return nil
}

// settleOwn decides which typed values of a file column i accepts, unless the user has given the column a type.
func (p *planner) settleOwn(i int, in *convert.Inference, at int) {
	col := &p.plan.Fields[i]
	if !col.Exact || col.Time != nil {
		return
	}
	col.Own = in.Own(at, col.Type)
	if earlier, ok := p.request.Inferred[col.Source]; ok && earlier.Type == col.Type {
		col.Own = earlier.Own
	}
}

func typeText(t table.Type) string {
	if t == table.Any {
		return "of several types"
	}
	return t.String()
}

func minorityText(col *table.Column, few convert.Minority) string {
	text := fmt.Sprintf("column %s: %s, %s others (%s) in the sample; ", col.Name, values(few.Most, few.Type),
		counted(few.Others), quoted(few.Examples))
	switch col.Type {
	case few.Type:
		return text + "loaded as " + few.Type.String() + ", the others are rejected"
	case table.Any:
		text += "each keeps its own type"
	default:
		text += "loaded as " + col.Type.String()
	}
	null := ""
	if col.Type == table.String && few.Type != table.String && len(few.Examples) == 1 {
		null = fmt.Sprintf("--null %s loads them as null, ", few.Examples[0])
		if strings.ContainsAny(few.Examples[0], " '\"$&|<>()*?\\;") {
			null = ""
		}
	}
	return text + fmt.Sprintf("; %s--type %s=%s rejects values that do not fit", null, col.Name, few.Type)
}

var plurals = map[table.Type]string{
	table.Integer: "integers", table.Double: "doubles", table.Boolean: "booleans", table.String: "strings",
	table.Binary: "binary values",
}

func values(n int, t table.Type) string { return counted(n) + " " + plurals[t] }

func quoted(texts []string) string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = strconv.Quote(t)
	}
	return strings.Join(out, ", ")
}

func counted(n int) string { return words.Grouped(int64(n)) }

// sample adds the first records of a source, about budget bytes, or of a stream, which is read once, the first piece's.
func (p *planner) sample(in *convert.Inference, src *Source, first []string, budget int) error {
	place := make([]int, len(first))
	fields := make([]record.Datum, len(first))
	columns := src.About().Columns
	has := places(columns)
	for i, name := range first {
		place[i] = -1
		if at, ok := has[name]; ok {
			place[i] = at
		}
	}
	all := in
	in = convert.NewInference(len(first), p.request.Read.Convert) // only for this source
	asItIs := slices.Equal(first, columns)
	before := p.sampled.records
	read, err := src.Sample(budget, first, func(rec *record.Record) {
		p.sampled.records++
		for i := range rec.Cells {
			p.sampled.cells += len(rec.Cells[i].Name) + cellBytes
		}
		bad := rec.Bad
		if bad == nil {
			bad = p.request.Read.Convert.Ragged.Check(rec, len(columns))
		}
		if bad != nil {
			if p.sampled.bad == nil {
				first := *bad
				p.sampled.bad = &first
			}
			return
		}
		if asItIs && len(rec.Fields) == len(first) {
			in.Add(rec)
			p.countValues(in, rec.Fields)
			return
		}
		for i, from := range place {
			switch {
			case from < 0:
				fields[i] = record.Datum{}
			case from < len(rec.Fields):
				fields[i] = rec.Fields[from]
			default: // as if the field were present and empty
				fields[i] = record.Datum{Kind: record.Text}
			}
		}
		in.Add(&record.Record{Fields: fields})
		p.countValues(in, fields)
	})
	if err != nil {
		return err
	}
	all.Merge(in)
	p.sampled.bytes += read
	src.looked = looked{records: p.sampled.records - before, bytes: read, whole: read < budget}
	p.noteMeasures(src, in, first)
	p.plan.Empty = p.plan.Empty && read == 0
	return src.Suspend()
}

func places(names []string) map[string]int {
	at := make(map[string]int, len(names))
	for i, name := range names {
		at[name] = i
	}
	return at
}

// countValues notes if a sampled record has few enough values for a row.
func (p *planner) countValues(in *convert.Inference, fields []record.Datum) {
	if len(fields) <= table.MaxColumns || p.sampled.fits {
		return
	}
	values := 0
	for i := range fields {
		if !in.Plain(&fields[i]).None() {
			values++
		}
	}
	p.sampled.whole = true
	p.sampled.fits = values-len(p.key()) <= table.MaxColumns
}

// mostColumns limits the columns of a header, because sampling more would be slow.
const mostColumns = 16 * table.MaxColumns

// checkWidth refuses inputs with too many columns for a row, unless records are seen to have few enough values.
func (p *planner) checkWidth() error {
	n := len(p.plan.Schema.Attributes())
	if n <= table.MaxColumns || p.sampled.whole && p.sampled.fits && !p.request.DeleteNull {
		return nil
	}
	return usagef("%s has %d columns besides the primary key, but a row has at most %d; choose some with --columns, or "+
		"exclude some with --exclude", p.plan.Sources[0].Name, n, table.MaxColumns)
}

// cellBytes is roughly the size of an encoded cell, without its name and value.
const cellBytes = 24

// blockBytes is roughly the maximum size of the encoded rows of one split.
const blockBytes = 8 << 20

// sizeSplits makes splits smaller if short text makes large rows. Every cell includes its column's name, so a record of
// a thousand short cells grows a hundredfold, and several splits are in memory at once.
func (p *planner) sizeSplits() error {
	encoded := 0 // size of a row with a value in every column, without the values
	for _, c := range p.plan.Schema.Columns {
		encoded += len(c.Name) + cellBytes
	}
	records, text := max(p.sampled.records, 1), max(p.sampled.bytes, 1)
	growth := 1 + (float64(encoded)*float64(records)+float64(p.sampled.cells))/float64(text)
	block := p.plan.Shares().SplitLimit(p.request.Read.Workers())
	for _, s := range p.plan.Sources {
		about := s.About()
		limit := int(float64(block) / growth)
		if limit < int(about.Pieces) {
			s.SetSplitBytes(max(limit, minSplitBytes))
		}
	}
	return nil
}

// minSplitBytes is the minimum size of a split. It keeps the cost of a split below that of its rows.
const minSplitBytes = 4 << 10
