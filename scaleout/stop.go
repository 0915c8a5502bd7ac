package scaleout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"tsimport/internal/exitcode"
)

// StoppedError says that all processes of the job were told to stop.
type StoppedError struct {
	Why        string    `json:"why"`
	By         string    `json:"by"`
	At         time.Time `json:"at"`
	ErrorLimit bool      `json:"error_limit,omitempty"`
}

func (e *StoppedError) Error() string {
	return fmt.Sprintf("the job was stopped: %s (by %s); tsimport resume continues it", e.Why, e.By)
}

// Exit is the exit code.
func (e *StoppedError) Exit() int {
	if e.ErrorLimit {
		return exitcode.ErrorLimit
	}
	return exitcode.Failed
}

// stopped returns a *StoppedError if the job was stopped.
func (j *Job) stopped(ctx context.Context) error {
	text, err := j.store.Get(ctx, stopName)
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

// Stop tells all processes of the job to stop.
func (j *Job) Stop(ctx context.Context, why *StoppedError) error {
	why.By, why.At = j.o.Owner, time.Now().UTC()
	text, err := json.Marshal(why)
	if err != nil {
		return err
	}
	return j.store.Put(ctx, stopName, append(text, '\n'))
}

// Continue takes back what Stop said.
func (j *Job) Continue(ctx context.Context) error { return j.store.Delete(ctx, stopName) }

// limit stops the job if more records were rejected than may be, of all that is known.
func (j *Job) limit(ctx context.Context) error {
	var read, rejected int64
	j.mu.Lock()
	for _, r := range j.splits {
		read += r.Read
		rejected += r.Rejected
	}
	for _, r := range j.written {
		rejected += r.Rejected
	}
	j.mu.Unlock()
	if !j.Plan.MaxErrors.Exceeded(rejected, read, false) {
		return nil
	}
	why := &StoppedError{Why: fmt.Sprintf("%d of %d records were rejected, more than --max-errors allows", rejected, read), ErrorLimit: true}
	if err := j.Stop(ctx, why); err != nil {
		return err
	}
	return why
}
