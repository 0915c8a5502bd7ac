package pipeline

import (
	"bytes"
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/ratelimit"
	"example.com/tsimport/transfer/verify"
)

var must = conformance.Must

func rowsOf(header string, rows int, row func(i int) string) string {
	var b strings.Builder
	b.WriteString(header)
	for i := range rows {
		b.WriteString(row(i))
	}
	return b.String()
}

// A late attempt is applied after lateness, or never if the machine pauses. Loads allow for it during settle.
const (
	lateness = 10 * time.Millisecond
	settle   = 200 * time.Millisecond
)

// TestMain runs many tests in parallel, even with few processors, as most of them wait for settle.
func TestMain(m *testing.M) {
	flag.Parse()
	conformance.Must(conformance.Sure{}, flag.Set("test.parallel", "16"))
	conformance.Main(m)
}

// world is an in-memory embedded store, with tools for loading into it.
type world struct {
	t      *testing.T
	dir    string
	plan   *faults.Plan
	server *server.Server
	// template, if set, is the template of loads' table names, instead of t.
	template string
	newest   int   // number of versions of each cell to read; 0 means one
	grid     *grid // power supply; nil if it never fails
}

func newWorld(t *testing.T) *world { return newWorldOf(t, server.Options{}) }

func newWorldOf(t *testing.T, o server.Options) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), plan: &faults.Plan{Within: settle / 2}}
	o.InMemory, o.Faults = true, w.plan
	s := conformance.Try(server.Open("", o)).Must(t)
	w.server = s
	t.Cleanup(func() { conformance.Equal(t, s.Close(), nil, "error") })
	return w
}

// virtually runs a test of a world in virtual time, so that waiting costs nothing.
func virtually(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, newWorld(t)) })
}

func virtual(test func(t *testing.T, w *world)) func(*testing.T) {
	return func(t *testing.T) { virtually(t, test) }
}

// inEachOrder runs a test with ordered and with unordered rows.
func inEachOrder(t *testing.T, test func(t *testing.T, w *world, order plan.Order)) {
	for _, order := range []plan.Order{plan.LastWins, plan.OrderNone} {
		t.Run(order.String(), virtual(func(t *testing.T, w *world) { test(t, w, order) }))
	}
}

func (w *world) sdk() *tablestore.TableStoreClient {
	w.t.Helper()
	return conformance.Try(client.New(context.Background(), w.target(), nil)).Must(w.t)
}

func (w *world) target() client.Target {
	return client.Target{Endpoint: "http://embedded", Instance: server.DefaultInstance, Transport: w.transport(),
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: server.DefaultAccessKeyID,
			AccessKeySecret: server.DefaultAccessKeySecret}}
}

// fail makes the requests selected by which fail.
func (w *world) fail(f faults.Fault, which func(faults.Request) bool) {
	w.plan.Decide = func(r faults.Request) faults.Fault {
		if which(r) {
			return f
		}
		return faults.Fault{}
	}
}

func (w *world) failNext(f faults.Fault) {
	var met atomic.Bool
	w.fail(f, func(faults.Request) bool { return !met.Swap(true) })
}

func (w *world) simulate(t *testing.T, how server.Simulation) {
	t.Helper()
	if w.grid != nil {
		w.grid.simulate = &how
	}
	must(t, w.engine().Sim().Simulate("", how))
}

func (w *world) engine() *server.Server {
	if w.grid != nil {
		now, _ := w.grid.now()
		return now
	}
	return w.server
}

func (w *world) transport() http.RoundTripper {
	if w.grid != nil {
		return w.grid
	}
	return w.server.Transport()
}

type restless = conformance.Restless

