package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"golang.org/x/sync/errgroup"

	"tsimport/internal/spill"
	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
	"tsimport/internal/tablestore/scan"
	"tsimport/pipeline/checkpoint"
	"tsimport/pipeline/intake"
	"tsimport/pipeline/plan"
	"tsimport/pipeline/rundir"
	"tsimport/writer"
)

// Run loads. When ctx ends, it stops at once; when cfg.Drain ends, it finishes what is in flight.
//
// The report is nil if the load could not begin; then nothing was written. Otherwise the report says how it ended, is
// also in the run folder, and the error is that of a load that failed: not for rejected rows, the error limit or an
// interruption.
func Run(ctx context.Context, cfg Config) (*Report, error) { return run(ctx, cfg, new(hooks)) }

func run(ctx context.Context, cfg Config, h *hooks) (*Report, error) {
	cfg.setDefaults()
	start := time.Now()
	traffic := new(client.Traffic)
	var service service
	if !cfg.Target.Absent {
		var err error
		if service, err = connect(ctx, &cfg, traffic); err != nil {
			return nil, &plan.UsageError{Message: err.Error()}
		}
	}
	// Until rows are under way there is nothing to drain: the first interrupt ends waiting for standard input or for a
	// busy service.
	gentle, stopGently := context.WithCancelCause(ctx)
	defer stopGently(nil)
	defer context.AfterFunc(cfg.Drain, func() { stopGently(context.Cause(cfg.Drain)) })()
	admin := cfg.admin(gentle, service.sdk)
	if cfg.Target.Policy != nil && cfg.Target.PolicyNow.IsZero() {
		if !cfg.DryRun && !cfg.Target.Absent {
			admin.AskTime(&traffic.Clock)
		}
		cfg.Target.PolicyNow = traffic.Clock.Now().UTC()
	}
	from, err := findOrigin(&cfg, start)
	if err != nil {
		return nil, err
	}
	defer from.release()
	from.ids = newTableIDs(from.snapshot)
	request := cfg.Request()
	request.Service = serviceTime(&traffic.Clock)
	from.settings(request, cfg.Resume.Settings)
	planned, err := plan.Make(gentle, request, admin)
	if err != nil {
		return nil, err
	}
	defer planned.Close()
	if !cfg.DryRun && !cfg.Target.Absent {
		tellClock(planned, admin, &traffic.Clock)
	}
	if from.snapshot == nil {
		from.job.Run = table.NewRun(traffic.Clock.Now()) // by a clock that all loads into the table share
	}
	if err := cfg.comparable(planned); err != nil {
		return nil, err
	}
	if !cfg.DryRun {
		if err := from.compare(&cfg, planned); err != nil {
			return nil, err
		}
		if err := from.sameTables(&cfg, planned, admin); err != nil {
			return nil, err
		}
	}
	if cfg.RunDir == "" {
		cfg.RunDir = rundir.DefaultPath(start, plan.FileName(cfg.Target.Table))
	}
	folder, err := from.openFolder(&cfg, planned)
	if err != nil {
		return nil, err
	}
	report := newReport(&cfg, planned, start)
	if cfg.Target.Policy != nil {
		report.PolicyNow = &cfg.Target.PolicyNow
	}
	if s := from.snapshot; s != nil {
		report.goOn(s)
		if cfg.Resume.OnResume != nil {
			cfg.Resume.OnResume(report.resumed())
		}
	}
	cfg.Watch.Progress.BytesTotal.Store(planned.Bytes)
	if cfg.Watch.OnPlan != nil {
		cfg.Watch.OnPlan(planned)
	}
	if planned.Create && !cfg.DryRun && !planned.Empty {
		err = from.makeTable(planned, admin, report)
	}
	traffic.BytesSent.Store(0) // what counts is the rows
	if err == nil {
		survey := newSurveyor(tablePartitions(admin, service.sdk, &cfg, report.Created, from.ids), h.surveyEvery)
		if planned.Tables != nil {
			survey.several(newTables(ctx, &cfg, planned, service.sdk, from.ids, survey.stop))
		}
		if m := survey.readWithin(gentle); m != nil {
			survey.current.Store(m)
		}
		a := &attempt{cfg: &cfg, hooks: h, planned: planned, folder: folder, report: report, service: service, survey: survey, from: from}
		err = a.load(ctx, func() { stopGently(nil) })
	}
	cfg.Watch.Progress.Done.Store(true)
	report.BytesSent, report.UncheckedAnswers, report.ReplayedAnswers = traffic.BytesSent.Load(), traffic.Unchecked.Load(), traffic.Replayed.Load()
	return finish(&cfg, report, folder, start, err)
}

