package commands

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/plan"
)

func TestProgressCountsFinalRowsNotReadOnes(t *testing.T) {
	s := &screen{start: time.Now()}
	p := &s.progress
	p.BytesTotal.Store(1000)
	conformance.Equal(t, s.bytesDone(), 0, "bytes done before anything is read")
	p.BytesRead.Store(800)
	p.Ended.Read.Store(400)
	p.Ended.Written.Store(70)
	p.Ended.Rejected.Store(10)
	p.Ended.Superseded.Store(20)
	conformance.Equal(t, s.bytesDone(), 200, "bytes done: a quarter of what was read")
	conformance.Contains(t, s.progressText(), "800 bytes read of 1000 bytes (80%), about ", "shown")
	s.dryRun = true
	conformance.Equal(t, s.bytesDone(), 800, "bytes done of a dry run: what was read")
}

func TestTheTimeLeftIsThatOfTheLastSeconds(t *testing.T) {
	start := time.Now()
	s := &screen{start: start}
	p := &s.progress
	p.BytesTotal.Store(1000)
	p.BytesRead.Store(1000)
	p.Ended.Read.Store(1000)
	at := func(second, written int64, want string) {
		t.Helper()
		p.Ended.Written.Store(written)
		if got := s.left(start.Add(time.Duration(second) * time.Second)); got != want {
			t.Errorf("after %d s with %d of 1000 rows: %q, want %q", second, written, got, want)
		}
	}
	at(1, 0, "")
	at(5, 500, ", about 5s left")
	at(10, 600, ", about 6s left") // 600 in 9 s
	at(15, 650, ", about 23.3s left")
	at(20, 700, ", about 30s left")
	at(25, 700, ", about 1m0s left")
	at(40, 700, "") // nobody knows
	at(45, 1000, "")
}

func TestTheTimeLeftIsThatOfTheSlowestPartition(t *testing.T) {
	s := &screen{start: time.Now()}
	p := &s.progress
	p.BytesTotal.Store(1000)
	p.BytesRead.Store(1000)
	p.Ended.Read.Store(1000)
	p.Ended.Written.Store(900)
	p.SlowestLeft.Store(61_000)
	if got := s.left(s.start.Add(5 * time.Second)); got != ", about 1m1s left" {
		t.Errorf("%q, want what the slowest partition needs", got)
	}
}

func TestAResumedLoadShowsTheSpeedOfThisAttempt(t *testing.T) {
	s := &screen{start: time.Now().Add(-2 * time.Second)}
	s.resume(keep.Resumed{Written: 600_000, Final: 600_000, Read: 600_000, BytesRead: 600_000})
	p := &s.progress
	conformance.Contains(t, s.counts(), "0 rows, 0 rows/s", "before anything is counted")
	p.BytesTotal.Store(1_000_000)
	p.BytesRead.Store(620_000)
	p.Ended.Read.Store(620_000)
	p.Ended.Written.Store(620_000)
	if text := s.counts(); !strings.Contains(text, "620,000 rows, 9,9") && !strings.Contains(text, "620,000 rows, 10,000 rows/s") {
		t.Errorf("20,000 rows in two seconds: %s", text)
	}
	if got := s.left(s.start.Add(2 * time.Second)); got != ", about 38s left" {
		t.Errorf("%q, want 19 times what 20,000 of 400,000 took", got)
	}
}

