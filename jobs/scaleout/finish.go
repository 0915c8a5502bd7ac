package scaleout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/extsort"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/ledger"
)

// Summary is the object summary.json, the result of the whole job. Its many fields come from its parts.
type Summary struct {
	done
	// Here is set in the process that ended the job. Other workers end with exit code 0.
	Here     bool      `json:"-"`
	Planned  time.Time `json:"planned"`
	State    string    `json:"state"`
	ExitCode int       `json:"exit_code"`
	Target   string    `json:"target"`
	Table    string    `json:"table"`
	Inputs   []string  `json:"inputs"`
	SummaryCounts
	SummaryLive
	SummaryWork
	RejectsFiles []string             `json:"rejects_files,omitempty"`
	Reasons      []ledger.ReasonCount `json:"reject_reasons,omitempty"`
	Compared     *Comparison          `json:"verify,omitempty"`
}

// SummaryCounts is the ledger: Read = Written + Rejected + Superseded. Rejected is a field of done.
type SummaryCounts struct {
	Read       int64 `json:"read"`
	Written    int64 `json:"written"`
	Superseded int64 `json:"superseded"`
	Maybe      int64 `json:"maybe_applied,omitempty"`
	// ExpiredCells counts cells that were left out because they are too old for the table (--drop-expired).
	ExpiredCells int64 `json:"expired_cells,omitempty"`
}

// SummaryWork is the cost of the job.
type SummaryWork struct {
	Splits         int     `json:"splits"`
	Shards         int     `json:"shards"`
	Processes      int     `json:"processes"`      // processes whose results count
	Attempts       int     `json:"write_attempts"` // attempts at all shards
	RunBytes       int64   `json:"run_bytes"`      // compressed size of all runs
	ReducedBytes   int64   `json:"reduced_bytes"`
	WriteCU        int64   `json:"write_cu"`
	Requests       int64   `json:"requests"`
	RowsSent       int64   `json:"rows_sent"`
	Throttled      int64   `json:"throttled"`
	Retried        int64   `json:"retried"`
	CPUSeconds     float64 `json:"all_cpu_seconds"`
	ReadSeconds    float64 `json:"read_seconds"`  // from the first split's start to the last one's end
	WriteSeconds   float64 `json:"write_seconds"` // likewise, for shards
	Seconds        float64 `json:"seconds"`       // from the plan to the end
	RowsPerSecond  float64 `json:"rows_per_second"`
	SlowestSeconds float64 `json:"slowest_shard_seconds"`
}

// Comparison is the result of comparing the table, or a shard, with the inputs.
type Comparison struct {
	Compared  int64 `json:"compared"`
	Missing   int64 `json:"missing"`
	Different int64 `json:"different"`
	Surplus   int64 `json:"surplus"`
	// Examples are a few differences of each kind and shard.
	Examples []difference `json:"examples,omitempty"`
}

// ReadSummary returns the summary of a planned load, or nil if it has not ended.
func ReadSummary(ctx context.Context, store jobdir.Store, p *Plan) (*Summary, error) {
	s := new(Summary)
	there, err := (&Job{Plan: p, store: store}).readResult(ctx, store, summaryName, s)
	if !there || err != nil {
		return nil, err
	}
	return s, nil
}

// finish checks that every record was counted once and writes the summary, unless another process already has.
func (j *Job) finish(ctx context.Context) (*Summary, error) {
	s := new(Summary)
	if there, err := j.readResult(ctx, j.store, summaryName, s); there || err != nil {
		return s, err
	}
	if err := j.stopped(ctx); err != nil {
		return nil, err
	}
	sorter, err := j.sorter()
	if err != nil {
		return nil, err
	}
	defer sorter.Close()
	f := &finisher{job: j, summary: s, rejects: sorter, named: map[string]bool{}, by: map[string]bool{}}
	attempt := nonce()
	*s = Summary{done: j.newDone(attempt), Planned: j.Plan.Planned, State: pipeline.StateFinished,
		Target: j.Plan.Job.Target, Table: j.Plan.Job.Table, Inputs: j.Plan.Inputs}
	s.Live, s.Position = j.Plan.Live, j.Plan.Position
	for _, step := range []func(context.Context) error{f.splits, f.shards, f.balance, f.limit, f.awaitLate, f.comparisons,
		f.mergeRejects, f.page} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	if err := j.commit(ctx, j.store, summaryName, s); err != nil {
		return nil, err
	}
	s.Here = s.Attempt == attempt
	f.sweep(ctx)
	return s, nil
}

type finisher struct {
	job     *Job
	summary *Summary
	rejects *extsort.Sorter
	sorted  *extsort.Sorted // rejects in the order of the inputs
	again   map[Part]int64  // number of the last record that was rejected when written, by part
	rows    int64           // rows in runs that no shard has taken yet
	named   map[string]bool // objects that results name
	by      map[string]bool // processes with results
	took    [2]span         // of reading and of writing
	results []*shardResult
	late    time.Time // latest LateUntil of all tasks
	seams   int64
}

func (f *finisher) note(stage int, d *done) {
	f.by[d.By] = true
	f.summary.CPUSeconds += d.CPU
	if d.LateUntil.After(f.late) {
		f.late = d.LateUntil
	}
	f.took[stage].add(d)
	for _, l := range d.Rejects {
		f.named[l.Object] = true
	}
	f.summary.Rejected += d.Rejected
	f.seams += d.Seams
}

