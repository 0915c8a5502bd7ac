package scaleout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/tsimport/internal/jobdir"
)

const (
	StatePlanned   = "planned" // no task is done yet
	StateReading   = "reading"
	StateWriting   = "writing"
	StateComparing = "comparing"
	StateEnding    = "ending"
	StateStopped   = "stopped"
)

// Status is the progress of a job according to its directory.
type Status struct {
	Job      string       `json:"job"` // ID of the plan
	State    string       `json:"state"`
	ExitCode *int         `json:"exit_code,omitempty"` // only if done
	Stopped  string       `json:"stopped,omitempty"`   // why the job was stopped
	Table    string       `json:"table"`
	Planned  time.Time    `json:"planned"`
	Stages   []StageState `json:"stages"`

	Read       int64 `json:"read"`
	Rejected   int64 `json:"rejected"`
	Superseded int64 `json:"superseded"`
	Written    int64 `json:"written"`
	// BytesRead is the part of Bytes that is in splits already read.
	BytesRead int64 `json:"bytes_read"`
	Bytes     int64 `json:"bytes"`

	ReadRate    float64  `json:"records_read_per_second"`
	WriteRate   float64  `json:"rows_written_per_second"`
	SecondsLeft *float64 `json:"seconds_left,omitempty"` // for the current stage; nil if unknown
	// LateUntil is the time until which requests of lost workers may arrive. The comparison and the end wait for it.
	LateUntil *time.Time `json:"late_until,omitempty"`
	Working   []Worker   `json:"working,omitempty"`
	// Failures are the last failures of unfinished tasks, one per task and at most mostFailures.
	Failures []*Failure `json:"failures,omitempty"`
}

type StageState struct {
	Stage string `json:"stage"`
	Tasks int    `json:"tasks"`
	Done  int    `json:"done"`
	Held  int    `json:"held"` // tasks that a process is working on
}

// Worker is a process that works on a task, or was lost while working on it.
type Worker struct {
	Stage string `json:"stage"`
	Index int    `json:"index"`
	By    string `json:"by"`
	// Silent is the time in seconds from the last sign of life, by the worker's clock, to now, by this machine's. 0 means
	// less than a lease's term.
	Silent float64 `json:"silent_seconds,omitempty"`
}

// Watcher observes a job, and reads each result only once. It is safe for concurrent use.
type Watcher struct {
	mu       sync.Mutex
	job      *Job
	last     *Status
	lookedAt time.Time
}

// NewWatcher returns a Watcher of a planned job. The process need not be able to work on the job.
func NewWatcher(ctx context.Context, store jobdir.Store) (*Watcher, error) {
	p, err := ReadPlan(ctx, store)
	if err != nil {
		return nil, err
	}
	j, err := newJob(store, p, Options{Program: p.Program})
	return &Watcher{job: j}, err
}

// mostWorkers limits the number of leases that a status reads.
const mostWorkers = 200

// watchEvery is the minimum interval between reads of the directory.
const watchEvery = 2 * time.Second

func (w *Watcher) Status(ctx context.Context) (*Status, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last != nil && time.Since(w.lookedAt) < watchEvery {
		return w.last, nil
	}
	s, err := w.look(ctx)
	if err == nil {
		w.last, w.lookedAt = s, time.Now()
	}
	return s, err
}

func (w *Watcher) look(ctx context.Context) (*Status, error) {
	p := w.job.Plan
	s := &Status{Job: p.ID, State: StatePlanned, Table: p.Job.Table, Planned: p.Planned, Bytes: p.Bytes}
	names, err := w.job.store.List(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", w.job.store, err)
	}
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
	}
	rates := [2]span{}
	if err := w.addSplits(ctx, s, there, &rates[0]); err != nil {
		return nil, err
	}
	if err := w.addShards(ctx, s, there, &rates[1]); err != nil {
		return nil, err
	}
	s.ReadRate, s.WriteRate = rates[0].rate(s.Read), rates[1].rate(s.Written)
	if p.Direct {
		s.WriteRate = rates[0].rate(s.Written)
	}
	s.settle(p)
	if err := errors.Join(w.addWorkers(ctx, s, names, there), w.addFailures(ctx, s, names, there)); err != nil {
		return nil, err
	}
	return s, w.addEnd(ctx, s, there)
}

