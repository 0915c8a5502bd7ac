package e2e

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tsimport/bench"
	"tsimport/internal/conformance"
)

// csvRecords returns the records of a CSV text as sorted sets of column=value, empty cells left out. A double without a fraction is the
// integer: Python prints 5.0, and the export 5.
func csvRecords(t *testing.T, text []byte) []string {
	t.Helper()
	records, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var sets []string
	for _, rec := range records[1:] {
		var cells []string
		for i, v := range rec {
			if v != "" {
				cells = append(cells, records[0][i]+"="+strings.TrimSuffix(v, ".0"))
			}
		}
		slices.Sort(cells)
		sets = append(sets, strings.Join(cells, "|"))
	}
	slices.Sort(sets)
	return sets
}

func TestARealFileSurvivesTheRoundTrip(t *testing.T) {
	names := []string{"real/kylo/csv/userdata1.csv", "real/spark-guide/bike-data/201508_station_data.csv", "real/mosaic/seattle-weather.csv"}
	if conformance.Whole(t) != "" {
		names = append(names, "real/nycflights13/planes.csv")
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			input := filepath.Join(conformance.Dir(t), name)
			text, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			key := strings.SplitN(string(text), ",", 2)[0]
			if strings.Contains(name, "kylo") {
				key = "id"
			}
			store := filepath.Join(t.TempDir(), "store")
			if _, stderr, code := runBinary(t, "load", "--store", store, "--table", "t", "--pk", strings.Trim(key, `"`), input, "--run-dir", t.TempDir()+"/run"); code != 0 {
				t.Fatalf("load: exit code %d, %s", code, stderr)
			}
			stdout, stderr, code := runBinary(t, "export", "--store", store, "--table", "t")
			if code != 0 {
				t.Fatalf("export: exit code %d, %s", code, stderr)
			}
			if diff := differs(csvRecords(t, text), csvRecords(t, []byte(stdout))); diff != "" {
				t.Errorf("(-file +export):\n%s", diff)
			}
		})
	}
}

// summary is the part of a run's summary that tests look at.
type summary struct {
	State                                           string
	ExitCode                                        int `json:"exit_code"`
	Read, Written, Rejected, Superseded, Unfinished int64
}

func readSummary(t *testing.T, dir string) summary {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s summary
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if s.Read != s.Written+s.Rejected+s.Superseded+s.Unfinished {
		t.Errorf("the ledger does not balance: %+v", s)
	}
	return s
}

// TestSignalsStopALoad feeds a load through a pipe that stays open, so that it cannot end before the signal.
func TestSignalsStopALoad(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}, {syscall.SIGHUP, 129}} {
		t.Run(tt.signal.String(), func(t *testing.T) {
			if signal.Ignored(tt.signal) {
				t.Skip("these tests were started with the signal ignored, as nohup does, and so is what they start")
			}
			dir := t.TempDir()
			cmd := exec.Command(binary, "load", "-", "--table", "t", "--pk", "CardID", "--pk", "DeviceID", "--pk", "OrderNumber", "--store", dir+"/store", "--run-dir", dir+"/run", "-v")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			progress := &notice{pattern: regexp.MustCompile("([1-9][0-9,]*) rows, "), seen: make(chan bool)}
			cmd.Stderr = progress
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			killer := time.AfterFunc(processTimeout, func() { cmd.Process.Kill() })
			defer killer.Stop()
			if _, err := fmt.Fprint(in, bench.CSVHeader+strings.Repeat("1,A001,2,3,1.5,2024-01-01T00:00:00Z,tea\n", 60_000)); err != nil {
				t.Fatal(err)
			}
			<-progress.seen // the load is running
			if err := cmd.Process.Signal(tt.signal); err != nil {
				t.Fatal(err)
			}
			cmd.Wait() // its error is the exit code below
			if code := cmd.ProcessState.ExitCode(); code != tt.code {
				t.Errorf("exit code %d, want %d; stderr:\n%s", code, tt.code, progress.all.String())
			}
			if s := readSummary(t, dir+"/run"); s.State != "interrupted" || s.ExitCode != tt.code || s.Read == 0 {
				t.Errorf("%+v", s)
			}
			if !strings.Contains(progress.all.String(), "finishing requests in flight") {
				t.Errorf("stderr does not say what happens:\n%s", progress.all.String())
			}
		})
	}
}

