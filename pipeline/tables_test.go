package pipeline

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/lifecycle"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
)

// purchases returns rows with the key id whose months cycle through the given number of months from 2023-11 on.
func purchases(rows, months int) string {
	return rowsOf("id,at,v\n", rows, func(i int) string {
		month := 10 + i%months
		return fmt.Sprintf("k%06d,%04d-%02d-%02d 10:00:00,%d\n", i, 2023+month/12, month%12+1, 1+i%28, i)
	})
}

func (w *world) byMonth(inputs ...string) trial {
	cfg := w.config(inputs...)
	cfg.Target.Table = "t_{month(at)}"
	return cfg
}

func TestTooManyTablesStopLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.byMonth(w.file("a.csv", purchases(300, 5)))
	cfg.Limits.MaxTables = 4
	r, err := cfg.run(context.Background())
	conformance.MustTrue(t, err != nil && strings.Contains(err.Error(), "--max-tables 4"), "%v", err)
	conformance.Equal(t, len(r.Tables), 4, "tables")
	conformance.Equal(t, r.Read, r.Written+r.Unfinished, "read")
}

// Of 24 months in mixed order, 12 are loaded into tables and 12 into the archive.
func TestArchivedTablesDoNotCountAgainstLimit(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]string{12: "", 11: "--max-tables 11"} {
		w := newWorld(t)
		cfg := w.aging(w.file("a.csv", purchases(240, 24)))
		cfg.Limits.MaxTables = most
		r, err := cfg.run(context.Background())
		if want == "" {
			must(t, err)
			conformance.True(t, r.Written == 120 && r.Archived == 120 && len(r.Tables) == 24,
				"%d written, %d archived, %d tables", r.Written, r.Archived, len(r.Tables))
			continue
		}
		conformance.Refused(t, err, want, "error")
		for _, of := range r.Tables {
			if of.Archived > 0 {
				most++
			}
		}
		conformance.True(t, len(r.Tables) <= most, "%d tables, %d of them archived or kept", len(r.Tables), most)
	}
}

func TestUncreatableTablesStopLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.byMonth(w.file("a.csv", purchases(10, 2)))
	cfg.Target.Create = false
	_, err := cfg.run(context.Background())
	conformance.Refused(t, err, "--create", "error")
	other := w.config(w.file("b.csv", "n,v\n1,2\n"))
	other.Target.Table, other.Target.Key, other.RunDir = "t_202312", []table.KeyColumn{{Name: "n", Type: table.Integer}},
		w.dir+"/other"
	w.load(other)
	cfg.Target.Create, cfg.RunDir = true, w.dir+"/again"
	conformance.Refused(t, conformance.ErrorOf(cfg.run(context.Background())), "primary key n:integer", "error")
}

func TestRowsSupersedeOnlyWithinTheirTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.load(w.byMonth(w.file("a.csv", "id,at,v\nk,2024-01-01,1\nk,2024-02-01,2\nk,2024-01-09,3\n")))
	conformance.Equal(t, r.Written+r.Superseded, 3, "%d written, %d superseded", r.Written, r.Superseded)
	for name, v := range map[string]string{"t_202401": "3", "t_202402": "2"} {
		rows := w.rowsOf(name)
		conformance.True(t, len(rows) == 1 && strings.HasSuffix(rows["k"]["v"], v), "%s has %v", name, rows)
	}
}

func (w *world) described(name string) *client.Table {
	w.t.Helper()
	return conformance.Try(w.admin().Describe(name)).Must(w.t)
}

// aging returns a load with a policy: the newest 4 months are hot, the next 8 are warm, and older ones are archived.
func (w *world) aging(inputs ...string) trial {
	cfg := w.byMonth(inputs...)
	policy, err := lifecycle.Parse("policy", []byte("period: month\nclasses:\n- {up_to: 3, reserved: {read: 0, write: "+
		"500}}\n- {up_to: 11, reserved: {read: 200, write: 10}, max_versions: 2}\n- {archive: "+w.dir+"/old}\n"))
	must(w.t, err)
	cfg.Target.Policy, cfg.Target.PolicyNow = policy, time.Date(2025, 10, 20, 0, 0, 0, 0, time.UTC)
	return cfg
}

