package scaleout

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"tsimport/internal/jobdir"
	"tsimport/pipeline/checkpoint"
	"tsimport/pipeline/plan"
)

func TestWhyATaskFailedIsSeenUntilItIsDone(t *testing.T) {
	ctx := t.Context()
	store, err := jobdir.Open(ctx, t.TempDir(), jobdir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &Plan{Version: planVersion, ID: "one", Job: &checkpoint.Job{}, Splits: []Split{{}, {}}, Shards: []Shard{{Ranges: []int{0}}}}
	if p, err = keepPlan(ctx, store, p); err != nil {
		t.Fatal(err)
	}
	j, err := newJob(store, p, Options{Owner: "a worker"})
	if err != nil {
		t.Fatal(err)
	}
	failed := &plan.UsageError{Message: "read oss://u:secret@b/in.csv: it has changed"}
	if err := j.told(ctx, StageRead, 1, failed); err != error(failed) {
		t.Errorf("the error became %v", err)
	}
	for _, none := range []error{nil, jobdir.ErrLost, fmt.Errorf("write: %w", errNoSlot), &StoppedError{}, &jobdir.HeldError{}, &NotReadyError{}} {
		if err := j.told(ctx, StageRead, 0, none); err != none {
			t.Errorf("%v became %v", none, err)
		}
	}
	ended, end := context.WithCancel(ctx)
	end()
	_ = j.told(ended, StageWrite, 0, errors.New("an attempt that was stopped"))

	look := func() []*Failure {
		w, err := NewWatcher(ctx, store)
		if err != nil {
			t.Fatal(err)
		}
		s, err := w.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return s.Failures
	}
	all := look()
	if len(all) != 1 || all[0].Stage != StageRead || all[0].Index != 1 || all[0].By != "a worker" || !all[0].Permanent() || all[0].Message == failed.Message {
		t.Errorf("the failures are %+v", all)
	}
	if err := j.commit(ctx, store, splitName(1), &splitResult{done: j.newDone("x"), Split: 1}); err != nil {
		t.Fatal(err)
	}
	if all := look(); len(all) != 0 {
		t.Errorf("a task that is done has the failures %+v", all)
	}
}
