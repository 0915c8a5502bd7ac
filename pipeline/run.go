package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/source"
)

// Run runs a load. When ctx ends, it stops at once; when cfg.Drain ends, it waits for requests in flight, then stops.
//
// The report is nil if the load could not begin; then nothing was written. Otherwise it tells how the load ended, as
// the run folder does. The error is nil unless the load failed: rejects, the error limit or an interrupt cause none.
func Run(ctx context.Context, cfg Config) (*Report, error) { return run(ctx, cfg, new(hooks)) }

func run(ctx context.Context, cfg Config, h *hooks) (*Report, error) {
	cfg.setDefaults()
	asked := cfg
	// While no rows are in flight, there is nothing to drain: the first interrupt ends any wait for inputs or the service.
	graceful, stopGracefully := context.WithCancelCause(ctx)
	defer stopGracefully(nil)
	defer context.AfterFunc(cfg.Drain, func() { stopGracefully(context.Cause(cfg.Drain)) })()
	serving, hangUp := context.WithCancel(ctx) // no request outlives the load
	defer hangUp()
	a := &attempt{cfg: &cfg, hooks: h, started: time.Now()}
	if err := a.connect(serving, graceful); err != nil {
		return nil, err
	}
	if err := a.findResumePoint(graceful); err != nil {
		return nil, err
	}
	defer a.from.Release()
	err := a.makePlan(graceful)
	if err != nil {
		err = a.nothingNew(graceful, err)
	} else {
		defer a.planned.Close()
		err = a.checkPlan()
	}
	if err != nil {
		if why := err; a.startsOver(&err) {
			return a.startOver(ctx, asked, why)
		}
		return nil, err
	}
	if err := a.openFolder(); err != nil {
		return nil, err
	}
	a.beginCounts()
	a.announce()
	err = a.makeTable()
	if err == nil && a.from.Job.IndexesFirst {
		err = a.makeIndexes(graceful)
	}
	if err == nil {
		err = a.beginKnown(ctx)
	}
	if err == nil {
		a.findPartitions(serving, graceful)
		err = a.load(ctx, func() { stopGracefully(nil) })
		hangUp()
		a.survey.end()
	}
	cfg.Watch.Progress.Done.Store(true)
	t := a.service.traffic
	a.counts.BytesSent, a.counts.UncheckedAnswers, a.counts.ReplayedAnswers = t.BytesSent.Load(), t.Unchecked.Load(),
		t.Replayed.Load()
	return finish(ctx, &cfg, a.report(), a.folder, a.started, err)
}

// attempt is one run of a load. Its steps fill in the fields in order.
type attempt struct {
	cfg     *Config
	hooks   *hooks
	started time.Time

	service service
	admin   *client.Admin // used before rows are in flight
	from    *keep.Point
	planned *plan.Plan
	folder  *rundir.Folder
	counts  *ledger.Counted
	survey  *partitionPoller
	looks   []look

	bad        []keep.BadInput // inputs left out of the plan
	mostInputs int             // as in plan.Request
	former     *Former         // another process's plan of the same load; nil means none
}

func (a *attempt) online() bool { return !a.cfg.DryRun && !a.cfg.Target.Absent }

// connect connects to the service. Table operations end when graceful does.
func (a *attempt) connect(ctx, graceful context.Context) (err error) {
	if a.service, err = connect(ctx, graceful, a.cfg); err != nil {
		return err
	}
	a.admin, a.service.watcher = a.cfg.admin(graceful, a.service.planning), a.cfg.admin(graceful, a.service.sdk)
	a.admin.Connection, a.service.watcher.Connection = a.service.connection, a.service.connection
	if a.cfg.Target.Policy != nil && a.cfg.Target.PolicyNow.IsZero() {
		if a.online() {
			a.admin.AskTime(a.service.clock())
		}
		a.cfg.Target.PolicyNow = a.service.clock().Now().UTC()
	}
	return nil
}

func (a *attempt) findResumePoint(ctx context.Context) (err error) {
	if a.from, err = keep.Find(ctx, a.cfg.kept(), a.started); err != nil {
		return err
	}
	a.cfg.RunDir, a.cfg.Target.PolicyNow = a.from.Load.RunDir, a.from.Load.PolicyNow
	return a.from.SettleFormer(ctx, a.started)
}