// attempt is a run of a load whose rows are about to be under way.
type attempt struct {
	cfg     *Config
	hooks   *hooks
	planned *plan.Plan
	folder  *rundir.Folder
	report  *Report
	service service
	survey  *surveyor
	from    *origin
}

// comparable says why the table cannot be compared with the inputs afterwards, if it is to be.
func (c *Config) comparable(planned *plan.Plan) error {
	if !c.Compared {
		return nil
	}
	if c.Write.Mode == table.Increment {
		return &plan.UsageError{Message: "--verify: a table of sums cannot be compared with records that were added to it (--mode increment); leave it out"}
	}
	if k := slices.IndexFunc(planned.Schema.Key, func(k table.KeyColumn) bool { return k.Auto }); k >= 0 {
		return &plan.UsageError{Message: fmt.Sprintf("--verify: table %s has the auto-increment key column %s: its rows have keys that the inputs do not tell; leave it out",
			c.Target.Table, planned.Schema.Key[k].Name)}
	}
	return nil
}

// admin works on the tables of the load. It waits for an endpoint that is down: a load has time.
func (c *Config) admin(ctx context.Context, sdk *tablestore.TableStoreClient) *client.Admin {
	patience := min(c.Write.RetryFor, client.Patience)
	return &client.Admin{Client: sdk, Context: ctx, RetryFor: patience, ReachFor: patience, OnWait: c.Watch.OnWait}
}

// service is the Tablestore that is loaded into: the SDK's client, and a connection for what is many.
type service struct {
	sdk        *tablestore.TableStoreClient
	connection *client.Connection
	clock      *client.Clock
}

// keyPatience is how long a load goes on although its keys are refused, if they were accepted before.
const keyPatience = 2 * time.Minute

func connect(ctx context.Context, cfg *Config, traffic *client.Traffic) (s service, err error) {
	target := cfg.Target.Client
	target.Connections, target.KeyPatience = client.Affordable(max(cfg.Write.Concurrency, leastLookUps)), keyPatience
	s.clock = &traffic.Clock
	if s.connection, err = client.Connect(ctx, target, traffic); err != nil {
		return s, err
	}
	target.Transport = s.connection.Transport()
	s.sdk, err = client.New(ctx, target, traffic)
	return s, err
}

// noteRejectsDialect notes how rejected records are read again.
func noteRejectsDialect(r *Report, sources []*plan.Source) {
	encodings := map[string]bool{}
	for _, s := range sources {
		rejects := s.About().Rejects
		if rejects.Encoding != "" {
			r.RejectsEncoding = rejects.Encoding
		}
		encodings[cmp.Or(rejects.Encoding, "utf-8")] = true
		flags := rejects.Flags
		switch {
		case flags == nil:
		case r.RejectsFlags == nil:
			r.RejectsFlags = flags
		case !slices.Equal(r.RejectsFlags, flags):
			r.RejectsMixed = true
		}
	}
	r.RejectsMixed = r.RejectsMixed || len(encodings) > 1
}

func newReport(cfg *Config, planned *plan.Plan, start time.Time) *Report {
	r := &Report{
		ReportTarget:   ReportTarget{Target: cfg.Target.Name, Table: cfg.Target.Table, DryRun: cfg.DryRun, RunDir: cfg.RunDir, Deletes: cfg.Write.Mode == table.Delete},
		ReportSource:   ReportSource{Command: cfg.Invocation.Command, Arguments: cfg.Invocation.Arguments, Directory: cfg.Invocation.Directory, Inputs: planned.Request.ShownInputs()},
		ReportAttempts: ReportAttempts{Attempts: 1},
		ReportTime:     ReportTime{FirstStarted: start.UTC(), Started: start.UTC()},
		Order:          cfg.Write.Order.String(),
	}
	noteRejectsDialect(r, planned.Sources)
	for i, c := range planned.Schema.Columns {
		r.Schema = append(r.Schema, ReportColumn{
			Source: c.Source, Expression: planned.Expression(i), Name: c.Name, Type: c.Type.String(), Key: i < len(planned.Schema.Key), Numbered: i > 0 && i == planned.Schema.Numbered, Inferred: c.Inferred,
		})
	}
	r.Separator = planned.Separator()
	for _, f := range planned.Fields {
		field := ReportField{Name: f.Source}
		if f.Type != table.Any && f.Type != table.Null {
			field.Type = f.Type.String()
		}
		r.Fields = append(r.Fields, field)
	}
	return r
}

