package pipeline

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"tsimport/internal/spill"
	"tsimport/pipeline/intake"
	"tsimport/pipeline/plan"
	"tsimport/writer"
)

// load runs the stages. It returns the first cause.
func (a *attempt) load(ctx context.Context, stopStdin func()) error {
	cfg, planned, report, from := a.cfg, a.planned, a.report, a.from
	store, err := openStore(cfg, report)
	if err != nil {
		return err
	}
	// Reading has a context of its own: when the load drains or has read enough, reading stops and writing goes on.
	readCtx, cancelRead := context.WithCancel(ctx)
	stopRead := func() {
		cancelRead()
		stopStdin()
	}
	defer stopRead()
	in := intake.New(planned, a.survey.current.Load())
	x, err := newExtras(cfg, a.hooks, planned, a.folder, report, a.service.sdk, a.service.clock(), from.extras(a.survey))
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
	if cfg.keeps() {
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
	report.clockBehind(a.service.clock())
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

// stages runs the stages in parallel until all of them have ended.
func (a *attempt) stages(ctx, readCtx context.Context, d *dispatcher) error {
	group, groupCtx := errgroup.WithContext(ctx)
	defer context.AfterFunc(groupCtx, d.stopper.stopRead)()
	group.Go(func() error { return d.input.flow.Run(readCtx) })
	if !a.cfg.DryRun { // which has nothing to send, and perhaps no store to send it to
		d.flights.room = a.service.connection.Room
		if d.keeper != nil {
			group.Go(d.keeper.saver.work)
		}
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

// openStore opens the store of rows that are spilled, nil if there is none.
func openStore(cfg *Config, report *Report) (*spill.Store, error) {
	if cfg.Limits.NoSpill {
		return nil, nil
	}
	store, err := spill.Open(spill.Options{Dir: cfg.Limits.TempDir, MaxBytes: cfg.Limits.TempMax})
	if err != nil && cfg.Limits.TempDir == "" {
		report.SpillError = err.Error() // the system's folder, which nobody asked for: most loads need none
		return nil, nil
	}
	return store, err
}

func closeStore(store *spill.Store) error {
	if store == nil {
		return nil
	}
	return store.Close()
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