func (a *attempt) makePlan(graceful context.Context) (err error) {
	request := a.cfg.Request()
	request.Service, request.MostInputs, request.OnLook = serviceTime(a.service.clock()), a.mostInputs, a.look
	if a.cfg.Resume.Known != nil {
		request.Selection, request.Chosen = a.cfg.Resume.Known, a.from.Job.Chosen
	}
	a.from.Settings(request, a.cfg.Resume.Settings)
	if f := a.former; f != nil {
		request.Divided, request.Division = true, f.Division
	}
	if a.from.Snapshot != nil {
		request.Without = ledger.LeftOut(a.from.Snapshot.Bad)
		request.Divided = true
		if request.Division, err = a.from.Job.ReadDivision(a.cfg.RunDir); err != nil {
			return fmt.Errorf("%w; "+source.StartOver, err)
		}
	}
	if a.planned, err = plan.Make(graceful, request, a.admin); err != nil {
		a.planned, err = a.planWithout(graceful, request, err)
	}
	if err == nil {
		err = a.leaveStillBad(graceful, request)
	}
	if err == nil && a.planned.Parallel {
		request.Order, a.cfg.Write.Order, a.from.Load.Ordered = plan.OrderNone, plan.OrderNone, false // as keys are unique
	}
	return err
}

// look notes that the load waits for its inputs, until looked is called.
func (a *attempt) look() (looked func()) {
	p, used := &a.cfg.Watch.Progress.Hindrance.LimitedBy, a.hooks.used()
	from, before := time.Now(), used()
	p.Store(uint32(bottleneck.Reader))
	return func() {
		p.Store(uint32(bottleneck.None))
		a.looks = append(a.looks, look{from: from, to: time.Now(), used: used() - before})
	}
}

// look is a time during which the load waited for inputs before rows were read.
type look struct {
	from, to time.Time
	used     float64 // CPU seconds that the process used or waited for
}

// checkPlan refuses a plan that cannot be compared with the table as requested, or differs from the resumed run's.
func (a *attempt) checkPlan() error {
	if a.online() {
		tellClock(a.planned, a.admin, a.service.clock())
	}
	if a.from.Snapshot == nil {
		a.from.Job.Run = table.NewRun(a.service.clock().Now()) // from the clock that all loads into the table share
	}
	if err := a.cfg.comparable(a.planned); err != nil || a.cfg.DryRun {
		return err
	}
	if a.cfg.keeps() {
		if err := a.from.Compare(a.cfg.Drain, a.planned); err != nil {
			return err
		}
		if err := a.from.ReadAgain(a.planned); err != nil {
			return err
		}
		if err := a.from.ReadOrder(a.planned); err != nil {
			return err
		}
	}
	return a.from.SameTables(a.planned, a.admin)
}

func (a *attempt) openFolder() (err error) {
	a.cfg.RunDir = cmp.Or(a.cfg.RunDir, rundir.DefaultPath(a.started, plan.FileName(a.cfg.Target.Table)))
	a.noteIndexes()
	a.folder, err = a.from.OpenFolder(a.cfg.RunDir, a.planned)
	return err
}

// beginCounts begins with the counts of earlier attempts.
func (a *attempt) beginCounts() {
	a.counts = &ledger.Counted{ReportAttempts: ledger.ReportAttempts{Attempts: 1, Since: a.started.UTC()}}
	a.counts.Indexes = a.planned.Indexes()
	if a.cfg.Target.Policy != nil {
		a.counts.PolicyNow = &a.cfg.Target.PolicyNow
	}
	if a.from.Snapshot != nil {
		a.counts.Resume(a.from.Snapshot)
	}
	a.beginBad()
	a.counts.BeginMoments(a.planned, a.from.Snapshot)
}

func (a *attempt) report() *Report {
	r := newReport(a.cfg, a.planned, a.started)
	r.Counted, r.FirstStarted = *a.counts, a.counts.Since
	return r
}

