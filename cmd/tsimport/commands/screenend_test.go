package commands

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
)

func TestEndOfALoadShowsItsReport(t *testing.T) {
	type report = pipeline.Report
	cases := map[string]struct {
		change    func(r *report)
		says, not []string
	}{
		"nothing":        {func(*report) {}, nil, []string{"slowest", "empty line", "is missing"}},
		"one empty line": {func(r *report) { r.EmptyLines = 1 }, []string{"1 empty line skipped"}, nil},
		"empty lines":    {func(r *report) { r.EmptyLines = 1234 }, []string{"1,234 empty lines skipped"}, nil},
		"a slowest partition": {func(r *report) {
			r.Slowest = &ledger.ReportSlowest{Partition: 2, Table: "t", From: "k00600", Rows: 3000, Waiting: 60,
				OthersWaiting: 1.5, Throttled: 1234, Unavailable: 5}
		}, []string{"tsimport: slowest: partition 2 of table t from k00600; its rows waited for 1m0s, those of most others " +
			"for 1.5s at most; " +
			"3,000 rows, 50 a second, 1,234 refused for capacity, 5 while it was unavailable\n"}, nil},
		"a removed run folder": {func(r *report) {
			r.RunDir += "/gone"
			r.Unfinished, r.Rejected, r.RejectsFiles = 5, 2, []string{r.RunDir + "/rejects.csv", r.RunDir + "/rejects.jsonl"}
		}, []string{"/gone/summary.json is missing"}, []string{"rejected rows: ", "--retry-rejects", "to resume: ",
			"summary: "}},
		"unfinished":    {func(r *report) { r.Unfinished = 5 }, []string{"to resume: "}, nil},
		"recreated":     {func(r *report) { r.Unfinished, r.Remade = 5, true }, nil, []string{"to resume: "}},
		"maybe written": {func(r *report) { r.MaybeApplied = 3 }, []string{"3 rejected rows may be in the table: "}, nil},
		"maybe deleted": {func(r *report) { r.MaybeApplied, r.Deletes = 3, true },
			[]string{"3 rejected rows may have been deleted: "}, nil},
		"half a second": {func(r *report) { r.Seconds, r.LimitedBy = 0.5, []ledger.ReportLimit{{By: "link", Share: 1}} }, nil,
			[]string{"limited by"}},
	}
	for _, w := range bottleneck.Words() {
		one := cases["nothing"]
		one.change = func(r *report) {
			r.Seconds = 10
			r.LimitedBy = []ledger.ReportLimit{{By: w.String(), Seconds: 8.7, Share: 0.87},
				{By: "link", Seconds: 1.3, Share: 0.13}}
		}
		one.says = []string{fmt.Sprintf("tsimport: limited by %v 87%% of the time: %s; to load faster, %s\n", w, w.Reason(),
			w.Advice())}
		cases["limited by "+w.String()] = one
	}
	for name, c := range cases {
		var shown bytes.Buffer
		r := new(report)
		r.RunDir = t.TempDir()
		must(t, os.WriteFile(filepath.Join(r.RunDir, "summary.json"), []byte("{}"), 0o600))
		c.change(r)
		(&screen{say: newDisplay(&shown).say}).report(r, table.Put, "look")
		for _, part := range c.says {
			conformance.Contains(t, shown.String(), part, "%s", name)
		}
		for _, part := range c.not {
			conformance.True(t, !strings.Contains(shown.String(), part), "%s: %q is said:\n%s", name, part, &shown)
		}
	}
}

func TestProgressNamesTheLimit(t *testing.T) {
	s := new(screen)
	text := s.counts()
	conformance.True(t, !strings.Contains(text, "limited"), "%v", text)
	s.progress.Hindrance.LimitedBy.Store(uint32(bottleneck.Disk))
	conformance.Contains(t, s.counts(), " rows/s (limited by disk)", "counts")
}

func TestReasonsOfRejectedRowsAreShown(t *testing.T) {
	r := &pipeline.Report{ReportRejects: ledger.ReportRejects{RejectReasons: []rundir.ReasonCount{
		{Code: "WrongType", Count: 1234, First: rundir.Reason{File: "a.csv", Record: 8, Line: 9, Column: "qty",
			Message: "not an integer", Value: "n/a\x1b[2J"}},
		{Code: "OTSParameterInvalid", Count: 1, First: rundir.Reason{File: "https://u:p@h/b.parquet?sig=1", Record: 7,
			Message: "no"}},
		{Code: "c"}, {Code: "d"}, {Code: "e"}, {Code: "f"},
	}}}
	var got []string
	sayRejects(func(_ words.Kind, line string) { got = append(got, line) }, r.RejectReasons)
	want := []string{
		`rejected 1,234 with WrongType; the first: a.csv:9, column qty: not an integer ("n/a\x1b[2J")`,
		`rejected 1 with OTSParameterInvalid; the first: https://xxxxx@h/b.parquet?sig=xxxxx record 7: no`,
	}
	conformance.Equal(t, cmp.Diff(want, got[:2]), "", "(-want +got)")
	conformance.True(t, len(got) == shownReasons+1 && got[shownReasons] == "… and 1 more codes, see the summary",
		"%d lines: %q", len(got), got[len(got)-1])
}

