package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
)

// attemptAt is an attempt whose plan is made.
func attemptAt(cfg Config, before *checkpoint.Snapshot) *attempt {
	cfg.setDefaults()
	key := []table.KeyColumn{{Name: "id", Type: table.String}, {Name: "n", Type: table.Integer}}
	return &attempt{
		cfg: &cfg, hooks: new(hooks), started: time.Unix(2e9, 0), service: service{traffic: new(client.Traffic)}, counts: new(ledger.Counted),
		from:    &keep.Point{Load: cfg.kept(), Job: &checkpoint.Job{Run: "run"}, Snapshot: before},
		planned: &plan.Plan{Schema: &table.Schema{Table: "t", Key: key}, Bytes: 77, Mark: "m", Request: cfg.Request()},
	}
}

func TestAnAttemptTellsWhatItResumesBeforeWhatIsPlanned(t *testing.T) {
	before := &checkpoint.Snapshot{About: checkpoint.About{
		Attempt: 2, Begun: time.Unix(1e9, 0), Counters: map[string]int64{"read": 10, "written": 4, "rejected": 1, "superseded": 2, "archived": 1},
	}}
	for name, snapshot := range map[string]*checkpoint.Snapshot{"first": nil, "resumed": before} {
		t.Run(name, func(t *testing.T) {
			var told []string
			var resumed keep.Resumed
			cfg := Config{RunDir: "run"}
			cfg.Resume.OnResume = func(r keep.Resumed) { told, resumed = append(told, "resume"), r }
			cfg.Watch.OnPlan = func(*plan.Plan) { told = append(told, "plan") }
			a := attemptAt(cfg, snapshot)
			a.beginCounts()
			a.announce()
			want, steps, attempts := keep.Resumed{}, []string{"plan"}, 1
			if snapshot != nil {
				want = keep.Resumed{RunDir: "run", Attempt: 3, Final: 8, Read: 10, Written: 4, Since: before.Begun}
				steps, attempts = []string{"resume", "plan"}, 3
			}
			if !slices.Equal(told, steps) || !reflect.DeepEqual(resumed, want) || a.counts.Attempts != attempts || a.cfg.Watch.Progress.BytesTotal.Load() != 77 {
				t.Errorf("told %q, %+v; %d attempts of %d bytes", told, resumed, a.counts.Attempts, a.cfg.Watch.Progress.BytesTotal.Load())
			}
		})
	}
}

func TestOnlyRowsThatMayNotBeSentTwiceAreAnnotated(t *testing.T) {
	mark := markBytes("m")
	for name, tt := range map[string]struct {
		set              func(*Config, *plan.Plan)
		stamps, numbered bool
		rowBytes         int
		column           string
	}{
		"rows with keys of the input": {},
		"a dry run":                   {set: func(c *Config, p *plan.Plan) { c.DryRun, p.Restamp, p.Schema.Numbered = true, true, 1 }},
		"updates":                     {set: func(_ *Config, p *plan.Plan) { p.Restamp = true }, stamps: true},
		"numbered rows":               {set: func(_ *Config, p *plan.Plan) { p.Schema.Numbered = 1 }, numbered: true, rowBytes: mark, column: "m"},
		"numbered rows without marks": {set: func(_ *Config, p *plan.Plan) { p.Schema.Numbered, p.Mark = 1, "" }, numbered: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := attemptAt(Config{}, nil)
			if tt.set != nil {
				tt.set(a.cfg, a.planned)
			}
			x := a.newAnnotations()
			if x.Size == nil || (x.Stamps != nil) != tt.stamps || (x.rowExtra != nil) != tt.stamps || x.Increments != nil || (x.AutoIncrement != nil) != tt.numbered {
				t.Errorf("%+v", x)
			}
			if x.rowBytes != tt.rowBytes || a.counts.MarkColumn != tt.column {
				t.Errorf("%d bytes a row, mark column %q", x.rowBytes, a.counts.MarkColumn)
			}
		})
	}
	a := attemptAt(Config{Write: Write{Mode: table.Increment}}, nil)
	x := a.newAnnotations()
	if x.Increments == nil || x.AutoIncrement != nil || x.rowBytes != mark+x.Increments.ConditionBytes() || a.counts.MarkColumn != "m" {
		t.Errorf("increments: %+v, mark column %q", x, a.counts.MarkColumn)
	}
}