func (w *world) file(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	must(w.t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// config returns a load of the inputs into table t, which it creates with the string key id.
func (w *world) config(inputs ...string) trial {
	name := "t"
	if w.template != "" {
		name = w.template
	}
	// Measuring the processors would take a tenth of the time of such short loads.
	return trial{hooks: hooks{processors: idle, onFree: spoil}, Config: Config{
		Inputs: inputs,
		Target: plan.Target{Client: w.target(), Name: "test", Table: name, Create: true,
			Key:    []table.KeyColumn{{Name: "id", Type: table.String}},
			Define: table.Definition{TimeToLive: -1, MaxVersions: 1}},
		Columns: plan.Columns{Types: map[string]plan.Type{}},
		Write:   Write{Settle: settle},
		Lanes: lanes.Config{RetryFor: time.Minute, Backoff: ratelimit.Backoff{Base: time.Millisecond,
			Max: 5 * time.Millisecond}},
		Limits: Limits{MaxErrors: ledger.MaxErrors{Rows: -1}},
		RunDir: filepath.Join(w.dir, "run"),
	}}
}

// spoil overwrites a block whose rows are all final, so that any later use of them is detected.
func spoil(b *table.Block) {
	for i := range b.Data {
		b.Data[i] = 0xdd
	}
	for i := range b.Rows {
		b.Rows[i] = table.Row{Hash: 0xdddddddddddddddd}
	}
}

// trial is the configuration of a test's load, with hooks.
type trial struct {
	Config
	hooks
}

func (c trial) run(ctx context.Context) (*Report, error) { return run(ctx, c.Config, &c.hooks) }

// load runs a load that must not fail, and checks its ledger.
func (w *world) load(cfg trial) *Report {
	w.t.Helper()
	r, err := cfg.run(context.Background())
	conformance.MustTrue(w.t, err == nil, "load: %v", err)
	conformance.Must(w.t, r.Balance())
	return r
}

// contents is the content of a table: rows by key, with the text of each column's value.
type contents map[string]map[string]string

// rows reads the whole table, or all tables.
func (w *world) rows() contents {
	if w.template == "" {
		return w.rowsOf("t")
	}
	all := contents{}
	for _, name := range w.tableNames() {
		for key, cells := range w.rowsOf(name) {
			conformance.True(w.t, all[key] == nil, "row %s is in two tables", key)
			all[key] = cells
		}
	}
	return all
}

func (w *world) tableNames() []string {
	w.t.Helper()
	return conformance.Try(w.admin().List()).Must(w.t)
}

func (w *world) rowsOf(name string) contents {
	w.t.Helper()
	w.plan.WaitLate()
	got := contents{}
	err := scan.Table(context.Background(), w.sdk(), name, w.described(name).Key, scan.Options{Versions: w.newest},
		func(r *scan.Row) error {
			cells := map[string]string{}
			for _, c := range r.Columns { // versions are sorted newest first
				if newer := cells[c.ColumnName]; newer != "" {
					cells[c.ColumnName] = newer + newerThan
				}
				cells[c.ColumnName] += fmt.Sprint(c.Value)
			}
			var key []string
			for _, k := range r.PrimaryKey.PrimaryKeys {
				key = append(key, fmt.Sprint(k.Value))
			}
			got[strings.Join(key, "/")] = cells
			return nil
		})
	must(w.t, err)
	return got
}

func (w *world) wantRows(want contents) {
	w.t.Helper()
	conformance.Equal(w.t, cmp.Diff(want, w.rows()), "", "the table differs from a sequential load (-want +got)")
}

// verifies checks that comparing the table with the load's inputs finds no difference.
func (w *world) verifies(cfg trial, r *Report) {
	w.t.Helper()
	found := w.compare(cfg, r)
	conformance.True(w.t, found.OK && found.Read == r.Read && found.Rejected == r.Rejected, "verify: %+v", found)
}

func (w *world) compare(cfg trial, r *Report) *verify.Result {
	w.t.Helper()
	rejected := conformance.Try(rundir.ReadRejected(r.RunDir)).Must(w.t)
	found, err := verify.Run(context.Background(), verify.Config{Request: cfg.Request(), Client: w.sdk(), Examples: 3,
		Memory: cfg.Limits.Memory, TempDir: w.dir, Rejected: rejected, Loaded: r.Started, Condition: cfg.Write.Condition})
	conformance.MustTrue(w.t, err == nil, "verify: %v", err)
	return found
}

// lastOf returns the table expected for CSV text with the column id: the last record of each id.
func lastOf(t *testing.T, text string) contents {
	t.Helper()
	records := conformance.Try(csv.NewReader(strings.NewReader(text)).ReadAll()).Must(t)
	left := contents{}
	for _, rec := range records[1:] {
		cells := map[string]string{}
		for i, v := range rec[1:] {
			if v != "" {
				cells[records[0][i+1]] = v
			}
		}
		if left[rec[0]] = cells; rec[0] == "" {
			delete(left, "")
		}
	}
	return left
}

// repeated returns CSV text with repeated ids. About one id in fifty is empty.
func repeated(records, ids int) string {
	return rowsOf("id,a,b\n", records, func(i int) string {
		id := fmt.Sprint("key", i*7919%ids)
		if i%53 == 7 {
			id = ""
		}
		return fmt.Sprintf("%s,a%d,%s\n", id, i, []string{"", "b"}[i%2])
	})
}

// lines returns the lines of a file in the run folder, or none if the file does not exist.
func lines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	must(t, err)
	return slices.Collect(func(yield func(string) bool) {
		for l := range bytes.Lines(text) {
			if !yield(strings.TrimSuffix(string(l), "\n")) {
				return
			}
		}
	})
}
