package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
)

// counted returns a load of files with the columns id, n, m that adds their integers to the rows of table t.
func (w *world) counted(inputs ...string) trial {
	cfg := w.config(inputs...)
	cfg.Write.Mode = table.Increment
	for _, c := range []string{"n", "m"} {
		cfg.Columns.Types[c] = plan.Type{Type: table.Integer}
	}
	return cfg
}

// sums is the content of a table of counters, by key: n and m, without marks.
type sums map[string][2]int64

func (w *world) wantSums(want sums) {
	rows := w.rows()
	for id, sum := range want {
		for i, c := range []string{"n", "m"} {
			text := rows[id][c]
			if text == "" {
				text = "0"
			}
			got, err := strconv.ParseInt(text, 10, 64)
			conformance.True(w.t, err == nil && got == sum[i], "%s: the sum of %s is %s, want %d", id, c, text, sum[i])
		}
	}
	conformance.True(w.t, len(rows) == len(want), "%d rows, want %d", len(rows), len(want))
}

// overtaken runs a load. Before its second request, another load adds to row x.
func (w *world) overtaken(cfg trial) *Report {
	sent := 0
	cfg.onSend = func([]table.Ref) {
		if sent++; sent == 2 {
			later := w.counted(w.file("second.csv", "id,n,m\nx,100,\n"))
			later.RunDir = filepath.Join(w.dir, "later")
			w.load(later)
		}
	}
	return w.load(cfg)
}

// If two loads add to the same row, only the later one may go on. The other reports records of unknown outcome.
func TestEarlierLoadNeverOverwritesLaterOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.counted(w.file("first.csv", "id,n,m\nx,1,\nx,10,\ny,1,\n"))
	cfg.Lanes.Concurrency, cfg.Lanes.BatchRows = 1, 1
	cfg.Pacer = func() lanes.Pacer { return restless{} }
	r := w.overtaken(cfg)
	conformance.True(t, r.Written == 2 && r.Rejected == 1 && r.ExitCode == exitcode.Rejects, "%+v", r)
	conformance.Contains(t, strings.Join(lines(t, r.RejectsFiles[len(r.RejectsFiles)-1]), "\n"), "without this record",
		"the reject")
	// With another mark column, both loads may add to the row.
	cfg = w.counted(w.file("third.csv", "id,n,m\nx,1000,\n"))
	cfg.RunDir, cfg.Write.Marks.Column = filepath.Join(w.dir, "third"), "other"
	w.load(cfg)
	got := w.rows()
	n, _ := strconv.Atoi(got["x"]["n"])
	conformance.True(t, (n == 1101 || n == 1110) && got["y"]["n"] == "1", "%v", got)
}

// If the answer to a record is lost and a later load has added to its row, it is unknown whether the record was added.
func TestIncrementOfUnknownOutcomeIsRejectedAsMaybeApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.counted(w.file("first.csv", "id,n,m\nx,1,\n"))
	w.failNext(faults.Fault{Action: faults.DropAfter})
	r := w.overtaken(cfg)
	text := strings.Join(lines(t, r.RejectsFiles[len(r.RejectsFiles)-1]), "\n")
	conformance.True(t, r.Rejected == 1 && strings.Contains(text, "may have been added or not"), "%v", text)
	w.wantSums(sums{"x": {101, 0}})
}

