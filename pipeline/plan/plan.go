package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/source"
)

// Plan says what a load will do, and is made before its first write. It has many fields because it holds every decision
// made before the first row; each stage reads only a few. Later, only the state of Sources, Notes and Warnings change,
// and MakeTable adds the table.
type Plan struct {
	Schema    *table.Schema
	Fields    []table.Column // what a record is converted to: the schema's columns, unless some are computed
	Makers    []Maker        // make the schema's columns from Fields; nil if these are the same
	Create    bool           // the table does not exist yet
	Bounds    []table.Value  // bounds of the new table's ranges, in the first key column; none means one partition
	Bytes     int64          // size of all inputs; -1 if one is a stream
	Warnings  []string       // sentences for the user
	Changed   []string       // the Warnings about columns that differ from earlier loads' or the table's
	Decisions []Decision     // decisions inferred from all inputs
	Notes     []string       // notes about the inputs, for the user
	Unread    []string       // the Warnings about inputs that are left out or incomplete
	Broken    []error        // read errors after the first records of a source

	Chosen   []string // inputs that Request.Selection has chosen; nil if there is none
	Sources  []*Source
	Division []byte          // division by which the sources were opened; nil for files
	Live     bool            // the sources are live
	Position source.Position // where to follow the sources' changes from; zero if they cannot be followed
	Distinct bool            // according to the sources, no two records have the same key
	Parallel bool            // sources are read in parallel, as they are Distinct or order does not matter
	Headers  []rundir.Header // headers for rejected records
	Empty    bool            // no input has a record
	Merging  *Merging        // why several rows of a source may become one; nil means that none do
	Wide     bool            // records describe themselves: rows have the cells that Cell loads besides Schema's columns

	Tables *Tables // tables that rows go to; nil if there is only one

	Mark    string // attribute that identifies rows numbered by the service; "" means none
	Restamp bool   // cells without a timestamp get one when sent, as the table keeps several versions

	Request *Request

	units     map[string]string // units from earlier runs, by table column or part of a nested one
	inputs    inputs
	whenNew   []string        // columns of rows that Request.When names
	described map[string]bool // columns listed by the sources of a Wide plan

	env   keyexpr.Env   // environment of the expressions
	table *client.Table // nil if it does not exist yet
}

// Source is an input with columns that fit the schema.
type Source struct {
	source.Source
	Name    string
	Header  int // index in Plan.Headers
	Ordinal int // index in Plan.Sources

	Chain    func() source.Chain                   // as in source.About
	GiveBack func(source.Split)                    // as in source.About
	Raw      func(source.Split, table.Span) []byte // as in source.Rejects

	looked looked
	// beginning is the place of a frozen source's first record.
	beginning source.Place
}

// Anywhere reports whether the source is a source.Random whose splits can be read in any order.
func (s *Source) Anywhere() bool {
	r, ok := s.Source.(source.Random)
	return ok && !s.About().Live && r.Anywhere()
}

type planner struct {
	request *Request
	plan    *Plan
	admin   *client.Admin
	sampled struct {
		records, bytes int
		bad            *table.Reason // reason of the first unreadable record
		whole, fits    bool          // a record was counted; a record has few enough values for a row
		cells          int           // bytes of self-describing cells, without their values
	}
	// dialects says how the records under each of Plan.Headers are read.
	dialects []string
	all      []string          // columns of all inputs, in order of appearance
	owner    map[string]string // first input that has each column
	columns  []string          // columns that are read
	named    map[string]bool   // columns named by expressions
	// numbered is the key column whose values the service makes; 0 means none.
	numbered int
	salt     []string                    // columns from which salt(n) is computed
	measures map[string]map[string]tally // the inputs' units, by column and path of record.Measures
	hints    []string                    // hints about inputs whose columns do not fit
	lacks    []string                    // inputs and their missing columns, with --missing null
	items    []input.Item                // inputs to open
}

