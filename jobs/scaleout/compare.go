package scaleout

import (
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/transfer/verify"
)

// compare compares the table with the rows of a shard that was written.
func (j *Job) compare(ctx context.Context, i int) error {
	r := new(compareResult)
	if there, err := j.readResult(ctx, j.store, compareName(i), r); there || err != nil {
		return err
	}
	written, err := j.shard(ctx, i)
	if err != nil {
		return err
	}
	if written == nil {
		return fmt.Errorf("shard %d cannot be compared: it has not been written yet", i)
	}
	if err := j.awaitLate(ctx, written.LateUntil); err != nil {
		return err
	}
	*r = compareResult{done: j.newDone(nonce()), Shard: i}
	if err := j.compareShard(ctx, i, written, r); err != nil {
		return fmt.Errorf("compare shard %d: %w", i, err)
	}
	r.CPU, r.Ended = j.cpu.take(), time.Now().UTC()
	return j.commit(ctx, j.store, compareName(i), r)
}

// compareShard compares the ranges of a shard, adjacent ones together.
func (j *Job) compareShard(ctx context.Context, i int, written *shardResult, r *compareResult) error {
	origin, rejected, err := j.writtenRows(ctx, i, written)
	if err != nil {
		return err
	}
	ranges := slices.Clone(j.Plan.Shards[i].Ranges)
	slices.Sort(ranges)
	for at := 0; at < len(ranges); {
		end := at + 1
		for end < len(ranges) && ranges[end] == ranges[end-1]+1 {
			end++
		}
		if err := j.compareRange(ctx, origin, ranges[at], ranges[end-1], rejected, r); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// writtenRows returns the rows that a shard has sent, and the numbers of the rejected ones.
func (j *Job) writtenRows(ctx context.Context, i int, written *shardResult) (*shardOrigin, rundir.Rejected, error) {
	run := new(reducedResult)
	there, err := j.readResult(ctx, jobdir.Below(j.store, shardFolder(i)), reducedName, run)
	if err == nil && !there {
		err = progress.Unfitf("%s is damaged: shard %d was written, but has no %s", j.store, i, reducedName)
	}
	if err != nil {
		return nil, nil, err
	}
	origin := &shardOrigin{job: j, run: run, key: j.Plan.Key, name: fmt.Sprintf("shard %d", i), inTurn: true}
	rejected := rundir.Rejected{}
	if err := j.eachReject(ctx, &written.done, func(one *keptReject, _ []byte) error {
		rejected[origin.name] = append(rejected[origin.name], one.Row+1)
		return nil
	}); err != nil {
		return nil, nil, err
	}
	slices.Sort(rejected[origin.name])
	return origin, rejected, nil
}

func (j *Job) compareRange(ctx context.Context, origin *shardOrigin, first, last int, rejected rundir.Rejected,
	r *compareResult) error {
	var from, to []table.Value
	of := *origin
	if first > 0 {
		v, _ := j.shards.ranges.LowerValue(first)
		from, of.lower = []table.Value{v}, j.shards.ranges.Lower(first)
	}
	if last+1 < j.shards.ranges.Len() {
		v, _ := j.shards.ranges.LowerValue(last + 1)
		to, of.upper = []table.Value{v}, j.shards.ranges.Lower(last+1)
	}
	cfg := j.rowsConfig(of.name)
	cfg.Read = plan.Read{Sources: &of, Parsers: j.o.Load.Read.Parsers}
	sdk, clock, err := j.service(ctx)
	if err != nil {
		return err
	}
	request := cfg.Request()
	request.RunDir = ""
	found, err := verify.Run(ctx, verify.Config{
		Request: request, Client: sdk, From: from, To: to, Rejected: rejected, Loaded: j.Plan.Planned, Clock: clock,
		Examples: 3,
		Workers:  cfg.Lanes.Concurrency, Memory: cfg.Limits.Memory, TempDir: cfg.Limits.TempDir, RetryFor: cfg.Lanes.RetryFor,
	})
	if err != nil {
		return err
	}
	r.Compared, r.Missing, r.Different, r.Surplus = r.Compared+found.RowsExpected, r.Missing+found.Missing,
		r.Different+found.Different, r.Surplus+found.Extra
	for _, e := range found.Examples {
		r.Examples = append(r.Examples, difference{Kind: e.Kind, Key: e.Key.String(), Columns: e.Columns})
	}
	return nil
}