// archiveOf returns the header and the lines of purchases that belong in the archive's file of a month.
func archiveOf(text, month string) (want []string) {
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if i == 0 || strings.Contains(line, ","+month+"-") {
			want = append(want, line)
		}
	}
	return want
}

func TestPolicyArchivesOldRowsAndConfiguresNewTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := purchases(2400, 24)
	cfg := w.aging(w.file("a.csv", text))
	r := w.load(cfg)
	w.verifies(cfg, r)
	conformance.MustTrue(t, r.Written == 1200 && r.Archived == 1200 && len(r.Tables) == 24 && len(r.ArchiveFiles) == 12,
		"%d written, %d archived, %d tables, files %v", r.Written, r.Archived, len(r.Tables), r.ArchiveFiles)
	for i, of := range r.Tables {
		class, archived := 3, int64(100)
		if i >= 12 {
			class, archived = 2, 0
		}
		if i >= 20 {
			class = 1
		}
		conformance.True(t, of.Class == class && of.Archived == archived && of.Archived+of.Written == 100, "%+v", of)
		if archived > 0 {
			got, want := lines(t, filepath.Join(w.dir, "old", of.Name+".csv")), archiveOf(text, of.Name[2:6]+"-"+of.Name[6:])
			conformance.Same(t, got, want, "%s: %d lines, want %d", of.Name, len(got), len(want))
			continue
		}
		d := w.described(of.Name)
		got := []int{d.ReservedRead, d.ReservedWrite, d.MaxVersions}
		conformance.True(t, (class != 1 || slices.Equal(got, []int{0, 500, 1})) &&
			(class != 2 || slices.Equal(got, []int{200, 10, 2})), "%s of class %d has %v", of.Name, class, got)
	}
}

func TestLoadThatCannotArchiveFailsAndResumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file("old", "a file where the folder should be")
	text := purchases(2400, 24)
	cfg := w.aging(w.file("a.csv", text))
	cfg.Resume.Look = true
	_, err := cfg.run(context.Background())
	conformance.MustTrue(t, err != nil && strings.Contains(err.Error(), "archive rows of table t_2023"), "%v", err)
	must(t, os.Remove(filepath.Join(w.dir, "old")))
	r := w.load(cfg)
	w.verifies(cfg, r)
	conformance.Equal(t, r.Archived, 1200, "archived")
	conformance.Equal(t, r.Written+r.Superseded, 1200, "superseded")
	got, want := lines(t, filepath.Join(w.dir, "old", "t_202401.csv")), archiveOf(text, "2024-01")
	conformance.Same(t, got, want, "%d lines, want %d", len(got), len(want))
}

func TestDryRunCreatesNeitherTablesNorArchiveFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.aging(w.file("a.csv", purchases(240, 24)))
	cfg.DryRun = true
	r := w.load(cfg)
	conformance.True(t, r.Unfinished == 120 && r.Archived == 120 && len(r.Tables) == 24 && r.Tables[23].Unfinished == 10 &&
		r.Tables[0].Archived == 10 && !r.Created, "%d to write, %d archived, tables %+v", r.Unfinished, r.Archived, r.Tables)
	_, err := os.Stat(filepath.Join(w.dir, "old"))
	conformance.True(t, os.IsNotExist(err), "the archive is there: %v", err)
	conformance.Equal(t, len(w.tableNames()), 0, "tables %v", w.tableNames())
}

func (w *world) admin() *client.Admin {
	w.t.Helper()
	return &client.Admin{Client: w.sdk(), Context: context.Background()}
}

func (w *world) remake(name string) {
	w.t.Helper()
	admin := w.admin()
	conformance.Must(w.t, admin.Drop(name))
	if err := admin.Create(name, []table.KeyColumn{{Name: "id", Type: table.String}},
		table.Definition{TimeToLive: -1, MaxVersions: 1}); err != nil {
		w.t.Error(err)
	}
}