// InputsError tells why a load of files cannot be planned. Items are these files.
type InputsError struct {
	error
	Items []input.Item
}

func (e *InputsError) Unwrap() error { return e.error }

// Make opens the inputs, looks at the table and settles the schema, but writes nothing. The caller must close the plan.
func Make(ctx context.Context, r *Request, admin *client.Admin) (*Plan, error) {
	p := &planner{request: r, plan: &Plan{Request: r, units: map[string]string{}}, admin: admin,
		measures: map[string]map[string]tally{}}
	steps := []func() error{
		p.checkFlags,
		p.settleTables,
		p.looking(func() error { return p.openInputs(ctx) }),
		p.describeTable,
		p.checkWholeRows,
		p.checkGlobal,
		p.checkLive,
		p.findColumns,
		p.settleNumbers,
		p.checkVersions,
		p.checkChanged,
		p.joinColumns,
		p.settleSchema,
		p.checkSchema,
		p.checkWhen,
		p.checkMemory,
		p.looking(p.infer),
		p.settleDefined,
		p.compute,
		p.checkCounts,
		p.compileTables,
		p.warnOfAges,
		p.settleKeys,
		func() error { return p.keepRows(ctx) },
		p.sizeSplits,
		p.settlePreSplit,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			p.plan.Close()
			if len(p.hints) > 0 && ctx.Err() == nil {
				err = fmt.Errorf("%w; %s", err, p.hints[0])
			}
			if len(p.items) > 0 {
				err = &InputsError{err, p.items}
			}
			return nil, err
		}
	}
	p.warn()
	p.showDecisions()
	return p.plan, nil
}

// looking makes a step tell Request.OnLook that it waits for the inputs.
func (p *planner) looking(step func() error) func() error {
	if p.request.OnLook == nil {
		return step
	}
	return func() error {
		defer p.request.OnLook()()
		return step()
	}
}

func (p *Plan) Close() {
	for _, s := range p.Sources {
		s.Close()
	}
}

func (p *planner) checkFlags() error {
	c := p.request
	if len(c.Inputs) == 0 {
		return usagef("no input: name the files to load, or - for standard input")
	}
	if c.Target.Table == "" {
		return usagef("no table: give --table")
	}
	if err := table.CheckTableName(c.Target.Table); err != nil && !IsTemplate(c.Target.Table) {
		return usagef("%v", err)
	}
	if c.DeleteNull && c.Mode != table.Update {
		return usagef("--on-null delete needs --mode update")
	}
	if n := len(c.Target.Key); n > table.MaxKeyColumns {
		return usagef("--pk: %d key columns, but a table has at most %d", n, table.MaxKeyColumns)
	}
	if len(c.Columns.Set) > 0 && c.Mode == table.Delete {
		return usagef("--set %s: deleting rows needs only their keys; leave it out", c.Columns.Set[0].Name)
	}
	seen := map[string]bool{}
	for _, k := range c.Target.Key {
		if seen[k.Name] {
			return usagef("--pk %s is given twice", k.Name)
		}
		seen[k.Name] = true
	}
	for _, col := range c.Columns.Set {
		if seen[col.Name] {
			return usagef("--set %s: the column is set twice, or is a primary-key column, which --pk computes", col.Name)
		}
		seen[col.Name] = true
	}
	return nil
}

// notData adds the archive of the policy to the paths that are not data, as its records are too old for every table.
func (p *planner) notData(more func(name string, folder bool) string) func(name string, folder bool) string {
	if p.request.Target.Policy == nil {
		return more
	}
	return func(name string, folder bool) string {
		for _, class := range p.request.Target.Policy.Classes {
			if class.Archives() && rundir.SameFile(name, class.Archive) {
				return "archive of the policy"
			}
		}
		if more == nil {
			return ""
		}
		return more(name, folder)
	}
}