// fakeLoad is a load with this state. If state is nil, it does not respond.
type fakeLoad struct{ state *pipeline.State }

func (f *fakeLoad) State(ctx context.Context) (*pipeline.State, error) {
	if f.state == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return f.state, nil
}

func runningState() *pipeline.State {
	return &pipeline.State{
		Table: "cards", Seconds: 75.2,
		StateCounts: pipeline.StateCounts{Read: 1000000, Written: 700000, Rejected: 3, Superseded: 2, Throttled: 4000,
			Requests: 9000},
		StateWork: pipeline.StateWork{Reading: true, InFlight: 4, Workers: 32, RowsOut: 800, Retrying: 10, Queued: 299995},

		Memory: pipeline.StateMemory{Lanes: 100 << 20, Budget: 100 << 20, Full: true},
		Spill:  lanes.Spill{DiskBytes: 3 << 20, Rows: 60000},
		Map:    pipeline.StateMap{Partitions: 5, Error: "read the partition map: time-out"},
		Lanes: []lanes.State{
			{Partition: 0, Pace: "start", Queued: 5, InFlight: 1},
			{Partition: 1, From: "10", Pace: "cruise", Rate: 1050.7, Queued: 2000, Retrying: 10, InFlight: 3, Throttled: 4000},
			{Partition: 2, From: "20", Pace: "cruise", Final: 9},
			{Partition: 3, From: "30", Pace: "measure", Queued: 100, Spilled: true},
			{Partition: 4, From: "4\x1b0", Pace: "start", Down: true,
				Trouble: "OTSPartitionUnavailable The partition\nis not available."},
		},
	}
}

func TestStateHasAHeaderAndALineForEachActiveLane(t *testing.T) {
	var out bytes.Buffer
	must(t, writeState(newDisplay(&out), runningState()))
	want := `tsimport: table cards after 1m15s: 1,000,000 rows read, 700,000 written, 299,995 queued, 800 in flight; 3 rejected; 2 superseded; 10 to be sent again; 4,000 throttled; 4 of 32 requests in flight, 9,000 answered; memory of rows 100.0 MiB of 100.0 MiB (full, reading waits); on disk 3.0 MiB, 60,000 rows spilled so far; 5 partitions (guessed); partition map not readable: read the partition map: time-out
  partition 3 from 30: measure, 100 queued + disk, 0 requests in flight
  partition 1 from 10: cruise at 1,050 units/s, 2,000 queued, 3 requests in flight, 10 to be sent again, 4,000 throttled
  partition 0 from the first key: start, 5 queued, 1 request in flight
  partition 4 from 4�0: start, 0 queued, 0 requests in flight, not served: OTSPartitionUnavailable The partition�is not available.
`
	conformance.Equal(t, cmp.Diff(want, out.String()), "", "(-want +got)")
}

func TestStateWithoutActiveLanesIsOneLine(t *testing.T) {
	var out bytes.Buffer
	s := &pipeline.State{Table: "t", Seconds: 1, StateCounts: pipeline.StateCounts{Read: 1, Written: 1, Requests: 1},
		StateWork: pipeline.StateWork{Workers: 2},
		Map:       pipeline.StateMap{Partitions: 1}, Lanes: []lanes.State{{Pace: "start"}}}
	must(t, writeState(newDisplay(&out), s))
	want := "tsimport: table t after 1s: 1 rows read, 1 written, 0 queued, 0 in flight; 0 of 2 requests in flight, 1 " +
		"answered; " +
		"memory of rows 0 bytes of 0 bytes; 1 partition; input read to its end\n"
	conformance.Equal(t, cmp.Diff(want, out.String()), "", "(-want +got)")
}

