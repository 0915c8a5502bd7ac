package spread

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"

	"example.com/tsimport/bench"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline/plan"
)

// fakeEnv makes this test binary behave as a tsimport of a certain kind: what it prints, where, and its exit code.
const fakeEnv = "SPREAD_TEST_TSIMPORT"

var must = conformance.Must

func TestMain(m *testing.M) {
	switch kind := os.Getenv(fakeEnv); kind {
	case "":
		os.Exit(m.Run())
	case "dies":
		fmt.Fprintln(os.Stderr, "no room on the disk")
		os.Exit(1)
	case "mumbles":
		fmt.Println("ready")
	case "rejects":
		fmt.Println(`{"read":5,"written":4,"rejected":1}`)
		os.Exit(exitRejects)
	case "refuses":
		fmt.Fprintln(os.Stderr, "tsimport: --pk a:blob: no such type")
		os.Exit(exitUsage)
	case "chats":
		fmt.Println("all is well")
	}
}

func fake(t *testing.T, kind string) *Config {
	t.Helper()
	t.Setenv(fakeEnv, kind)
	binary, err := os.Executable()
	must(t, err)
	c := config()
	c.Binary = binary
	return &c
}

func config() Config {
	return Config{
		Input:    Input{StudentCards: bench.StudentCards{Rows: 1000, Order: bench.Sorted, Seed: 1}},
		Table:    Table{Partitions: 4, PartitionWCU: 1e6},
		Baseline: time.Minute,
	}
}

// here is an engine in the test's own process.
func here(t *testing.T) *engine {
	t.Helper()
	store, err := server.Open(t.TempDir(), server.Options{InMemory: true})
	must(t, err)
	web := httptest.NewServer(store)
	t.Cleanup(func() {
		web.Close()
		must(t, store.Close())
	})
	return &engine{http: web.Client(), id: server.DefaultAccessKeyID, secret: server.DefaultAccessKeySecret, Target: client.Target{
		Endpoint: web.URL, Instance: server.DefaultInstance,
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: server.DefaultAccessKeyID, AccessKeySecret: server.DefaultAccessKeySecret},
	}}
}

func cards(t *testing.T, c *Config) *run {
	t.Helper()
	d, err := find(t.Context(), c, t.TempDir())
	must(t, err)
	return &run{Config: c, data: d, dir: t.TempDir(), report: &Report{}}
}

