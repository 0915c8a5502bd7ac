//go:build e2e && unix

package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	scaling        = flag.Bool("scaling", false, "measure one load by 1, 2, 4 and 8 processes")
	scalingRows    = flag.Int("scaling-rows", 400_000, "its rows")
	scalingUnits   = flag.Float64("scaling-units", 1200, "units a second of each of 64 partitions; 0 sets no limit")
	scalingLatency = flag.Duration("scaling-latency", 100*time.Millisecond, "of a request")
	scalingFlight  = flag.Int("scaling-concurrency", 4, "requests in flight of a process")
	scaleSplits    = flag.Int("scaling-splits", 8, "splits that the load has for each process, about")
)

// TestScaling measures the same load by one process without a job directory, and by 1, 2, 4 and 8 with one, into 64 partitions at a service
// with latency. Requests in flight of each process are capped, so that processors do not decide.
func TestScaling(t *testing.T) {
	if !*scaling {
		t.Skip("give -scaling")
	}
	const partitions = 64
	units, latency, concurrency := *scalingUnits, *scalingLatency, *scalingFlight
	dir := t.TempDir()
	input, sample := filepath.Join(dir, "rows.csv"), filepath.Join(dir, "sample")
	scalingInput(t, input, sample, *scalingRows)
	info, err := os.Stat(input)
	must(t, err)
	t.Logf("%d rows, %d partitions of %v units/s, latency %v, %d requests in flight a process", *scalingRows, partitions, units, latency, concurrency)
	var alone float64
	for _, c := range []struct{ workers, processes int }{{}, {1, 1}, {2, 2}, {4, 4}, {8, 8}, {8, 1}} { // the last shows what splits and shards cost
		workers := c.workers
		s := startServe(t, "--sync", "none", "--partitions", fmt.Sprint(partitions), "--sample-file", sample, "--partition-wcu", fmt.Sprint(units), "--latency", latency.String())
		args := []string{"load", input, "--endpoint", s.URL, "--instance", s.Instance, "--table", "t", "--create", "--pk", "id", "--pre-split", "off", "--concurrency", fmt.Sprint(concurrency), "--quiet"}
		began := time.Now()
		if workers == 0 {
			cpu, report := oneLoad(t, s, filepath.Join(dir, "alone"), args)
			alone = cpu / float64(*scalingRows) * 1e6
			t.Logf("one load: %.1f s, %.2f µs of CPU a row, %d requests, %.2f %% throttled", time.Since(began).Seconds(), alone, report.Requests, percent(report.Throttled, report.RowsSent))
			s.stop(t)
			continue
		}
		l := &scaledLoad{place: &place{t, dir, s.env()}, job: fmt.Sprint("job-", workers, "-", c.processes)}
		size := info.Size() / int64(workers**scaleSplits)
		l.run(0, append(args, "--job-dir", l.job, "--workers", fmt.Sprint(workers), "--split-size", fmt.Sprint(max(size, 1<<20)))...)
		planned := time.Since(began)
		var all []*process
		for range c.processes {
			all = append(all, l.worker())
		}
		for _, r := range all {
			if code := r.wait(); code != 0 {
				t.Errorf("work: exit code %d\n%s", code, &r.said)
			}
		}
		var sum scalingSummary
		must(t, json.Unmarshal([]byte(l.place.read(l.job+"/summary.json")), &sum))
		if sum.Written != int64(*scalingRows) {
			t.Errorf("%d written", sum.Written)
		}
		cpu := sum.CPU / float64(*scalingRows) * 1e6
		t.Logf("%d processes, planned for %d: %.1f s (plan %.1f, read %.1f, write %.1f), %.2f µs of CPU a row (%.2f of one load), %d requests, %.2f %% throttled, %d splits, %d shards, runs %d bytes a row, reduced %d",
			c.processes, workers, time.Since(began).Seconds(), planned.Seconds(), sum.Read, sum.Write, cpu, cpu/alone, sum.Requests, percent(sum.Throttled, sum.RowsSent), sum.Splits, sum.Shards,
			sum.RunBytes/int64(*scalingRows), sum.ReducedBytes/int64(*scalingRows))
		s.stop(t)
	}
}

// scalingSummary is what the summary of a job says of its cost.
type scalingSummary struct {
	Written      int64   `json:"written"`
	Requests     int64   `json:"requests"`
	RowsSent     int64   `json:"rows_sent"`
	Throttled    int64   `json:"throttled"`
	CPU          float64 `json:"all_cpu_seconds"`
	Read         float64 `json:"read_seconds"`
	Write        float64 `json:"write_seconds"`
	Splits       int     `json:"splits"`
	Shards       int     `json:"shards"`
	RunBytes     int64   `json:"run_bytes"`
	ReducedBytes int64   `json:"reduced_bytes"`
}

func percent(part, of int64) float64 { return 100 * float64(part) / float64(max(of, 1)) }

// oneLoad runs a load and returns the CPU seconds that its process took, less those that a process takes to start and end.
func oneLoad(t *testing.T, s *served, dir string, args []string) (cpu float64, r scalingSummary) {
	t.Helper()
	run := func(args ...string) float64 {
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), s.credentials()...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
	}
	idle := run("--version")
	cpu = run(append(args, "--run-dir", dir)...) - idle
	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	must(t, err)
	must(t, json.Unmarshal(text, &r))
	return cpu, r
}

// scalingInput writes rows of 12 columns whose keys are in no order, and some of their keys.
func scalingInput(t *testing.T, input, sample string, rows int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	f, err := os.Create(input)
	must(t, err)
	text, keys := new(strings.Builder), new(strings.Builder)
	text.WriteString("id,a,b,c,d,e,f,g,h,i,j,k\n")
	for n := range rows {
		id := fmt.Sprintf("%016x", rnd.Uint64())
		fmt.Fprintf(text, "%s,%d,%d,name %d,%.3f,%d,x%d,y%d,2026-01-%02d,%d,%d,%d\n", id, n, n*7, n%1000, float64(n)/7, n%13, n%17, n%19, 1+n%28, n%2, n%3, n%5)
		if n%(rows/2000+1) == 0 {
			keys.WriteString(id + "\n")
		}
		if text.Len() > 1<<20 {
			_, err := f.WriteString(text.String())
			must(t, err)
			text.Reset()
		}
	}
	_, err = f.WriteString(text.String())
	must(t, err)
	must(t, f.Close())
	must(t, os.WriteFile(sample, []byte(keys.String()), 0o600))
}
