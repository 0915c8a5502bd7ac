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

// limitName is the object with the error limit that the planning command was given later.
const limitName = "limit.json"

// StoppedError says that all processes of the job were told to stop.
type StoppedError struct {
	Why  string    `json:"why"`
	By   string    `json:"by"`
	At   time.Time `json:"at"`
	Code int       `json:"exit_code,omitempty"` // of all processes; 0 is exitcode.Failed
}

func (e *StoppedError) Error() string {
	continues := "tsimport resume"
	if e.Code == exitcode.ErrorLimit {
		continues = "the command that planned it, with a higher limit,"
	}
	return fmt.Sprintf("the job was stopped: %s (by %s); %s continues it", e.Why, e.By, continues)
}

// Exit is the exit code.
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
		return fmt.Errorf("look whether the job is stopped: %w", err)
	}
	why := &StoppedError{}
	if json.Unmarshal(text, why) != nil || why.Why == "" {
		why.Why, why.By = "there is an object "+stopName, "a person"
	}
	return why
}

// stop tells all processes of the job to stop.
func (j *Job) stop(ctx context.Context, why *StoppedError) error {
	why.By, why.At = j.o.Owner, time.Now().UTC()
	return putJSON(ctx, j.store.Put, stopName, why)
}

// stopRefused stops all processes after an error with which the service refuses permanently: each of them would meet it.
func (j *Job) stopRefused(ctx context.Context, err error) {
	if exitcode.Of(err) == exitcode.Refused && !errors.As(err, new(*StoppedError)) {
		_ = j.stop(ctx, &StoppedError{Why: input.RedactText(client.OneLine(err.Error())), Code: exitcode.Refused}) // the error itself is what counts
	}
}

// forgetRefusal undoes stopRefused: a process that begins later may meet a service that refuses no more.
func (j *Job) forgetRefusal(ctx context.Context) error {
	var why *StoppedError
	if err := j.stopped(ctx); !errors.As(err, &why) || why.Code != exitcode.Refused {
		return nil
	}
	return j.store.Delete(ctx, stopName)
}

// counted is what is known of all tasks that are done.
type counted struct{ Read, Rejected int64 }

// Continue undoes a stop, unless more records were rejected than may be.
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

// raiseLimit takes another error limit for a job that was planned, and undoes its stop by the former one.
func (j *Job) raiseLimit(ctx context.Context, limit ledger.MaxErrors) error {
	former, err := j.maxErrors(ctx)
	if err != nil || former == limit {
		return err
	}
	if err := putJSON(ctx, j.store.Put, limitName, limit); err != nil {
		return fmt.Errorf("keep %s in %s: %w", limitName, j.store, err)
	}
	j.o.Say.Line("--max-errors of the load is another one from now on")
	if why := new(StoppedError); errors.As(j.stopped(ctx), &why) && why.Code == exitcode.ErrorLimit {
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

// count counts the records of all tasks that are done.
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

// limit stops the job if more records were rejected than may be. Rejected is how many the task has that was just done: others look
// themselves.
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

// overLimit stops the job if so many are too many, at its end or before.
func (j *Job) overLimit(ctx context.Context, n counted, end bool) error {
	limit, err := j.maxErrors(ctx)
	if err != nil || !limit.Exceeded(n.Rejected, n.Read, end) {
		return err
	}
	why := &StoppedError{Why: fmt.Sprintf("%d of %d records were rejected, more than --max-errors allows", n.Rejected, n.Read), Code: exitcode.ErrorLimit}
	if err := j.stop(ctx, why); err != nil {
		return err
	}
	return why
}

// stopEvery is how often a process that works on a task looks whether the job was stopped.
const stopEvery = 5 * time.Second

// errOver says that a task is done already, by another attempt.
var errOver = errors.New("another attempt has done the task")

// watched calls do, and drains its loads when the job is stopped, when the process is to end, or when over, which may be nil, says that another
// attempt has done the task: one that was stopped for hours would send rows after the end of the job otherwise.
func (j *Job) watched(ctx context.Context, over func(ctx context.Context) bool, do func(ctx context.Context) error) error {
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

// watch looks from now on, until drain ends, whether the job was stopped, the task is over, or the process has lost its share of the ceilings.
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

// draining is the context that ends when loads are to end gently.
func (j *Job) draining() context.Context {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.drain == nil {
		return j.o.Drain
	}
	return j.drain
}
