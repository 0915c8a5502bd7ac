package pipeline

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tsimport/engine/server"
	"tsimport/engine/sim"
	"tsimport/internal/table"
	"tsimport/partitioner"
)

// shuffled is numbered("k", rows) with the rows of all partitions mixed.
func shuffled(rows int) string {
	lines := strings.SplitAfter(numbered("k", rows), "\n")
	body := lines[1 : rows+1]
	slices.SortStableFunc(body, func(a, b string) int { return strings.Compare(a[4:6], b[4:6]) })
	return lines[0] + strings.Join(body, "")
}

func TestThePartitionThatHoldsUpALoadIsNamed(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		w.partitioned(server.Simulation{Config: sim.Config{PartitionUnits: 4000, Burst: 250 * time.Millisecond, Slow: map[int]float64{2: 0.025}}},
			"k00300", "k00600", "k00900")
		cfg := w.config(w.file("in.csv", shuffled(1200)))
		var longest atomic.Int64
		cfg.Watch.Progress = new(Progress)
		cfg.onSend = func([]table.Ref) { longest.Store(max(longest.Load(), cfg.Watch.Progress.SlowestLeft.Load())) }
		r := w.load(cfg)
		s := r.Slowest
		if s == nil {
			t.Fatal("no partition is named")
		}
		if s.Partition != 2 || s.From != "k00600" || s.Rows != 300 || s.Waiting < 1 || s.OthersWaiting > s.Waiting/2 {
			t.Errorf("%+v", s)
		}
		if r.Throttled == 0 || r.Rejected != 0 || r.Retried != r.Throttled || r.RowsSent != r.Written+r.Throttled {
			t.Errorf("rows that were throttled were not sent again, once for each time: %+v", r.ReportAttempts)
		}
		if longest.Load() < 500 {
			t.Errorf("the slowest partition was never said to need more than %d ms; it took %.1f s", longest.Load(), r.Seconds)
		}
	})
}

func TestPartitionsThatShareTheWaitAreNotNamed(t *testing.T) {
	waited := func(seconds ...float64) *ReportSlowest {
		s := new(lanes)
		var bounds []table.Value
		for i, waited := range seconds {
			bounds = append(bounds, table.Value{Type: table.Integer, Int: int64(i)})
			s.all = append(s.all, &lane{index: i, turn: turn{begun: time.Now()}, backlog: backlog{waiting: time.Duration(waited * float64(time.Second))}})
		}
		s.partitions = partitioner.NewMap(bounds[1:])
		return s.slowest(100 * time.Second)
	}
	for name, s := range map[string]*ReportSlowest{
		"one partition":            waited(90),
		"all of them":              waited(90, 80, 85, 88),
		"half of them":             waited(90, 80, 1, 60, 70),
		"a small part of the load": waited(20, 1, 1, 1),
		"none":                     waited(0, 0, 0),
	} {
		if s != nil {
			t.Errorf("%s: %+v is named", name, s)
		}
	}
	for want, s := range []*ReportSlowest{waited(90, 1), waited(1, 90, 30), waited(1, 2, 60, 3)} {
		if s == nil || s.Partition != want {
			t.Errorf("partition %d is to be named: %+v", want, s)
		}
	}
}
