package scaleout

import (
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/pipeline/lanes"
)

// TestForecastsGrowWithTheInputs: no step may grow with the product of splits, shards and workers.
func TestForecastsGrowWithTheInputs(t *testing.T) {
	of := func(bytes int64, workers int) *Outlook {
		rows := bytes / 77
		return &Outlook{Bytes: bytes, Rows: rows, RowBytes: 109, Units: rows, Looked: true, Workers: workers, Processors: 8,
			Memory: 4 << 30}
	}
	steps := func(o *Outlook) map[string]Step {
		all := map[string]Step{}
		for _, s := range Forecast(o) {
			t.Logf("%d bytes, %d workers: %s: %d tasks, %d bytes, %d requests, %v, %d bytes of memory", o.Bytes, o.Workers,
				s.Name, s.Tasks, s.Bytes, s.Requests, time.Duration(s.Seconds*1e9).Round(time.Second), s.Memory)
			all[s.Name] = s
		}
		return all
	}
	one, ten := steps(of(1e12, 8)), steps(of(10e12, 100))
	for name, s := range ten {
		if seconds := one[name].Seconds; s.Seconds > 12*seconds || s.Memory > 4<<30+20_000*resultBytes*2 {
			t.Errorf("%s takes %v s and %d bytes of memory, ten times less takes %v s", name, s.Seconds, s.Memory, seconds)
		}
	}
	if w := ten["write"]; w.Requests > 3*w.Tasks*ten["read"].Tasks {
		t.Errorf("writing takes %d requests for %d shards of %d splits", w.Requests, w.Tasks, ten["read"].Tasks)
	}
	unique := of(1e12, 8)
	unique.Unique = true
	u, w := steps(unique)["write"], one["write"]
	conformance.True(t, u.Seconds < w.Seconds && u.Bytes < w.Bytes,
		"without a reduction writing takes %v s and %d bytes, with one %v s and %d", u.Seconds, u.Bytes, w.Seconds, w.Bytes)
	direct := of(1e12, 8)
	direct.Direct = true
	direct.Rates = lanes.Rates{MaxRows: float64(direct.Rows) / 36_000}
	all := steps(direct)
	conformance.Equal(t, len(all), 3, "steps of a job without shards")
	conformance.Equal(t, all["read"].Seconds, 36_000, "seconds with a ceiling")
}
