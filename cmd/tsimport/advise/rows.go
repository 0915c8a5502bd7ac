package advise

import (
	"context"
	"fmt"
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Input describes the inputs and how they are read.
type Input struct {
	Args    []string
	Options reader.Options
	Convert convert.Options // without Decode, which sources have
	Find    input.Options
	Sources source.Origin // used instead of Args; nil means files
	Table   string        // name of the inputs' table
	Copied  bool          // the input is a table of the service
	Written string        // added last column with the write time of each row, in milliseconds
	Bounds  []table.Value // partition bounds; nil if unknown
}

// sampleBytes is the amount of input sampled to infer types, as in a load.
const sampleBytes = 8 << 20

// minSampleBytes is the minimum amount sampled from each input.
const minSampleBytes = 64 << 10

// rows is a stream of typed rows from any source.
type rows struct {
	input    Input
	sources  []source.Source
	columns  []table.Column
	rejected int64
	reject   string // text of the first rejected record
	warnings []string
}

// openRows opens the inputs and infers the columns' types, like a load. It calls each with every sampled value.
func openRows(ctx context.Context, in Input, each func(column, columns int, d *record.Datum)) (r *rows, err error) {
	r = &rows{input: in}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if in.Sources != nil {
		err = r.openParts(ctx)
	} else {
		err = r.openFiles(ctx)
	}
	if err != nil {
		return r, err
	}
	return r, r.infer(each)
}

func (r *rows) openParts(ctx context.Context) error {
	division, err := r.input.Sources.Divide(ctx)
	if err != nil {
		return err
	}
	if r.sources, err = r.input.Sources.Open(ctx, division); err != nil {
		return err
	}
	r.addColumns(r.sources[0].About().Columns)
	return nil
}

func (r *rows) addColumns(names []string) {
	for _, name := range names {
		if !slices.ContainsFunc(r.columns, func(c table.Column) bool { return c.Name == name }) {
			r.columns = append(r.columns, table.Column{Source: name, Name: name, Exact: true, Inferred: true})
		}
	}
}

func (r *rows) openFiles(ctx context.Context) error {
	in := r.input
	set, err := input.Expand(ctx, in.Args, in.Find)
	if err != nil {
		return err
	}
	r.warnings = set.Warnings
	for _, item := range set.Items {
		s, err := reader.Open(ctx, item, in.Options)
		if warning, ok := reader.Skips(item, err); ok {
			r.warnings = append(r.warnings, warning)
			continue
		}
		if err != nil {
			return err
		}
		r.sources = append(r.sources, s)
		r.addColumns(s.Columns)
		if err := s.Suspend(); err != nil {
			return fmt.Errorf("close input %s: %w", s.Name, err)
		}
	}
	if len(r.sources) == 0 {
		return input.AllEmpty(set.Items)
	}
	return nil
}

// infer infers the types. Inputs read together need the same columns, but JSON lines may lack some.
func (r *rows) infer(each func(column, columns int, d *record.Datum)) error {
	inference := convert.NewInference(len(r.columns), r.input.Convert)
	fields := make([]record.Datum, len(r.columns))
	for _, s := range r.sources {
		if add := s.About().AddColumns; add != nil {
			var names []string
			for _, c := range r.columns {
				names = append(names, c.Name)
			}
			add(names)
		}
		about := s.About()
		place := make([]int, len(r.columns))
		for i, c := range r.columns {
			if place[i] = slices.Index(about.Columns, c.Name); place[i] < 0 {
				return fmt.Errorf("%s has no column %q, which another input has; give tsimport advise only inputs with the "+
					"same columns", about.Name, c.Name)
			}
		}
		_, err := s.Sample(max(sampleBytes/len(r.sources), minSampleBytes), about.Columns, func(rec *record.Record) {
			if rec.Bad != nil || len(rec.Fields)-rec.Short != len(about.Columns) {
				return
			}
			for i, from := range place {
				fields[i] = rec.Fields[from]
				each(i, len(r.columns), inference.Plain(&fields[i]))
			}
			inference.Add(&record.Record{Fields: fields})
		})
		if err != nil {
			return err
		}
		if err := s.Suspend(); err != nil {
			return fmt.Errorf("close input %s: %w", about.Name, err)
		}
	}
	for i := range r.columns {
		r.columns[i].Type = inference.Type(i)
		r.columns[i].Own = inference.Own(i, r.columns[i].Type)
	}
	return nil
}

// each calls f with the values of each row that a load would accept, in input order. They are valid during the call.
func (r *rows) each(ctx context.Context, f func([]table.Value)) error {
	for _, s := range r.sources {
		if err := r.source(ctx, s, f); err != nil {
			return err
		}
		if err := s.Close(); err != nil {
			return fmt.Errorf("close input %s: %w", s.About().Name, err)
		}
	}
	return nil
}

func (r *rows) source(ctx context.Context, s source.Source, f func([]table.Value)) error {
	options := r.input.Convert
	about := s.About()
	options.Decode = about.Decode
	c, err := convert.New(about.Columns, r.columns, options)
	if err != nil {
		return fmt.Errorf("read %s: %w", about.Name, err)
	}
	var parser source.Parser // made after the first Next, which reopens the source
	defer func() {
		if parser != nil {
			_ = parser.Close() // nothing was written
		}
	}()
	for sp, err := range source.Splits(s) {
		if err != nil {
			return err
		}
		if parser == nil {
			parser = s.NewParser(c.Fields())
		}
		_, _, err := parser.Parse(sp, func(rec *record.Record) {
			values, why := c.Convert(rec)
			if why != nil {
				if r.rejected == 0 {
					r.reject = fmt.Sprintf("%s: %v", about.Name, why)
				}
				r.rejected++
				return
			}
			f(values)
		})
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

func (r *rows) close() {
	for _, s := range r.sources {
		_ = s.Close() // nothing was written
	}
}
