package commands

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/jobs/recurring"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/open"
	exporting "example.com/tsimport/transfer/export"
	"example.com/tsimport/transfer/restore"
)

// findBegun adds the progress of an unfinished run of the load, and uses its types for the plan.
func (l *loadPlan) findBegun(dir string, in *invocation) {
	if !checkpoint.Exists(dir) {
		return
	}
	if s, err := checkpoint.Read(dir); err == nil {
		l.Resumes = &planBegun{Folder: dir, Read: s.Counters["read"], Final: finalOf(s.Counters)}
	}
	if j, err := checkpoint.ReadJob(dir); err == nil {
		in.settings = j
	}
}

func (l *loadPlan) hear(kind words.Kind, line string) {
	switch kind {
	case words.Warning:
		l.warn(printable(line))
	case words.Note:
		l.note(printable(line))
	}
}

// note adds sentences for the user, without the secrets of addresses.
func (l *loadPlan) note(texts ...string) {
	for _, text := range texts {
		l.Notes = append(l.Notes, input.RedactText(text))
	}
}

func (l *loadPlan) warn(texts ...string) {
	for _, text := range texts {
		l.Warnings = append(l.Warnings, input.RedactText(text))
	}
}

// looksLater replaces the inspection of all rows, which a plan leaves to the load.
func looksLater(context.Context) error { return nil }

// later marks the load as planned later if it reads the output of another one. Otherwise it returns err.
func (l *loadPlan) later(place string, err error) error {
	usage, by := new(plan.UsageError), l.plans.made[place]
	if by == nil || by == l || !errors.As(err, &usage) || !usage.NoTable {
		return err
	}
	if !l.plans.comesAfter(l.Name, by.Name) {
		return usagef("load %s reads a table before load %s creates it; set after: [%s]", l.Name, by.Name, by.Name)
	}
	l.State = planLater
	l.note(fmt.Sprintf("load %s creates the table that this load reads, so its rows are not known yet", by.Name))
	return nil
}

func (l *loadPlan) load(c *call, of kind, asked *options.Request, cfg pipeline.Config) (err error) {
	cfg.DryRun = true // opens resources for reading only, without a lease
	cfg.Lanes.RetryFor = min(cfg.Lanes.RetryFor, planPatience)
	r := new(readyLoad)
	defer func() { err = r.close(err) }()
	copies, _ := of.(*copying)
	if err := r.prepare(c, plannedKind{of, l}, asked, &cfg); err != nil {
		if copies != nil {
			err = l.later(copies.reads, err)
		}
		return err
	}
	l.askState(c.interrupts.drain, asked, &cfg)
	if copies != nil || c.Command.Name == job.Load && cfg.Read.Sources != nil {
		of.Compared(&cfg) // leaves out checks that read the whole source
	}
	if cfg.Read.Look != nil {
		cfg.Read.Look = looksLater
	}
	if err := l.look(c.interrupts.drain, cfg, r.target); err != nil {
		return err
	}
	plain, _ := of.(plainLoad)
	if archived, ok := plain.Source.(*restore.Load); ok {
		l.Rows, l.RowsAre = archived.Archive.Rows, rowsExact
	}
	if l.Rows < 0 && cfg.Read.Sources != nil && asked.Query == "" && len(asked.From) == 1 &&
		open.IsDatabase(asked.From[0]) {
		if found, err := open.Tables(c.interrupts.drain, asked.From[0]); err == nil && len(found) == 1 && found[0].Rows >= 0 {
			l.Rows, l.RowsAre = found[0].Rows, rowsAbout // as in tsimport tables
		}
	}
	if copies != nil && l.Rows < 0 && l.RowBytes > 0 {
		from := &copies.Read
		admin := &client.Admin{Client: from.Client, Context: c.interrupts.drain, RetryFor: cfg.Lanes.RetryFor}
		if size, err := scan.NewPartitions(admin, from.Client, from.Table.Name).Size(); err == nil {
			l.Rows, l.RowsAre = exporting.RowsOf(size, l.RowBytes), rowsAtMost
		}
	}
	if c.of.DryRun {
		l.note("the job sets --dry-run: nothing will be written, and no table created")
	}
	l.cost(&cfg)
	return nil
}

// plannedKind is a kind that does not begin a load into a service that did not respond.
type plannedKind struct {
	kind
	plan *loadPlan
}

