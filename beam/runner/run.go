package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	jobs "github.com/apache/beam/sdks/v2/go/pkg/beam/model/jobmanagement_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal/extworker"

	"example.com/tsimport/beam/stages"
	"example.com/tsimport/cmd/tsimport/commands"
	"example.com/tsimport/jobs/scaleout"
)

const (
	lookEvery = 2 * time.Second
	sayEvery  = 10 * time.Second
	askEvery  = time.Second
)

// cancelWithin bounds how long the end of a job that is cancelled is waited for: one that the runner starts again ends when its attempts do.
var cancelWithin = 2 * time.Minute

// patience is how long a job whose runner cannot be asked any more may give no sign of life. A split that is read gives one at its end only.
var patience = 10 * time.Minute

// run has the load done by the runner.
func run(ctx context.Context, o *options, l *commands.RunnerLoad) error {
	beam.Init()
	silence()
	hard := l.Hard
	client, closeClient, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer closeClient()
	if o.environment.kind == loopback {
		pool, err := extworker.StartLoopback(hard, 0)
		if err != nil {
			return fmt.Errorf("start workers in this process: %w", err)
		}
		o.environment.what = pool.EnvironmentConfig(hard)
		defer func() {
			within, cancel := context.WithTimeout(context.WithoutCancel(hard), 30*time.Second)
			defer cancel()
			stages.Close(within)
			_ = pool.Stop(hard)
		}()
	}
	w := &watch{l: l, runner: o.runner, before: map[string]time.Time{}}
	if err := w.remember(hard); err != nil {
		return err
	}
	began := time.Now()
	name := "tsimport-" + l.Plan.Job.Table + "-" + l.Plan.ID[:min(len(l.Plan.ID), 8)]
	w.job, err = submit(ctx, client, name, stages.Build(stages.Load{Place: l.Place, Env: l.Env}, stages.Of(l.Plan)), o)
	if err != nil {
		return fmt.Errorf("submit to %s: %w", o.runner, err)
	}
	l.Say.Line("%s has taken the load as %s, after %.1f s", o.runner, w.job.id, time.Since(began).Seconds())
	return w.untilEnd(ctx, hard, began)
}

// connect reaches the job server, which may be one in this process.
func (o *options) connect(ctx context.Context) (jobs.JobServiceClient, func(), error) {
	if o.endpoint == "" {
		return startPrism(ctx)
	}
	c, err := dial(ctx, o.endpoint)
	if err != nil {
		return nil, nil, err
	}
	return jobs.NewJobServiceClient(c), func() { _ = c.Close() }, nil
}

// watch watches a job of the runner by what is in the job directory.
type watch struct {
	l      *commands.RunnerLoad
	runner string
	job    *submitted
	before map[string]time.Time // when tasks had failed before this attempt

	said  time.Time
	line  string
	signs int
	sign  time.Time // of life
}

func taskOf(f *scaleout.Failure) string { return fmt.Sprintf("%s %d", f.Stage, f.Index) }

// remember notes the failures of former attempts.
func (w *watch) remember(ctx context.Context) error {
	s, err := w.l.Watch.Status(ctx)
	if err != nil {
		return err
	}
	for _, f := range s.Failures {
		w.before[taskOf(f)] = f.At
	}
	return nil
}

// failures are those of this attempt.
func (w *watch) failures(s *scaleout.Status) (now []*scaleout.Failure) {
	for _, f := range s.Failures {
		if at, has := w.before[taskOf(f)]; !has || !at.Equal(f.At) {
			now = append(now, f)
		}
	}
	return now
}

// untilEnd waits until the job has ended.
func (w *watch) untilEnd(ctx, hard context.Context, began time.Time) error {
	following, stop := context.WithCancel(hard)
	defer stop()
	ends := make(chan ended, 1)
	started := make(chan struct{}, 16)
	go func() { ends <- w.job.follow(following, func() { started <- struct{}{} }) }()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var lost error
	for {
		select {
		case <-ctx.Done():
			return w.cancel(hard, context.Cause(ctx))
		case <-started:
			w.l.Say.Line("%s runs the load, %.1f s after it was submitted", w.runner, time.Since(began).Seconds())
		case e := <-ends:
			if e.lost == nil {
				return w.end(hard, e)
			}
			lost = e.lost
			w.sign = time.Now()
			w.l.Say.Warn("the job server does not answer any more (%v); the load may run, and the job directory will tell", lost)
		case <-tick.C:
			done, err := w.look(hard, lost)
			if done || err != nil {
				return err
			}
		}
	}
}