// A record that is neither accepted nor refused is given up, even in a resumed load; its key's next record is added.
func TestAbandonedRecordIsNotCountedAsAdded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := "id,n,m\nx,666,\nx,1,\nx,5,\n"
	for i := range 300 {
		text += fmt.Sprintf("key%03d,1,\n", i)
	}
	cfg := w.counted(w.file("in.csv", text))
	cfg.Resume.Look, cfg.Checkpoint.Every = true, time.Hour
	cfg.Lanes.Concurrency, cfg.Lanes.RetryFor = 1, time.Minute
	bad := func(r table.Ref) bool { return r.Block.Split.Ordinal == 0 && r.Number() == 0 }
	var sent []table.Ref
	w.plan.Decide = func(faults.Request) faults.Fault {
		rows := sent // rows of the request, as there is one worker
		return faults.Fault{Action: faults.RefuseRows, RowCode: func(row int) string {
			if bad(rows[row]) {
				return "OTSInternalServerError"
			}
			return ""
		}}
	}
	for attempt := range 2 {
		ctx, kill := context.WithCancel(t.Context())
		saves := 0
		cfg.keeping.OnSave = func(*checkpoint.Snapshot) error {
			if saves++; saves > 1 && attempt == 0 {
				return context.Canceled // no more is saved, as after kill -9
			}
			return nil
		}
		cfg.onSend = func(rows []table.Ref) {
			sent = slices.Clone(rows)
			if attempt == 0 && slices.ContainsFunc(rows, func(r table.Ref) bool { return r.Number() == 2 }) {
				kill()
			}
		}
		r, err := cfg.run(ctx)
		kill()
		w.plan.Change(w.plan.Only, nil)
		conformance.True(t, attempt != 1 || err == nil && r.Written == 302 && r.Rejected == 1 && r.MaybeApplied == 1,
			"%v, %d written, %d rejected, %d of them maybe applied", err, r.Written, r.Rejected, r.MaybeApplied)
	}
	conformance.Equal(t, w.rows()["x"]["n"], "6", "the sum")
}

// The value of a row's mark column may not be a mark.
func TestMarkColumnWithOtherContentIsRefused(t *testing.T) {
	w := newWorld(t)
	cfg := w.config(w.file("old.csv", "id,_tsimport\nx,7\ny,mine\n"))
	cfg.RunDir = filepath.Join(w.dir, "old")
	cfg.Columns.Types["_tsimport"] = plan.Type{Type: table.String}
	w.load(cfg)
	must(t, tabletest.Do(w.sdk(), tabletest.Put("t", tabletest.Key("id", "z"), tabletest.Cells{"_tsimport": int64(7)})))
	r := w.load(w.counted(w.file("in.csv", "id,n,m\nx,1,\ny,1,\nz,1,\n")))
	text := strings.Join(lines(t, r.RejectsFiles[len(r.RejectsFiles)-1]), "\n")
	conformance.Equal(t, r.Rejected, 3, "rejected")
	conformance.Equal(t, strings.Count(text, "holds a value that is not a mark"), 3, "times")
}

type keptRejects struct {
	rows   []table.Reject
	failed error
}

func (k *keptRejects) Reject(_ int, r table.Reject) error {
	k.rows = append(k.rows, r)
	return k.failed
}

func (k *keptRejects) Flush() error { return k.failed }

func newAccount(limit int64) (*ledger.Account, *keptRejects, *stopper) {
	kept, stop := new(keptRejects), newStopper(func() {})
	return &ledger.Account{Counts: new(ledger.Counted), Rejects: kept, Files: new(ledger.Files),
		Limit: ledger.MaxErrors{Rows: limit}, Stop: stop.stop, Hot: partitioner.NewHotKeys(table.String)}, kept, stop
}

func TestLoadStopsWhenRejectCannotBeKept(t *testing.T) {
	a, kept, stop := newAccount(-1)
	kept.failed = errors.New("the disk is full")
	a.Rejected(new(table.Split), &intake.Reject{Reason: table.Reason{Code: "WrongType"}})
	conformance.True(t, errors.Is(stop.cause, kept.failed) && a.Counts.Rejected == 1,
		"%v, %d rejected", stop.cause, a.Counts.Rejected)
	stop.stop(ledger.ErrLimit)
	conformance.True(t, errors.Is(stop.cause, kept.failed) && stop.ended.Err() != nil, "the first cause is %v", stop.cause)
}

