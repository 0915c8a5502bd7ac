package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/ratelimit"
	"example.com/tsimport/writer"
)

// sweeper deletes surplus copies of rows that were sent more than once. It starts once no attempt can still be applied.
type sweeper struct {
	numbers  *writer.AutoIncrement
	table    string
	lanes    *lanes.Config
	drain    context.Context
	report   *ledger.ReportMarks
	progress *ledger.Progress
}

const (
	// sweepRows is the number of rows to look up in one pass: one scan returns the rows of an ordering key.
	sweepRows = 50_000
	// sweepTableFrom is the number of ordering keys above which the whole table is read, if it is not far larger.
	sweepTableFrom = 16
)

// sweepKeys sweeps the rows of many ordering keys, several concurrently.
func (s *sweeper) sweepKeys(ctx context.Context, byKey [][]writer.Doubt) error {
	if len(byKey) >= sweepTableFrom {
		deleted, done, err := s.numbers.SweepTable(slices.Concat(byKey...))
		s.report.SurplusDeleted += int64(deleted)
		if done || err != nil && !writer.SweepAgain(err) {
			return err
		}
	}
	var mu sync.Mutex
	var failed error
	s.numbers.Parallel(len(byKey), func(i int) {
		mu.Lock()
		stop := failed != nil
		mu.Unlock()
		if stop {
			return
		}
		deleted, err := s.sweepKey(ctx, byKey[i])
		mu.Lock()
		defer mu.Unlock()
		s.report.SurplusDeleted += int64(deleted)
		s.progress.Swept.Add(int64(len(byKey[i])))
		failed = cmp.Or(failed, err)
	})
	return failed
}

// sweepKey sweeps the rows of one ordering key, and tries again after errors that may be temporary.
func (s *sweeper) sweepKey(ctx context.Context, repeatedRows []writer.Doubt) (all int, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(s.drain, func() { stop(context.Cause(s.drain)) })()
	patience := ratelimit.Patience{For: s.lanes.RetryFor}
	for attempt := 1; ; attempt++ {
		deleted, err := s.numbers.Sweep(repeatedRows)
		all += deleted
		if err == nil {
			return all, nil
		}
		if !writer.SweepAgain(err) || patience.Over(time.Now()) {
			return all, fmt.Errorf("find rows of table %s that were written twice: %w", s.table, err)
		}
		if err := ratelimit.Wait(ctx, s.lanes.Backoff.After(attempt)); err != nil {
			return all, err
		}
	}
}
