package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"tsimport/client"
	"tsimport/reader"
	"tsimport/reader/input"
	"tsimport/runfolder"
	"tsimport/table"
)

// Plan is what a load will do, worked out before its first write.
type Plan struct {
	Schema   *table.Schema
	Create   bool     // the table does not exist yet
	Bytes    int64    // of all inputs, -1 when one is a stream
	Warnings []string // for the user, a sentence each
	Notes    []string // what was found out about the inputs, for the user

	sources []*source
	headers []runfolder.Header
	table   *client.Table // nil when it does not exist yet
	empty   bool          // no input has a record
}

// source is an input whose header fits.
type source struct {
	*reader.Source
	header int // in Plan.headers
}

// planner works out a Plan.
type planner struct {
	cfg     *Config
	plan    *Plan
	sampled struct{ records, bytes int }
	all     []string // columns of all inputs, in the order in which they first come
	columns []string // of them, those that are loaded
}

// makePlan opens the inputs, looks at the table and settles the schema. Nothing is written, no table is made.
func makePlan(ctx context.Context, cfg *Config, admin *client.Admin) (*Plan, error) {
	p := &planner{cfg: cfg, plan: &Plan{}}
	steps := []func() error{
		p.checkFlags,
		func() error { return p.openInputs(ctx) },
		func() error { return p.describeTable(admin) },
		p.joinColumns,
		p.settleSchema,
		p.checkSchema,
		p.infer,
		p.sizeSplits,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			p.plan.close()
			return nil, err
		}
	}
	p.warn()
	return p.plan, nil
}

// integers returns the input columns that are loaded as integers of their own.
func (p *Plan) integers() map[string]bool {
	set := map[string]bool{}
	for _, c := range p.Schema.Columns {
		if c.Type == table.Integer && c.Time == nil {
			set[c.Source] = true
		}
	}
	return set
}

// window says which timestamps the table takes now.
func (p *Plan) window(cfg *Config) func() (from, to int64) {
	seconds := cfg.Target.Define.MaxDeviation
	if p.table != nil {
		seconds = p.table.MaxDeviation
	}
	deviation := cmp.Or(seconds, defaultDeviation) * 1000
	return func() (from, to int64) {
		now := time.Now().UnixMilli()
		return now - deviation, now + deviation
	}
}

// defaultDeviation is the service's own maximum deviation in seconds.
const defaultDeviation = 86400

func (p *Plan) close() {
	for _, s := range p.sources {
		s.Close()
	}
}

func (p *planner) checkFlags() error {
	c := p.cfg
	if len(c.Inputs) == 0 {
		return usagef("no input: name the files to load, or - for standard input")
	}
	if c.Target.Table == "" {
		return usagef("no table: give --table")
	}
	if err := table.CheckTableName(c.Target.Table); err != nil {
		return usagef("%v", err)
	}
	if c.Write.DeleteNull && c.Write.Mode != table.Update {
		return usagef("--on-null delete needs --mode update: a put replaces the whole row anyway")
	}
	if n := len(c.Target.Key); n > table.MaxKeyColumns {
		return usagef("%d key columns: a table has 1 to %d", n, table.MaxKeyColumns)
	}
	seen := map[string]bool{}
	for _, k := range c.Target.Key {
		if seen[k.Name] {
			return usagef("--pk %s is given twice", k.Name)
		}
		seen[k.Name] = true
	}
	return nil
}

func (p *planner) openInputs(ctx context.Context) error {
	find := p.cfg.Read.Find
	find.Stdin = p.cfg.Read.Stdin
	set, err := input.Expand(ctx, p.cfg.Inputs, find)
	if err != nil {
		return cannotLoad(ctx, err)
	}
	p.plan.Warnings = append(p.plan.Warnings, set.Warnings...)
	options := p.cfg.Read.Options
	options.Stream = func(r io.Reader) io.Reader { return input.Stoppable(ctx, r) }
	for _, item := range set.Items {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if p.cfg.RunDir != "" && runfolder.Touches(p.cfg.RunDir, item.Name) {
			return usagef("input %s is a file of the run folder %s, which this run would write to; give another --run-dir", item.Name, p.cfg.RunDir)
		}
		s, err := reader.Open(ctx, item, options)
		if err != nil {
			return cannotLoad(ctx, err)
		}
		p.plan.sources = append(p.plan.sources, &source{Source: s, header: p.headerOf(s)})
		p.plan.Warnings = append(p.plan.Warnings, s.Renamed...)
		if options.Sniff && s.Format == reader.CSV {
			p.plan.Notes = append(p.plan.Notes, fmt.Sprintf("%s is read with %v", s.Name, s.Dialect))
		}
		if s.Size < 0 || p.plan.Bytes < 0 {
			p.plan.Bytes = -1
		} else {
			p.plan.Bytes += s.Size
		}
		// Thousands of inputs must not hold thousands of open files.
		if err := s.Suspend(); err != nil {
			return fmt.Errorf("close input %s: %w", item.Name, err)
		}
	}
	return nil
}

