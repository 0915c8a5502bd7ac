package pipeline

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
)

// told keeps what a load says of how its records end.
type told struct {
	t       *testing.T
	ends    map[int64]string
	counts  map[string]int64
	pending bool
}

func newTold(t *testing.T) *told {
	return &told{t: t, ends: map[int64]string{}, counts: map[string]int64{}}
}

func (s *told) tell(source int, record int64, end string) {
	if was, twice := s.ends[record]; twice || source != 0 {
		s.t.Errorf("record %d of source %d is %s, and was %s", record, source, end, was)
	}
	s.ends[record] = end
	s.counts[strings.Fields(end)[0]]++
	s.pending = true
}

func (s *told) Written(source int, record int64)    { s.tell(source, record, "written") }
func (s *told) Superseded(source int, record int64) { s.tell(source, record, "superseded") }
func (s *told) Rejected(source int, record int64, why *table.Reason) {
	s.tell(source, record, "rejected "+why.Code)
}
func (s *told) Flush() { s.pending = false }

// Every record ends once, in the load's ledger and for whoever is told, and a load that keeps nothing leaves no file but its
// summary and its lock.
func TestEveryEndIsReportedOnce(t *testing.T) {
	for _, order := range []plan.Order{plan.LastWins, plan.OrderNone} {
		t.Run(order.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			const records = 5000
			ids := records / 4
			if order == plan.OrderNone {
				ids = records
			}
			text := repeated(records, ids)
			want, rejected := lastOf(t, text), int64(strings.Count(text, "\n,"))
			faulty, err := faults.Random{Rate: 0.1, Delay: lateness, Seed: 3}.Plan()
			must(t, err)
			w.plan.Decide = faulty.Decide
			cfg := w.config(w.file("in.csv", text))
			ends := newTold(t)
			cfg.Write.Order, cfg.Watch.Ends = order, ends
			cfg.Checkpoint.None, cfg.Limits.NoSpill, cfg.Limits.Memory, cfg.Read.SplitBytes = true, true, 8<<20, 16<<10
			cfg.surveyEvery = 20 * time.Millisecond
			r := w.load(cfg)
			w.plan.Change(w.plan.Only, nil)
			w.wantRows(want)
			if r.Rejected != rejected || r.Checkpoints != 0 || r.SpilledRows != 0 {
				t.Errorf("%d rejected, want %d; %d checkpoints, %d spilled", r.Rejected, rejected, r.Checkpoints, r.SpilledRows)
			}
			if superseded := r.Superseded > 0; superseded != (order == plan.LastWins) {
				t.Errorf("%v: %d rows gave way to later ones of their key", order, r.Superseded)
			}
			counts := map[string]int64{"written": r.Written, "superseded": r.Superseded, "rejected": r.Rejected}
			maps.DeleteFunc(counts, func(_ string, n int64) bool { return n == 0 })
			if !maps.Equal(ends.counts, counts) || ends.pending {
				t.Errorf("told of %v, the ledger has %v; pending %t", ends.counts, counts, ends.pending)
			}
			left, err := filepath.Glob(filepath.Join(cfg.RunDir, "*"))
			must(t, err)
			for _, name := range left {
				if base := filepath.Base(name); base != rundir.SummaryFile && base != "lock" {
					t.Errorf("%s is left behind", base)
				}
			}
			if checkpoint.Exists(cfg.RunDir) {
				t.Error("there is a checkpoint")
			}
			if _, err := os.Stat(rundir.Root); err == nil {
				t.Errorf("there is a folder %s", rundir.Root)
			}
		})
	}
}
