package scaleout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/reader/input"
)

// limitName is the object with an error limit set by a later planning command.
const limitName = "limit.json"

// StoppedError reports that all processes of the job were told to stop.
type StoppedError struct {
	Why  string    `json:"why"`
	By   string    `json:"by"`
	At   time.Time `json:"at"`
	Code int       `json:"exit_code,omitempty"` // exit code of all processes; 0 means exitcode.Failed
}

func (e *StoppedError) Error() string {
	continues := "tsimport resume"
	if e.Code == exitcode.ErrorLimit {
		continues = "the command that planned it, with a higher limit,"
	}
	return fmt.Sprintf("the job was stopped: %s (by %s); %s continues it", e.Why, e.By, continues)
}

func (e *StoppedError) Exit() int { return cmp.Or(e.Code, exitcode.Failed) }

// stopped returns a *StoppedError if the job was stopped.
func (j *Job) stopped(ctx context.Context) error {
	text, err := j.store.Get(ctx, stopName)
	if errors.Is(err, fs.ErrNotExist) && j.o.Whole != nil {
		text, err = j.o.Whole.Get(ctx, stopName)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check whether the job is stopped: %w", err)
	}
	why := &StoppedError{}
	if json.Unmarshal(text, why) != nil || why.Why == "" {
		why.Why, why.By = "there is an object "+stopName, "a person"
	}
	return why
}

func (j *Job) stop(ctx context.Context, why *StoppedError) error {
	why.By, why.At = j.o.Owner, time.Now().UTC()
	return putJSON(ctx, j.store.Put, stopName, why)
}

// stopRefused stops all processes if err is a permanent refusal by the service, because each of them would get it.
func (j *Job) stopRefused(ctx context.Context, err error) {
	if exitcode.Of(err) == exitcode.Refused && !errors.As(err, new(*StoppedError)) {
		// An error here is less important than err.
		_ = j.stop(ctx, &StoppedError{Why: input.RedactText(client.OneLine(err.Error())), Code: exitcode.Refused})
	}
}

// forgetRefusal undoes stopRefused, because the service may accept requests of a process that begins later.
func (j *Job) forgetRefusal(ctx context.Context) error {
	if why, stopped := errors.AsType[*StoppedError](j.stopped(ctx)); stopped && why.Code == exitcode.Refused {
		return j.store.Delete(ctx, stopName)
	}
	return nil
}

// counted holds the record counts of all finished tasks.
type counted struct{ Read, Rejected int64 }

// Continue undoes a stop, unless the error limit is exceeded.
func (j *Job) Continue(ctx context.Context) error {
	if err := j.stopped(ctx); !errors.As(err, new(*StoppedError)) {
		return err
	}
	if err := j.store.Delete(ctx, stopName); err != nil {
		return err
	}
	n, err := j.count(ctx)
	if err != nil {
		return err
	}
	return j.overLimit(ctx, n, false)
}

// raiseLimit sets a new error limit for a planned job, and undoes a stop caused by the former one.
func (j *Job) raiseLimit(ctx context.Context, limit ledger.MaxErrors) error {
	former, err := j.maxErrors(ctx)
	if err != nil {
		return err
	}
	if former != limit {
		if err := putJSON(ctx, j.store.Put, limitName, limit); err != nil {
			return fmt.Errorf("store %s in %s: %w", limitName, j.store, err)
		}
		j.o.Say.Line("the load's --max-errors has changed")
	}
	why := new(StoppedError)
	if err = j.stopped(ctx); !errors.As(err, &why) {
		return err
	}
	if why.Code == exitcode.ErrorLimit {
		return j.Continue(ctx)
	}
	return nil
}

func (j *Job) maxErrors(ctx context.Context) (ledger.MaxErrors, error) {
	limit := j.Plan.MaxErrors
	text, err := j.store.Get(ctx, limitName)
	if err == nil {
		err = json.Unmarshal(text, &limit)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return limit, fmt.Errorf("read %s of %s: %w", limitName, j.store, err)
	}
	return limit, nil
}

func (j *Job) count(ctx context.Context) (n counted, err error) {
	for i := range j.Plan.Splits {
		r, err := j.split(ctx, i)
		if err != nil {
			return n, err
		}
		if r != nil {
			n.Read, n.Rejected = n.Read+r.Read, n.Rejected+r.Rejected-r.Seams
		}
	}
	for i := range j.Plan.Shards {
		r, err := j.shard(ctx, i)
		if err != nil {
			return n, err
		}
		if r != nil {
			n.Rejected += r.Rejected
		}
	}
	return n, nil
}

// limit stops the job if the error limit is exceeded. It checks only if the task just done has rejected records.
func (j *Job) limit(ctx context.Context, rejected int64) error {
	if rejected == 0 {
		return nil
	}
	n, err := j.count(ctx)
	if err != nil {
		return err
	}
	return j.overLimit(ctx, n, false)
}

// overLimit stops the job if the counts exceed the limit. end is set if they are those of the whole job.
func (j *Job) overLimit(ctx context.Context, n counted, end bool) error {
	limit, err := j.maxErrors(ctx)
	if err != nil || !limit.Exceeded(n.Rejected, n.Read, end) {
		return err
	}
	why := &StoppedError{Why: fmt.Sprintf("%d of %d records were rejected, more than --max-errors allows", n.Rejected,
		n.Read), Code: exitcode.ErrorLimit}
	if err := j.stop(ctx, why); err != nil {
		return err
	}
	return why
}

// stopEvery is the interval between a working process's checks for a stop.
const stopEvery = 5 * time.Second

var errOver = errors.New("another attempt has completed the task")

// watched calls do, and drains its loads when the job is stopped, the process must end, or over, if not nil, reports
// that another attempt has done the task, because a process paused for hours must not send rows after the job's end.
func (j *Job) watched(ctx context.Context, over func(ctx context.Context) bool,
	do func(ctx context.Context) error) error {
	if err := j.rest(ctx); err != nil {
		return err
	}
	drain, stop := context.WithCancelCause(j.o.Drain)
	j.mu.Lock()
	j.drain = drain
	j.mu.Unlock()
	defer stop(nil)
	j.watch(ctx, drain, over, stop)
	err := do(ctx)
	j.mu.Lock()
	j.drain = nil
	j.mu.Unlock()
	if errors.Is(context.Cause(drain), errOver) {
		return nil // the result of another attempt counts
	}
	return err
}

// watch regularly checks for a stop of the job, a finished task, or a lost share of the ceilings, until drain ends.
func (j *Job) watch(ctx, drain context.Context, over func(ctx context.Context) bool, stop context.CancelCauseFunc) {
	timer := time.AfterFunc(stopEvery, func() {
		if drain.Err() != nil {
			return
		}
		err := j.stopped(ctx)
		if !errors.As(err, new(*StoppedError)) {
			err = j.slot.Check()
		}
		if err == nil && over != nil && over(ctx) {
			err = errOver
		}
		if err != nil {
			stop(err)
			return
		}
		j.watch(ctx, drain, over, stop)
	})
	context.AfterFunc(drain, func() { timer.Stop() })
}

// draining returns the context whose end requests a graceful stop of loads.
func (j *Job) draining() context.Context {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.drain == nil {
		return j.o.Drain
	}
	return j.drain
}
