package runmetrics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"example.com/tsimport/internal/atomicfile"
)

// Run is a finished command, or one load of a job.
type Run struct {
	Command, Table, Load string // labels; Load is the name of a job or of one of its loads

	Ended    time.Time
	Took     time.Duration
	ExitCode int // 0 means success
	Rows     []Rows
	// BadInputs is the number of files set aside.
	BadInputs int64
}

// Rows counts rows with the same outcome.
type Rows struct {
	Outcome string
	N       int64
}

var labelNames = []string{"command", "table", "load"}

type labels [3]string

func (r *Run) labels() labels { return labels{r.Command, r.Table, r.Load} }

// success is the metric with the time of the last success. A failed run does not change it.
const success = "tsimport_last_run_success_timestamp_seconds"

const successHelp = "When the last run with exit code 0 ended, in seconds since 1970."

type collector struct {
	runs    []Run
	earlier map[labels]float64 // times of last successes before these runs
	more    []labels           // labels in earlier for which there is no run
}

// others returns the labels of earlier runs that a failed job may not have reached, so that their last success is kept.
func others(runs []Run, earlier map[labels]float64) (more []labels) {
	if !slices.ContainsFunc(runs, func(r Run) bool { return r.ExitCode != 0 }) {
		return nil
	}
	for of := range earlier {
		if !slices.ContainsFunc(runs, func(r Run) bool { return r.labels() == of }) {
			more = append(more, of)
		}
	}
	return more
}

func (collector) Describe(chan<- *prometheus.Desc) {}

func (c collector) Collect(out chan<- prometheus.Metric) {
	for _, of := range c.more {
		d := prometheus.NewDesc(success, successHelp, labelNames, nil)
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, c.earlier[of], of[:]...)
	}
	for i := range c.runs {
		r := &c.runs[i]
		of := r.labels()
		put := func(name, help string, v float64, outcome ...string) {
			names, values := labelNames, of[:]
			if len(outcome) > 0 {
				names, values = slices.Concat(names, []string{"outcome"}), slices.Concat(values, outcome)
			}
			d := prometheus.NewDesc(name, help, names, nil)
			m, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, v, values...)
			if err != nil {
				m = prometheus.NewInvalidMetric(d, err)
			}
			out <- m
		}
		at := float64(r.Ended.UnixMilli()) / 1000
		put("tsimport_last_run_timestamp_seconds", "When the last run ended, in seconds since 1970.", at)
		last, known := c.earlier[of]
		if r.ExitCode == 0 {
			last, known = at, true
		}
		if known {
			put(success, successHelp, last)
		}
		put("tsimport_last_run_exit_code", "Exit code of the last run (docs/errors.md).", float64(r.ExitCode))
		put("tsimport_last_run_duration_seconds", "How long the last run took.", r.Took.Seconds())
		if r.Command == "load" || r.BadInputs > 0 {
			put("tsimport_last_run_bad_inputs", "Files set aside (docs/how-to/nightly-files.md).", float64(r.BadInputs))
		}
		for _, n := range r.Rows {
			put("tsimport_last_run_rows", "Rows of the last run, by how they ended.", float64(n.N), n.Outcome)
		}
	}
}

// WriteFile writes the metrics of runs in Prometheus's text format. It replaces a file atomically and writes to a pipe
// or device directly. A failed run keeps the time of its last success. An existing file must be a metrics file.
func WriteFile(ctx context.Context, path string, runs []Run) error {
	o, err := atomicfile.Find(path)
	if err != nil {
		return err
	}
	var earlier map[labels]float64
	if !o.Stream {
		earlier, err = successes(o.Path)
	}
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(collector{runs: runs, earlier: earlier, more: others(runs, earlier)}); err != nil {
		return fmt.Errorf("collect metrics: %w", err)
	}
	families, err := registry.Gather()
	if err != nil {
		return fmt.Errorf("collect metrics: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, pipeWait)
	defer cancel()
	return o.WriteTo(ctx, 0o644, func(w io.Writer) error {
		for _, f := range families {
			if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
				return err
			}
		}
		return nil
	})
}

// maxFile limits the size of an existing metrics file, in bytes.
const maxFile = 1 << 20

// successes reads the times of the last successes from a metrics file. It returns nil if there is no file.
func successes(path string) (map[labels]float64, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s is not a file of metrics: it is larger than 1 MiB", path)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s is not a file of metrics: %w", path, err)
	}
	all := map[labels]float64{}
	for _, m := range families[success].GetMetric() {
		all[labelsOf(m)] = m.GetGauge().GetValue()
	}
	return all, nil
}

func labelsOf(m *dto.Metric) (of labels) {
	for _, l := range m.GetLabel() {
		if i := slices.Index(labelNames, l.GetName()); i >= 0 {
			of[i] = l.GetValue()
		}
	}
	return of
}

// pipeWait limits the time for writing to a pipe, because it delays the end of the command.
const pipeWait = 5 * time.Second