func (s *Status) note(took *span, d *done) {
	took.add(d)
	if u := d.LateUntil; !u.IsZero() && (s.LateUntil == nil || u.After(*s.LateUntil)) {
		s.LateUntil = &u
	}
}

// span is the time from the first start to the last end of finished tasks.
type span struct{ from, to time.Time }

func (p *span) add(d *done) {
	if p.from.IsZero() || d.Started.Before(p.from) {
		p.from = d.Started
	}
	if d.Ended.After(p.to) {
		p.to = d.Ended
	}
}

func (p *span) seconds() float64 { return p.to.Sub(p.from).Seconds() }

func (p *span) rate(n int64) float64 {
	if took := p.seconds(); took > 0 {
		return float64(n) / took
	}
	return 0
}

func (w *Watcher) addSplits(ctx context.Context, s *Status, there map[string]bool, took *span) error {
	stage := StageState{Stage: "read", Tasks: len(w.job.Plan.Splits)}
	if err := w.job.preload(ctx, func(i int) bool { return there[splitName(i)] }); err != nil {
		return err
	}
	for i := range w.job.Plan.Splits {
		if !there[splitName(i)] {
			continue
		}
		r, err := w.job.split(ctx, i)
		if err != nil {
			return err
		}
		if r == nil {
			continue
		}
		stage.Done++
		s.note(took, &r.done)
		s.Read, s.Rejected, s.BytesRead = s.Read+r.Read, s.Rejected+r.Rejected, s.BytesRead+w.job.Plan.Splits[i].Bytes
		if d := r.Direct; d != nil {
			s.Written, s.Superseded = s.Written+d.Written, s.Superseded+d.Superseded
		}
	}
	s.Stages = append(s.Stages, stage)
	return nil
}

func (w *Watcher) addShards(ctx context.Context, s *Status, there map[string]bool, took *span) error {
	p := w.job.Plan
	if p.Direct {
		return nil
	}
	write, compare := StageState{Stage: "write", Tasks: len(p.Shards)}, StageState{Stage: "verify", Tasks: len(p.Shards)}
	for i := range p.Shards {
		if there[compareName(i)] {
			compare.Done++
		}
		if !there[shardName(i)] {
			continue
		}
		r, err := w.job.shard(ctx, i)
		if err != nil {
			return err
		}
		if r == nil {
			continue
		}
		write.Done++
		s.note(took, &r.done)
		s.Rejected, s.Written, s.Superseded = s.Rejected+r.Rejected, s.Written+r.Written, s.Superseded+r.Superseded
	}
	s.Stages = append(s.Stages, write)
	if p.Verify {
		s.Stages = append(s.Stages, compare)
	}
	return nil
}

// settle finds the current stage and estimates its remaining time.
func (s *Status) settle(p *Plan) {
	left := func(seconds float64) { s.SecondsLeft = &seconds }
	at := slices.IndexFunc(s.Stages, func(st StageState) bool { return st.Done < st.Tasks })
	switch {
	case at < 0:
		s.State = StateEnding
	case s.Stages[at].Stage == "read" && s.Stages[0].Done > 0:
		s.State = StateReading
		if s.BytesRead > 0 && s.ReadRate > 0 && p.Bytes > 0 {
			left(float64(p.Bytes-min(s.BytesRead, p.Bytes)) / float64(s.BytesRead) * float64(s.Read) / s.ReadRate)
		}
	case s.Stages[at].Stage == "write":
		s.State = StateWriting
		if s.WriteRate > 0 {
			left(float64(s.Read-s.Rejected-s.Written-s.Superseded) / s.WriteRate)
		}
	case s.Stages[at].Stage == "verify":
		s.State = StateComparing
	}
}