func (k plannedKind) begin(c *call, cfg *pipeline.Config, t *target) error {
	if err := k.plan.reach(t); err != nil {
		return err
	}
	return k.kind.begin(c, cfg, t)
}

// reach notes the table's service. It returns an error if that service has not responded to an earlier load.
func (l *loadPlan) reach(t *target) error {
	l.Target = t.name
	if t.embedded {
		return nil
	}
	l.endpoint = t.Endpoint
	if err := l.plans.down[t.Endpoint]; err != nil {
		return fmt.Errorf("the service did not answer an earlier load: %w", err)
	}
	return nil
}

// askState adds a note if another process may be working on the load, according to the lease in its --state.
func (l *loadPlan) askState(ctx context.Context, asked *options.Request, cfg *pipeline.Config) {
	if asked.State == "" {
		return
	}
	store, err := recurring.OpenStore(ctx, asked, cfg.Read.Find)
	if err == nil {
		var owner string
		identity := progress.Identify(append([]string{cfg.Target.Name, cfg.Target.Table}, cfg.Inputs...)...)
		if owner, _, err = jobdir.Holder(ctx, jobdir.Below(store, "loads/"+identity)); owner != "" {
			l.note(fmt.Sprintf("according to its lease in %s, %s is loading this, or was killed",
				input.Redact(asked.State), owner))
		}
	}
	if err != nil {
		l.warn(fmt.Sprintf("--state cannot be read: %v", err))
	}
}

func (l *loadPlan) look(ctx context.Context, cfg pipeline.Config, t *target) error {
	place := t.place(cfg.Target.Table)
	by := l.plans.made[place]
	if by != nil && l.plans.comesAfter(l.Name, by.Name) { // the table will exist by then
		cfg.Target.Create = true
		if err := l.takeKey(&cfg.Target, by); err != nil {
			return err
		}
	}
	v, err := pipeline.Look(ctx, cfg, planFilesOpened)
	if err != nil {
		return err
	}
	l.key = v.Target.Key
	l.Bytes, l.Rows, l.RowsAre, l.RowBytes, l.units = v.Bytes, v.Rows, rowsAbout, v.Sample.RowBytes, v.Sample.RowUnits
	switch {
	case v.Rows < 0, v.Rows == 0 && !v.Exact: // servers do not estimate the rows of a query
		l.Rows, l.RowsAre = -1, rowsUnknown
	case v.Exact:
		l.RowsAre = rowsExact
	}
	if cfg.Read.Sources == nil {
		l.Files = &planFiles{Found: v.Found, Chosen: v.Chosen, Opened: v.Opened}
		for _, name := range v.Names {
			l.Files.Names = append(l.Files.Names, input.Redact(name))
		}
		if v.Opened < v.Chosen {
			l.note(fmt.Sprintf("columns, types and rows are based on %s of %s files, spread over all of them",
				words.Grouped(int64(v.Opened)), words.Grouped(int64(v.Chosen))))
		}
	}
	for _, col := range v.Columns {
		one := planColumn{Name: col.Name, Type: col.Type, Unit: col.Unit, Key: col.Key, Expression: col.Expression}
		if col.Source != col.Name {
			one.Source = col.Source
		}
		l.Columns = append(l.Columns, one)
	}
	l.More, l.Decisions = v.Wide, v.Decisions
	l.lookAtTable(v, by, place)
	l.sampled(v.Sample.Looked, v.Sample.Rejected)
	l.FirstReject, l.HotKeys = v.Sample.FirstReject, v.Sample.HotKeys
	if v.Merging != nil && cfg.Read.Look != nil {
		l.note(v.Merging.Text() + "; the load reads all rows first")
	}
	l.warn(v.Warnings...)
	l.note(v.Notes...)
	if v.Sample.Grows && l.New != nil && l.New.By == "" {
		l.warn(fmt.Sprintf("the key begins with %s, which increases: all new rows go to the last partition; tsimport advise "+
			"proposes a key that spreads", v.Target.Key[0].Name))
	}
	if h := v.Sample.Largest; l.Rows > 0 && h.Share*float64(l.Rows)*l.RowBytes > table.LargestValue {
		l.warn(fmt.Sprintf("the rows with %s %s would take more than 10 GB, and one value of the partition key should stay "+
			"below that", h.Column, h.Value))
	}
	return nil
}

