package plan

import (
	"cmp"
	"fmt"
	"slices"

	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/record"
)

// Maker tells how to make the value of a schema column from the fields of a record.
type Maker struct {
	Field   int              // index in Plan.Fields if Program is nil; negative if the service makes the value
	Program *keyexpr.Program // computes the value from the fields
}

func (p *planner) computed() []keyexpr.Column {
	return slices.Concat(p.request.Columns.Keys, p.request.Columns.Set)
}

// expression computes a column or a part of table names. flag and name are as the user gave them.
type expression struct{ flag, name, text string }

// expressions returns the expressions of columns, then of table names.
func (p *planner) expressions() (all []expression) {
	for _, col := range p.computed() {
		all = append(all, expression{p.flagOf(col), col.Name, col.Expr})
	}
	if t := p.plan.Tables; t != nil {
		for _, part := range t.parts {
			if part.expr != "" {
				all = append(all, expression{"--table", t.Text, part.expr})
			}
		}
	}
	return all
}

func (p *planner) columnsOf(e expression) (names []string, err error) {
	used, err := keyexpr.Sources(e.text, p.all)
	if err != nil {
		return nil, usagef("%s %s: %v", e.flag, e.name, err)
	}
	for _, i := range used {
		names = append(names, p.all[i])
	}
	return names, nil
}

func (p *planner) isComputed(name string) bool { return p.request.Columns.computes(name) }

// findNamed finds the input columns that expressions name, and for salt(n) those of the primary key.
func (p *planner) findNamed() error {
	p.named = map[string]bool{}
	sources := map[string][]string{}
	for _, e := range p.expressions() {
		used, err := p.columnsOf(e)
		if err != nil {
			return err
		}
		for _, c := range used {
			p.named[c] = true
		}
		if e.flag == "--pk" {
			sources[e.name] = used
		}
	}
	for _, k := range p.request.Target.Key {
		of := sources[k.Name]
		if !p.isComputed(k.Name) {
			for _, c := range p.all {
				if p.rename(c) == k.Name {
					of = append(of, c)
				}
			}
		}
		for _, c := range of {
			if !slices.Contains(p.salt, c) {
				p.salt = append(p.salt, c)
			}
		}
	}
	return nil
}

func (p *planner) flagOf(col keyexpr.Column) string {
	if slices.ContainsFunc(p.request.Columns.Keys, func(k keyexpr.Column) bool { return k.Name == col.Name }) {
		return "--pk"
	}
	return "--set"
}

// plainKeys returns the number of leading fields that are primary-key columns.
func (p *planner) plainKeys() int {
	n := len(p.plan.Schema.Key) - len(p.request.Columns.Keys)
	if p.numbered > 0 {
		n--
	}
	return n
}

// settleFields finds the fields of records: first the columns that are not computed, then others named in expressions.
func (p *planner) settleFields() {
	s := p.plan.Schema
	p.plan.Makers = make([]Maker, len(s.Columns))
	place := map[string]int{}
	for i, col := range s.Columns {
		p.plan.Makers[i].Field = -1
		if !p.isComputed(col.Name) && !p.isNumbered(col.Name) {
			place[col.Source] = len(p.plan.Fields)
			p.plan.Makers[i].Field = len(p.plan.Fields)
			p.plan.Fields = append(p.plan.Fields, col)
		}
	}
	for _, c := range p.columns {
		if _, loaded := place[c]; loaded || !p.named[c] {
			continue
		}
		t := p.request.Columns.Types[c]
		p.plan.Fields = append(p.plan.Fields, table.Column{Source: c, Name: c, Type: t.Type, Hex: t.Hex, Time: t.Time})
	}
}

// compute compiles the expressions for the types of the fields, and completes the schema.
func (p *planner) compute() error {
	s := p.plan.Schema
	if len(p.computed()) == 0 && p.numbered == 0 && p.plan.Tables == nil {
		p.plan.Makers = nil
	}
	p.plan.env = keyexpr.Env{SaltColumns: p.salt}
	for _, f := range p.plan.Fields {
		p.plan.env.Columns = append(p.plan.env.Columns, keyexpr.Input{Name: f.Source, Type: f.Type})
	}
	// The required type of a column comes from the user or the table. Compiling replaces it by the actual type.
	want := map[string]table.Type{}
	for _, col := range s.Columns {
		want[col.Name] = col.Type
	}
	auto := false
	for _, col := range p.computed() {
		col.Type = want[col.Name]
		program, err := p.compile(col)
		if err != nil {
			return err
		}
		auto = auto || program.Auto
	}
	if auto {
		p.plan.env.Separator = p.request.Separator
		if p.request.Separator == 0 {
			if err := p.chooseSeparator(); err != nil {
				return err
			}
		}
		for _, col := range p.computed() {
			col.Type = want[col.Name]
			if _, err := p.compile(col); err != nil {
				return err
			}
		}
	}
	for i, m := range p.plan.Makers {
		if m.Program == nil && m.Field >= 0 {
			s.Columns[i] = p.plan.Fields[m.Field]
		}
	}
	if p.plan.Makers == nil {
		copy(s.Columns, p.plan.Fields)
	}
	for i := range s.Key {
		s.Key[i].Type = s.Columns[i].Type
	}
	return nil
}