func TestABarIsPaintedInOneLine(t *testing.T) {
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

func TestTheTimeLeftOfALoadWithALimitIsThatOfItsRecords(t *testing.T) {
	s := &screen{start: time.Now()}
	s.resume(keep.Resumed{Written: 100, Final: 100, Read: 100, BytesRead: 1000})
	p := &s.progress
	p.BytesRead.Store(4000)
	p.Ended.Read.Store(400)
	p.Ended.Written.Store(350)
	p.Ended.Rejected.Store(50)
	for _, tt := range []struct {
		name         string
		total, limit int64
		want         string
	}{
		{"the whole input", 1_000_000, 0, ", about 5m32s left"},
		{"the first records", 1_000_000, 1000, ", about 2s left"},
		{"the first records of a stream", -1, 1000, ", about 2s left"},
		{"a stream", -1, 0, ""},
		{"fewer records than the limit", 10_000, 1_000_000, ", about 2s left"},
		{"all that are to be read", 1_000_000, 400, ""},
	} {
		p.BytesTotal.Store(tt.total)
		p.Limit.Store(tt.limit)
		conformance.Equal(t, s.left(s.start.Add(time.Second)), tt.want, "%s", tt.name)
		s.marks = nil
	}
	p.Limit.Store(1000)
	conformance.Contains(t, s.progressText(), "3.9 KiB read, 400 of at most 1,000 records", "shown")
}

func TestALoadWhoseInputComesLateSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown bytes.Buffer
		d := newDisplay(&shown)
		s := &screen{w: d, say: d.say, start: time.Now(), stopping: make(chan struct{})}
		s.awaitInputs()
		time.Sleep(6 * time.Second) // of virtual time
		synctest.Wait()
		if shown.Len() > 0 {
			t.Errorf("nobody waits for an input: %s", shown.String())
		}
		s.progress.Hindrance.LimitedBy.Store(uint32(bottleneck.Reader))
		time.Sleep(60 * time.Second)
		synctest.Wait()
		s.arrived()
		s.stop()
		const want = "tsimport: no rows yet after 15s: the inputs are being opened and sampled (limited by reader)\n" +
			"tsimport: no rows yet after 35s: the inputs are being opened and sampled (limited by reader)\n"
		conformance.Equal(t, shown.String(), want, "shown")
	})
}

func TestAJobShowsALineForEachLoadThatRuns(t *testing.T) {
	b, d := new(board), newDisplay(new(bytes.Buffer))
	d.board = b
	var all []*screen
	for i := range boardLines + 2 {
		s := &screen{w: d.of(fmt.Sprintf("t%d", i)), start: time.Now(), stopping: make(chan struct{})}
		s.progress.Ended.Written.Store(int64(1000 + i))
		s.begin()
		all = append(all, s)
	}
	if lines := b.lines(); len(lines) != boardLines+1 || !strings.HasPrefix(lines[1], "t1: 1,001 rows") || lines[boardLines] != "… and 2 more" {
		t.Errorf("%q", lines)
	}
	for _, s := range all[1:] {
		s.stop()
	}
	if lines := b.lines(); len(lines) != 1 || !strings.HasPrefix(lines[0], "t0: ") {
		t.Errorf("of one load that still runs: %q", lines)
	}
}

func TestTheProgressOfAJobIsErasedAtItsEnd(t *testing.T) {
	d, out := terminal(80)
	b := new(board)
	d.board = b
	synctest.Test(t, func(t *testing.T) {
		stop := b.watch(d)
		s := &screen{w: d.of("orders"), start: time.Now(), stopping: make(chan struct{})}
		s.begin()
		time.Sleep(2 * barEvery)
		stop()
	})
	if shown := out.String(); !strings.Contains(shown, "orders: 0 rows") || !strings.HasSuffix(shown, eraseBelow) {
		t.Errorf("shown: %q", shown)
	}
}

func TestProgressSaysThatRowsAreLookedUpAndCheckedForCopies(t *testing.T) {
	// The first answer is lost, then the second request: its row is not found, and sent again.
	s, err := server.Open("", server.Options{InMemory: true, Faults: &faults.Plan{Decide: func(r faults.Request) faults.Fault {
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
				Credentials: &common.DefaultCredentialsProvider{AccessKeyID: server.DefaultAccessKeyID, AccessKeySecret: server.DefaultAccessKeySecret},
			},
			Key:    []table.KeyColumn{{Name: "user", Type: table.String}, {Name: "seq", Type: table.Integer, Auto: true}},
			Define: table.Definition{TimeToLive: -1, MaxVersions: 1},
		},
		Write: pipeline.Write{Settle: 10 * time.Millisecond}, Lanes: lanes.Config{RetryFor: time.Minute, Concurrency: 1},
	}
	cfg.Lanes.BatchRows = 1
	if _, err := pipeline.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if text := shown.counts(); !strings.Contains(text, ", 2 rows looked up (1 found, ") || !strings.Contains(text, " requests), 1 checked for copies") {
		t.Errorf("shown: %s", text)
	}
}