// A search for rows ends at the first one that is older than the load: a time that is too late would lose rows.
func TestNoMarkOfALoadIsOlderThanItsBeginning(t *testing.T) {
	now := time.Now()
	begun := now.Add(-24 * time.Hour)
	for name, tt := range map[string]struct {
		before *checkpoint.Snapshot
		want   time.Time
	}{
		"a first attempt at an unknown time of the service": {nil, now.Add(-clockUnknown)},
		"the first attempt has kept it":                     {&checkpoint.Snapshot{About: checkpoint.About{Begun: now, Counters: map[string]int64{marksBegunAt: begun.UnixMilli()}}}, begun},
		"the first attempt was of an earlier version":       {&checkpoint.Snapshot{About: checkpoint.About{Begun: begun}}, begun.Add(-clockUnknown)},
	} {
		a := attemptAt(Config{}, tt.before)
		if ms := marksBegun(a.service.clock(), a.from); ms < tt.want.UnixMilli() || ms > tt.want.Add(time.Minute).UnixMilli() {
			t.Errorf("%s: %v, want %v", name, time.UnixMilli(ms), tt.want)
		}
	}
}

func TestHowALoadEnds(t *testing.T) {
	stopped := errors.New("the disk is full")
	for name, tt := range map[string]struct {
		counts ledger.ReportCounts
		dry    bool
		err    error
		state  string
		exit   int
		failed bool
		limit  ledger.MaxErrors // the zero one is three rows
	}{
		"every row is written":               {counts: ledger.ReportCounts{Read: 2, Written: 2}, state: StateFinished},
		"some records are rejected":          {counts: ledger.ReportCounts{Read: 2, Written: 1, Rejected: 1}, state: StateFinished, exit: exitcode.Rejects},
		"too many are, as seen at the end":   {counts: ledger.ReportCounts{Read: 4, Rejected: 4}, state: StateErrorLimit, exit: exitcode.ErrorLimit},
		"a share too large, seen at the end": {counts: ledger.ReportCounts{Read: 4, Written: 3, Rejected: 1}, state: StateErrorLimit, exit: exitcode.ErrorLimit, limit: ledger.MaxErrors{Share: true, Percent: 24}},
		"too many are":                       {err: errors.Join(ledger.ErrLimit, stopped), state: StateErrorLimit, exit: exitcode.ErrorLimit},
		"the user stops it":                  {counts: ledger.ReportCounts{Read: 2, Unfinished: 2}, err: &Interrupted{Signal: "SIGTERM", ExitCode: exitcode.Terminated}, state: StateInterrupted, exit: exitcode.Terminated},
		"it fails, though many are rejected": {counts: ledger.ReportCounts{Read: 4, Rejected: 4}, err: stopped, failed: true},
		"rows have not come again":           {counts: ledger.ReportCounts{Read: 2, Written: 1, Unfinished: 1}, state: StateFinished, failed: true},
		"a dry run":                          {counts: ledger.ReportCounts{Read: 2, Unfinished: 2}, dry: true, state: StateFinished},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Report{Counted: ledger.Counted{ReportCounts: tt.counts}}
			err := r.conclude(&Config{DryRun: tt.dry, Limits: Limits{MaxErrors: cmp.Or(tt.limit, ledger.MaxErrors{Rows: 3})}}, tt.err)
			if r.State != tt.state || r.ExitCode != tt.exit || (err != nil) != tt.failed {
				t.Errorf("%q, exit %d, %v", r.State, r.ExitCode, err)
			}
		})
	}
}

