//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

// loadAndExport loads a file into a store of its own and returns the table as lines of JSON, what the load has said, and the folder, in which
// run and store are.
func loadAndExport(t *testing.T, file string, code int, flags ...string) (lines []string, shown string, p *place) {
	t.Helper()
	p = newPlace(t)
	file, err := filepath.Abs(file)
	must(t, err)
	shown = p.run(code, append([]string{"load", file, "--store", "store", "--table", "t", "--run-dir", "run", "--sync", "none"}, flags...)...)
	return p.exported(), shown, p
}

func (p *place) exported() []string {
	p.t.Helper()
	return strings.Split(strings.TrimSpace(p.output("export", "--table", "t", "--store", "store", "--format", "jsonl")), "\n")
}

// retried corrects the rejects of the run, loads them, and returns the table as lines of JSON.
func (p *place) retried(replace ...string) []string {
	p.t.Helper()
	p.write("run/rejects.ndjson", strings.NewReplacer(replace...).Replace(p.read("run/rejects.ndjson")))
	p.run(0, "load", "--retry-rejects", "run", "--run-dir", "again")
	return p.exported()
}

func writeGzip(t *testing.T, name, text string) string {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(text))
	must(t, errors.Join(err, w.Close(), os.WriteFile(name, packed.Bytes(), 0o644)))
	return name
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	conformance.Equal(t, strings.Join(got, "\n"), strings.Join(want, "\n"), "result")
}

func TestAnExportOfDynamoDBIsLoadedWithItsTypes(t *testing.T) {
	part := filepath.Join(t.TempDir(), "part.json.gz")
	writeGzip(t, part, `{"Item":{"id":{"S":"a"},"n":{"N":"9223372036854775807"},"d":{"N":"0.5"},"big":{"N":"12345678901234567890123456789012345678"},"b":{"B":"AAH/"},"ok":{"BOOL":true},"none":{"NULL":true},"doc":{"M":{"x":{"L":[{"N":"1.50"},{"S":"é\""}]}}},"tags":{"SS":["p","q"]}}}
{"Item":{"id":{"S":"b"},"n":{"N":"-1"},"d":{"N":"2"}}}
{"Item":{"id":{"S":"c"},"n":{"N":"abc"}}}
{"Item":{"id":{"S":"d"},"n":{"N":"1","S":"x"}}}
{"Item":{"id":{"S":"e"},"b":{"B":"?"}}}
`)
	lines, shown, p := loadAndExport(t, part, 3, "--pk", "id")
	same(t, lines, []string{
		`{"id":"a","b":{"base64":"AAH/"},"big":"12345678901234567890123456789012345678","d":0.5,"doc":"{\"x\":[1.50,\"é\\\"\"]}","n":9223372036854775807,"ok":true,"tags":"[\"p\",\"q\"]"}`,
		`{"id":"b","d":2.0,"n":-1}`,
	})
	conformance.Contains(t, shown, "--format dynamodb", "the format that was found is not shown")
	rejects := strings.Split(p.read("run/rejects.jsonl"), "\n")
	for i, want := range []string{`N holds \"abc\", which is not a number`, "a member beside N", `B holds \"?\", which is not base64`} {
		line := rejects[i]
		if !strings.Contains(line, want) || !strings.Contains(line, `"BadTypeTag"`) || !strings.Contains(line, `"column":"`+[]string{"n", "n", "b"}[i]+`"`) || !strings.Contains(line, `"line":`+[]string{"3", "4", "5"}[i]) {
			t.Errorf("%s, want %s", line, want)
		}
	}
	p.ends(0, []string{"inspect", part}, "dynamodb")
	p.ends(0, []string{"advise", part})
	if got := p.retried(`"abc"`, `"7"`, `,"S":"x"`, "", `"?"`, `"AQ=="`); len(got) != 5 || got[2] != `{"id":"c","n":7}` || got[4] != `{"id":"e","b":{"base64":"AQ=="}}` {
		t.Errorf("%q", got)
	}
}