func TestRunWithReplacedTableIsNotResumed(t *testing.T) {
	for name, want := range map[string]string{"made again": "table t_b was dropped and created again",
		"gone": "table t_b was dropped"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.template = "t_{what}"
			cfg := w.config(w.file("in.csv", fortyRows()))
			cfg.Lanes.BatchRows, cfg.Lanes.Concurrency = 1, 1
			cfg.Pacer = func() lanes.Pacer { return restless{} }
			cfg.Resume.Look = true
			drain, stop := context.WithCancelCause(context.Background())
			sent := 0
			cfg.Drain, cfg.onSend = drain, func([]table.Ref) {
				if sent++; sent == 30 { // by then both tables exist
					stop(&Interrupted{Signal: "the test", ExitCode: exitcode.Interrupted})
				}
			}
			conformance.MustEqual(t, w.load(cfg).State, StateInterrupted, "state")
			cfg.Drain = nil
			w.remake("t_b")
			if name == "gone" {
				must(t, w.admin().Drop("t_b"))
			}
			text := w.refused(cfg)
			conformance.True(t, strings.Contains(text, want) && strings.Contains(text, "--fresh"), "error %s", text)
		})
	}
}

// fortyRows returns a file whose rows go to t_a and t_b alternately.
func fortyRows() string {
	return rowsOf("id,what\n", 40, func(i int) string { return fmt.Sprintf("key%d,%c\n", i, 'a'+i%2) })
}

// Only the final check detects that the table was recreated: rows can still be written to it.
func TestTableRecreatedDuringLoadFailsIt(t *testing.T) {
	for _, template := range []string{"", "t_{what}"} {
		t.Run("table "+template, func(t *testing.T) {
			w := newWorld(t)
			w.template = template
			cfg := w.config(w.file("in.csv", fortyRows()))
			cfg.Lanes.BatchRows, cfg.Lanes.Concurrency = 1, 1
			cfg.Pacer = func() lanes.Pacer { return restless{} }
			cfg.Resume.Look = true
			sent, name := 0, "t"
			if template != "" {
				name = "t_a"
			}
			cfg.onSend = func([]table.Ref) {
				if sent++; sent == 20 {
					w.remake(name)
				}
			}
			r, err := cfg.run(context.Background())
			conformance.MustTrue(t, err != nil && r.ExitCode == exitcode.Refused &&
				strings.Contains(err.Error(), "table "+name+" was dropped and created again"),
				"exit code %d, error %v", r.ExitCode, err)
			conformance.Equal(t, r.Remade, true, "the report does not say that the table was made again")
			conformance.Contains(t, w.refused(cfg), "was dropped and created again", "the same command again")
		})
	}
}

// Reading the partitions detects the replacement before all rows are sent.
func TestLoadStopsWhenTableWasReplaced(t *testing.T) {
	ids := keep.NewTableIDs()
	survey := newPartitionPoller(onePartition{}, 0)
	for _, created := range []int64{1, 0, 1} { // 0 if the service does not tell
		survey.note(false, ids.See("t", created))
	}
	select {
	case err := <-survey.fatal:
		t.Fatal(err)
	default:
	}
	for _, created := range []int64{2, 3} {
		survey.note(false, fmt.Errorf("look: %w", ids.See("t", created)))
	}
	select {
	case err := <-survey.fatal:
		conformance.Contains(t, err.Error(), "created again", "%v", err)
	default:
		t.Error("nothing stops the load")
	}
}

// clocked records when the partitions are read.
type clocked struct {
	begun time.Time
	at    []time.Duration
}

func (c *clocked) Read(now time.Time) ([]table.Value, bool, error) {
	c.at = append(c.at, now.Sub(c.begun).Round(time.Second))
	return nil, true, nil
}

func TestFirstMapReadingsAreFrequent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clocked{begun: time.Now()}
		s := newPartitionPoller(c, 0)
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Second)
		defer stop()
		must(t, s.run(ctx))
		// At least a quarter of a second passes between two readings.
		conformance.Equal(t, fmt.Sprint(c.at), "[1s 3s 8s 16s 32s 1m2s 1m33s]", "read after")
	})
}