// TestTheErrorLimitCountsWhatTheAttemptsOfOneLoadHaveRejected: seams are not errors.
func TestTheErrorLimitCountsWhatTheAttemptsOfOneLoadHaveRejected(t *testing.T) {
	before := new(checkpoint.Snapshot)
	before.Counters = map[string]int64{"read": 100, "written": 90, "rejected": 10, "seams": 3}
	r := new(Report)
	r.Resume(before)
	r.Read, r.Rejected, r.Seams = r.Read+11, r.Rejected+3, r.Seams+2
	for over := range int64(2) { // 8 of 111
		if got := r.OverLimit(ledger.MaxErrors{Rows: 8 - over}, false); got != (over == 1) {
			t.Errorf("%d rows: over the limit %v", 8-over, got)
		}
		if got := r.OverLimit(ledger.MaxErrors{Share: true, Percent: float64(8 - over)}, true); got != (over == 1) {
			t.Errorf("%d %%: over the limit %v", 8-over, got)
		}
	}
}

// TestAResumedLoadTakesTheTypesOfItsFirstAttempt: what the sample says by then does not count.
func TestAResumedLoadTakesTheTypesOfItsFirstAttempt(t *testing.T) {
	w := newWorld(t)
	cfg := w.config(w.file("a.jsonl", strings.Repeat(`{"id":"a","mix":1,"f":1.5}`+"\n", 50)+`{"id":"b","mix":"x","f":1}`+"\n"), w.file("b.csv", "id,mix,f\nc,2,2.50\n,3,1.5\n"))
	cfg = stopped(w, cfg)
	job, err := checkpoint.ReadJob(cfg.RunDir)
	must(t, err)
	var r plan.Request
	(&keep.Point{Job: new(checkpoint.Job)}).Settings(&r, job)
	want := map[string]plan.Inferred{
		"id": {Type: table.String, Own: table.String, Asked: true}, "mix": {Type: table.Any, Own: table.Integer}, "f": {Type: table.Double, Own: table.Double, Zeros: true},
	}
	conformance.Equal(t, gocmp.Diff(want, r.Inferred), "", "(-want +got)")
}

// TestALoadThatIsStartedOverWaitsForTheAttemptBefore: a late request with the old content would come over the new one.
func TestALoadThatIsStartedOverWaitsForTheAttemptBefore(t *testing.T) {
	now := time.Now()
	before := &attempt{cfg: &Config{}, from: &keep.Point{Hold: now.Add(time.Second), SuspectUntil: now.Add(time.Minute)}}
	cfg := before.again(Config{Resume: keep.Resume{Look: true}}, errKilled)
	after := &attempt{cfg: &cfg, started: now}
	cfg.DryRun = true
	must(t, after.findResumePoint(t.Context()))
	if got := after.from.Hold; !got.Equal(now.Add(time.Minute)) || cfg.Resume.Look {
		t.Errorf("nothing is sent until %v, want %v", got, now.Add(time.Minute))
	}
}

func TestAKeyRisesIfItsNumbersOrDatesDo(t *testing.T) {
	for name, c := range map[string]struct {
		of   table.Type
		key  func(i int) table.Value
		want bool
	}{
		"numbers in turn":    {table.Integer, func(i int) table.Value { return table.Value{Type: table.Integer, Int: int64(i - 20)} }, true},
		"numbers in a mixup": {table.Integer, func(i int) table.Value { return table.Value{Type: table.Integer, Int: int64(i * 37 % 41)} }, false},
		"one number":         {table.Integer, func(int) table.Value { return table.Value{Type: table.Integer, Int: 7} }, false},
		"times": {table.String, func(i int) table.Value {
			return table.Value{Type: table.String, Bytes: fmt.Appendf(nil, "2026-01-02 10:%02d", i)}
		}, true},
		"sorted texts": {table.String, func(i int) table.Value {
			return table.Value{Type: table.String, Bytes: fmt.Appendf(nil, "card-%05d", i)}
		}, false},
	} {
		r := rising{of: c.of}
		for i := range 40 {
			r.add(table.AppendKey(nil, c.key(i)))
		}
		conformance.Equal(t, r.is(), c.want, "%s: %d of %d rose", name, r.rose, r.rows)
	}
	few := rising{of: table.Integer}
	few.add(table.AppendKey(nil, table.Value{Type: table.Integer, Int: 1}))
	if few.is() {
		t.Error("one row rises")
	}
}
