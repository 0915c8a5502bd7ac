package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Forecast describes the inputs of a plan without reading them completely.
type Forecast struct {
	Found  int // number of inputs that are files
	Chosen int // number of inputs to load
	Opened int // number of inputs opened; the others are assumed to be similar
	Names  []string

	Bytes int64 // size of the chosen files as stored; -1 means unknown
	Rows  int64 // number of records; -1 means unknown
	Exact bool  // Rows is stated by the files, or all were read
}

// shownNames is the maximum number of inputs that a Forecast names.
const shownNames = 10

type inputs struct {
	Forecast
	left []input.Item // files that were not opened
}

// take notes the inputs of a set, and reduces the set to at most most of them, evenly chosen; 0 means all.
func (n *inputs) take(set *input.Set, most int) {
	n.Chosen = len(set.Items)
	for i := range set.Items {
		if set.Items[i].Size < 0 || n.Bytes < 0 {
			n.Bytes = -1
		} else {
			n.Bytes += set.Items[i].Size
		}
		if i < shownNames {
			n.Names = append(n.Names, set.Items[i].Name)
		}
	}
	if most <= 0 || len(set.Items) <= most {
		return
	}
	opened := make([]input.Item, 0, most)
	next := 0
	for i := range set.Items {
		if i == next*len(set.Items)/most {
			opened = append(opened, set.Items[i])
			next++
		} else {
			n.left = append(n.left, set.Items[i])
		}
	}
	set.Items = opened
}

// looked is the size of a source's sample.
type looked struct {
	records, bytes int
	whole          bool // the sample was the whole source
}

// Bytes of compressed text that are decompressed to estimate the ratio: in total, and at least per input.
const (
	expandBytes    = 16 << 20
	minExpandBytes = 1 << 20
)

// Forecast describes the inputs. To read the sizes that they state, it may open inputs that MostInputs left out.
func (p *Plan) Forecast(ctx context.Context) (f Forecast, err error) {
	f = p.inputs.Forecast
	if f.Exact = true; f.Found == 0 {
		f.Bytes = p.Bytes
	} else {
		f.Opened = len(p.Sources)
	}
	var bytes int64 // bytes of sources whose rows are known
	stated := true  // all sources state their rows
	for _, s := range p.Sources {
		rows, exact, err := p.rowsOf(s)
		if err != nil {
			return f, cannotLoad(ctx, err)
		}
		if rows < 0 {
			f.Rows, f.Exact = -1, false
			break
		}
		stated = stated && states(s)
		f.Rows, f.Exact = f.Rows+rows, f.Exact && exact
		bytes += s.About().Bytes
	}
	if len(p.inputs.left) > 0 && f.Rows >= 0 {
		if err := p.addLeft(ctx, &f, bytes, stated); err != nil {
			return f, err
		}
	}
	if most := p.Request.Records; most > 0 && (f.Rows < 0 || f.Rows > most) {
		f.Exact = f.Rows > most && f.Exact
		f.Rows = most
	}
	return f, nil
}

// rowCounter is a source that may state its number of records.
type rowCounter interface{ Rows() (int64, bool) }

func states(s *Source) bool {
	of, ok := s.Source.(rowCounter)
	if ok {
		_, ok = of.Rows()
	}
	return ok
}

// ReadThrough reports whether some source can be read from any record, but must be read through to find the records.
func (p *Plan) ReadThrough() bool {
	return slices.ContainsFunc(p.Sources, func(s *Source) bool {
		return s.About().Seeking == source.SeeksDirectly && !s.About().Live && !states(s)
	})
}

// measured is a text source that may be compressed.
type measured interface {
	TextBytes(budget int64) (int64, error)
}

// rowsOf estimates the number of records of a source; -1 means unknown.
func (p *Plan) rowsOf(s *Source) (rows int64, exact bool, err error) {
	if states(s) {
		rows, _ := s.Source.(rowCounter).Rows()
		return rows, true, nil
	}
	l, text := s.looked, s.About().Bytes
	if of, ok := s.Source.(measured); ok {
		if text, err = of.TextBytes(max(expandBytes/int64(len(p.Sources)), minExpandBytes, int64(l.bytes)+1)); err != nil {
			return 0, false, err
		}
	}
	if l.whole { // the sample was everything, unless the source is unreadable after it
		return int64(l.records), text == int64(l.bytes), nil
	}
	if text < 0 || l.records == 0 || l.bytes == 0 {
		return -1, false, nil
	}
	return max(int64(l.records), int64(float64(text)*float64(l.records)/float64(l.bytes))), false, nil
}