func (f *finisher) splits(ctx context.Context) error {
	if err := f.job.preload(ctx, func(int) bool { return true }); err != nil {
		return err
	}
	for i := range f.job.Plan.Splits {
		r, err := f.job.split(ctx, i)
		if err != nil {
			return err
		}
		if r == nil {
			return fmt.Errorf("the job is not done: split %d has not been read yet", i)
		}
		f.note(0, &r.done)
		f.summary.Read += r.Read
		f.summary.ExpiredCells += r.ExpiredCells
		f.summary.SummaryLive.add(r.Snapshots)
		if r.Direct != nil {
			f.summary.Superseded += r.Direct.Superseded
			f.summary.add(&r.Direct.written)
		}
		for _, o := range r.Objects {
			f.named[o.Name] = true
			f.summary.RunBytes += o.Bytes
		}
		f.named[r.Index.Name] = true
		f.rows += r.Rows
		if err := f.takeRejects(ctx, &r.done); err != nil {
			return err
		}
	}
	f.summary.Splits = len(f.job.Plan.Splits)
	return nil
}

func (s *Summary) add(w *written) {
	s.Written, s.Maybe, s.ExpiredCells = s.Written+w.Written, s.Maybe+w.Maybe, s.ExpiredCells+w.Expired
	s.Attempts, s.WriteCU, s.Requests, s.RowsSent = s.Attempts+w.Attempts, s.WriteCU+w.WriteCU, s.Requests+w.Requests,
		s.RowsSent+w.RowsSent
	s.Throttled, s.Retried = s.Throttled+w.Throttled, s.Retried+w.Retried
}

func (f *finisher) shards(ctx context.Context) error {
	s := f.summary
	for i := range f.job.Plan.Shards {
		r, err := f.job.shard(ctx, i)
		if err != nil {
			return err
		}
		if r == nil {
			return fmt.Errorf("the job is not done: shard %d has not been written yet", i)
		}
		f.rows -= r.From
		f.note(1, &r.done)
		f.results = append(f.results, r)
		s.Superseded += r.Superseded
		s.add(&r.written)
		s.SlowestSeconds = max(s.SlowestSeconds, r.Ended.Sub(r.Started).Seconds())
		run := new(reducedResult) // remains empty for a shard written directly from the runs
		there, err := f.job.readResult(ctx, jobdir.Below(f.job.store, shardFolder(i)), reducedName, run)
		if err != nil {
			return err
		}
		if there {
			for _, o := range run.Objects {
				f.named[o.Name] = true
				s.ReducedBytes += o.Bytes
			}
		}
		if err := f.takeRejects(ctx, &r.done); err != nil {
			return err
		}
	}
	s.Shards = len(f.job.Plan.Shards)
	return nil
}

func (f *finisher) balance(context.Context) error {
	s := f.summary
	if f.rows != 0 {
		return fmt.Errorf("the ledger does not balance: runs have %d more rows than the shards took", f.rows)
	}
	if sum := s.Written + s.Rejected + s.Superseded; sum != s.Read {
		return fmt.Errorf("the ledger does not balance: %d records read, but %d written + %d rejected + %d superseded = %d",
			s.Read, s.Written, s.Rejected, s.Superseded, sum)
	}
	var err error
	if f.sorted, err = f.rejects.Sort(); err != nil {
		return fmt.Errorf("sort rejected rows: %w", err)
	}
	return f.checkRejects()
}

func (f *finisher) limit(ctx context.Context) error {
	return f.job.overLimit(ctx, counted{Read: f.summary.Read, Rejected: f.summary.Rejected - f.seams}, true)
}

func (f *finisher) awaitLate(ctx context.Context) error { return f.job.awaitLate(ctx, f.late) }

// comparisons adds up the comparisons and sets the job's exit code.
func (f *finisher) comparisons(ctx context.Context) error {
	s := f.summary
	if f.job.Plan.Verify {
		s.Compared = new(Comparison)
		for i := range f.job.Plan.Shards {
			r := new(compareResult)
			there, err := f.job.readResult(ctx, f.job.store, compareName(i), r)
			if err != nil {
				return err
			}
			if !there {
				return fmt.Errorf("the job is not done: shard %d has not been compared yet", i)
			}
			c := s.Compared
			c.Compared, c.Missing, c.Different, c.Surplus = c.Compared+r.Compared, c.Missing+r.Missing, c.Different+r.Different,
				c.Surplus+r.Surplus
			c.Examples = append(c.Examples, r.Examples...)
			s.CPUSeconds += r.CPU
		}
	}
	switch c := s.Compared; {
	case c != nil && c.Missing+c.Different > 0:
		s.ExitCode = exitcode.Differences
	case s.Rejected > 0:
		s.ExitCode = exitcode.Rejects
	}
	s.Ended = time.Now().UTC()
	s.Processes = len(f.by)
	s.ReadSeconds, s.WriteSeconds = f.took[0].seconds(), f.took[1].seconds()
	s.Seconds = s.Ended.Sub(f.job.Plan.Planned).Seconds()
	if s.Seconds > 0 {
		s.RowsPerSecond = float64(s.Written) / s.Seconds
	}
	return nil
}

// sweep deletes objects that lost attempts have left: no result names them. If it fails, they do no harm.
func (f *finisher) sweep(ctx context.Context) {
	for _, prefix := range []string{"runs/", "rejects/", writingFolder + "/", "probe/"} {
		names, err := f.job.store.List(ctx, prefix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for _, name := range names {
			if f.named[name] || strings.HasSuffix(name, ".json") {
				continue
			}
			if prefix == writingFolder+"/" && !strings.Contains(name, "/reduced.") {
				continue // leases remain, so that a slow process notices that it has lost its own
			}
			_ = f.job.store.Delete(ctx, name)
		}
	}
}

func (f *finisher) page(ctx context.Context) error {
	body, err := pageOf(f.job, f.summary, f.results)
	if err != nil {
		return err
	}
	if err := f.job.store.Put(ctx, pageName, body); err != nil {
		return fmt.Errorf("store %s in %s: %w", pageName, f.job.store, err)
	}
	return nil
}
