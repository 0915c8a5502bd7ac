package verify

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/pipeline/plan"
)

var must = conformance.Must

func TestMain(m *testing.M) { conformance.Main(m) }

func init() {
	// Few draws by default; -rapid.checks asks for more.
	if err := flag.Set("rapid.checks", "35"); err != nil {
		panic(err)
	}
}

// world is an embedded store in memory, and a folder for inputs.
type world struct {
	*tabletest.Store
	t      testing.TB
	dir    string
	faults *faults.Plan
	tables atomic.Int64
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), faults: &faults.Plan{}}
	w.Store = tabletest.Open(t, server.Options{Faults: w.faults})
	return w
}

// fatal is what testing.T and rapid.T have in common.
type fatal interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

var stringID = []table.KeyColumn{{Name: "id", Type: table.String}}

// make makes a table and returns its name.
func (w *world) make(t fatal, d table.Definition) string {
	t.Helper()
	name := fmt.Sprintf("t%d", w.tables.Add(1))
	if d.TimeToLive == 0 {
		d.TimeToLive = -1
	}
	d.MaxVersions = max(d.MaxVersions, 1)
	must(t, w.Admin.Create(name, stringID, d))
	return name
}

type cells = tabletest.Cells

// put replaces a row; a nil stamp is the store's own time.
func (w *world) put(t fatal, name, id string, c cells, stamp ...int64) {
	t.Helper()
	must(t, tabletest.Do(w.SDK, tabletest.Put(name, tabletest.Key("id", id), c, stamp...)))
}

func (w *world) update(t fatal, name, id string, c cells, stamp ...int64) {
	t.Helper()
	must(t, tabletest.Do(w.SDK, tabletest.Update(name, tabletest.Key("id", id), c, stamp...)))
}

func (w *world) delete(t fatal, name, id string) {
	t.Helper()
	must(t, tabletest.Do(w.SDK, tabletest.Delete(name, tabletest.Key("id", id))))
}

// config compares the table with a CSV text.
func (w *world) config(t fatal, name, text string) Config {
	t.Helper()
	path := filepath.Join(w.dir, name+".csv")
	must(t, os.WriteFile(path, []byte(text), 0o644))
	return Config{
		Client: w.SDK, Examples: 10, Memory: 1 << 30, TempDir: w.dir,
		Request: &plan.Request{Inputs: []string{path}, Target: plan.Target{Table: name}, Columns: plan.Columns{Types: map[string]plan.Type{}}},
	}
}

// run compares and must come to an end.
func run(t fatal, cfg Config) *Result {
	t.Helper()
	r, err := Run(context.Background(), cfg)
	must(t, err)
	return r
}

// counts are the numbers of a result that say what was found.
func (r *Result) counts() string {
	return fmt.Sprintf("expected %d, equal %d, missing %d, different %d, expired %d, extra %d, in table %d, rejected %d, superseded %d",
		r.RowsExpected, r.Equal, r.Missing, r.Different, r.Expired, r.Extra, r.RowsInTable, r.Rejected, r.Superseded)
}

func wantCounts(t testing.TB, r *Result, want string) {
	t.Helper()
	conformance.Equal(t, r.counts(), want, "counts, %+v", r.Examples)
}