// sampled sets the figures of the sample. In a small file its places overlap, and records are counted several times.
func (l *loadPlan) sampled(looked, rejected int64) {
	if l.RowsAre == rowsExact && looked > l.Rows {
		looked, rejected = l.Rows, int64(math.Ceil(float64(rejected)*float64(l.Rows)/float64(looked)))
	}
	l.Sampled, l.Rejected = looked, rejected
}

// lookAtTable describes the table. by is the load that creates it, or nil if it exists or this load creates it.
func (l *loadPlan) lookAtTable(v *pipeline.Preview, by *loadPlan, place string) {
	switch {
	case v.Target.Create:
		l.New = &planNew{Key: plan.KeyTexts(v.Target.Key), Ranges: v.Target.Ranges, unmade: v.Empty}
		if by != nil {
			l.New.By = by.Name
		} else {
			l.plans.made[place] = l
		}
	case v.Target.Table != nil:
		l.Existing = &planTable{Key: plan.KeyTexts(v.Target.Key), Partitions: v.Target.Partitions, Guessed: v.Target.Guessed,
			Indexes: v.Target.Table.Indexes}
	case v.Target.Several:
		l.Tables = v.Sample.Tables
	}
}

// takeKey adopts and checks the key of a table that an earlier load creates.
func (l *loadPlan) takeKey(to *plan.Target, by *loadPlan) error {
	if len(to.Key) > 0 && !plan.KeyFits(to.Key, by.key) {
		return usagef("load %s creates table %s with the primary key %s, not %s; leave pk out or use another table", by.Name,
			l.Table, strings.Join(plan.KeyTexts(by.key), ", "), strings.Join(plan.KeyTexts(to.Key), ", "))
	}
	to.Key = slices.Clone(by.key)
	return nil
}

func (l *loadPlan) sync(interrupts *interrupts, cfg pipeline.Config, t *target, deletes bool) error {
	if err := l.reach(t); err != nil {
		return err
	}
	cfg.DryRun = true
	cfg.Lanes.RetryFor = min(cfg.Lanes.RetryFor, planPatience)
	l.note("a sync reads the whole table and writes only what differs; the write units are those of a table that has " +
		"nothing in common with the input. tsimport sync --plan compares and counts")
	if deletes {
		l.note("which rows would be deleted is not known in advance")
	}
	cfg.Read.Look = looksLater // comparisons do the same
	if err := l.look(interrupts.drain, cfg, t); err != nil {
		return err
	}
	l.cost(&cfg)
	return nil
}

func (l *loadPlan) export(c *call, sdk *tablestore.TableStoreClient, described *client.Table, t *target) error {
	l.Output, l.WriteUnits, l.Seconds = redacted(c.of.Output), 0, -1
	rows, _, err := exportOf(c, described)
	if err != nil {
		return err
	}
	rows.Client = sdk
	looked, err := exporting.Look(c.Context, rows)
	if err != nil {
		return err
	}
	l.Existing = &planTable{Key: plan.KeyTexts(described.Key), Partitions: looked.Partitions, Guessed: looked.Guessed,
		Indexes: described.Indexes}
	l.Rows, l.Sampled, l.More = looked.Rows, looked.Sampled, true
	if looked.AtMost {
		l.RowsAre = rowsAtMost
	} else if l.Rows >= 0 {
		l.RowsAre = rowsAbout // the table may change before the export
	}
	if most := c.of.Limit; most > 0 && (l.Rows < 0 || l.Rows > most) {
		l.Rows, l.RowsAre = most, rowsAtMost
	}
	if looked.Sampled > 0 {
		l.RowBytes = float64(looked.Bytes) / float64(looked.Sampled)
	}
	for _, k := range described.Key {
		l.Columns = append(l.Columns, planColumn{Name: k.Name, Type: k.Type.String(), Key: true})
	}
	for _, col := range looked.Columns {
		l.Columns = append(l.Columns, planColumn{Name: col.Name, Type: strings.Join(col.Types, " or ")})
	}
	if _, err := os.Lstat(c.of.Output); err == nil && !isFolder(c.of.Output) {
		l.note("the output exists and would be replaced")
	}
	if by := l.plans.writers(t.place(described.Name), l.Name); len(by) > 0 {
		l.note(fmt.Sprintf("the plan is of the table as it is now; %s of this job write to it first", strings.Join(by, ", ")))
	}
	return nil
}
