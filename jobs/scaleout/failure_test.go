package scaleout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/jobs/scaleout/runfile"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/plan"
)

func TestWhyATaskFailedIsSeenUntilItIsDone(t *testing.T) {
	ctx := t.Context()
	store, err := jobdir.Open(ctx, t.TempDir(), jobdir.Options{})
	must(t, err)
	p := &Plan{Version: planVersion, ID: "one", Job: &checkpoint.Job{}, Splits: []Split{{}, {}}, Shards: []Shard{{Ranges: []int{0}}}}
	if p, err = keepPlan(ctx, store, p); err != nil {
		t.Fatal(err)
	}
	j, err := newJob(store, p, Options{Owner: "a worker"})
	must(t, err)
	failed := &plan.UsageError{Message: "read oss://u:secret@b/in.csv: it has changed"}
	conformance.Equal(t, j.told(ctx, StageRead, 1, failed), error(failed), "the error became")
	for _, none := range []error{nil, jobdir.ErrLost, fmt.Errorf("write: %w", errNoSlot), &StoppedError{}, &jobdir.HeldError{}, &NotReadyError{}} {
		conformance.Equal(t, j.told(ctx, StageRead, 0, none), none, "became")
	}
	ended, end := context.WithCancel(ctx)
	end()
	_ = j.told(ended, StageWrite, 0, errors.New("an attempt that was stopped"))

	look := func() []*Failure {
		w, err := NewWatcher(ctx, store)
		must(t, err)
		s, err := w.Status(ctx)
		must(t, err)
		return s.Failures
	}
	all := look()
	if len(all) != 1 || all[0].Stage != StageRead || all[0].Index != 1 || all[0].By != "a worker" || !all[0].Permanent() || all[0].Message == failed.Message {
		t.Errorf("the failures are %+v", all)
	}
	must(t, j.commit(ctx, store, splitName(1), &splitResult{done: j.newDone("x"), Split: 1}))
	conformance.Equal(t, len(look()), 0, "a task that is done has the failures")
}

// TestTheFirstResultOfATaskCounts commits a result after that of another attempt, whose rejected records fill several lists.
func TestTheFirstResultOfATaskCounts(t *testing.T) {
	ctx := t.Context()
	store, err := jobdir.Open(ctx, t.TempDir(), jobdir.Options{})
	must(t, err)
	j := &Job{store: store, Plan: &Plan{ID: "one"}}
	rejects := func(attempt string, records int) done {
		d := j.newDone(attempt)
		lists := &rejectLists{store: store, name: "rejects/" + attempt}
		for i := range records {
			r := &keptReject{Record: int64(i), Reject: table.Reject{Raw: bytes.Repeat([]byte("x"), listBytes/3)}}
			must(t, lists.add(ctx, r))
		}
		must(t, lists.close(ctx, &d))
		return d
	}
	first := &splitResult{done: rejects("first", 7), Split: 3, Read: 9, Rows: 2}
	second := &splitResult{done: rejects("second", 0), Split: 3, Read: 9, Rows: 9, ExpiredCells: 5, Extents: make([]runfile.Extent, 1)}
	for _, r := range []*splitResult{first, second} {
		must(t, j.commit(ctx, store, splitName(3), r))
	}
	if diff := cmp.Diff(first, second, cmp.AllowUnexported(splitResult{})); diff != "" {
		t.Errorf("the second attempt has what the first has not committed (-first +second):\n%s", diff)
	}
	var lines []int64
	if err := j.eachReject(ctx, &second.done, func(r *keptReject, _ []byte) error {
		lines = append(lines, r.Record)
		return nil
	}); err != nil || !slices.Equal(lines, []int64{0, 1, 2, 3, 4, 5, 6}) || len(second.Rejects) < 2 {
		t.Errorf("%d lists have the records %v, %v", len(second.Rejects), lines, err)
	}
}