// load runs the stages. It returns the first cause.
func (a *attempt) load(ctx context.Context, stopStdin func()) error {
	cfg, planned, report, from := a.cfg, a.planned, a.report, a.from
	store, err := spill.Open(spill.Options{Dir: cfg.Limits.TempDir, MaxBytes: cfg.Limits.TempMax})
	if err != nil {
		if cfg.Limits.TempDir != "" {
			return err
		}
		store, report.SpillError = nil, err.Error() // the system's folder, which nobody asked for: most loads need none
	}
	// Reading has a context of its own: when the load drains or has read enough, reading stops and writing goes on.
	readCtx, cancelRead := context.WithCancel(ctx)
	stopRead := func() {
		cancelRead()
		stopStdin()
	}
	defer stopRead()
	in := intake.New(planned, a.survey.current.Load())
	x, err := newExtras(cfg, a.hooks, planned, a.folder, report, a.service.sdk, a.service.clock, from.extras(a.survey))
	if err != nil {
		return errors.Join(err, closeStore(store))
	}
	if err := tryNeeds(cfg, planned, a.service, x); err != nil {
		return errors.Join(err, closeStore(store), x.close())
	}
	old, err := newArchive(cfg, planned, a.folder, from)
	if err != nil {
		return errors.Join(err, closeStore(store), x.close())
	}
	var keeper *keeper
	if !cfg.DryRun {
		keeper = newKeeper(cfg, a.hooks, a.folder, planned, from, time.Now())
		in.Resume(keeper.past())
	}
	d := newDispatcher(cfg, a.hooks, report, in, &files{a.folder, x, old}, a.survey, newDisk(store), keeper, from, stopRead)
	err = a.stages(ctx, readCtx, d)
	d.complete()
	if err == nil && !cfg.DryRun {
		err = finishTables(ctx, cfg, report, a.service.sdk, x, from.ids)
	}
	if x.AutoIncrement != nil {
		report.SearchRequests = x.AutoIncrement.Requests.Load()
	}
	report.clockBehind(a.service.clock)
	if keeper != nil && (err != nil || report.overLimit(cfg.Limits.MaxErrors) || cfg.Checkpoint.Keep) {
		if keepErr := d.keepLast(); keepErr != nil {
			report.CheckpointError = keepErr.Error() // the one before still holds
		}
	}
	if err == nil && !report.overLimit(cfg.Limits.MaxErrors) {
		err = errors.Join(x.stamps.close(), x.stamps.remove())
	}
	if closeErr := closeStore(store); closeErr != nil {
		report.SpillError = closeErr.Error() // the rows are written; a folder is left behind
	}
	return errors.Join(err, x.close(), old.close(report))
}

// stages runs the stages side by side until all of them have ended.
func (a *attempt) stages(ctx, readCtx context.Context, d *dispatcher) error {
	group, groupCtx := errgroup.WithContext(ctx)
	defer context.AfterFunc(groupCtx, d.stopper.stopRead)()
	group.Go(func() error { return d.input.flow.Run(readCtx) })
	if !a.cfg.DryRun { // which has nothing to send, and perhaps no store to send it to
		d.flights.room = a.service.connection.Room
		group.Go(d.keeper.saver.work)
		for range a.cfg.Write.Concurrency {
			group.Go(func() error { return a.work(d) })
		}
	}
	for range diskWorkers {
		group.Go(d.disk.work)
	}
	surveyCtx, stopSurvey := context.WithCancel(groupCtx)
	group.Go(func() error { return a.survey.run(surveyCtx) })
	group.Go(func() error {
		defer stopSurvey()
		return d.run(groupCtx)
	})
	return group.Wait()
}

// work is one worker, with a connection of its own.
func (a *attempt) work(d *dispatcher) error {
	sender := a.service.connection.Sender()
	defer sender.Close()
	w, target := &a.cfg.Write, a.cfg.Target.Table
	one := worker{table: target, ids: a.from.ids, onSend: a.hooks.onSend}
	one.writer = writer.New(d.guarded(sender), a.service.sdk, target, w.Mode, w.Condition).With(d.files.extras.Options)
	return one.work(d.flights)
}