// heldReading holds back the first rows until partitions are read, and that reading until the load is over.
type heldReading struct {
	http.RoundTripper
	writing, waiting, over atomic.Bool
	held                   chan struct{} // closed when the reading waits
}

func (h *heldReading) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/BatchWriteRow"):
		h.writing.Store(true)
		<-h.held
	case strings.HasSuffix(r.URL.Path, "/DescribeTable") && h.writing.Load() && !h.over.Swap(true):
		h.waiting.Store(true)
		close(h.held)
		<-r.Context().Done()
		h.waiting.Store(false)
		return nil, context.Cause(r.Context())
	}
	return h.RoundTripper.RoundTrip(r)
}

// Reading the partitions may take longer than the load, but must end with it, because it could create tables.
func TestPartitionReadingEndsWithLoad(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		h := &heldReading{RoundTripper: w.transport(), held: make(chan struct{})}
		cfg := w.config(w.file("in.csv", "id,n\na,1\nb,2\n"))
		cfg.Target.Client.Transport = h
		r := w.load(cfg)
		conformance.True(t, r.Written == 2 && h.over.Load(), "%d rows written; held back: %v", r.Written, h.over.Load())
		conformance.Equal(t, h.waiting.Load(), false, "a reading still waits for its answer")
	})
}

// slowReading is a reading that takes a minute and cannot be stopped.
type slowReading struct{ running, most atomic.Int64 }

func (s *slowReading) Read(time.Time) ([]table.Value, bool, error) {
	s.most.Store(max(s.most.Load(), s.running.Add(1)))
	time.Sleep(time.Minute)
	s.running.Add(-1)
	return nil, true, nil
}

func TestPartitionReadingsNeverOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := new(slowReading)
		s := newPartitionPoller(from, 0)
		graceful, stop := context.WithTimeout(t.Context(), time.Second) // the load drains while it first reads the partitions
		defer stop()
		conformance.Equal(t, s.readWithin(graceful), nil, "the first reading")
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		conformance.Equal(t, s.run(ctx), nil, "error")
		time.Sleep(2 * time.Minute)
		most, running := from.most.Load(), from.running.Load()
		conformance.True(t, most == 1 && running == 0, "%d readings at the same time, %d still run", most, running)
	})
}

// partitioned creates table t with the string key id and partitions that begin at the keys.
func (w *world) partitioned(c server.Simulation, keys ...string) {
	w.t.Helper()
	must(w.t, w.admin().Create("t", []table.KeyColumn{{Name: "id", Type: table.String}},
		table.Definition{TimeToLive: -1, MaxVersions: 1}))
	must(w.t, w.server.Sim().Simulate("t", c))
	w.cutAt(0, keys...)
}

func (w *world) cutAt(unavailable time.Duration, keys ...string) {
	w.t.Helper()
	var at []sim.Key
	for _, k := range keys {
		at = append(at, sim.Key(k))
	}
	must(w.t, w.server.Sim().Split(context.Background(), "t", server.Cut{Keys: at, Unavailable: unavailable}))
}

func numbered(prefix string, rows int) string {
	return rowsOf("id,a\n", rows, func(i int) string { return fmt.Sprintf("%s%05d,v%d\n", prefix, i, i) })
}

func TestUnavailablePartitionDoesNotHoldUpOthers(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		w.partitioned(server.Simulation{}, "k00500")
		must(t, w.server.Sim().Move("t", 0, time.Hour))
		cfg := w.config(w.file("in.csv", numbered("k", 1000)))
		cfg.Lanes.RetryFor = 2 * time.Second
		cfg.Lanes.Concurrency = 1 // even the only worker is not held up
		r, err := cfg.run(context.Background())
		conformance.True(t, err != nil && strings.Contains(err.Error(), "of the partition from the first key to k00500") &&
			strings.Contains(err.Error(), "OTSPartitionUnavailable"), "the error does not name partition and answer: %v", err)
		conformance.True(t, r.Written == 500 && r.Unfinished == 500 && r.Rejected == 0 && r.ExitCode == exitcode.Failed,
			"%d written, %d unfinished, %d rejected, exit %d", r.Written, r.Unfinished, r.Rejected, r.ExitCode)
	})
}