func (p *planner) openInputs(ctx context.Context) error {
	if origin := p.request.Read.Sources; origin != nil {
		return p.openParts(ctx, origin)
	}
	return p.openFiles(ctx)
}

// openParts opens the parts of an origin, which an earlier attempt has divided or which is divided now.
func (p *planner) openParts(ctx context.Context, origin source.Origin) error {
	division := p.request.Division
	if !p.request.Divided {
		var err error
		if division, err = origin.Divide(ctx); err != nil {
			return cannotLoad(ctx, err)
		}
		if len(division) > source.MaxDivision {
			return usagef("the list of the parts of %s takes %d bytes, but a run keeps at most %d; load it in several runs",
				strings.Join(p.request.ShownInputs(), ", "), len(division), source.MaxDivision)
		}
	}
	p.plan.Division = division
	sources, err := origin.Open(ctx, division)
	if err != nil {
		return cannotLoad(ctx, err)
	}
	if of, ok := origin.(source.Positioned); ok {
		p.plan.Position = of.Position()
	}
	for _, s := range sources {
		p.addSource(s)
	}
	switch {
	case len(sources) == 0:
		return &UsageError{Message: strings.Join(p.request.ShownInputs(), ", ") + ": there is nothing to read", Input: true,
			Nothing: true}
	case len(sources) > source.MaxSources:
		return usagef("%s has %d parts, but a load takes at most %d; load it in several runs",
			strings.Join(p.request.ShownInputs(), ", "), len(sources), source.MaxSources)
	}
	return nil
}

func (p *planner) addSource(s source.Source) {
	about := s.About()
	p.plan.Sources = append(p.plan.Sources, &Source{
		Source: s, Name: about.Name, Header: p.headerOf(about.Rejects), Ordinal: len(p.plan.Sources), beginning: s.Begin(),
		Chain: about.Chain, GiveBack: about.GiveBack, Raw: about.Rejects.Raw,
	})
	p.plan.Warnings = append(p.plan.Warnings, about.Renamed...)
	for _, note := range about.Notes {
		if !slices.Contains(p.plan.Notes, note) { // all files of a folder have the same note about its column
			p.plan.Notes = append(p.plan.Notes, note)
		}
	}
	if about.Hint != "" {
		p.hints = append(p.hints, about.Hint)
	}
	if about.Bytes < 0 || p.plan.Bytes < 0 {
		p.plan.Bytes = -1
	} else {
		p.plan.Bytes += about.Bytes
	}
}

func (p *planner) find(ctx context.Context) error {
	find := p.request.Read.Find
	find.Stdin = p.request.Read.Stdin
	find.NotData = p.notData(find.NotData)
	set, err := input.Expand(ctx, p.request.Inputs, find)
	if err != nil {
		return cannotLoad(ctx, err)
	}
	p.plan.Warnings = append(p.plan.Warnings, set.Warnings...)
	p.plan.Unread = append(p.plan.Unread, set.Unread...)
	p.plan.inputs.Found = len(set.Items)
	if !set.Exported.IsZero() {
		p.plan.Position.ResumeFrom = source.ResumeAt(set.Exported)
	}
	if err := p.choose(ctx, set); err != nil {
		return err
	}
	p.plan.inputs.take(set, p.request.MostInputs)
	p.items = set.Items
	return nil
}

