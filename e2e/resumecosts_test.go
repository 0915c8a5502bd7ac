//go:build e2e

package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	resumeRows = flag.Int("resume-rows", 0, "rows of a kilobyte of the measurement of what resuming costs; 0 skips it")
	resumeRate = flag.Int("resume-rate", 50, "rows a second that each of its partitions takes")
)

// accepted is how many rows the engine has written so far.
func (s *served) accepted(t *testing.T) (rows int64) {
	t.Helper()
	res, err := http.Get(s.URL + "/_engine/stats")
	must(t, err)
	defer res.Body.Close()
	var stats struct {
		Tables map[string]struct{ Rows int64 }
	}
	must(t, json.NewDecoder(res.Body).Decode(&stats))
	return stats.Tables["t"].Rows
}

// TestWhatResumingCosts kills a load at 90 % of its rows, with one partition ten times slower than the others. It measures how
// long resuming takes and how many rows are written again: those in flight and about one second's worth.
func TestWhatResumingCosts(t *testing.T) {
	if *resumeRows == 0 {
		t.Skip("set -resume-rows (make crash), on a machine that does nothing else")
	}
	t.Parallel()
	text := fileOf("id,n,v", *resumeRows, func(i int) string {
		return fmt.Sprintf("%016x,%d,%s", uint64(i+1)*0x9e3779b97f4a7c15, i, strings.Repeat(fmt.Sprintf("%x some text that comes again ", i*7919), 28))
	})
	for _, name := range []string{"in.csv", "in.csv.gz"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			if p.write("in.csv", text); name != "in.csv" {
				writeGzip(t, p.path(name), text)
			}
			bounds := p.write("bounds.txt", fileOf("00", 31, func(i int) string { return fmt.Sprintf("%02x", (i+1)*8) }))
			s := startServe(t, "--sync", "none", "--partitions", "32", "--sample-file", bounds, "--partition-wcu", fmt.Sprint(*resumeRate),
				"--latency", "5ms", "--slow", "7:0.1")
			p.env = s.env()
			start := func() *process {
				return p.start("load", name, "--table", "t", "--create", "--pk", "id:string", "-q", "--settle", "1s",
					"--batch-bytes", fmt.Sprintf("%dKiB", *resumeRate/5))
			}
			first := start()
			first.must(func() bool { return s.accepted(t) >= int64(*resumeRows)*9/10 })
			first.kill()
			known, before := finalRows(p.dir), int64(-1)
			for last := int64(-2); last != before; time.Sleep(20 * time.Millisecond) { // what was on its way may arrive after its sender is gone
				last, before = before, s.accepted(t)
			}
			begun := time.Now()
			second := start()
			second.must(func() bool { return s.accepted(t) > before })
			toFirst := time.Since(begun)
			// Once it has written a few rows that are new, all that it writes again was written: they come first in their lanes.
			second.must(func() bool { return s.accepted(t) >= before+int64(*resumeRows)*6/100 })
			second.signal(syscall.SIGINT)
			if code := second.wait(); code != 130 {
				t.Fatalf("the load that resumes: exit code %d\n%s", code, &second.said)
			}
			var sum struct {
				Written, Replayed int64
				CheckpointSeconds float64 `json:"checkpoint_seconds"`
				Seconds           float64
			}
			p.summary(&sum)
			// A checkpoint may be late; that no lane sends more than it allows is shown in pipeline.
			again, allowed := s.accepted(t)-sum.Written, int64(32**resumeRate/5+2*(31**resumeRate+*resumeRate/10))
			t.Logf("%s: %d rows, killed at %d of which the checkpoint knew %d; first new write after %v; %d rows written again (%d sent again); checkpoints took %.2f %% of its time",
				name, *resumeRows, before, known, toFirst.Round(time.Millisecond), again, sum.Replayed, 100*sum.CheckpointSeconds/sum.Seconds)
			if again > allowed {
				t.Errorf("%d rows were written again, want at most %d: those in flight and two seconds' worth", again, allowed)
			}
		})
	}
}