var update = flag.Bool("update", false, "write the golden files of these tests")

// fillFields gives every exported field that JSON shows a distinct value, in field order.
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
	case reflect.Uint8: // a slice of bytes, as text
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

// Programs read summary.json and the state of a running load, so names, order and omission of empty fields are stable.
func TestJSONOfReportsAndStatesIsStable(t *testing.T) {
	for name, v := range map[string]any{"report": new(Report), "state": new(State)} {
		for _, full := range []bool{false, true} {
			file := filepath.Join("testdata", name+"-empty.json")
			if full {
				file = filepath.Join("testdata", name+"-full.json")
				fillFields(reflect.ValueOf(v).Elem(), new(int))
			}
			got := conformance.Try(json.MarshalIndent(v, "", "  ")).Must(t)
			got = append(got, '\n')
			if *update {
				must(t, os.WriteFile(file, got, 0o644))
			}
			want := conformance.Try(os.ReadFile(file)).Must(t)
			conformance.Equal(t, bytes.Equal(got, want), true, "%s: got\n%s", file, got)
			again := reflect.New(reflect.TypeOf(v).Elem())
			must(t, json.Unmarshal(want, again.Interface()))
			text, err := json.MarshalIndent(again.Interface(), "", "  ")
			conformance.True(t, err == nil && bytes.Equal(append(text, '\n'), want), "%s: written again it is\n%s", file, text)
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

func TestSlowestPartitionIsReported(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		w.partitioned(server.Simulation{Config: sim.Config{PartitionUnits: 4000, Burst: 250 * time.Millisecond,
			Slow: map[int]float64{2: 0.025}}},
			"k00300", "k00600", "k00900")
		cfg := w.config(w.file("in.csv", shuffled(1200)))
		var longest atomic.Int64
		cfg.Watch.Progress = new(ledger.Progress)
		cfg.onSend = func([]table.Ref) { longest.Store(max(longest.Load(), cfg.Watch.Progress.SlowestLeft.Load())) }
		r := w.load(cfg)
		s := r.Slowest
		conformance.MustTrue(t, s != nil, "no partition is named")
		conformance.True(t, s.Partition == 2 && s.From == "k00600" && s.Rows == 300 && s.Waiting >= 1 &&
			s.OthersWaiting <= s.Waiting/2, "%+v", s)
		if r.Throttled == 0 || r.Rejected != 0 || r.Retried != r.Throttled || r.RowsSent != r.Written+r.Throttled {
			t.Errorf("rows that were throttled were not sent again, once for each time: %+v", r.ReportAttempts)
		}
		conformance.True(t, longest.Load() >= 500,
			"the slowest partition was never said to need more than %d ms; it took %.1f s", longest.Load(), r.Seconds)
	})
}

func TestTimelineAgreesWithLedger(t *testing.T) {
	start := time.Now()
	counts := new(ledger.Counted)
	r := newTimelineRecorder(counts, start, idle)
	one := r.slots(partitioner.NewMap(nil))[0]
	counts.Read, counts.Rejected = 1000, 3
	r.point(start)
	counts.Written = 200
	r.landed(&lanes.Landing{At: start.Add(time.Second), Slot: one, Answer: lanes.Answer{Final: 200, Accepted: 200,
		Rows: 200}, Requests: 1})
	// The partition splits before an answer to the old lane.
	parts := r.slots(partitioner.NewMap([]table.Value{{Type: table.Integer, Int: 5}}))
	counts.Written = 600
	r.landed(&lanes.Landing{At: start.Add(2 * time.Second), Slot: one, Answer: lanes.Answer{Final: 150, Throttled: 50,
		Accepted: 150, Rows: 200}, Retried: 10, Requests: 2})
	r.landed(&lanes.Landing{At: start.Add(2 * time.Second), Slot: parts[1], Answer: lanes.Answer{Final: 250, Accepted: 500,
		Rows: 250}, Requests: 1})
	tl := r.timeline()
	want := []ledger.Point{{Read: 1000, Rejected: 3, Queued: 997}, {Final: 200, Requests: 1, Units: 200, Queued: 797},
		{Final: 400, Throttled: 50, Retried: 10, Requests: 3, Units: 650, Queued: 397}}
	conformance.True(t, len(tl.Points) == 3 && tl.Points[0] == want[0] && tl.Points[1] == want[1] &&
		tl.Points[2] == want[2], "points %+v, want %+v", tl.Points, want)
	h := tl.Heat
	conformance.True(t, len(h.Partitions) == 2 && h.Partitions[0] == "" && h.Partitions[1] == "5" &&
		h.Counts[1][0] == 200 && h.Counts[2][0] == 150 && h.Counts[2][1] == 250, "heat %+v", h)
}

func TestTimelineOfOneDayIsBounded(t *testing.T) {
	start := time.Now()
	counts := new(ledger.Counted)
	r := newTimelineRecorder(counts, start, idle)
	only := r.slots(partitioner.NewMap(nil))[0]
	for s := range 86400 {
		counts.Written++
		r.landed(&lanes.Landing{At: start.Add(time.Duration(s) * time.Second), Slot: only, Answer: lanes.Answer{Final: 1},
			Requests: 1})
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
	was, twice := s.ends[record]
	conformance.True(s.t, !twice && source == 0, "record %d of source %d is %s, and was %s", record, source, end, was)
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

// Each record ends once, and a load without checkpoints leaves only its summary and lock.
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
			if order == plan.LastWins { // rows that arrive together: one is superseded, however slowly others arrive
				text += rowsOf("", 100, func(i int) string { return fmt.Sprintf("key0,a%d,b\n", records+i) })
			}
			want, rejected := lastOf(t, text), int64(strings.Count(text, "\n,"))
			faulty := conformance.Try(faults.Random{Rate: 0.1, Delay: lateness, Seed: 3}.Plan()).Must(t)
			w.plan.Decide = faulty.Decide
			cfg := w.config(w.file("in.csv", text))
			ends := newTold(t)
			cfg.Write.Order, cfg.Watch.Ends = order, ends
			cfg.Checkpoint.None, cfg.Limits.NoSpill, cfg.Limits.Memory, cfg.Read.SplitBytes = true, true, 8<<20, 16<<10
			cfg.surveyEvery = 20 * time.Millisecond
			r := w.load(cfg)
			w.plan.Change(w.plan.Only, nil)
			w.wantRows(want)
			conformance.True(t, r.Rejected == rejected && r.Checkpoints == 0 && r.SpilledRows == 0,
				"%d rejected, want %d; %d checkpoints, %d spilled", r.Rejected, rejected, r.Checkpoints, r.SpilledRows)
			conformance.Equal(t, r.Superseded > 0, (order == plan.LastWins),
				"%v: %d rows gave way to later ones of their key", order, r.Superseded)
			counts := map[string]int64{"written": r.Written, "superseded": r.Superseded, "rejected": r.Rejected}
			maps.DeleteFunc(counts, func(_ string, n int64) bool { return n == 0 })
			conformance.True(t, maps.Equal(ends.counts, counts) && !ends.pending,
				"told of %v, the ledger has %v; pending %t", ends.counts, counts, ends.pending)
			left := conformance.Try(filepath.Glob(filepath.Join(cfg.RunDir, "*"))).Must(t)
			for _, name := range left {
				base := filepath.Base(name)
				conformance.True(t, base == rundir.SummaryFile || base == "lock", "%s is left behind", base)
			}
			conformance.Equal(t, checkpoint.Exists(cfg.RunDir), false, "there is a checkpoint")
			conformance.Refused(t, conformance.ErrorOf(os.Stat(rundir.Root)), "", "there is a folder %s", rundir.Root)
		})
	}
}
