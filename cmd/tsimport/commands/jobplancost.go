package commands

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline"
)

func (l *loadPlan) cost(cfg *pipeline.Config) {
	if l.Rows < 0 || l.Rows > 0 && l.units == 0 && (l.Sampled == 0 || l.Rejected < l.Sampled) {
		return // the row size is unknown
	}
	indexes := int64(0)
	if l.Existing != nil {
		indexes = int64(len(l.Existing.Indexes))
	}
	written := l.Rows
	if l.Sampled > 0 {
		written = int64(math.Ceil(float64(l.Rows) * float64(l.Sampled-l.Rejected) / float64(l.Sampled)))
	}
	l.WriteUnits = int64(math.Ceil(float64(written)*l.units)) + indexes*written
	l.IndexReadUnits = indexes * written
	own, common := cfg.Lanes.Rates, l.plans.session.rates
	units, rows, bytes := float64(l.WriteUnits), float64(written), float64(written)*l.RowBytes
	for _, at := range []struct {
		flag      string
		rate, all float64
	}{
		{"--max-wcu", own.MaxWCU, units}, {"--max-wcu of the job", common.MaxWCU, units},
		{"--max-rows-per-second", own.MaxRows, rows}, {"--max-rows-per-second of the job", common.MaxRows, rows},
		{"--max-bytes-per-second", own.MaxBytes, bytes}, {"--max-bytes-per-second of the job", common.MaxBytes, bytes},
	} {
		if at.rate > 0 && at.all/at.rate > l.Seconds {
			l.Seconds, l.Rate = at.all/at.rate, at.flag
		}
	}
	if m, ok := l.plans.measured[cfg.Target.Name+"\x00"+cfg.Target.Table]; ok {
		if took := rows / m.rowsPerSecond; took > l.Seconds {
			l.Seconds, l.Rate = took, fmt.Sprintf("measured by the run %s", m.folder)
		}
	}
}

// total adds up the loads, and estimates when the last would end.
func (p *jobPlanner) total() {
	t := &p.plan.Totals
	var codes []int
	files, others := false, false
	for _, l := range p.plan.Loads {
		if l.State == planDone {
			continue
		}
		codes = append(codes, l.ExitCode)
		if l.State == planRefused || l.State == planFailed || l.Command == job.Export { // the load writes no rows
			continue
		}
		t.Rows, t.WriteUnits = sumKnown(t.Rows, l.Rows), sumKnown(t.WriteUnits, l.WriteUnits)
		if l.Files != nil {
			t.Bytes = sumKnown(t.Bytes, l.Bytes)
		}
		files, others = files || l.Files != nil, others || l.Files == nil
	}
	if others && !files {
		t.Bytes = -1 // the size of a database or a table is unknown
	}
	p.plan.ExitCode = exitcode.First(codes...)
	t.Seconds = p.schedule()
	if most := p.session.rates.MaxWCU; most > 0 && t.WriteUnits >= 0 && t.Seconds >= 0 {
		t.Seconds = max(t.Seconds, float64(t.WriteUnits)/most)
	}
}

func sumKnown(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}

// schedule simulates the loads at the job's parallelism and returns when the last one ends, or -1 if that is unknown.
func (p *jobPlanner) schedule() float64 {
	free := make([]float64, max(1, p.plan.Parallel)) // the time when each slot is free
	ends := map[string]float64{}
	last := 0.0
	for _, s := range inOrder(p.record.Loads) {
		l := p.plan.Loads[placeOfLoad(p.record, s.Name)]
		switch {
		case l.State == planDone || l.State == planRefused || l.State == planFailed || l.Command == job.Export:
			continue
		case l.Seconds < 0:
			return -1 // unknown, for example because a load reads another's output
		}
		slices.Sort(free)
		begin := free[0]
		for _, name := range s.After {
			begin = max(begin, ends[name])
		}
		free[0] = begin + l.Seconds
		ends[s.Name] = free[0]
		last = max(last, free[0])
	}
	return last
}

// measuredRates are the rates of finished runs, by target and table.
type measuredRates map[string]measuredRate

type measuredRate struct {
	folder        string
	rowsPerSecond float64
}

// Minimum duration and rows of a run whose rate is used: shorter runs mostly measure startup.
const (
	measuredSeconds = 1
	measuredRows    = 1000
	measuredRuns    = 1000 // maximum number of runs examined
)

// measureRuns returns the rate of the newest run per table, among earlier runs of loads and jobs.
func measureRuns(root string) measuredRates {
	m := measuredRates{}
	entries, err := os.ReadDir(root) // sorted by name, so by time
	if err != nil {
		return m
	}
	slices.Reverse(entries)
	for _, e := range entries[:min(len(entries), measuredRuns)] {
		folder := filepath.Join(root, e.Name())
		r, err := job.ReadRecord(folder)
		if err != nil {
			m.add(folder)
			continue
		}
		for _, s := range r.Loads {
			for _, at := range slices.Backward(s.Folders(folder)) {
				m.add(at)
			}
		}
	}
	return m
}

func (m measuredRates) add(folder string) {
	sum, err := readSummary(folder)
	if err != nil || sum.DryRun || sum.Attempts > 1 || sum.Written < measuredRows || sum.Seconds < measuredSeconds ||
		sum.State != pipeline.StateFinished {
		return
	}
	if at := sum.Target + "\x00" + sum.Table; m[at].folder == "" {
		m[at] = measuredRate{folder, float64(sum.Written) / sum.Seconds}
	}
}