func TestTheSDKsLoadsAreMeasuredAndComplete(t *testing.T) {
	c := config()
	r := cards(t, &c)
	for _, name := range []string{Naive, Parallel, Preshuffled} {
		e := here(t)
		must(t, r.makeTable(t.Context(), e))
		s := &Scenario{Name: name}
		_, err := r.baseline(t.Context(), e, s, t.TempDir())
		must(t, err)
		if s.Rows != 1000 || s.Units != 1000 || s.Lost != 0 || s.Stopped || s.Requests != 5 || s.BatchFill != 1 || len(s.Partitions) != 4 {
			t.Errorf("%s: %+v", name, s)
		}
		for _, p := range s.Partitions {
			var perSecond int64
			for _, n := range p.PerSecond {
				perSecond += n
			}
			if p.Rows < 240 || p.Rows > 260 || perSecond != p.Units {
				t.Errorf("%s: partition %s has %d rows, %d units over its seconds; want about 250", name, p.From, p.Rows, perSecond)
			}
		}
		if (s.PreparationSeconds > 0) != (name == Preshuffled) {
			t.Errorf("%s: prepared for %v s", name, s.PreparationSeconds)
		}
		if got, err := r.data.compare(t.Context(), e, plan.LastWins); err != nil || !got.Exact() || got.Rows != 1000 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestALoadWithTheSDKStopsAtItsDeadline(t *testing.T) {
	c := config()
	c.Baseline = time.Nanosecond
	c.Table.PartitionWCU = 1 // a row a second
	r := cards(t, &c)
	e := here(t)
	must(t, r.makeTable(t.Context(), e))
	s := &Scenario{Name: Naive}
	m, err := r.baseline(t.Context(), e, s, t.TempDir())
	must(t, err)
	if !s.Stopped || m.end == 0 || s.IdealSeconds != 0 || s.Rows >= 1000 {
		t.Errorf("not stopped: %+v", s)
	}
}

func TestRowsThatTheSDKGivesUpAreLost(t *testing.T) {
	c := config()
	r := cards(t, &c)
	e := here(t)
	must(t, r.makeTable(t.Context(), e))
	must(t, e.simulate(t.Context(), &c.Table, 1))
	// Applied and answered with OTSTimeout, which the SDK does not repeat writes for.
	faults := map[string]any{"rate": 1, "kinds": []string{"error-after"}, "operations": []string{"BatchWriteRow"}}
	must(t, e.do(t.Context(), "POST", "faults", faults, nil))
	b := &baseline{engine: e, each: r.data.each, workers: 2}
	m, err := b.runFor(t.Context(), time.Now().Add(time.Minute))
	if err != nil || m.lost != 1000 || m.stopped {
		t.Errorf("%d rows lost, stopped %v, %v; want 1000", m.lost, m.stopped, err)
	}
}

func TestTheComparisonFindsMissingChangedAndSurplusRows(t *testing.T) {
	c := config()
	r := cards(t, &c)
	e := here(t)
	must(t, r.makeTable(t.Context(), e))
	text, err := os.ReadFile(r.data.path)
	must(t, err)
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines[1] = nil                                                               // missing
	lines[2] = append(bytes.TrimSuffix(lines[2], []byte("\n")), "x\n"...)        // another attribute
	lines = append(lines, []byte("1,Z999,1,1,1,2024-01-01T00:00:00Z,extra\n"))   // too much
	lines = append(lines, bytes.Replace(lines[3], []byte(","), []byte(",Y"), 1)) // too much: another key
	lines[3] = nil                                                               // missing
	path := filepath.Join(t.TempDir(), "other.csv")
	must(t, os.WriteFile(path, bytes.Join(lines, nil), 0o600))
	must(t, (&baseline{engine: e, each: (&dataset{path: path, pk: cardKey}).each, workers: 1}).run(t.Context()))
	got, err := r.data.compare(t.Context(), e, plan.LastWins)
	must(t, err)
	if want := (Comparison{Rows: 1000, Missing: 2, Extra: 2, Changed: 1}); *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
	if got.Exact() || !strings.Contains(got.String(), "2 rows missing, 1 with other attributes, 2 too many") {
		t.Errorf("it says %s", got)
	}
	if (&Report{Scenarios: []*Scenario{{Comparison: got}}}).Failed() != true || (&Report{Scenarios: []*Scenario{{}}}).Failed() {
		t.Error("a wrong table must fail the report, a load without comparison must not")
	}
}

// csvOf is a file with a key.
func csvOf(t *testing.T, text string, pk ...string) *dataset {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.csv")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return &dataset{path: path, pk: pk}
}

func TestShufflingKeepsEveryRow(t *testing.T) {
	d := csvOf(t, "k,v\n1,a\n2,\"b\nb\"\n3,\"c\"\"\"\n4,d\n5,e", "k:integer")
	var inOrder [][]byte
	must(t, d.each(t.Context(), func(row []byte) error {
		inOrder = append(inOrder, row)
		return nil
	}))
	rows, err := d.shuffled(t.Context(), 3)
	must(t, err)
	if len(rows) != 5 || slices.EqualFunc(rows, inOrder, bytes.Equal) {
		t.Errorf("%d rows, in the order of the file", len(rows))
	}
	slices.SortFunc(rows, bytes.Compare)
	slices.SortFunc(inOrder, bytes.Compare)
	conformance.Equal(t, slices.EqualFunc(rows, inOrder, bytes.Equal), true, "the rows are others")
}

func TestAnEngineThatDoesNotStartIsAnError(t *testing.T) {
	for kind, want := range map[string]string{"dies": "no room on the disk", "mumbles": `"ready"`} {
		c := fake(t, kind)
		if _, err := Run(t.Context(), *c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", kind, err, want)
		}
	}
}

func TestARefusalOfTheEngineIsShown(t *testing.T) {
	err := here(t).do(t.Context(), "POST", "tables/none/split", map[string]any{"even": 2}, nil)
	if err == nil || !strings.Contains(err.Error(), "404") || !strings.Contains(err.Error(), "none") {
		t.Errorf("got %v", err)
	}
	if _, _, err := here(t).stats(t.Context()); err == nil {
		t.Error("counts of a table that is not there")
	}
}

func TestALoadThatFailsSaysWhyAndOneWithRejectsIsMeasured(t *testing.T) {
	for kind, want := range map[string]string{"dies": "no room on the disk", "chats": "summary", "rejects": ""} {
		c := fake(t, kind)
		l := loader{config: c, engine: &engine{}, data: &dataset{path: "x.csv"}, dir: t.TempDir()}
		err := l.run(t.Context())
		if want == "" && (err != nil || l.summary.Rejected != 1) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, %+v", kind, err, l.summary)
		}
	}
}

func TestAStoppedBenchLeavesNoFiles(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	c := config()
	c.Say = func(words.Kind, string) { cancel(stopped) } // while the dataset is made
	if _, err := Run(ctx, c); !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestWhatCannotBeMeasuredIsRefused(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"--partitions":       func(c *Config) { c.Table.Partitions = 0 },
		"--partition-wcu":    func(c *Config) { c.Table.PartitionWCU = math.NaN() },
		"--latency":          func(c *Config) { c.Table.LatencyMS = -1 },
		"--baseline-seconds": func(c *Config) { c.Baseline = 0 },
		"--rows":             func(c *Config) { c.Input.Rows = 0 },
		"--pk for each":      func(c *Config) { c.Input.File = "x.csv" },
		"--pk goes with":     func(c *Config) { c.Input.Keys = []string{"a"} },
		"--slow 9":           func(c *Config) { c.Table.Slow = map[int]float64{9: 0.5} },
		"--slow 1:2":         func(c *Config) { c.Table.Slow = map[int]float64{1: 2} },
		"give one of them":   func(c *Config) { c.Table.Slow, c.Table.SplitsMS = map[int]float64{1: 0.5}, 1000 },
		`--only "fast"`:      func(c *Config) { c.Scenarios = []string{"naive", "fast"} },
	} {
		c := config()
		change(&c)
		_, err := Run(t.Context(), c)
		if usage, ok := errors.AsType[*plan.UsageError](err); !ok || !strings.Contains(usage.Message, want) {
			t.Errorf("got %v, want a usage error about %s", err, want)
		}
	}
	if c := config(); c.Check() != nil {
		t.Errorf("the plain config is refused: %v", c.Check())
	}
}

func TestAFileThatCannotBeLoadedIsRefused(t *testing.T) {
	for says, d := range map[string]*dataset{
		"no such file": {path: filepath.Join(t.TempDir(), "none.csv"), pk: []string{"id"}},
		"did you mean": csvOf(t, "card,seller\n7,a\n", "k=pad(crad, 3)"),
	} {
		c := config()
		c.Input = Input{File: d.path, Keys: d.pk}
		if _, err := Run(t.Context(), c); !errors.As(err, new(*plan.UsageError)) || !strings.Contains(err.Error(), says) {
			t.Errorf("it says %v, want %q", err, says)
		}
	}
}

func TestWhatTheLoadCallsBadUsageIsBadUsageOfTheBench(t *testing.T) {
	l := loader{config: fake(t, "refuses"), engine: here(t), data: &dataset{path: "x.csv"}, dir: t.TempDir()}
	err := l.run(t.Context())
	if usage, ok := errors.AsType[*plan.UsageError](err); !ok || usage.Message != "--pk a:blob: no such type" {
		t.Errorf("%v", err)
	}
}

func TestTheSDKLoadsRowsWhoseKeyIsComputed(t *testing.T) {
	d := csvOf(t, "\ufeffcard,seller,n\n7,a,1\n-1,b,2\n8,c,3\n", `k=splice(",", pad(card, 3), seller)`, "s=salt(1000)")
	var got []string
	must(t, d.each(t.Context(), func(row []byte) error {
		change, err := changeOf(row)
		must(t, err)
		key := change.PrimaryKey.PrimaryKeys
		got = append(got, fmt.Sprint(key[0].Value, " ", key[1].Value))
		conformance.Equal(t, len(key), 2, "key")
		conformance.Equal(t, len(change.Columns), 3, "columns")
		return nil
	}))
	if want := "007,a 787; 008,c 250"; strings.Join(got, "; ") != want {
		t.Errorf("keys %q, want %q: a record that a load rejects is left out", got, want)
	}
}