func (p *planner) openFiles(ctx context.Context) error {
	if p.items = p.request.Items; p.items == nil {
		if err := p.find(ctx); err != nil {
			return err
		}
	}
	options := p.request.Read.Options
	options.Stream = func(r io.Reader) io.Reader { return input.Stoppable(ctx, r) }
	options.Memory = p.plan.Shares().reading()
	var files []*reader.File
	defer func() {
		for _, s := range files[len(p.plan.Sources):] { // close them if the load is refused
			s.Close()
		}
	}()
	for _, item := range p.items {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if p.request.RunDir != "" && rundir.Touches(p.request.RunDir, item.Name) {
			return usagef("input %s is a file of the run folder %s, which this run would write to; give another --run-dir",
				item.Name, p.request.RunDir)
		}
		s, err := reader.Open(ctx, item, options)
		if warning, ok := reader.Skips(item, err); ok {
			p.plan.Warnings = append(p.plan.Warnings, warning)
			p.plan.Unread = append(p.plan.Unread, warning)
			continue
		}
		if err != nil {
			return cannotLoad(ctx, err)
		}
		if s.Doubt != "" {
			_ = s.Close() // it was only read
			return cannotLoad(ctx, fmt.Errorf("read %s: %s; give --no-header or, if it is a header, its names: --no-header "+
				"--skip-lines 1 --names A,B", s.Name, s.Doubt))
		}
		files = append(files, s)
		// Thousands of inputs must not keep thousands of files open.
		if err := s.Suspend(); err != nil {
			return fmt.Errorf("close input %s: %w", item.Name, err)
		}
	}
	if err := reader.ShareTags(files); err != nil {
		return cannotLoad(ctx, err)
	}
	for _, s := range files {
		p.addSource(s)
	}
	if len(p.plan.Sources) == 0 {
		return &UsageError{Message: input.AllEmpty(p.items).Error(), Input: true, Damaged: true}
	}
	return nil
}

// cannotLoad turns an error about an input into a usage error, as nothing was written and the inputs cannot be loaded.
// Errors of an interruption or a silent server remain, because the same command may succeed later.
func cannotLoad(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if input.Passing(err) {
		return err
	}
	return &UsageError{Message: err.Error(), Input: true, Damaged: reader.Damaged(err),
		Changed: errors.As(err, new(interface{ InputMissing() })), Nothing: errors.Is(err, input.ErrNothing)}
}

// headerOf finds or adds the header under which a source's rejected records are kept.
func (p *planner) headerOf(r source.Rejects) int {
	read := strings.Join(append(r.Flags, r.Encoding), "\x00") // records of different dialects cannot share a file
	for i, h := range p.plan.Headers {
		if string(h.Text) == string(r.Header) && h.Kind == r.Kind && h.Dir == r.Folder && p.dialects[i] == read {
			return i
		}
	}
	h := rundir.Header{Text: r.Header, Kind: r.Kind, Dir: r.Folder, End: r.End, Ended: r.Ended}
	p.plan.Headers = append(p.plan.Headers, h)
	p.dialects = append(p.dialects, read)
	return len(p.plan.Headers) - 1
}

// findColumns finds the columns of all inputs together, and the columns named in expressions.
func (p *planner) findColumns() error {
	p.owner = map[string]string{}
	for _, s := range p.plan.Sources {
		for _, c := range s.About().Columns {
			if _, known := p.owner[c]; known {
				continue
			}
			p.owner[c] = s.Name
			p.all = append(p.all, c)
		}
	}
	if err := p.checkWide(); err != nil {
		return err
	}
	if p.plan.Wide {
		p.plan.described = map[string]bool{}
		for _, c := range p.all {
			p.plan.described[c] = true
		}
		if err := p.askForColumns(); err != nil {
			return err
		}
	}
	return p.findNamed()
}

// joinColumns finds the columns to load. It refuses inputs that lack one, except that JSON objects may lack members.
func (p *planner) joinColumns() error {
	for _, c := range p.all {
		if p.isNumbered(p.rename(c)) {
			continue // the service makes the column
		}
		if p.named[c] || !p.isComputed(p.rename(c)) && (p.wanted(c) && !p.plan.Wide || p.isKeyName(p.rename(c))) {
			p.columns = append(p.columns, c)
		}
	}
	if p.plan.Wide {
		return p.joinWide()
	}
	for _, s := range p.plan.Sources {
		if add := s.About().AddColumns; add != nil {
			add(p.columns)
			continue
		}
		if err := p.checkColumns(s); err != nil {
			return err
		}
	}
	return nil
}