// TestALoadDoesNotStopForSignalsThatItWasToldToIgnore: nohup ignores SIGHUP for what it starts, and a shell SIGINT for its jobs in the background.
func TestALoadDoesNotStopForSignalsThatItWasToldToIgnore(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(sh, "-c", `trap "" HUP INT; exec "$0" "$@"`, binary, "load", "-", "--table", "t", "--pk", "id", "--store", dir+"/store",
		"--run-dir", dir+"/run", "-v")
	in, err := cmd.StdinPipe()
	must(t, err)
	progress := &notice{pattern: regexp.MustCompile("( rows/s)"), seen: make(chan bool)}
	cmd.Stderr = progress
	must(t, cmd.Start())
	killer := time.AfterFunc(processTimeout, func() { cmd.Process.Kill() })
	defer killer.Stop()
	fmt.Fprint(in, "id,a\n"+strings.Repeat("k,some text that fills the first block of the stream\n", 30_000))
	<-progress.seen
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		must(t, cmd.Process.Signal(s))
	}
	fmt.Fprint(in, "last,1\n")
	must(t, in.Close())
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v; stderr:\n%s", err, progress.all.String())
	}
	if s := readSummary(t, dir+"/run"); s.State != "finished" || s.Read != 30_001 {
		t.Errorf("%+v", s)
	}
}

// notice is a writer that tells when a text that matches the pattern's group has passed.
type notice struct {
	all     bytes.Buffer
	pattern *regexp.Regexp
	found   string
	seen    chan bool
}

func (n *notice) Write(b []byte) (int, error) {
	n.all.Write(b)
	if n.found == "" {
		if m := n.pattern.FindSubmatch(n.all.Bytes()); m != nil {
			n.found = string(m[1])
			close(n.seen)
		}
	}
	return len(b), nil
}

// TestAKilledLoadLosesNoAcknowledgedRow kills a load after it has said that rows are written: those are in the store, and
// the same load again makes the table whole.
func TestAKilledLoadLosesNoAcknowledgedRow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	load := []string{"--table", "t", "--pk", "CardID", "--pk", "DeviceID", "--pk", "OrderNumber", "--store", dir + "/store", "--run-dir", dir + "/run"}
	cmd := exec.Command(binary, append([]string{"load", "-", "-v"}, load...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	written := &notice{pattern: regexp.MustCompile(`([1-9][\d,]*) rows, \d`), seen: make(chan bool)}
	cmd.Stderr = written
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := (bench.StudentCards{Rows: 60_000}).WriteCSV(context.Background(), &text); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write(text.Bytes()); err != nil {
		t.Fatal(err)
	}
	<-written.seen
	cmd.Process.Kill()
	cmd.Wait() // killed
	var atLeast int
	if _, err := fmt.Sscan(strings.ReplaceAll(written.found, ",", ""), &atLeast); err != nil {
		t.Fatal(err)
	}
	stdout, _, code := runBinary(t, "export", "--store", dir+"/store", "--table", "t")
	if n := strings.Count(stdout, "\n") - 1; code != 0 || n < atLeast || atLeast == 0 {
		t.Errorf("export after the kill: exit code %d, %d rows, %d were written", code, n, atLeast)
	}

	input := filepath.Join(dir, "cards.csv")
	if err := os.WriteFile(input, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := runBinary(t, append([]string{"load", input, "--fresh"}, load...)...); code != 0 {
		t.Fatalf("the load after the kill: exit code %d, %s", code, stderr)
	}
	stdout, _, code = runBinary(t, "export", "--store", dir+"/store", "--table", "t")
	if code != 0 || !slices.Equal(csvRecords(t, text.Bytes()), csvRecords(t, []byte(stdout))) {
		t.Errorf("export: exit code %d; the table is not the file", code)
	}
}
