package scaleout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/jobs/scaleout/runfile"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source"
)

// isRead returns a function that reports whether a split has a result, or false after an error. It takes no lock.
func (j *Job) isRead(i int) func(ctx context.Context) bool {
	return func(ctx context.Context) bool {
		there, err := j.readResult(ctx, j.store, splitName(i), new(splitResult))
		return there && err == nil
	}
}

// readSplit reads a split of the inputs and puts its rows into runs, or writes them.
func (j *Job) readSplit(ctx context.Context, i int) error {
	if r, err := j.split(ctx, i); r != nil || err != nil {
		return err
	}
	if err := j.takeReader(ctx); err != nil {
		return err
	}
	prepared, err := j.prepare(ctx)
	if err != nil {
		return err
	}
	t := j.newSplitTask(ctx, i, prepared)
	if j.Plan.Direct {
		if err := j.takeSlot(ctx); err != nil {
			return err
		}
		return j.sending(ctx, splitFolder(i), func(lease *jobdir.Lease) (int64, error) {
			if r, err := j.split(ctx, i); r != nil || err != nil {
				return 0, err
			}
			err := t.writeDirectly(ctx, lease)
			return t.result.Rejected, err
		})
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	drain := j.draining()
	defer context.AfterFunc(drain, func() { cancel(context.Cause(drain)) })()
	for _, part := range j.Plan.Splits[i].Parts {
		if err := t.read(ctx, part, j.Plan.bytesOf(i)); err != nil {
			return fmt.Errorf("read split %d: %w", i, err)
		}
	}
	if err := t.commit(ctx); err != nil {
		return err
	}
	return j.limit(ctx, t.result.Rejected)
}

// takeReader takes the right to have sources (database sessions) open for reading, or returns errNoSlot.
func (j *Job) takeReader(ctx context.Context) error {
	if j.Plan.Readers == 0 || j.reader != nil {
		return nil
	}
	for i := range j.Plan.Readers {
		l, err := j.lease(ctx, fmt.Sprintf("readers/%04d", i))
		if !errors.As(err, new(*jobdir.HeldError)) {
			j.reader = l
			return err
		}
	}
	return errNoSlot
}

func (j *Job) endReading() {
	j.giveBack(j.reader)
	j.reader = nil
}

type splitTask struct {
	job      *Job
	prepared *pipeline.Prepared
	result   splitResult
	runs     *runfile.Writer
	rejects  rejectLists
}

func (j *Job) newSplitTask(ctx context.Context, i int, prepared *pipeline.Prepared) *splitTask {
	t := &splitTask{job: j, prepared: prepared, result: splitResult{done: j.newDone(nonce()), Split: i}}
	t.rejects = rejectLists{store: j.store, name: fmt.Sprintf("rejects/%06d.%s", i, t.result.Attempt)}
	t.runs = runfile.NewWriter(ctx, j.store, fmt.Sprintf("runs/%06d.%s", i, t.result.Attempt), len(j.Plan.Shards))
	return t
}

// bytesOf returns the text size of a split of one source, or 0 if only reading reveals it.
func (p *Plan) bytesOf(split int) int64 {
	part := p.Splits[split].Parts[0]
	if part.Records < 0 || split+1 == len(p.Splits) {
		return 0
	}
	if next := p.Splits[split+1].Parts[0]; next.Source == part.Source {
		return max(next.Offset-part.Offset, 0)
	}
	return 0
}

// upTo limits the bytes of the pieces read from a source, to avoid reading ahead into other splits.
type upTo struct {
	source.Source
	left int64
}

func (s *upTo) Next() (source.Piece, error) {
	if s.left <= 0 {
		return nil, io.EOF
	}
	p, err := s.Source.Next()
	if err == nil {
		s.left -= p.Bytes()
	}
	return p, err
}

// read reads a part of the split. If bytes is above 0, it is the limit.
func (t *splitTask) read(ctx context.Context, part Part, bytes int64) error {
	if part.Source < 0 || part.Source >= len(t.prepared.Plan.Sources) {
		return progress.Unfitf("%s is damaged: it has no input %d", PlanName, part.Source)
	}
	p, err := t.prepared.Plan.Part(part.Source, part.from())
	if err != nil {
		return err
	}
	s := p.Sources[0]
	if bytes > 0 && s.About().Seeking == source.SeeksDirectly {
		cut := *s
		cut.Source = &upTo{s.Source, bytes}
		p.Sources = []*plan.Source{&cut}
		if size := s.About().Pieces; size > 0 {
			defer s.SetSplitBytes(int(size))
			n := (bytes + size - 1) / size
			s.SetSplitBytes(int((bytes + n - 1) / n)) // so that the last piece ends with the split
		}
	}
	if err := eachSplit(ctx, p, t.job.shards, part.Records,
		func(p *intake.Parsed) error { return t.take(ctx, p) }); err != nil {
		return err
	}
	if f, ok := s.Source.(interface{ Finished() error }); ok && part.Records >= 0 {
		if err := f.Finished(); err != nil { // fails if the file changed while it was read
			return err
		}
	}
	return s.Suspend()
}

// eachSplit calls each with the splits of a plan's only source in order, up to records records or, if negative, all.
func eachSplit(ctx context.Context, p *plan.Plan, m *shardMap, records int64, each func(*intake.Parsed) error) error {
	left, err := intake.New(p, m.ranges).Each(ctx, records, each)
	if err == nil && left > 0 {
		err = fmt.Errorf("%s ends %d records before its planned end", p.Sources[0].Name, left)
	}
	return err
}

// take adds the rows of a parsed split to the shards' runs, and its rejects to the lists.
func (t *splitTask) take(ctx context.Context, p *intake.Parsed) error {
	t.result.Read += int64(p.Records)
	for i := range p.Rejects {
		r := &p.Rejects[i]
		if err := t.rejects.add(ctx, &keptReject{Source: p.Split.Ordinal, Record: p.Split.FirstRecord + int64(r.Span.Record),
			Header: p.Split.Header, Read: true, Reject: p.Split.Reject(r.Span, r.Reason, r.Raw)}); err != nil {
			return err
		}
	}
	for _, e := range p.Expired {
		t.result.ExpiredCells += int64(e.Cells)
	}
	for _, b := range p.Blocks {
		shard := t.job.shards.shard[b.Lane]
		for i := range b.Block.Rows {
			ref := table.Ref{Block: b.Block, Index: int32(i)}
			row := ref.Row()
			if err := t.runs.Add(shard, &runfile.Row{Key: ref.Key(), Body: ref.Body(), Size: row.Size(), Source: p.Split.Ordinal,
				Record: p.Split.FirstRecord + int64(row.Number())}); err != nil {
				return err
			}
		}
	}
	return nil
}

// commit publishes the result, unless another attempt was faster.
func (t *splitTask) commit(ctx context.Context) error {
	if err := t.runs.Close(); err != nil {
		return err
	}
	r := &t.result
	if err := t.rejects.close(ctx, &r.done); err != nil {
		return err
	}
	r.Rows, r.Bytes, r.Objects, r.Index = t.runs.Rows, t.runs.Raw, t.runs.Objects, t.runs.Index
	if sum := r.ended(); sum != r.Read {
		return fmt.Errorf("the ledger of split %d does not balance: %d read, %d rows and rejects", r.Split, r.Read, sum)
	}
	r.Snapshots = t.snapshotsOf()
	r.CPU, r.Ended = t.job.cpu.take(), time.Now().UTC()
	return t.job.commit(ctx, t.job.store, splitName(r.Split), r)
}

// ended returns the number of records that are in runs, rejected, written or superseded.
func (r *splitResult) ended() int64 {
	n := r.Rows + r.Rejected
	if d := r.Direct; d != nil {
		n += d.Written + d.Superseded
	}
	return n
}

// split returns the result of a split, or nil if it was not read.
func (j *Job) split(ctx context.Context, i int) (*splitResult, error) {
	return cached(ctx, j, j.known.splits, i, splitName(i), func(r *splitResult) bool {
		return r.Split == i && r.Read == r.ended() && j.Plan.Direct == (r.Direct != nil)
	})
}
