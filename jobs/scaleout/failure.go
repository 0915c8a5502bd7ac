package scaleout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/reader/input"
)

const (
	stageRead   = "read"
	stageWrite  = "write"
	stageVerify = "verify"
	stageFinish = "finish"
)

// failuresFolder holds the last failure of each task, even if the task has been done since.
const failuresFolder = "failures/"

// Failure describes a failed attempt at a task (failures/STAGE-NNNNNN.json), for watchers on other machines.
type Failure struct {
	Plan     string    `json:"plan"` // its ID
	Stage    string    `json:"stage"`
	Index    int       `json:"index"`
	By       string    `json:"by"` // name of the process
	At       time.Time `json:"at"`
	ExitCode int       `json:"exit_code"`
	Message  string    `json:"error"`
}

// told returns err, with which an attempt failed, and records it unless the attempt was stopped or overtaken.
func (j *Job) told(ctx context.Context, stage string, i int, err error) error {
	if err == nil || ctx.Err() != nil || j.o.Drain.Err() != nil || errors.Is(err, jobdir.ErrLost) ||
		errors.Is(err, jobdir.ErrLate) ||
		errors.Is(err, errNoSlot) || errors.As(err, new(*StoppedError)) || errors.As(err, new(*jobdir.HeldError)) {
		return err
	}
	f := Failure{
		Plan: j.Plan.ID, Stage: stage, Index: i, By: j.o.Owner, At: time.Now().UTC(), ExitCode: exitcode.Of(err),
		Message: input.RedactText(client.OneLine(err.Error())),
	}
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	_ = putJSON(ctx, j.store.Put, fmt.Sprintf("%s%s-%06d.json", failuresFolder, stage, i), f) // best effort
	return err
}

// tellWithin limits the time for recording an error.
const tellWithin = 10 * time.Second

// mostFailures limits the number of failures that a status reads.
const mostFailures = 20

// resultOf names the result of a task, by stage.
var resultOf = map[string]func(i int) string{
	stageRead: splitName, stageWrite: shardName, stageVerify: compareName,
	stageFinish: func(int) string { return summaryName },
}

// addFailures collects the failures of unfinished tasks, at most mostFailures.
func (w *Watcher) addFailures(ctx context.Context, s *Status, names []string, there map[string]bool) error {
	for _, name := range names {
		task, isFailure := strings.CutPrefix(name, failuresFolder)
		if !isFailure || len(s.Failures) >= mostFailures {
			continue
		}
		stage, number, _ := strings.Cut(task, "-")
		var i int
		if _, err := fmt.Sscanf(number, "%d.json", &i); err != nil || resultOf[stage] == nil || there[resultOf[stage](i)] {
			continue
		}
		text, err := w.job.store.Get(ctx, name)
		if err != nil {
			return err
		}
		f := new(Failure)
		if json.Unmarshal(text, f) == nil && f.Plan == w.job.Plan.ID {
			s.Failures = append(s.Failures, f)
		}
	}
	return nil
}