func (a *attempt) announce() {
	if a.from.Snapshot != nil && a.cfg.Resume.OnResume != nil {
		r := a.counts
		a.cfg.Resume.OnResume(keep.Resumed{
			RunDir: a.cfg.RunDir, Attempt: r.Attempts, Read: r.Read, Final: r.Final(), Written: r.Written,
			BytesRead: a.from.Snapshot.Counters["bytes_read"], Since: r.Since, Rereads: a.from.Rereads(a.planned),
		})
	}
	a.planned.Notes = append(a.planned.Notes, a.cfg.Resume.Notes...)
	a.cfg.Watch.Progress.BytesTotal.Store(a.planned.Bytes)
	a.cfg.Watch.Progress.Limit.Store(a.cfg.Limits.Records)
	if a.cfg.Watch.OnPlan != nil {
		a.cfg.Watch.OnPlan(a.planned)
	}
}

func (a *attempt) makeTable() (err error) {
	if a.planned.Create && !a.cfg.DryRun && !a.planned.Empty {
		err = a.makePlanned()
	}
	a.service.traffic.BytesSent.Store(a.counts.BytesSent) // from here on, requests carry rows
	return err
}

func (a *attempt) makePlanned() error {
	counts := a.counts
	t, made, refused, err := a.planned.MakeTable(a.admin)
	counts.Created = made
	if err != nil {
		return err
	}
	if made && len(a.planned.Bounds) > 0 {
		// Only the report needs the number of ranges: rows follow the existing partitions.
		counts.PreSplit = &ledger.ReportPreSplit{Ranges: len(a.planned.Bounds) + 1, Heard: 1}
		if refused != nil {
			counts.PreSplit.Refused = refused.Error()
		} else if bounds, err := a.admin.Splits(t.Name); err == nil {
			counts.PreSplit.Heard = len(bounds) + 1
		}
	}
	if made {
		a.from.IDs.NoteMade(t.Name)
	}
	return a.from.IDs.See(t.Name, t.Created)
}

// findPartitions first reads the partitions of the table. It gives up when graceful ends.
func (a *attempt) findPartitions(ctx, graceful context.Context) {
	a.survey = newPartitionPoller(a.tablePartitions(), a.hooks.surveyEvery)
	if a.planned.Tables != nil {
		a.survey.tables = newTables(ctx, a.cfg, a.planned, a.service.sdk, a.from.IDs, a.survey.stop)
		a.survey.current.Store(a.survey.tables.current())
	}
	if m := a.survey.readWithin(graceful); m != nil {
		a.survey.current.Store(m)
	}
}

// comparable returns an error if the table is to be compared with the inputs afterwards but cannot be.
func (c *Config) comparable(planned *plan.Plan) error {
	if !c.Compared {
		return nil
	}
	if c.Write.Mode == table.Increment {
		return &plan.UsageError{Message: "--verify: a table of sums cannot be compared with records that were added to it " +
			"(--mode increment); leave it out"}
	}
	if c.Write.When != nil {
		return &plan.UsageError{Message: "--verify: rows that --when left out are not in the table, and no comparison can " +
			"tell them from rows that are missing; leave it out"}
	}
	if k := slices.IndexFunc(planned.Schema.Key, func(k table.KeyColumn) bool { return k.Auto }); k >= 0 &&
		c.Write.Marks.ReturnedKeys == "" && c.Write.Condition != table.ExpectExist {
		return &plan.UsageError{Message: fmt.Sprintf("--verify: table %s has the auto-increment key column %s: the service "+
			"assigns part of its keys, so the inputs do not have them; give --returned-keys, or leave it out",
			c.Target.Table, planned.Schema.Key[k].Name)}
	}
	return nil
}

// noteIndexes notes in the job the indexes to add to the new table. Once the table exists, only the job has them.
func (a *attempt) noteIndexes() {
	job := a.from.Job
	switch {
	case a.planned.Create:
		job.Indexes = a.cfg.Target.Indexes
	case a.from.Snapshot == nil && a.cfg.keeps():
		a.from.TakeIndexes()
	}
}

// makeIndexes creates the indexes of a table that the run has created.
func (a *attempt) makeIndexes(ctx context.Context) error {
	if len(a.from.Job.Indexes) == 0 || a.cfg.DryRun {
		return nil
	}
	admin := a.cfg.admin(ctx, a.service.sdk)
	admin.Proven = true
	for _, i := range a.from.Job.Indexes {
		if err := admin.CreateIndex(a.cfg.Target.Table, i); err != nil {
			return err
		}
		a.counts.IndexesMade = append(a.counts.IndexesMade, i.Name)
	}
	return nil
}
