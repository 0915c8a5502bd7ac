//go:build e2e

package e2e

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
)

var (
	resumeRows = flag.Int("resume-rows", 5000, "rows of a kilobyte of the test of what going on costs")
	resumeRate = flag.Int("resume-rate", 200, "rows a second that each of its partitions takes")
)

// slowest is the partition of 32 that is ten times slower than the others.
const slowest = 7

// wideRow is a row of about a kilobyte. Its key is not sorted.
type wideRow struct {
	ID string `parquet:"id"`
	N  int64  `parquet:"n"`
	V  string `parquet:"v"`
}

func wideRowAt(i int) wideRow {
	x := uint64(i) + 0x9e3779b97f4a7c15
	mix := func() uint64 {
		x += 0x9e3779b97f4a7c15
		z := (x ^ x>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	r := wideRow{ID: fmt.Sprintf("%016x", mix()), N: int64(i)}
	var b strings.Builder
	for b.Len() < 960 {
		fmt.Fprintf(&b, "%x ", mix()&0xffff) // half of it is noise, as in real text
		b.WriteString("some text that comes again ")
	}
	r.V = b.String()
	return r
}

// writeRows writes the rows to a file whose name says how.
func writeRows(t *testing.T, path string, rows int) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	buffered := bufio.NewWriterSize(f, 1<<20)
	var to io.Writer = buffered
	var closers []io.Closer
	switch filepath.Ext(path) {
	case ".gz":
		z, err := gzip.NewWriterLevel(buffered, gzip.BestSpeed)
		must(t, err)
		to, closers = z, []io.Closer{z}
	case ".zst":
		z, err := zstd.NewWriter(buffered, zstd.WithEncoderLevel(zstd.SpeedFastest))
		must(t, err)
		to, closers = z, []io.Closer{z}
	case ".parquet":
		w := parquet.NewGenericWriter[wideRow](buffered, parquet.MaxRowsPerRowGroup(20_000), parquet.Compression(&parquet.Snappy))
		for i := range rows {
			if _, err := w.Write([]wideRow{wideRowAt(i)}); err != nil {
				t.Fatal(err)
			}
		}
		to, closers = io.Discard, []io.Closer{w}
	}
	if len(closers) == 0 || to != io.Discard {
		_, err = io.WriteString(to, "id,n,v\n")
		for i := 0; i < rows && err == nil; i++ {
			r := wideRowAt(i)
			_, err = fmt.Fprintf(to, "%s,%d,%s\n", r.ID, r.N, r.V)
		}
	}
	for _, c := range closers {
		err = errors.Join(err, c.Close())
	}
	if err = errors.Join(err, buffered.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

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
// long resuming takes and how many rows are written again: at most those in flight and one second's worth.
func TestWhatResumingCosts(t *testing.T) {
	t.Parallel()
	names := []string{"in.csv.zst", "in.parquet"}
	if *resumeRows > 5000 {
		names = append(names, "in.csv", "in.csv.gz")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			writeRows(t, p.path(name), *resumeRows)
			bounds := p.write("bounds.txt", fileOf("00", 31, func(i int) string { return fmt.Sprintf("%02x", (i+1)*8) }))
			s := startServe(t, "--sync", "none", "--partitions", "32", "--sample-file", bounds, "--partition-wcu", fmt.Sprint(*resumeRate),
				"--latency", "5ms", "--slow", fmt.Sprintf("%d:0.1", slowest))
			p.env = s.env()
			start := func() *process {
				return p.start("load", name, "--table", "t", "--create", "--pk", "id:string", "-q", "--settle", "1s")
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
				Read, Written, Unfinished, Replayed int64
				Checkpoints                         int
				CheckpointSeconds                   float64 `json:"checkpoint_seconds"`
				Seconds                             float64
			}
			p.summary(&sum)
			again := s.accepted(t) - sum.Written
			allowed := int64(32*200 + 31**resumeRate + *resumeRate/10)
			t.Logf("%s: %d rows, killed at %d of which the checkpoint knew %d; first new write after %v; %d rows written again (%d sent again; allowed %d); %d checkpoints took %.2f %% of its time",
				name, *resumeRows, before, known, toFirst.Round(time.Millisecond), again, sum.Replayed, allowed, sum.Checkpoints, 100*sum.CheckpointSeconds/sum.Seconds)
			if again > allowed {
				t.Errorf("%d rows were written again, want at most %d: those in flight and one second's worth", again, allowed)
			}
		})
	}
}