// addLeft adds the rows of unopened inputs: as local files state them if all opened ones do, else by their bytes.
func (p *Plan) addLeft(ctx context.Context, f *Forecast, bytes int64, stated bool) error {
	if stated && !slices.ContainsFunc(p.inputs.left, func(i input.Item) bool { return !i.Local() }) {
		options, known := p.Request.Read.Options, f.Rows
		options.Memory = p.Shares().reading()
		for _, item := range p.inputs.left {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			s, err := reader.Open(ctx, item, options)
			if _, skipped := reader.Skips(item, err); skipped {
				continue
			}
			if err != nil {
				return cannotLoad(ctx, err)
			}
			rows, says := s.Rows()
			if err := s.Close(); err != nil {
				return fmt.Errorf("close input %s: %w", item.Name, err)
			}
			if !says {
				rows, f.Exact = int64(float64(known)*float64(item.Size)/float64(max(1, bytes))), false
			}
			f.Rows += rows
		}
		f.Opened = f.Chosen
		return nil
	}
	f.Exact = false
	if f.Bytes < 0 || bytes <= 0 {
		f.Rows = -1
		return nil
	}
	f.Rows = int64(float64(f.Rows) * float64(f.Bytes) / float64(bytes))
	return nil
}

// Look calls each with a few thousand records from all over the sampled sources. whole marks certainly complete ones.
func (p *Plan) Look(ctx context.Context, each func(s *Source, rec *record.Record, whole bool) (taken bool)) error {
	sources := p.sampled()
	for _, s := range sources {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		v := p.visitor(s, func(rec *record.Record, whole bool) bool { return each(s, rec, whole) })
		v.most = max(beginningRecords/len(sources), placeRecords)
		v.budget = max(beginningBytes/len(sources), placeBytes)
		if err := v.look(p.placesOf(s)); err != nil {
			return err
		}
	}
	return nil
}

// settleCounts refuses loads that --mode increment cannot apply exactly once. at is the auto-increment column, or 0.
func (p *planner) settleCounts(at int) error {
	r := p.request
	const mode = "--mode increment: "
	switch {
	case at > 0:
		return usagef(mode+"table %s has the auto-increment key column %s, and a row with such a key can be changed only "+
			"if it exists; load into a table without one", r.Target.Table, p.key()[at].Name)
	case p.plan.Tables != nil:
		return usagef(mode + "a load into several tables cannot add values; load each table separately")
	case r.Condition != table.Ignore:
		return usagef(mode + "it uses a condition of its own, so that each record counts once; leave --condition out")
	case r.Order == OrderNone:
		return usagef(mode + "a row's mark tells what was added only if records are added in order; leave --order none out")
	case r.Read.Convert.VersionColumn != "":
		return usagef(mode + "the service sets the timestamp of a sum; leave --version-column out")
	}
	if err := p.refuseNumbering(fmt.Sprintf("table %s has none", r.Target.Table)); err != nil {
		return err
	}
	return p.settleMark()
}

// checkWholeRows refuses updates of a table whose updates replace the whole row.
func (p *planner) checkWholeRows() error {
	mode := p.request.Mode
	if p.plan.table == nil || mode != table.Update && mode != table.Increment {
		return nil
	}
	whole, err := p.admin.UpdatesWholeRows(p.plan.table.Name)
	if err != nil || !whole {
		return err
	}
	return usagef("--mode %s: in table %s an update removes the columns that it does not name (its option "+
		"update_full_row); give --mode put and whole rows, or load into a table without the option", modeNames[mode],
		p.plan.table.Name)
}

// checkGlobal refuses timestamps for a global table, which does not accept any.
func (p *planner) checkGlobal() error {
	version := p.request.Read.Convert.VersionColumn
	if p.plan.table == nil || !p.plan.Wide && !p.plan.Restamp && version == "" {
		return nil
	}
	global, err := p.admin.Global(p.plan.table.Name)
	if err != nil || !global {
		return err
	}
	what, remedy := "the input's cells have their own", "load an export without them, as CSV, JSON lines or Parquet"
	switch {
	case version != "":
		what, remedy = "--version-column "+version+" sets others", "leave it out"
	case !p.plan.Wide:
		what, remedy = "updates of a table with several versions set others", "give --mode put"
	}
	return usagef("table %s is global: the service sets timestamps, but %s; %s", p.plan.table.Name, what, remedy)
}

// checkCounts refuses columns that cannot be added exactly.
func (p *planner) checkCounts() error {
	if p.request.Mode != table.Increment {
		return nil
	}
	columns := p.plan.Schema.Attributes()
	if len(columns) == 0 && !p.plan.Wide {
		return usagef("--mode increment needs at least one attribute column to add to")
	}
	for _, c := range columns {
		if c.Type != table.Integer {
			return usagef("--mode increment: column %s is %s, and only integers can be added; leave it out (--exclude %s), or "+
				"give --type %[3]s=integer, which rejects records with other values", c.Name, c.Type, cmp.Or(c.Source, c.Name))
		}
		if t := p.plan.table; t != nil && t.Defined[c.Name] != table.Null && t.Defined[c.Name] != table.Integer {
			return usagef("--mode increment: table %s defines column %s as %s, and only integers can be added; leave it out "+
				"(--exclude %s)", t.Name, c.Name, t.Defined[c.Name], cmp.Or(c.Source, c.Name))
		}
	}
	return nil
}