func (p *planner) compile(col keyexpr.Column) (*keyexpr.Program, error) {
	s := p.plan.Schema
	i := slices.IndexFunc(s.Columns, func(c table.Column) bool { return c.Name == col.Name })
	if i < 0 {
		return nil, usagef("--pk %s: the primary key of table %s has no such column", col.Name, s.Table)
	}
	flag := p.flagOf(col)
	program, err := keyexpr.CompileColumn(col, p.plan.env)
	if err != nil {
		return nil, usagef("%s %s: %v", flag, col.Name, err)
	}
	switch {
	case i >= len(s.Key):
	case program.Type == table.Any:
		return nil, usagef("%s %s: the type of %s varies by row, but a key column has one type; give one, as in "+
			"%s:string=…, or use text(…)", flag, col.Name, col.Expr, col.Name)
	case !program.Type.KeyType():
		return nil, usagef("%s %s: a primary-key column cannot be %s; use text(…) or int(…)", flag, col.Name, program.Type)
	}
	s.Columns[i].Type = program.Type
	p.plan.Makers[i].Program = program
	return program, nil
}

// chooseSeparator evaluates the expressions for a sample, and chooses a separator for splice(auto, …) that fits it.
func (p *planner) chooseSeparator() error {
	var chooser keyexpr.SeparatorChooser
	var observers []*keyexpr.Evaluator
	for _, m := range p.plan.Makers {
		if m.Program != nil && m.Program.Auto {
			observers = append(observers, m.Program.Observer(&chooser))
		}
	}
	if err := p.plan.Sample(func(row []table.Value) bool {
		for _, o := range observers {
			// A row without a value will be rejected when it is loaded, with the reason.
			_, _ = o.Eval(row)
		}
		return true
	}); err != nil {
		return err
	}
	separator, err := chooser.Choose()
	if err != nil {
		return usagef("%v", err)
	}
	p.plan.env.Separator = separator
	p.notef("splice(auto, …) joins with %q; write that, not auto, in later loads for the same keys", string(separator))
	return nil
}

// KeyFields returns the indices of the Fields that make up the primary key.
func (p *Plan) KeyFields() []int {
	var places []int
	for i, f := range p.Fields {
		if slices.Contains(p.env.SaltColumns, f.Source) {
			places = append(places, i)
		}
	}
	return places
}

// Sample calls each with the fields of the first convertible records of every input, about as many as type inference
// uses, until each returns false. The values are valid during the call.
func (p *Plan) Sample(each func([]table.Value) bool) error {
	share := max(sampleBytes/len(p.Sources), minSampleBytes)
	more := true
	for _, s := range p.sampled() {
		c, err := p.Converter(s)
		if err != nil {
			return err
		}
		_, err = s.Sample(share, p.sources(), func(rec *record.Record) {
			if !more {
				return
			}
			if row, why := c.Convert(rec); why == nil {
				more = each(row)
			}
		})
		if err == nil {
			err = s.Suspend()
		}
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// Converter returns the converter from records of a source to Fields.
func (p *Plan) Converter(s *Source) (*convert.Converter, error) {
	options, about := p.Request.Read.Convert, s.About()
	options.Decode, options.EncodingHint = about.Decode, about.EncodingHint
	c, err := convert.New(about.Columns, p.Fields, options)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Name, err)
	}
	return c, nil
}

// Shares divides the memory of the request.
func (p *Plan) Shares() Shares {
	s := DivideMemory(cmp.Or(p.Request.Memory, defaultMemory))
	if p.Request.Reading > 0 {
		of := DivideMemory(p.Request.Reading)
		s.Record, s.Pages, s.Window = of.Record, of.Pages, of.Window
	}
	return s
}

func (p *Plan) sources() (names []string) {
	for _, c := range p.Fields {
		names = append(names, c.Source)
	}
	return names
}

// Design returns the key in the form for keyexpr.Explain.
func (p *Plan) Design() (keyexpr.Design, error) {
	d := keyexpr.Design{Inputs: p.env.Columns}
	for i, k := range p.Schema.Key {
		if i > 0 && i == p.Schema.Numbered {
			d.Columns = append(d.Columns, keyexpr.Column{Name: k.Name, Type: k.Type, Auto: true})
			d.Programs = append(d.Programs, nil)
			continue
		}
		col := keyexpr.Column{Name: k.Name, Type: k.Type}
		if p.Makers != nil && p.Makers[i].Program != nil {
			col.Expr = p.Makers[i].Program.Source()
			d.Columns, d.Programs = append(d.Columns, col), append(d.Programs, p.Makers[i].Program)
			continue
		}
		env := p.env
		env.Name = k.Name
		program, err := keyexpr.CompileColumn(keyexpr.Column{Name: p.Schema.Columns[i].Source}, env)
		if err != nil {
			return d, err
		}
		d.Columns, d.Programs = append(d.Columns, col), append(d.Programs, program)
	}
	return d, nil
}

// Separator returns the separator of splice(auto, …), or "" if no expression uses it.
func (p *Plan) Separator() string {
	if p.env.Separator == 0 {
		return ""
	}
	return string(p.env.Separator)
}

// Expression returns the expression of a schema column, or "" for a column that is loaded unchanged.
func (p *Plan) Expression(column int) string {
	if p.Makers == nil || p.Makers[column].Program == nil {
		return ""
	}
	return p.Makers[column].Program.Source()
}