// cannotLoad makes a usage error of an error about an input: nothing has been written, and what was given cannot be
// loaded. An interruption stays what it is.
func cannotLoad(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return usagef("%v", err)
}

// headerOf finds or adds the header under which the source's rejected records are kept.
func (p *planner) headerOf(s *reader.Source) int {
	kind := ".csv"
	if s.Format != reader.CSV {
		kind = ".ndjson"
	}
	for i, h := range p.plan.headers {
		if string(h.Text) == string(s.Header) && h.Kind == kind && h.Dir == s.Folder() {
			return i
		}
	}
	p.plan.headers = append(p.plan.headers, runfolder.Header{Text: s.Header, Kind: kind, Dir: s.Folder()})
	return len(p.plan.headers) - 1
}

// joinColumns finds the columns that are loaded, of all inputs together. An input that lacks one is refused; but an
// object of JSON lines need not have every member.
func (p *planner) joinColumns() error {
	owner := map[string]string{}
	for _, s := range p.plan.sources {
		for _, c := range s.Columns {
			if _, known := owner[c]; known {
				continue
			}
			owner[c] = s.Name
			p.all = append(p.all, c)
			if p.wanted(c) || p.isKeyName(p.rename(c)) {
				p.columns = append(p.columns, c)
			}
		}
	}
	for _, s := range p.plan.sources {
		if s.Format == reader.JSONLines {
			s.AddColumns(p.columns)
			continue
		}
		for _, c := range p.columns {
			if !slices.Contains(s.Columns, c) {
				return usagef("%s has no column %q, which %s has; files loaded together need the same columns: leave it out with --exclude, or load them apart",
					s.Name, c, owner[c])
			}
		}
	}
	return nil
}

func (p *planner) describeTable(admin *client.Admin) error {
	name := p.cfg.Target.Table
	if !p.cfg.Target.Absent {
		t, err := admin.Describe(name)
		if err == nil {
			p.plan.table = t
			return nil
		}
		if !errors.Is(err, client.ErrNoTable) {
			return err
		}
	}
	const pk = "its primary key with --pk NAME[:TYPE], once for each column in order"
	switch create, key := p.cfg.Target.Create, len(p.cfg.Target.Key) > 0; {
	case !key && create:
		return usagef("table %s does not exist in %s: give %s", name, p.cfg.Target.Name, pk)
	case !key:
		return usagef("table %s does not exist in %s; to make it, give --create and %s", name, p.cfg.Target.Name, pk)
	case !create:
		return usagef("table %s does not exist in %s; to make it, give --create", name, p.cfg.Target.Name)
	}
	p.plan.Create = true
	return nil
}

func (p *planner) warn() {
	if p.plan.table != nil && p.cfg.Target.DefineSet {
		p.plan.Warnings = append(p.plan.Warnings, "the table exists: the options for a new table (--ttl, --max-versions and the like) change nothing")
	}
	for _, c := range p.plan.Schema.Columns {
		if !table.PlainColumnName(c.Name) {
			p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf(
				"column name %q is more than letters, digits and underscores: the service takes it, SQL and secondary indexes do not", c.Name))
		}
	}
	t := p.plan.table
	if p.cfg.Write.Mode == table.Update && (t != nil && t.MaxVersions > 1 || t == nil && p.cfg.Target.Define.MaxVersions > 1) {
		p.plan.Warnings = append(p.plan.Warnings,
			"the table keeps several versions: an update that is sent again after a lost answer leaves one version more")
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