// TestRejectsOfSeveralFormatsAreNotLoadedAsOne: one --format would be wrong for some of them.
func TestRejectsOfSeveralFormatsAreNotLoadedAsOne(t *testing.T) {
	in := newPlace(t)
	in.write("a.json", `{"Item":{"id":{"S":"a"}}}`+"\n"+`{"Item":{"id":{"S":1}}}`)
	in.write("b.csv", "id\nb\nc,d\n")
	lines, _, p := loadAndExport(t, in.dir, 3, "--pk", "id")
	same(t, lines, []string{`{"id":"a"}`, `{"id":"b"}`})
	p.ends(2, []string{"load", "--retry-rejects", "run"}, "load each one separately")
}

// TestADumpOfADatabaseIsLoadedByItsTable: that of PostgreSQL, as it is and cut short. What its rows hold is shown in reader/pgdump and
// reader/mysqldump.
func TestADumpOfADatabaseIsLoadedByItsTable(t *testing.T) {
	const dump = "../reader/pgdump/testdata/shop.sql"
	lines, shown, p := loadAndExport(t, dump, 3, "--source-table", "public.orders", "--columns", "id,customer,amount,paid,at,raw,w,iv")
	same(t, lines, []string{
		`{"id":1,"amount":"10.50","at":"2024-02-29T07:04:56.789Z","customer":"Ann\t\"x\", \\ é\nline","iv":"P1Y-2DT3H4M5.5S","paid":true,"raw":{"base64":"AP9c"},"w":0.1}`,
		`{"id":3,"amount":"0.00","at":"0044-03-15 00:00:00+00 BC","customer":"\\.","iv":"PT0S","w":1e+300}`,
	})
	for _, want := range []string{
		"table public.orders, 3 rows; skipped: 5 other tables with 7 rows", "the new table's primary key is that of the source: --pk id:integer",
		"rejected 1 with OutOfRange", "shop.sql:225, column w",
	} {
		conformance.Contains(t, shown, want, "shown")
	}
	if got := p.retried(`"NaN"`, "1.5"); len(got) != 3 || !strings.Contains(got[1], `"w":1.5`) {
		t.Errorf("%q", got)
	}
	content, err := os.ReadFile(dump)
	must(t, err)
	cut := p.write("cut.sql", string(content)[:strings.Index(string(content), "c4\t4")+3])
	if lines, shown, _ = loadAndExport(t, cut, 2, "--source-table", "customers", "--pk", "b:integer"); len(lines) != 3 || !strings.Contains(shown, "the dump ends within the rows of public.customers") {
		t.Errorf("%q, %s", lines, shown)
	}
	packed := writeGzip(t, p.path("shop.sql.gz"), string(content))
	for _, command := range []string{"inspect", "advise", "check --unique"} {
		p.ends(0, append(strings.Fields(command), packed, "--source-table", "customers"))
	}
	p.ends(2, []string{"inspect", packed}, "4 tables with rows: other.orders, public.customers, public.orders, public.parted_1; say which with --source-table")
}

// TestASmallLoad loads, compares and drops a table of its own: of the instance that TABLESTORE_TEST_… names (make real), if there is one.
func TestASmallLoad(t *testing.T) {
	var env []string
	for _, name := range []string{"ENDPOINT", "INSTANCE", "ACCESS_KEY_ID", "ACCESS_KEY_SECRET"} {
		env = append(env, "TABLESTORE_"+name+"="+os.Getenv("TABLESTORE_TEST_"+name))
	}
	if os.Getenv("TABLESTORE_TEST_ENDPOINT") == "" {
		env = startServe(t, "--sync", "none").env()
	}
	p := newPlace(t, env...)
	input, err := filepath.Abs("../examples/student-cards.csv")
	must(t, err)
	name := fmt.Sprintf("tsimport_small_%d_%d", time.Now().UnixMilli(), os.Getpid())
	p.ends(0, []string{"load", input, "--create", "--limit", "2000", "--verify", "--table", name, "--pk", "DeviceID:integer", "--pk", "OrderNumber:integer"})
	p.ends(0, []string{"table", "drop", name, "--yes"})
}