func TestSinglePartitionKeyIsReportedDuringLoad(t *testing.T) {
	many := func(rows int, id func(i int) string) string {
		return rowsOf("id,n\n", rows, func(i int) string { return fmt.Sprintf("%s,%d\n", id(i), i) })
	}
	one := func(int) string { return "one" }
	for _, tt := range []struct {
		name, text   string
		dryRun, said bool
		share        float64 // share of the hot key in the report; 0 means none
	}{
		{"all rows", many(17_000, one), false, true, 1},
		{"of a short input, once it has been read", many(1_500, one), false, true, 1},
		{"a dry run", many(1_500, one), true, true, 1},
		{"a dry run of few rows", many(300, one), true, false, 1},
		{"half of the rows", many(17_000, func(i int) string { return fmt.Sprint(i % 2 * i) }), true, false, 0.5},
		{"two fifths", many(4000, func(i int) string { return fmt.Sprint(i % 5 / 2 * i) }), false, false, 0.4},
		{"sorted by a key of many values", many(17_000, func(i int) string { return fmt.Sprint(i / 1200) }), true, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			cfg := w.config(w.file("in.csv", tt.text))
			cfg.Target.Key = []table.KeyColumn{{Name: "id", Type: table.String}, {Name: "n", Type: table.Integer}}
			cfg.DryRun, cfg.Target.Absent = tt.dryRun, tt.dryRun
			var said []ledger.ReportHotKey
			written := int64(-1)
			cfg.Watch.Progress = new(ledger.Progress)
			cfg.Watch.OnHotKey = func(h ledger.ReportHotKey, rows int64) {
				said, written = append(said, h), cfg.Watch.Progress.Ended.Written.Load()
				conformance.True(t, rows <= 17_000, "%d rows", rows)
			}
			r := w.load(cfg)
			if tt.said != (len(said) == 1) || tt.said && (said[0] != ledger.ReportHotKey{Column: "id", Value: "one", Share: 1} ||
				!tt.dryRun && written == r.Written) {
				t.Errorf("said %+v, when %d rows were written", said, written)
			}
			conformance.True(t, tt.share == 0 == (len(r.HotKeys) == 0) &&
				(tt.share == 0 || math.Abs(r.HotKeys[0].Share-tt.share) <= .05), "reported %+v", r.HotKeys)
		})
	}
}

// Every kind of memory, and the disk, is filled up to its limit.
func TestFullMemorySlowsButNeverEndsLoad(t *testing.T) {
	huge := strings.Repeat("x", 10<<10)
	text := rowsOf("id,a\n", 12_000, func(i int) string {
		if i%4000 == 7 {
			return fmt.Sprintf("k%05d,%s\n", i%6000, huge)
		}
		return fmt.Sprintf("k%05d,%d\n", i%6000, i)
	})
	want := lastOf(t, text)
	for _, tt := range []struct {
		name                string
		memory, tempMax     int64
		waits, full, spills bool
	}{{name: "nothing at all", memory: 1, tempMax: 1, waits: true},
		{name: "a little, and a full disk", memory: 4 << 20, tempMax: 1, waits: true, full: true},
		{name: "a little, and disk enough", memory: 4 << 20, spills: true}} {
		t.Run(tt.name, virtual(func(t *testing.T, w *world) {
			w.partitioned(server.Simulation{}, "k01000", "k02000", "k03000", "k04000")
			cfg := w.config(w.file("in.csv", text))
			cfg.Limits.Memory, cfg.Limits.TempMax, cfg.Limits.TempDir = tt.memory, tt.tempMax, w.dir
			cfg.Pacer = func() lanes.Pacer { return restless{} }
			cfg.Lanes.Concurrency = 2 // more would have all rows in flight
			cfg.Watch.Monitor = NewMonitor()
			opened := make(chan struct{})
			go func() {
				defer close(opened)
				wait(t, cfg.Watch.Monitor, func(s *State) bool {
					return s.Memory.Full && (!tt.full || s.Spill.Error != "") || tt.spills && s.Spill.Rows > 0
				})
			}()
			w.plan.Decide = func(r faults.Request) faults.Fault {
				<-opened
				if r.N%3 == 0 {
					return faults.Fault{Action: faults.RefuseRows, RowCode: func(i int) string { return everyThird(i, "OTSTimeout") }}
				}
				return faults.Fault{}
			}
			r := w.load(cfg)
			w.plan.Change(w.plan.Only, nil)
			w.wantRows(want)
			conformance.True(t, (!tt.waits || r.ReadWaits != 0) && (tt.memory != 1 || r.SendWaits != 0), "%+v", r)
			full := strings.Contains(r.SpillError, "no space left")
			conformance.True(t, !tt.full || full, "spill error %q with at most %d bytes on disk", r.SpillError, tt.tempMax)
			conformance.True(t, !tt.spills || r.SpilledRows != 0, "nothing was spilled")
			left, err := filepath.Glob(filepath.Join(w.dir, "tsimport-spill-*"))
			conformance.True(t, err == nil && len(left) == 0, "%v is left behind: %v", left, err)
		}))
	}
}