func TestManyLanesAreCountedNotListed(t *testing.T) {
	for _, n := range []int{0, 39, 40, 41, 1000} {
		s := &pipeline.State{}
		for i := range n {
			s.Lanes = append(s.Lanes, lanes.State{Partition: i, Queued: i + 1})
		}
		var out bytes.Buffer
		must(t, writeState(newDisplay(&out), s))
		conformance.Equal(t, strings.Count(out.String(), "\n  partition "), min(n, 40), "%d lanes: listed", n)
		more := fmt.Sprintf("  … and %d more\n", n-40)
		conformance.Equal(t, strings.HasSuffix(out.String(), more), (n > 40),
			"%d lanes: the text ends %q", n, out.String()[max(0, out.Len()-60):])
		conformance.True(t, n == 0 || strings.Contains(out.String(), fmt.Sprintf("\n  partition %d ", n-1)),
			"%d lanes: the busiest is not listed", n)
	}
}

func spreadSaid(r *pipeline.Report) (said []string) {
	saySpread(func(kind words.Kind, line string) { said = append(said, string(kind)+line) }, r)
	return said
}

func TestUseOfPartitionsAndMemoryIsReported(t *testing.T) {
	got := spreadSaid(&pipeline.Report{
		Counted: ledger.Counted{
			ReportCounts:  ledger.ReportCounts{Written: 500},
			ReportTraffic: ledger.ReportTraffic{RowsSent: 1000, Throttled: 500, Unavailable: 100},
			ReportPartitions: ledger.ReportPartitions{
				HotKeys:    []ledger.ReportHotKey{{Column: "CardID", Value: "2000000001", Share: 0.412}},
				Partitions: 32, PartitionsUsed: 32, LastLaneSeconds: 1.25, Recuts: 1,
			},
			ReportMemory: ledger.ReportMemory{
				SpilledRows: 5000, SpilledBytes: 1 << 20, PeakSpillBytes: 1 << 19, SpillError: "no space left for spilled rows",
			},
		},
	})
	want := []string{
		"hot spot: CardID 2000000001 has 41% of the rows; one partition-key value is never split",
		"written to 32 partitions, the last of them reached after 1.3s, their bounds changed once",
		"memory was full: 5,000 rows were spilled to disk (1.0 MiB written, at most 512.0 KiB at a time)",
		"warning: rows could not be spilled to disk, so reading waited for memory: no space left for spilled rows; see " +
			"TMPDIR and --memory",
		"50% of the rows sent were refused for capacity and sent again",
		"10% of the rows sent were refused because their partition was unavailable, and sent again",
	}
	conformance.Equal(t, cmp.Diff(want, got), "", "(-want +got)")
}

func TestEmptyPartitionsAreNotReportedAsWritten(t *testing.T) {
	one := "written to 1 of 8 partitions (others got no row), the last of them reached after 1s"
	for _, c := range []struct {
		written          int64
		partitions, used int
		want             []string
	}{
		{10_000, 8, 8, []string{"written to 8 partitions, the last of them reached after 1s"}},
		{10_000, 8, 5, []string{"written to 5 of 8 partitions (others got no row), the last of them reached after 1s"}},
		{10_000, 8, 1, []string{one, "warning: all rows went to one partition, so the capacity of the others was not used"}},
		{10_000, 8, 0, []string{"8 partitions at the end, none of which got a row since"}},
		{9_999, 8, 1, []string{one}}, // a small load
		{0, 8, 0, nil},
		{1_000, 1, 1, nil},
	} {
		r := new(pipeline.Report)
		r.Written, r.RowsSent, r.Throttled, r.LastLaneSeconds = c.written, max(c.written, 9), c.written/50, 1
		r.Partitions, r.PartitionsUsed = c.partitions, c.used
		conformance.Equal(t, cmp.Diff(c.want, spreadSaid(r)), "", "%d rows, %d of %d used", c.written, c.used, c.partitions)
	}
}

// progressed returns the screen of a load with this progress: total and read bytes, read and written records.
func progressed(since time.Duration, total, bytes, read, written int64) (*screen, *ledger.Progress) {
	s := &screen{start: time.Now().Add(-since), began: time.Now().Add(-since)}
	s.progress.BytesTotal.Store(total)
	s.progress.BytesRead.Store(bytes)
	s.progress.Ended.Read.Store(read)
	s.progress.Ended.Written.Store(written)
	return s, &s.progress
}