// look looks at the job directory. A look that fails is tried again, unless the directory is damaged.
func (w *watch) look(ctx context.Context, lost error) (done bool, err error) {
	s, err := w.l.Watch.Status(ctx)
	if errors.As(err, new(*scaleout.UnfitError)) {
		return true, w.cancel(ctx, err)
	}
	if err != nil {
		w.l.Say.Warn("%v", err)
		return false, nil
	}
	w.progress(s)
	if s.ExitCode != nil {
		return true, nil
	}
	if s.Stop != nil {
		return true, w.cancel(ctx, s.Stop)
	}
	for _, f := range w.failures(s) {
		if f.Permanent() {
			return true, w.cancel(ctx, f)
		}
	}
	if lost == nil {
		return false, nil
	}
	n, err := w.l.Watch.Signs(ctx)
	if err == nil && n != w.signs {
		w.signs, w.sign = n, time.Now()
	}
	if time.Since(w.sign) > patience {
		return true, fmt.Errorf("the job server does not answer any more (%w), and the load has given no sign of life for %v; the same command continues it", lost, patience)
	}
	return false, nil
}

// progress says how far the load is, if that has changed.
func (w *watch) progress(s *scaleout.Status) {
	if time.Since(w.said) < sayEvery {
		return
	}
	var parts []string
	for _, st := range s.Stages {
		parts = append(parts, fmt.Sprintf("%s %d of %d", st.Stage, st.Done, st.Tasks))
	}
	line := fmt.Sprintf("%s: %s; %d records read, %d rows written, %d rejected", s.State, strings.Join(parts, ", "), s.Read, s.Written, s.Rejected)
	if line != w.line {
		w.line, w.said = line, time.Now()
		w.l.Say.Line("%s", line)
	}
}

// cancel stops the load and ends the job of the runner, and returns why. The workers obey the job directory, even if the runner does not cancel the
// job or starts its tasks again. It is watched until it has ended.
func (w *watch) cancel(ctx context.Context, why error) error {
	ctx, cancel := context.WithTimeout(ctx, cancelWithin)
	defer cancel()
	if !errors.As(why, new(*scaleout.StoppedError)) {
		if err := w.l.Watch.Stop(ctx, &scaleout.StoppedError{Why: strings.Join(strings.Fields(why.Error()), " ")}); err != nil {
			w.l.Say.Warn("workers cannot be told to stop: %v", err)
		}
	}
	err := w.job.cancel(ctx)
	state := jobs.JobState_UNSPECIFIED
	for said := time.Now(); ; {
		if now, askErr := w.job.state(ctx); askErr == nil {
			state, err = now, nil
		} else if ctx.Err() == nil {
			err = askErr
		}
		if final(state) {
			w.l.Say.Line("job %s of %s is %s; the same command continues the load", w.job.id, w.runner, state)
			return why
		}
		if time.Since(said) >= sayEvery {
			said = time.Now()
			w.l.Say.Line("job %s of %s is %s; its workers were told to stop, and it is waited for", w.job.id, w.runner, state)
		}
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
			w.l.Say.Warn("job %s of %s is still running, as far as is known (%s, %v): end it there; its workers were told to stop", w.job.id, w.runner, state, err)
			return why
		}
	}
}

// end says why a job has not done the load; whether it has is in the job directory.
func (w *watch) end(ctx context.Context, e ended) error {
	if e.state == jobs.JobState_DONE {
		return nil
	}
	s, err := w.l.Watch.Fresh(ctx)
	if err != nil {
		return errors.Join(fmt.Errorf("job %s is %s", w.job.id, e.state), err)
	}
	if s.Stop != nil {
		return s.Stop
	}
	failed := fmt.Errorf("job %s of %s is %s: %s", w.job.id, w.runner, e.state, rootCause(e.why))
	for i, f := range w.failures(s) {
		if f.Permanent() {
			return f
		}
		if i < 3 { // the others are in tsimport status
			failed = fmt.Errorf("%w; %w", failed, f)
		}
	}
	return fmt.Errorf("%w; the same command continues the load", failed)
}