func wait(t *testing.T, m *Monitor, enough func(*State) bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // in case the load hangs
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var last *State
	for {
		s, err := m.State(ctx)
		if err != nil {
			t.Errorf("the load has ended or hangs: %v; last state %+v", err, last)
			return
		}
		if enough(s) {
			return
		}
		last = s
		<-tick.C
	}
}

func TestMonitorReturnsStateOfRunningLoad(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		w.partitioned(server.Simulation{}, "k00500")
		must(t, w.server.Sim().Move("t", 1, time.Hour))
		cfg := w.config(w.file("in.csv", numbered("k", 1000)))
		drain, stop := context.WithCancelCause(context.Background())
		cfg.Drain, cfg.Watch.Monitor = drain, NewMonitor()
		done := make(chan error, 1)
		go func() {
			_, err := cfg.run(context.Background())
			done <- err
		}()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for {
			s := conformance.Try(cfg.Watch.Monitor.State(ctx)).Must(t)
			if s.Written < 500 || !s.Lanes[1].Down || s.Reading {
				time.Sleep(time.Millisecond)
				continue
			}
			conformance.True(t, s.Read == 1000 && len(s.Lanes) == 2 && s.Lanes[1].From == "k00500" && s.Lanes[0].Final == 500 &&
				s.Queued+int64(s.Retrying+s.RowsOut) == 500 && s.Map.Exact && s.Map.Partitions == 2 && s.Marks.Final == 500,
				"%+v", s)
			break
		}
		stop(&Interrupted{Signal: "test", ExitCode: exitcode.Interrupted})
		must(t, <-done)
		short, cancelShort := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancelShort()
		s, err := cfg.Watch.Monitor.State(short)
		conformance.True(t, err != nil, "a load that has ended says %+v", s)
	})
}

func TestPartitionWithoutRowsNeverExhaustsPatience(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		w.partitioned(server.Simulation{})
		// While the partition is unavailable, it is split. The upper half never gets a row.
		must(t, w.server.Sim().Move("t", 0, 200*time.Millisecond))
		cfg := w.config(w.file("in.csv", numbered("k", 1000)))
		cfg.Lanes.RetryFor, cfg.Lanes.Rates.MaxRows = 500*time.Millisecond, 700
		cfg.surveyEvery = 2 * time.Millisecond
		var once sync.Once
		w.plan.Decide = func(faults.Request) faults.Fault {
			once.Do(func() { w.cutAt(200*time.Millisecond, "z") })
			return faults.Fault{}
		}
		r := w.load(cfg)
		conformance.True(t, r.Written == 1000 && r.Partitions == 2 && r.PartitionsUsed == 1 && r.Unavailable != 0,
			"%d written, %d of %d partitions used, %d unavailable", r.Written, r.PartitionsUsed, r.Partitions, r.Unavailable)
	})
}

