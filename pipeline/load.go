package pipeline

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/writer"
)

func (a *attempt) load(ctx context.Context, stopStdin func()) error {
	// Reading has its own context: when the load drains or has read enough, reading stops and writing continues.
	readCtx, cancelRead := context.WithCancel(ctx)
	stopRead := func() {
		cancelRead()
		stopStdin()
	}
	defer stopRead()
	store, err := a.openDisk()
	if err != nil {
		return err
	}
	x := a.newAnnotations()
	if err := a.tryNeeds(x); err != nil {
		return errors.Join(err, store.Close())
	}
	files, err := a.openFiles(x)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	d := a.newDispatcher(x, files, store, stopRead)
	err = a.stages(ctx, readCtx, d)
	d.complete()
	if err == nil && !a.cfg.DryRun {
		err = a.finishTables(ctx, d)
	}
	return a.end(d, err)
}

func (a *attempt) stages(ctx, readCtx context.Context, d *dispatcher) error {
	group, groupCtx := errgroup.WithContext(ctx)
	defer context.AfterFunc(groupCtx, d.stopper.stopRead)()
	group.Go(func() error { return d.input.flow.Run(readCtx) })
	if !a.cfg.DryRun { // a dry run sends nothing, and may have no store
		if d.checkpointer != nil {
			group.Go(d.checkpointer.Work)
		}
		d.lanes.Start(a.service.connection.Room, func() { group.Go(func() error { return a.work(d) }) })
	}
	d.lanes.StartDisk(group.Go)
	surveyCtx, stopSurvey := context.WithCancel(groupCtx)
	group.Go(func() error { return a.survey.run(surveyCtx) })
	group.Go(func() error {
		defer stopSurvey()
		return d.run(groupCtx)
	})
	return group.Wait()
}

// work is one worker, with its own connection.
func (a *attempt) work(d *dispatcher) error {
	sender := a.service.connection.Sender()
	defer sender.Close()
	w, target := &a.cfg.Write, a.cfg.Target.Table
	one := lanes.Worker{Table: target, Ids: a.from.IDs, OnSend: a.hooks.onSend}
	one.Writer = writer.New(d.guarded(sender), a.service.sdk, target, w.Mode, w.Condition).With(d.annotations.Options)
	return one.Work(d.lanes)
}