// finishTables does what is left to do when every row is final, and looks whether the tables are still those that hold them.
func finishTables(ctx context.Context, cfg *Config, report *Report, sdk *tablestore.TableStoreClient, x *extras, ids *tableIDs) error {
	admin := cfg.admin(ctx, sdk)
	admin.Proven = true
	if err := ids.confirm(admin); err != nil {
		return err // nothing may be deleted from other tables
	}
	swept, err := x.sweep(ctx, cfg, report)
	if err == nil && swept {
		err = ids.confirm(admin)
	}
	return err
}

// tryNeeds tries what the load may need beside writing, so that a permission that is missing does not show after an hour. Of
// several tables each is tried when it is opened.
func tryNeeds(cfg *Config, planned *plan.Plan, service service, x *extras) error {
	if cfg.DryRun || planned.Empty || planned.Tables != nil {
		return nil
	}
	return errors.Join(
		writer.TryReadBack(service.sdk, cfg.Target.Table, planned.Schema.Key, cfg.Write.Mode, cfg.Write.Condition),
		x.AutoIncrement.Try(planned.Schema.Key),
		x.Increments.Try(cfg.Target.Table, planned.Schema.Key))
}

func closeStore(store *spill.Store) error {
	if store == nil {
		return nil
	}
	return store.Close()
}

// finish closes the ledger and the run folder.
func finish(cfg *Config, report *Report, folder *rundir.Folder, start time.Time, err error) (*Report, error) {
	var interrupted *Interrupted
	switch {
	case err == nil && report.overLimit(cfg.Limits.MaxErrors):
		report.State, report.ExitCode = StateErrorLimit, ExitErrorLimit
	case err == nil && report.Rejected > 0:
		report.State, report.ExitCode = StateFinished, ExitRejects
	case err == nil:
		report.State, report.ExitCode = StateFinished, ExitOK
	case errors.Is(err, errLimit):
		report.State, report.ExitCode, err = StateErrorLimit, ExitErrorLimit, nil
	case errors.As(err, &interrupted):
		report.State, report.ExitCode, err = StateInterrupted, interrupted.ExitCode, nil
	}
	if err == nil && report.State == StateFinished && report.Unfinished > 0 && !cfg.DryRun {
		err = fmt.Errorf("%d rows that an earlier attempt has read did not come again; is the input the same?", report.Unfinished)
	}
	err = errors.Join(err, report.balance(), folder.Close())
	report.RejectsFiles = folder.RejectsFiles()
	if reasons, readErr := rundir.CountReasons(folder.Path); readErr == nil {
		report.RejectReasons = reasons // without them the files still have all
	}
	report.Seconds = time.Since(start).Seconds()
	if report.Seconds > 0 {
		report.RowsPerSecond = float64(report.Written-report.writtenBefore) / report.Seconds
	}
	report.CPUSeconds, report.PeakRSSBytes = Resources()
	report.CPUWaitSeconds = processorWait()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	report.Allocations, report.AllocatedBytes = memory.Mallocs, memory.TotalAlloc
	if err != nil {
		report.State, report.ExitCode, report.Error = StateFailed, ExitFailed, client.OneLine(err.Error())
		report.Remade = errors.As(err, new(*ReplacedError))
	}
	sumErr := folder.WriteSummary(report)
	if sumErr == nil && report.State == StateFinished && !cfg.DryRun && !cfg.Checkpoint.Keep {
		sumErr = checkpoint.Remove(folder.Path)
	}
	if err == nil && sumErr != nil {
		report.State, report.ExitCode, report.Error = StateFailed, ExitFailed, sumErr.Error()
		err = sumErr
	}
	if err != nil {
		err = fmt.Errorf("load into table %s: %w", cfg.Target.Table, err)
	}
	return report, err
}

// tablePartitions tells the partitions of the table. A dry run does not ask; a table that the run has made has no rows to
// guess partitions from.
func tablePartitions(admin *client.Admin, sdk *tablestore.TableStoreClient, cfg *Config, created bool, ids *tableIDs) partitions {
	if cfg.DryRun || sdk == nil || plan.IsTemplate(cfg.Target.Table) {
		return onePartition{}
	}
	p := scan.NewPartitions(admin, sdk, cfg.Target.Table)
	p.Created, p.See = created, func(at int64) error { return ids.see(cfg.Target.Table, at) }
	return p
}

type onePartition struct{}

func (onePartition) Read(time.Time) ([]table.Value, bool, error) { return nil, false, nil }