func (w *Watcher) addWorkers(ctx context.Context, s *Status, names []string, there map[string]bool) error {
	last := ""
	for _, name := range names {
		folder, _, isLease := strings.Cut(name, "/lease.")
		kind, number, _ := strings.Cut(folder, "/")
		at := slices.IndexFunc(s.Stages, func(st StageState) bool {
			return map[string]string{readingFolder: stageRead, writingFolder: stageWrite,
				comparingFolder: stageVerify}[kind] == st.Stage
		})
		if !isLease || folder == last || at < 0 {
			continue
		}
		last = folder
		var index int
		_, _ = fmt.Sscanf(number, "%d", &index) // a foreign name counts as 0
		if there[resultOf[s.Stages[at].Stage](index)] {
			continue
		}
		if len(s.Working) >= mostWorkers {
			s.Stages[at].Held++ // approximate
			continue
		}
		owner, seen, err := jobdir.Holder(ctx, jobdir.Below(w.job.store, folder))
		if err != nil {
			return err
		}
		if owner == "" {
			continue
		}
		work := Worker{Stage: s.Stages[at].Stage, Index: index, By: owner}
		if silent := time.Since(seen); silent > jobdir.Term {
			work.Silent = silent.Seconds()
		} else {
			s.Stages[at].Held++
		}
		s.Working = append(s.Working, work)
	}
	return nil
}

func (w *Watcher) addEnd(ctx context.Context, s *Status, there map[string]bool) error {
	if there[summaryName] {
		sum := new(Summary)
		done, err := w.job.readResult(ctx, w.job.store, summaryName, sum)
		if err != nil {
			return err
		}
		if done {
			s.State, s.ExitCode, s.SecondsLeft, s.LateUntil = sum.State, &sum.ExitCode, nil, nil
			s.Working, s.Failures = nil, nil
			return nil
		}
	}
	if err, stopped := w.job.stopped(ctx), new(StoppedError); errors.As(err, &stopped) {
		s.State, s.Stopped, s.SecondsLeft = StateStopped, stopped.Why, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Metrics writes the status as Prometheus metrics.
func (s *Status) Metrics(to io.Writer) error {
	var b strings.Builder
	metric := func(name, help, kind string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	metric("tsimport_job_tasks", "Tasks of a stage of the load.", "gauge")
	for _, st := range s.Stages {
		fmt.Fprintf(&b, "tsimport_job_tasks{stage=%q,state=\"done\"} %d\n", st.Stage, st.Done)
		fmt.Fprintf(&b, "tsimport_job_tasks{stage=%q,state=\"held\"} %d\n", st.Stage, st.Held)
		fmt.Fprintf(&b, "tsimport_job_tasks{stage=%q,state=\"open\"} %d\n", st.Stage,
			st.Tasks-st.Done-min(st.Held, st.Tasks-st.Done))
	}
	metric("tsimport_job_records_total", "Records of tasks that are done, by outcome.", "counter")
	for _, c := range []struct {
		outcome string
		n       int64
	}{{"read", s.Read}, {"written", s.Written}, {"rejected", s.Rejected}, {"superseded", s.Superseded}} {
		fmt.Fprintf(&b, "tsimport_job_records_total{outcome=%q} %d\n", c.outcome, c.n)
	}
	metric("tsimport_job_bytes_read_total", "Bytes of the inputs in splits that are read.", "counter")
	fmt.Fprintf(&b, "tsimport_job_bytes_read_total %d\n", s.BytesRead)
	metric("tsimport_job_bytes", "Bytes of all inputs.", "gauge")
	fmt.Fprintf(&b, "tsimport_job_bytes %d\n", s.Bytes)
	metric("tsimport_job_done", "1 if the load is done.", "gauge")
	done := 0
	if s.ExitCode != nil {
		done = 1
	}
	fmt.Fprintf(&b, "tsimport_job_done %d\n", done)
	_, err := io.WriteString(to, b.String())
	return err
}
