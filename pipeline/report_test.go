package pipeline

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
)

var update = flag.Bool("update", false, "write the golden files of these tests")

// fillFields gives every exported field below v that JSON shows a value of its own, in the order of the fields.
func fillFields(v reflect.Value, n *int) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		*n++
		v.Set(reflect.ValueOf(time.Unix(int64(*n), 0).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && f.Tag.Get("json") != "-" {
				fillFields(v.Field(i), n)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillFields(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillFields(v.Index(0), n)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"name": "text"}))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String, reflect.Interface:
		*n++
		v.Set(reflect.ValueOf(fmt.Sprintf("text %d", *n)))
	case reflect.Int, reflect.Int64:
		*n++
		v.SetInt(int64(*n))
	case reflect.Uint8: // of bytes, as text
		v.SetUint(1)
	case reflect.Uint64:
		*n++
		v.SetUint(uint64(*n))
	case reflect.Float64:
		*n++
		v.SetFloat(float64(*n) + .5)
	default:
		panic(v.Type())
	}
}

// Programs read summary.json and the state of a running load: names, order and what is left out when it is empty stay.
func TestTheJSONOfReportsAndStatesStays(t *testing.T) {
	for name, v := range map[string]any{"report": new(Report), "state": new(State)} {
		for _, full := range []bool{false, true} {
			file := filepath.Join("testdata", name+"-empty.json")
			if full {
				file = filepath.Join("testdata", name+"-full.json")
				fillFields(reflect.ValueOf(v).Elem(), new(int))
			}
			got, err := json.MarshalIndent(v, "", "  ")
			must(t, err)
			got = append(got, '\n')
			if *update {
				must(t, os.WriteFile(file, got, 0o644))
			}
			want, err := os.ReadFile(file)
			must(t, err)
			if !bytes.Equal(got, want) {
				t.Errorf("%s: got\n%s", file, got)
			}
			again := reflect.New(reflect.TypeOf(v).Elem())
			must(t, json.Unmarshal(want, again.Interface()))
			if text, err := json.MarshalIndent(again.Interface(), "", "  "); err != nil || !bytes.Equal(append(text, '\n'), want) {
				t.Errorf("%s: read and written again it is\n%s", file, text)
			}
		}
	}
}

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
		cfg.Watch.Progress = new(ledger.Progress)
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

func TestTheTimelineCountsWhatTheLedgerDoes(t *testing.T) {
	start := time.Now()
	counts := new(ledger.Counted)
	r := newTimelineRecorder(counts, start, idle)
	one := r.slots(partitioner.NewMap(nil))[0]
	counts.Read, counts.Rejected = 1000, 3
	r.point(start)
	counts.Written = 200
	r.landed(&lanes.Landing{At: start.Add(time.Second), Slot: one, Answer: lanes.Answer{Final: 200, Accepted: 200, Rows: 200}, Requests: 1})
	// The partition splits; an answer to the old lane comes later than that.
	parts := r.slots(partitioner.NewMap([]table.Value{{Type: table.Integer, Int: 5}}))
	counts.Written = 600
	r.landed(&lanes.Landing{At: start.Add(2 * time.Second), Slot: one, Answer: lanes.Answer{Final: 150, Throttled: 50, Accepted: 150, Rows: 200}, Retried: 10, Requests: 2})
	r.landed(&lanes.Landing{At: start.Add(2 * time.Second), Slot: parts[1], Answer: lanes.Answer{Final: 250, Accepted: 500, Rows: 250}, Requests: 1})
	tl := r.timeline()
	want := []ledger.Point{{Read: 1000, Rejected: 3, Queued: 997}, {Final: 200, Requests: 1, Units: 200, Queued: 797}, {Final: 400, Throttled: 50, Retried: 10, Requests: 3, Units: 650, Queued: 397}}
	if len(tl.Points) != 3 || tl.Points[0] != want[0] || tl.Points[1] != want[1] || tl.Points[2] != want[2] {
		t.Errorf("points %+v, want %+v", tl.Points, want)
	}
	h := tl.Heat
	if len(h.Partitions) != 2 || h.Partitions[0] != "" || h.Partitions[1] != "5" || h.Counts[1][0] != 200 || h.Counts[2][0] != 150 || h.Counts[2][1] != 250 {
		t.Errorf("heat %+v", h)
	}
}

func TestTheTimelineOfADayIsBounded(t *testing.T) {
	start := time.Now()
	counts := new(ledger.Counted)
	r := newTimelineRecorder(counts, start, idle)
	only := r.slots(partitioner.NewMap(nil))[0]
	for s := range 86400 {
		counts.Written++
		r.landed(&lanes.Landing{At: start.Add(time.Duration(s) * time.Second), Slot: only, Answer: lanes.Answer{Final: 1}, Requests: 1})
	}
	tl := r.timeline()
	sum := int64(0)
	for _, p := range tl.Points {
		sum += p.Final
	}
	if len(tl.Points) > mostPoints || len(tl.Heat.Counts) > mostColumns || sum != 86400 || tl.Every != 32*time.Second {
		t.Errorf("%d points every %v, %d columns, %d rows", len(tl.Points), tl.Every, len(tl.Heat.Counts), sum)
	}
}

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