// hot returns a file whose keys are alternately a and k00001, k00003, …, with values of the given number of bytes.
func hot(rows, bytes int) string {
	v := strings.Repeat("x", bytes)
	return rowsOf("id,a\n", rows, func(i int) string {
		if i%2 == 1 {
			return fmt.Sprintf("k%05d,%d%s\n", i, i, v)
		}
		return fmt.Sprintf("a,%d%s\n", i, v)
	})
}

func (w *world) running(cfg trial, done func(*State) bool) {
	w.t.Helper()
	drain, stop := context.WithCancelCause(context.Background())
	cfg.Drain, cfg.Watch.Monitor = drain, NewMonitor()
	ended := make(chan error, 1)
	go func() {
		_, err := cfg.run(context.Background())
		ended <- err
	}()
	wait(w.t, cfg.Watch.Monitor, done)
	stop(&Interrupted{Signal: "test", ExitCode: exitcode.Interrupted})
	must(w.t, <-ended)
}

func TestRowsQueuedForOneKeyLeaveMemoryToOtherPartitions(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		w.partitioned(server.Simulation{Config: sim.Config{Latency: 5 * time.Millisecond}}, "b")
		cfg := w.config(w.file("in.csv", hot(8000, 2000)))
		cfg.Write.Mode = table.Update // all rows of a are written, one after the other
		cfg.Limits.Memory, cfg.Limits.TempDir = 24<<20, w.dir
		most := int64(0)
		w.running(cfg, func(s *State) bool {
			most = max(most, s.Memory.Lanes-s.Memory.Budget)
			return s.Lanes[1].Final == 4000
		})
		// Two lanes may exceed the budget by the rows that they read back to continue, and by a block on its way.
		limit := int64(2 * maxBatchInMemory)
		conformance.True(t, most <= limit, "rows took %d bytes more than their budget, want at most %d", most, limit)
	})
}

// maxBatchInMemory is the memory of a batch of these rows and of the frame that holds them.
const maxBatchInMemory = 200*2100 + 512<<10

func TestRowsOfOneKeyWaitOnlyForEachOther(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		w.partitioned(server.Simulation{})
		r, in := io.Pipe()
		go func() {
			// The pipe stays open, as if more rows might come.
			fmt.Fprint(in, "id,a\n"+strings.Repeat("a,1\n", 400)+strings.Repeat("b,"+strings.Repeat("1", 100)+"\n", 12_000))
		}()
		cfg := w.config("-")
		cfg.Read.Stdin, cfg.Read.SplitBytes = r, 4096
		cfg.Write.Mode = table.Update
		start := time.Now()
		w.running(cfg, func(s *State) bool { return s.Written >= 200 })
		in.Close()
		// A batch waits a quarter of a second for more rows, like the first one here.
		took := time.Since(start)
		conformance.True(t, took <= 2*time.Second, "200 rows of one key took %v", took)
	})
}

func TestSortedFileFeedsAllPartitions(t *testing.T) {
	t.Parallel()
	text := numbered("k", 40_000)
	for _, tt := range []struct {
		order plan.Order
		when  orderWhen
		all   bool
	}{{plan.OrderNone, orderWhenItPays, true}, {plan.LastWins, orderWhenItPays, true},
		{plan.LastWins, orderNever, false}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.partitioned(server.Simulation{}, "k10000", "k20000", "k30000")
			for n := range 4 {
				must(t, w.server.Sim().Move("t", n, time.Hour))
			}
			cfg := w.config(w.file("in.csv", text))
			// A quarter of the rows fit into memory, and none on disk.
			cfg.Write.Order, cfg.Limits.Memory, cfg.Limits.TempMax, cfg.Limits.TempDir, cfg.order = tt.order, 4<<20, 1,
				w.dir, tt.when
			cfg.Read.SplitBytes = 4 << 10
			fed := 0
			w.running(cfg, func(s *State) bool {
				fed = 0
				for _, l := range s.Lanes {
					if l.Queued+l.Retrying > 0 {
						fed++
					}
				}
				return fed == len(s.Lanes) || s.Memory.Full
			})
			if tt.all != (fed >= 3) { // the section at a bound may begin before the bound
				t.Errorf("%+v: %d of 4 partitions have rows when memory is full", tt, fed)
			}
		})
	}
}