// TestStoresOfOneNameInTwoFoldersAreTwoTargets loads one file into the default store of each of two folders at once. In the same
// folder the second load is refused.
func TestStoresOfOneNameInTwoFoldersAreTwoTargets(t *testing.T) {
	t.Parallel()
	here := newPlace(t, "XDG_CACHE_HOME="+t.TempDir())
	elsewhere := newPlace(t, here.env...)
	load := []string{"load", here.write("in.csv", fileOf("id,v", 2000, func(i int) string { return fmt.Sprintf("%d,x", i) })), "--table", "t", "--pk", "id:integer"}
	first := here.start(append(load, "--max-rows-per-second", "1")...)
	first.must(func() bool { return len(here.glob("tsimport-runs/*/summary.json")) == 1 })
	elsewhere.ends(0, load)
	here.ends(1, load, "it is in use by another process")
	first.signal(os.Kill)
}

// TestAnotherMachineResumesFromTheState when the first was killed, with its working folder gone. States that are full, damaged, newer or ignore
// conditions are refused by internal/jobdir.
func TestAnotherMachineResumesFromTheState(t *testing.T) {
	t.Parallel()
	s, around := startServe(t), newPlace(t)
	store := around.bucket(t, "states")
	const rows = 5000
	drop := newPlace(t)
	drop.write("a.csv", fileOf("id,v", rows, func(i int) string { return fmt.Sprintf("%d,x%d", i, i) })+"bad\n")
	args := func(more ...string) []string {
		return append([]string{"load", drop.dir, "--table", "nights", "--pk", "id", "--create", "--only-new", "--state", "s3://states/all",
			"--settle", "1s", "--request-timeout", "2s"}, more...)
	}
	first := s.pod(t, around.env...).start(args("--max-rows-per-second", "200")...)
	first.must(func() bool { // checkpoints in the state
		kept := 0
		for _, r := range store.Requests() {
			if strings.HasPrefix(r, "PUT ") && strings.Contains(r, "/checkpoint.") {
				kept++
			}
		}
		return kept >= 2
	})
	first.kill()                            // its lease is waited for
	drop.write("b.csv", "id,v\n-1,later\n") // what comes meanwhile is not of that run
	second := s.pod(t, around.env...)
	second.ends(3, args(), "resuming run", "5,001 read, 5,000 written, 1 rejected")
	second.ends(0, args(), "1 of 2 inputs are known", "1 read, 1 written")
	second.ends(0, args(), "nothing new")
	conformance.Equal(t, len(second.glob("tsimport-runs/*/rejects.csv")), 1, "rejects")
	if said := second.run(0, "files", "--table", "nights", "--state", "s3://states/all"); strings.Count(said, ".csv") != 2 {
		t.Errorf("files: %s", said)
	}
}

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
			conformance.MustEqual(t, second.wait(), 130, "the load that resumes: exit code\n%s", &second.said)
			sum := p.summary()
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

func TestAnAddressInUseEndsALoadBeforeItBegins(t *testing.T) {
	w := watch(t)
	address := strings.TrimSuffix(strings.TrimPrefix(w.status, "http://"), "/")
	p := newPlace(t)
	p.write("in.csv", "id\n1\n")
	if said := p.ends(2, []string{"load", "in.csv", "--table", "t", "--pk", "id", "--store", "store", "--status", address}, "tsimport: --status "+address+": "); strings.Count(said, "\n") != 1 {
		t.Error(said)
	}
	p.ends(2, []string{"table", "list", "--store", "store"}) // it was not made
	w.signal(syscall.SIGINT)
	w.end(130)
}

// TestMoreScripts runs the scripts of what commands refuse, count and choose.
func TestMoreScripts(t *testing.T) { runScripts(t, "testdata/morescripts") }
