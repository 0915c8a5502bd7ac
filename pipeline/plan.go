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
}

// makePlan opens the inputs, looks at the table and settles the schema. Nothing is written, no table is made.
func makePlan(ctx context.Context, cfg *Config, admin *client.Admin) (*Plan, error) {
	p := &planner{cfg: cfg, plan: &Plan{}}
	steps := []func() error{
		p.checkFlags,
		func() error { return p.openInputs(ctx) },
		func() error { return p.describeTable(admin) },
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
	options.Stream = func(r io.Reader) io.Reader { return newStoppable(ctx, r) }
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
		if err := sameColumns(p.plan.sources[0].Source, s); err != nil {
			return err
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
		if string(h.Text) == string(s.Header) && h.Kind == kind {
			return i
		}
	}
	p.plan.headers = append(p.plan.headers, runfolder.Header{Text: s.Header, Kind: kind})
	return len(p.plan.headers) - 1
}

// sameColumns refuses a source whose columns are not those of the first; their order may differ.
func sameColumns(first, s *reader.Source) error {
	for _, pair := range [][2]*reader.Source{{first, s}, {s, first}} {
		if pair[1].Format == reader.JSONLines {
			continue // an object need not have every member
		}
		for _, c := range pair[0].Columns {
			if !slices.Contains(pair[1].Columns, c) {
				return usagef("%s has no column %q, which %s has; files loaded together need the same columns", pair[1].Name, c, pair[0].Name)
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

// settleSchema finds the table's key among the input's columns and decides which other columns are attributes.
// Types are still those the user or the table gave; Null ones are inferred later.
func (p *planner) settleSchema() error {
	columns := p.plan.sources[0].Columns
	if err := p.checkNamed(columns); err != nil {
		return err
	}
	s := &table.Schema{Table: p.cfg.Target.Table, Key: slices.Clone(p.cfg.Target.Key)}
	if t := p.plan.table; t != nil {
		if err := p.matchKey(t); err != nil {
			return err
		}
		s.Key = slices.Clone(t.Key)
	}
	bySource := map[string]string{} // table name to input name
	for _, c := range columns {
		bySource[p.rename(c)] = c
	}
	isKey := map[string]bool{}
	for _, k := range s.Key {
		src, ok := bySource[k.Name]
		if !ok {
			hint := "check --pk, or use --rename old=new if the column has another name"
			if len(columns) == 1 {
				hint = "it may have another delimiter or encoding, or no header: see tsimport inspect"
			}
			return usagef("no column %q in %s, which is to be a primary-key column of table %s (the file has %q); %s",
				k.Name, p.plan.sources[0].Name, s.Table, firstOf(columns), hint)
		}
		if slices.Contains(p.cfg.Columns.Exclude, src) {
			return usagef("--exclude %s: the column is part of the primary key", src)
		}
		isKey[src] = true
		col, err := p.column(src, k.Name)
		if err != nil {
			return err
		}
		if k.Type != table.Null && col.Type != table.Null && col.Type != k.Type {
			return usagef("--type %s=%s: the primary-key column is %s", k.Name, col.Type, k.Type)
		}
		if k.Type != table.Null {
			col.Exact = col.Type == table.Null && p.plan.table != nil && !p.askedFor(k)
			col.Type = k.Type
		}
		s.Columns = append(s.Columns, col)
	}
	for _, c := range columns {
		if isKey[c] || !p.wanted(c) || p.cfg.Write.Mode == table.Delete {
			continue
		}
		col, err := p.column(c, p.rename(c))
		if err != nil {
			return err
		}
		if t := p.plan.table; t != nil && col.Type == table.Null {
			col.Type = t.Defined[col.Name]
			col.Exact = true
		}
		s.Columns = append(s.Columns, col)
	}
	p.plan.Schema = s
	return nil
}

func (p *planner) matchKey(t *client.Table) error {
	if t.AutoIncrement != "" {
		return usagef("table %s has the auto-increment key column %s; loading such tables is not supported yet", t.Name, t.AutoIncrement)
	}
	given := p.cfg.Target.Key
	if len(given) == 0 {
		return nil
	}
	same := len(given) == len(t.Key)
	for i := range given {
		same = same && given[i].Name == t.Key[i].Name && (given[i].Type == table.Null || given[i].Type == t.Key[i].Type)
	}
	if !same {
		return usagef("table %s exists with the primary key %s, not %s; leave --pk out or use another table", t.Name, keyText(t.Key), keyText(given))
	}
	return nil
}

func keyText(key []table.KeyColumn) string {
	text := ""
	for i, k := range key {
		if i > 0 {
			text += ", "
		}
		text += k.Name
		if k.Type != table.Null {
			text += ":" + k.Type.String()
		}
	}
	return text
}

// checkNamed refuses flags that name columns the input does not have.
func (p *planner) checkNamed(columns []string) error {
	c := &p.cfg.Columns
	named := []struct {
		flag  string
		names []string
	}{{"--columns", c.Only}, {"--exclude", c.Exclude}, {"--rename", sortedKeys(c.Rename)}}
	for _, n := range named {
		for _, name := range n.names {
			if !slices.Contains(columns, name) {
				return p.unknownColumn(n.flag, name, columns)
			}
		}
	}
	for _, name := range sortedKeys(c.Types) {
		known := slices.ContainsFunc(columns, func(col string) bool { return col == name || p.rename(col) == name })
		if !known {
			return p.unknownColumn("--type", name, columns)
		}
	}
	used := map[string]string{}
	for _, col := range columns {
		if !p.wanted(col) && !p.isKeyName(p.rename(col)) {
			continue
		}
		if other, ok := used[p.rename(col)]; ok {
			return usagef("columns %q and %q would both be called %q in the table", other, col, p.rename(col))
		}
		used[p.rename(col)] = col
	}
	return nil
}

func (p *planner) unknownColumn(flag, name string, columns []string) error {
	return usagef("%s names column %q, which %s does not have (it has %q)", flag, name, p.plan.sources[0].Name, firstOf(columns))
}

// firstOf bounds the columns that a message lists.
func firstOf(columns []string) []string { return columns[:min(len(columns), 20)] }

func (p *planner) isKeyName(name string) bool {
	key := p.cfg.Target.Key
	if p.plan.table != nil {
		key = p.plan.table.Key
	}
	return slices.ContainsFunc(key, func(k table.KeyColumn) bool { return k.Name == name })
}

func (p *planner) rename(column string) string {
	if to, ok := p.cfg.Columns.Rename[column]; ok {
		return to
	}
	return column
}

// askedFor reports whether the user gave the key column's type with --pk.
func (p *planner) askedFor(k table.KeyColumn) bool { return slices.Contains(p.cfg.Target.Key, k) }

func (p *planner) wanted(column string) bool {
	c := &p.cfg.Columns
	return (c.Only == nil || slices.Contains(c.Only, column)) && !slices.Contains(c.Exclude, column)
}

// column starts a table column with the type the user asked for, if any.
func (p *planner) column(src, name string) (table.Column, error) {
	col := table.Column{Source: src, Name: name}
	if err := table.CheckColumnName(name); err != nil {
		return col, usagef("%s: %v", p.plan.sources[0].Name, err)
	}
	t, ok := p.cfg.Columns.Types[src]
	if !ok && !slices.Contains(p.plan.sources[0].Columns, name) {
		t = p.cfg.Columns.Types[name] // by its new name, unless that is another input column's
	}
	col.Type, col.Hex, col.Time = t.Type, t.Hex, t.Time
	return col, nil
}

func (p *planner) checkSchema() error {
	s := p.plan.Schema
	for _, col := range s.Columns[:len(s.Key)] {
		if col.Type != table.Null && !col.Type.KeyType() {
			return usagef("primary-key column %s cannot be %s: want string, integer or binary", col.Name, col.Type)
		}
	}
	if p.cfg.Write.Mode == table.Update && len(s.Attributes()) == 0 {
		return usagef("--mode update needs at least one attribute column")
	}
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