// checkColumns refuses a source that lacks columns of the load. With --missing null, it may lack all but key columns.
func (p *planner) checkColumns(s *Source) error {
	has := places(s.About().Columns)
	if c := p.request.Read.Convert.VersionColumn; c != "" && p.owner[c] == "" {
		return usagef("--version-column %s: no input has a column of that name", c)
	}
	var lacking []string
	for _, c := range append(p.columns[:len(p.columns):len(p.columns)], p.request.Read.Convert.VersionColumn) {
		if _, ok := has[c]; ok || p.owner[c] == "" {
			continue
		}
		switch {
		case p.isKeyName(p.rename(c)) && !p.isComputed(p.rename(c)), c == p.request.Read.Convert.VersionColumn:
			return usagef("%s has no column %q, which %s has; the primary key and --version-column need it in every file: add "+
				"it, or leave the file out", s.Name, c, p.owner[c])
		case !p.request.Read.Convert.Missing:
			return usagef("%s has no column %q, which %s has; files loaded together need the same columns: load its rows "+
				"without it with --missing null, leave it out with --exclude, or load them separately", s.Name, c, p.owner[c])
		}
		lacking = append(lacking, strconv.Quote(c))
	}
	if len(lacking) > 0 {
		p.lacks = append(p.lacks, fmt.Sprintf("%s (no %s)", s.Name, strings.Join(firstOf(lacking), ", ")))
	}
	return nil
}

func (p *planner) warn() {
	if n := len(p.lacks); n > 0 {
		p.notef("--missing null: %d of %d inputs lack columns of others, such as %s", n, len(p.plan.Sources), p.lacks[0])
	}
	if names := p.plan.Indexes(); len(names) > 0 && !p.request.Written {
		p.plan.Warnings = append(p.plan.Warnings, indexText(p.request.Target.Table, names))
	}
	if p.plan.Wide {
		p.warnOfDescribed()
	} else {
		p.warnOfRenamed()
	}
	if p.plan.table != nil && p.plan.Tables == nil && p.request.Target.Asked.Any {
		p.warnf("table %s exists, so the options for a new table (--ttl, --max-versions, --define) have no effect",
			p.plan.table.Name)
	}
	for _, c := range p.plan.Schema.Columns {
		if !table.PlainName(c.Name) {
			p.warnf("column name %q is not all letters, digits and underscores: SQL and secondary indexes refuse it; "+
				"--rename %s gives another", c.Name, suggest.Arg(cmp.Or(c.Source, c.Name)+"=NAME"))
		}
	}
}

// warnOfRenamed warns if columns are new to a nightly load and others, which earlier nights wrote, are missing.
func (p *planner) warnOfRenamed() {
	of, ok := p.request.Selection.(interface {
		Units
		Works() bool // whether the same command has loaded inputs into the table before
	})
	if !ok || !of.Works() { // the columns may be another load's
		return
	}
	earlier := maps.Clone(of.Units())
	var added, missing []string
	for _, c := range p.plan.Schema.Columns {
		if earlier[c.Name] == "" && c.Unit != "" {
			added = append(added, strconv.Quote(c.Name))
		}
		delete(earlier, c.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(earlier)) {
		missing = append(missing, strconv.Quote(name))
	}
	if len(added) > 0 && len(missing) > 0 {
		p.warnf("the inputs have the new column %s and lack %s, which earlier loads wrote; if a column was renamed, "+
			"--rename NEW=OLD keeps its name in the table", strings.Join(firstOf(added), ", "), strings.Join(firstOf(missing), ", "))
		p.plan.Changed = append(p.plan.Changed, p.plan.Warnings[len(p.plan.Warnings)-1])
	}
}

func (p *planner) notef(format string, a ...any) {
	p.plan.Notes = append(p.plan.Notes, fmt.Sprintf(format, a...))
}

func (p *planner) warnf(format string, a ...any) {
	p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf(format, a...))
}