func TestProgressCountsFinalRows(t *testing.T) {
	s, _ := progressed(0, 1000, 0, 0, 0)
	conformance.Equal(t, s.bytesDone(), 0, "bytes done before anything is read")
	s, p := progressed(0, 1000, 800, 400, 70)
	p.Ended.Rejected.Store(10)
	p.Ended.Superseded.Store(20)
	conformance.Equal(t, s.bytesDone(), 200, "bytes done: a quarter of what was read")
	conformance.Contains(t, s.progressText(), "800 bytes read of 1000 bytes (80%)", "shown")
	p.Settled.Store(time.Now().Add(-time.Minute).UnixMilli())
	conformance.Contains(t, s.progressText(), ", behind by 300 changes, 1m0s, ", "of changes")
	p.Ended.Read.Store(100)
	conformance.Contains(t, s.progressText(), ", every change applied, the last 1m0s old, ", "while the source is quiet")
	p.Ended.Read.Store(400)
	s.dryRun = true
	conformance.Equal(t, s.bytesDone(), 800, "bytes done of a dry run: what was read")
}

func TestTimeLeftUsesTheLastSeconds(t *testing.T) {
	s, p := progressed(0, 1000, 1000, 1000, 0)
	at := func(second, written int64, want string) {
		t.Helper()
		p.Ended.Written.Store(written)
		conformance.Equal(t, s.left(s.began.Add(time.Duration(second)*time.Second)), want, "%d s, %d rows", second, written)
	}
	at(1, 0, "")
	at(3, 100, "") // the rate of only two seconds
	at(5, 500, ", about 4s left")
	at(10, 600, ", about 6s left") // 600 rows in 9 s
	at(15, 650, ", about 23.3s left")
	at(20, 700, ", about 30s left")
	at(25, 700, ", about 1m0s left")
	at(40, 700, "") // without progress the rate is unknown
	at(45, 1000, "")
}

func TestTimeLeftUsesTheSlowestPartition(t *testing.T) {
	s, p := progressed(0, 1000, 1000, 1000, 900)
	p.SlowestLeft.Store(61_000)
	conformance.Equal(t, s.left(s.start.Add(time.Second)), "", "before a rate is known")
	got := s.left(s.start.Add(5 * time.Second))
	conformance.True(t, got == ", about 1m1s left", "%q, want what the slowest partition needs", got)
}

func TestResumedLoadShowsTheRateOfThisAttempt(t *testing.T) {
	s := &screen{start: time.Now().Add(-2 * time.Second), began: time.Now()}
	s.resume(keep.Resumed{Written: 600_000, Final: 600_000, Read: 620_000, BytesRead: 620_000})
	p := &s.progress
	conformance.Contains(t, s.counts(), "0 rows, 0 rows/s", "before anything is counted")
	p.BytesTotal.Store(1_000_000)
	p.BytesRead.Store(610_000) // records that were not final are read again
	p.Ended.Read.Store(620_000)
	p.Ended.Written.Store(620_000)
	text := s.counts()
	conformance.True(t, strings.Contains(text, "620,000 rows, 9,9") ||
		strings.Contains(text, "620,000 rows, 10,000 rows/s"), "20,000 rows in two seconds: %s", text)
	got := s.left(s.began.Add(3 * time.Second))
	conformance.True(t, got == ", about 57s left", "%q, want 19 times what 20,000 of 400,000 took", got)
}

func TestProgressBarIsPaintedOnOneLine(t *testing.T) {
	d, out := terminal(60)
	s := &screen{w: d, start: time.Now()}
	s.progress.BytesTotal.Store(1000)
	show := s.barShower()
	show()
	show()
	if lines := screenOf(t, out.String(), 60); len(lines) != 1 || !strings.HasPrefix(lines[0], "0 rows, 0 rows/s") {
		t.Errorf("shown:\n%s", strings.Join(lines, "\n"))
	}
}

func TestTimeLeftOfALimitedLoadCountsRecords(t *testing.T) {
	s, p := progressed(0, 0, 4000, 400, 350)
	s.resume(keep.Resumed{Written: 100, Final: 100, Read: 100, BytesRead: 1000})
	p.Ended.Rejected.Store(50)
	for _, tt := range []struct {
		name         string
		total, limit int64
		want         string
	}{
		{"the whole input", 1_000_000, 0, ", about 16m36s left"},
		{"the first records", 1_000_000, 1000, ", about 6s left"},
		{"the first records of a stream", -1, 1000, ", about 6s left"},
		{"a stream", -1, 0, ""},
		{"fewer records than the limit", 10_000, 1_000_000, ", about 6s left"},
		{"all that are to be read", 1_000_000, 400, ""},
	} {
		p.BytesTotal.Store(tt.total)
		p.Limit.Store(tt.limit)
		conformance.Equal(t, s.left(s.began.Add(3*time.Second)), tt.want, "%s", tt.name)
		s.marks = nil
	}
	p.Limit.Store(1000)
	conformance.Contains(t, s.progressText(), "3.9 KiB read, 400 of at most 1,000 records", "shown")
}

func TestLateInputIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown bytes.Buffer
		d := newDisplay(&shown)
		s := &screen{w: d, say: d.say, start: time.Now(), stopping: make(chan struct{})}
		s.awaitInputs()
		time.Sleep(6 * time.Second) // of virtual time
		synctest.Wait()
		conformance.True(t, shown.Len() == 0, "nobody waits for an input: %s", shown.String())
		s.progress.Hindrance.LimitedBy.Store(uint32(bottleneck.Reader))
		time.Sleep(60 * time.Second)
		synctest.Wait()
		s.arrived()
		s.stop()
		const want = "tsimport: no rows yet after 15s: inputs are opened and sampled (limited by reader)\n" +
			"tsimport: no rows yet after 35s: inputs are opened and sampled (limited by reader)\n"
		conformance.Equal(t, shown.String(), want, "shown")
	})
}

func TestJobShowsALineForEachRunningLoad(t *testing.T) {
	b, d := new(board), newDisplay(new(bytes.Buffer))
	d.board = b
	var all []*screen
	for i := range boardLines + 2 {
		s := &screen{w: d.of(fmt.Sprintf("t%d", i)), start: time.Now(), stopping: make(chan struct{})}
		s.progress.Ended.Written.Store(int64(1000 + i))
		s.begin()
		all = append(all, s)
	}
	lines := b.lines()
	conformance.True(t, len(lines) == boardLines+1 && strings.HasPrefix(lines[1], "t1: 1,001 rows") &&
		lines[boardLines] == "… and 2 more", "%q", lines)
	for _, s := range all[1:] {
		s.stop()
	}
	lines = b.lines()
	conformance.True(t, len(lines) == 1 && strings.HasPrefix(lines[0], "t0: "), "of one load that still runs: %q", lines)
}

func TestProgressOfAJobIsErasedAtItsEnd(t *testing.T) {
	d, out := terminal(80)
	b := new(board)
	d.board = b
	synctest.Test(t, func(t *testing.T) {
		stop := d.repaint(b.lines)
		s := &screen{w: d.of("orders"), start: time.Now(), stopping: make(chan struct{})}
		s.begin()
		time.Sleep(2 * barEvery)
		stop()
	})
	if shown := out.String(); !strings.Contains(shown, "orders: 0 rows") || !strings.HasSuffix(shown, eraseBelow) {
		t.Errorf("shown: %q", shown)
	}
}

func TestProgressReportsLookupsAndCopyChecks(t *testing.T) {
	// The first response is lost, and then the second request, whose row is not found and is sent again.
	s, err := server.Open("", server.Options{InMemory: true,
		Faults: &faults.Plan{Decide: func(r faults.Request) faults.Fault {
			return faults.Fault{Action: map[int]faults.Action{0: faults.DropAfter, 1: faults.DropBefore}[r.N]}
		}}})
	must(t, err)
	defer s.Close()
	dir := t.TempDir()
	in := filepath.Join(dir, "in.csv")
	put(t, in, "user,what\na,1\nb,2\nc,3\n")
	shown := &screen{start: time.Now()}
	cfg := pipeline.Config{
		Inputs: []string{in}, RunDir: filepath.Join(dir, "run"), Watch: pipeline.Watch{Progress: &shown.progress},
		Target: plan.Target{
			Name: "test", Table: "t", Create: true,
			Client: client.Target{
				Endpoint: "http://embedded", Instance: server.DefaultInstance, Transport: s.Transport(),
				Credentials: &common.DefaultCredentialsProvider{AccessKeyID: server.DefaultAccessKeyID,
					AccessKeySecret: server.DefaultAccessKeySecret},
			},
			Key:    []table.KeyColumn{{Name: "user", Type: table.String}, {Name: "seq", Type: table.Integer, Auto: true}},
			Define: table.Definition{TimeToLive: -1, MaxVersions: 1},
		},
		Write: pipeline.Write{Settle: 10 * time.Millisecond}, Lanes: lanes.Config{RetryFor: time.Minute, Concurrency: 1},
	}
	cfg.Lanes.BatchRows = 1
	conformance.Must(t, conformance.ErrorOf(pipeline.Run(t.Context(), cfg)))
	text := shown.counts()
	conformance.True(t, strings.Contains(text, ", 2 rows looked up (1 found, ") &&
		strings.Contains(text, " requests), 1 checked for copies"), "shown: %s", text)
}
