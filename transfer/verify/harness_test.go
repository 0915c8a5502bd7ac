package verify

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
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
	t      testing.TB
	dir    string
	sdk    *tablestore.TableStoreClient
	admin  *client.Admin
	server *server.Server
	faults *faults.Plan
	tables atomic.Int64
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), faults: &faults.Plan{}}
	s, err := server.Open("", server.Options{InMemory: true, Faults: w.faults})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	w.server = s
	w.sdk, err = client.New(context.Background(), client.Target{
		Endpoint: "http://embedded", Instance: server.DefaultInstance, Transport: s.Transport(),
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: server.DefaultAccessKeyID, AccessKeySecret: server.DefaultAccessKeySecret},
	}, nil)
	must(t, err)
	w.admin = &client.Admin{Client: w.sdk, Context: context.Background()}
	return w
}

// fatal is what testing.T and rapid.T have in common.
type fatal interface {
	Helper()
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
	if err := w.admin.Create(name, stringID, d); err != nil {
		t.Fatalf("%v", err)
	}
	return name
}

// cells are the attributes of a row.
type cells map[string]any

// put replaces a row; a nil stamp is the store's own time.
func (w *world) put(t fatal, name, id string, c cells, stamp ...int64) {
	t.Helper()
	change := &tablestore.PutRowChange{TableName: name, PrimaryKey: new(tablestore.PrimaryKey)}
	change.PrimaryKey.AddPrimaryKeyColumn("id", id)
	change.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	for column, v := range c {
		if len(stamp) > 0 {
			change.AddColumnWithTimestamp(column, v, stamp[0])
		} else {
			change.AddColumn(column, v)
		}
	}
	if _, err := w.sdk.PutRow(&tablestore.PutRowRequest{PutRowChange: change}); err != nil {
		t.Fatalf("put row: %v", err)
	}
}

func (w *world) update(t fatal, name, id string, c cells, stamp ...int64) {
	t.Helper()
	change := &tablestore.UpdateRowChange{TableName: name, PrimaryKey: new(tablestore.PrimaryKey)}
	change.PrimaryKey.AddPrimaryKeyColumn("id", id)
	change.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	for column, v := range c {
		switch {
		case v == nil:
			change.DeleteColumn(column)
		case len(stamp) > 0:
			change.PutColumnWithTimestamp(column, v, stamp[0])
		default:
			change.PutColumn(column, v)
		}
	}
	if _, err := w.sdk.UpdateRow(&tablestore.UpdateRowRequest{UpdateRowChange: change}); err != nil {
		t.Fatalf("update row: %v", err)
	}
}

func (w *world) delete(t fatal, name, id string) {
	t.Helper()
	change := &tablestore.DeleteRowChange{TableName: name, PrimaryKey: new(tablestore.PrimaryKey)}
	change.PrimaryKey.AddPrimaryKeyColumn("id", id)
	change.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	if _, err := w.sdk.DeleteRow(&tablestore.DeleteRowRequest{DeleteRowChange: change}); err != nil {
		t.Fatalf("delete row: %v", err)
	}
}

// config compares the table with a CSV text.
func (w *world) config(t fatal, name, text string) Config {
	t.Helper()
	path := filepath.Join(w.dir, name+".csv")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatalf("%v", err)
	}
	return Config{
		Client: w.sdk, Examples: 10, Memory: 1 << 30, TempDir: w.dir,
		Request: &plan.Request{Inputs: []string{path}, Target: plan.Target{Table: name}, Columns: plan.Columns{Types: map[string]plan.Type{}}},
	}
}

// run compares and must come to an end.
func run(t fatal, cfg Config) *Result {
	t.Helper()
	r, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	return r
}

// counts are the numbers of a result that say what was found.
func (r *Result) counts() string {
	return fmt.Sprintf("expected %d, equal %d, missing %d, different %d, expired %d, extra %d, in table %d, rejected %d, superseded %d",
		r.RowsExpected, r.Equal, r.Missing, r.Different, r.Expired, r.Extra, r.RowsInTable, r.Rejected, r.Superseded)
}

func wantCounts(t testing.TB, r *Result, want string) {
	t.Helper()
	if got := r.counts(); got != want {
		t.Errorf("got  %s\nwant %s\n%+v", got, want, r.Examples)
	}
}
