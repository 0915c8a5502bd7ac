package spread

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"example.com/tsimport/bench"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/plan"
)

// Report is what was measured and with what.
type Report struct {
	Input string `json:"input"`
	Order string `json:"order,omitempty"` // of the student cards
	Rows  int64  `json:"rows"`
	Table
	BaselineSeconds float64     `json:"baseline_seconds"`
	Memory          string      `json:"memory,omitempty"`
	Seed            uint64      `json:"seed"`
	Notes           []string    `json:"notes,omitempty"`
	Scenarios       []*Scenario `json:"scenarios"`
}

// Failed says that a load by tsimport did not end well or left the table other than the file.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Scenarios, func(s *Scenario) bool {
		return s.Error != "" || s.Comparison != nil && !s.Comparison.Exact()
	})
}

// run is one measurement.
type run struct {
	*Config
	data   *dataset
	dir    string
	report *Report
}

// Run measures. When ctx ends, everything that it started ends too, and its temporary files are removed.
func Run(ctx context.Context, c Config) (report *Report, err error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	r := &run{Config: &c, dir: c.Keep}
	if r.dir == "" {
		if r.dir, err = os.MkdirTemp("", "tsimport-bench-"); err != nil {
			return nil, fmt.Errorf("create folder for the bench: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(r.dir)) }()
	}
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	for _, name := range Names {
		if len(c.Scenarios) > 0 && !slices.Contains(c.Scenarios, name) {
			continue
		}
		s, err := r.scenario(ctx, name)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("scenario %s: %w", name, err)
		}
		r.report.Scenarios = append(r.report.Scenarios, s)
	}
	return r.report, nil
}

// splitsNote warns of a headline that looks right when nothing is.
const splitsNote = "rows in key order leave most children of --splits empty, and a share of the partitions with rows would leave the empty ones out: the table shows the share of what all of them allowed at each moment"

// prepare makes the dataset.
func (r *run) prepare(ctx context.Context) (err error) {
	report := &Report{Input: r.Input.File, Table: r.Table, BaselineSeconds: r.Baseline.Seconds(), Memory: r.Memory, Seed: r.Seed}
	dir, err := r.folder("data")
	if err != nil {
		return err
	}
	if r.Input.File == "" {
		report.Input, report.Order = "student cards", string(r.Input.Order)
		r.Say.Line("making %d student cards, %s", r.Input.Rows, r.Input.Order)
	} else {
		r.Say.Line("reading %s", r.Input.File)
	}
	r.data, err = find(ctx, r.Config, dir)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	if r.data.keys.seen == 0 {
		return plan.Usagef("%s has no rows", report.Input)
	}
	report.Rows, report.Notes = r.data.rows, r.data.notes
	if r.Table.SplitsMS > 0 && r.Input.File == "" && r.Input.Order == bench.Sorted {
		report.Notes = append(report.Notes, splitsNote)
	}
	if r.Table.SplitsMS == 0 {
		_, parts := r.data.keys.cuts(r.Table.Partitions)
		report.Notes = append(report.Notes, cutNotes(parts, r.Table.Partitions)...)
	}
	r.report = report
	return nil
}

func (r *run) folder(name string) (string, error) {
	dir := filepath.Join(r.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("create folder for the bench: %w", err)
	}
	return dir, nil
}

// scenario runs one way to load on an engine of its own.
func (r *run) scenario(ctx context.Context, name string) (*Scenario, error) {
	s := &Scenario{Name: name, Partitions: []Partition{}}
	r.Say.Line("%s: loading", name)
	dir, err := r.folder(name)
	if err != nil {
		return nil, err
	}
	if r.Keep == "" {
		defer os.RemoveAll(dir) // the disk is for one store at a time; what is left goes with the whole folder
	}
	var flags []string
	if r.Table.InstanceWCU > 0 {
		flags = []string{"--limit-instance", strconv.FormatFloat(r.Table.InstanceWCU, 'f', -1, 64)}
	}
	if r.Table.Outage != "" {
		flags = append(flags, "--outage", r.Table.Outage)
	}
	e, err := startEngine(ctx, r.Binary, dir, flags...)
	if err != nil {
		return nil, err
	}
	defer e.close()
	if err := r.makeTable(ctx, e); err != nil {
		return nil, err
	}
	measure := r.baseline
	if name == Tsimport || name == TsimportNone {
		measure = r.tsimport
	}
	return s, r.observed(ctx, e, s, func() (*measuring, error) { return measure(ctx, e, s, dir) })
}

// observed runs a load and looks at the engine meanwhile, where partitions split.
func (r *run) observed(ctx context.Context, e *engine, s *Scenario, load func() (*measuring, error)) error {
	if r.Table.SplitsMS == 0 {
		_, err := load()
		return err
	}
	watching, stop := context.WithCancel(ctx)
	seen := make(chan []observation, 1)
	go func() { seen <- observe(watching, e) }()
	m, err := load()
	stop()
	observations := <-seen
	if err != nil {
		return err
	}
	s.Splits = splitsOf(m.stats, observations, m.start)
	return nil
}

// makeTable creates the table and cuts it while it is empty.
func (r *run) makeTable(ctx context.Context, e *engine) error {
	sdk, err := client.New(ctx, e.Target, nil)
	if err != nil {
		return err
	}
	if err := (&client.Admin{Client: sdk, Context: ctx}).Create(tableName, r.data.key, table.Definition{TimeToLive: -1, MaxVersions: 1}); err != nil {
		return err
	}
	if r.Table.SplitsMS > 0 {
		return nil
	}
	bounds, _ := r.data.keys.cuts(r.Table.Partitions)
	if len(bounds) == 0 {
		return nil
	}
	keys := make([]any, len(bounds))
	for i, b := range bounds {
		keys[i] = keyJSON(b)
	}
	return e.do(ctx, http.MethodPost, "tables/"+tableName+"/split", map[string]any{"keys": keys}, nil)
}

// baseline loads with the SDK.
func (r *run) baseline(ctx context.Context, e *engine, s *Scenario, dir string) (*measuring, error) {
	b := &baseline{engine: e, each: r.data.each, workers: parallelWorkers}
	if s.Name == Naive {
		b.workers = 1
	}
	if err := e.simulate(ctx, &r.Table, r.Seed); err != nil {
		return nil, err
	}
	started := time.Now()
	if s.Name == Preshuffled {
		rows, err := r.data.shuffled(ctx, r.Seed)
		if err != nil {
			return nil, err
		}
		b.each = func(_ context.Context, f func(row []byte) error) error {
			for _, row := range rows {
				if err := f(row); err != nil {
					return err
				}
			}
			return nil
		}
		s.PreparationSeconds = time.Since(started).Seconds()
	}
	end, err := b.runFor(ctx, started.Add(r.Baseline))
	if err != nil {
		return nil, err
	}
	s.Seconds, s.Lost, s.Stopped = end.ended.Sub(started).Seconds(), end.lost, end.stopped
	m := &measuring{stats: end.stats, uneven: r.Table.uneven(), limiter: r.Table.Limiter, ceiling: r.Table.ceiling(), start: unixMS(started)}
	if end.stopped {
		m.end = unixMS(end.ended)
	}
	m.fill(s, 0)
	switch splits := r.Table.SplitsMS > 0; {
	case !end.stopped:
		m.ideal(s, splits)
	case splits:
		s.AllowedShare = m.allowed(m.end)
	}
	return m, nil
}

// tsimport loads with tsimport and compares the table with the file.
func (r *run) tsimport(ctx context.Context, e *engine, s *Scenario, dir string) (*measuring, error) {
	order := plan.LastWins
	if s.Name == TsimportNone {
		order = plan.OrderNone
	}
	l := loader{config: r.Config, engine: e, data: r.data, dir: dir, order: order}
	if err := e.simulate(ctx, &r.Table, r.Seed); err != nil {
		return nil, err
	}
	if err := l.run(ctx); err != nil {
		if ctx.Err() != nil || errors.As(err, new(*plan.UsageError)) {
			return nil, err
		}
		s.Error = err.Error()
	}
	s.Seconds, s.Loader, s.PeakRSSBytes = l.ended.Sub(l.started).Seconds(), &l.summary, l.summary.PeakRSSBytes
	stats, _, err := e.stats(ctx)
	if err != nil {
		return nil, err
	}
	m := &measuring{stats: stats, uneven: r.Table.uneven(), limiter: r.Table.Limiter, ceiling: r.Table.ceiling(), start: unixMS(l.started)}
	m.fill(s, l.summary.LastLaneSeconds)
	m.ideal(s, r.Table.SplitsMS > 0)
	r.Say.Line("%s: comparing the table with the file", s.Name)
	if s.Comparison, err = r.data.compare(ctx, e, order); err != nil {
		return nil, err
	}
	s.Verified, s.Lost = s.Comparison.String(), s.Comparison.Missing
	return m, nil
}

func unixMS(t time.Time) float64 { return float64(t.UnixMicro()) / 1000 }
