package commands

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/internal/conformance"
)

// expiring is an engine whose clock moves on when a load's first rows arrive, so that cells expire after being read.
type expiring struct {
	*enginetest.Engine
	mu   sync.Mutex
	next time.Duration
}

func newExpiring(t *testing.T) *expiring {
	e := &expiring{Engine: enginetest.Start(t)}
	to := conformance.Try(url.Parse(e.URL)).Must(t)
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/BatchWriteRow" {
			e.mu.Lock()
			e.Advance(t, e.next)
			e.next = 0
			e.mu.Unlock()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	for name, value := range map[string]string{"ENDPOINT": front.URL, "INSTANCE": e.Instance,
		"ACCESS_KEY_ID": e.AccessKeyID, "ACCESS_KEY_SECRET": e.AccessKeySecret} {
		t.Setenv("TABLESTORE_"+name, value)
	}
	return e
}

// fill puts rows whose cells live for a minute or nearly a day: with both, with either, and rows of a key alone.
func (e *expiring) fill(t *testing.T, name string, rows int) {
	t.Helper()
	now := e.Now().UnixMilli()
	for i := range rows {
		e.put(t, name, i, func(c *tablestore.PutRowChange) {
			if i%4 < 2 {
				c.AddColumnWithTimestamp("v", int64(1), now-86_340_000)
				c.AddColumnWithTimestamp("old", "x", now-86_340_000)
			}
			if i%4 == 0 || i%4 == 2 {
				c.AddColumnWithTimestamp("v", int64(2), now)
			}
		})
	}
}

func (e *expiring) put(t *testing.T, name string, id int, cells func(*tablestore.PutRowChange)) {
	t.Helper()
	key := new(tablestore.PrimaryKey)
	key.AddPrimaryKeyColumn("id", int64(id))
	c := &tablestore.PutRowChange{TableName: name, PrimaryKey: key}
	c.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	cells(c)
	conformance.Must(t, conformance.ErrorOf(e.Client().PutRow(&tablestore.PutRowRequest{PutRowChange: c})))
}

func TestCellsExpiringDuringALoadAreCounted(t *testing.T) {
	tsimport := commandsIn(t)
	const rows = 40
	for name, move := range map[string]func(e *expiring){
		"copy":                func(*expiring) { tsimport(0, "copy", "t", "to", "--verify", "-q") },
		"copy --drop-expired": func(*expiring) { tsimport(0, "copy", "t", "to", "--drop-expired", "--verify", "-q") },
		"small batches": func(*expiring) {
			tsimport(0, "copy", "t", "to", "--batch-bytes", "200", "--concurrency", "1", "-q")
		},
		"sync": func(*expiring) {
			tsimport(0, "sync", "ots://"+os.Getenv("TABLESTORE_INSTANCE")+"/t", "-t", "to", "-q")
		},
		"load of an archive": func(*expiring) { tsimport(0, "load", "kept", "-t", "to", "-q") },
		"load by a job dir": func(*expiring) {
			tsimport(0, "load", "kept", "-t", "to", "--job-dir", "jobs", "-q")
			tsimport(0, "work", "--job-dir", "jobs", "-q")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			e := newExpiring(t)
			for _, table := range []string{"t", "to"} {
				tsimport(0, "table", "create", table, "--pk", "id:integer", "--ttl", "86400", "--max-versions", "3")
			}
			e.fill(t, "t", rows)
			e.put(t, "to", 1, func(c *tablestore.PutRowChange) { c.AddColumn("v", int64(9)) }) // put over the row
			tsimport(0, "export", "-t", "t", "-o", "kept/", "-q")
			e.next = 2 * time.Minute
			move(e)
			export := func(table string) string {
				return tsimport(0, "export", "-t", table, "--format", "jsonl", "--typed", "-q")
			}
			conformance.Equal(t, export("to"), export("t"), "the table")
			var sum struct {
				Read, Written, Rejected, Superseded int64
				Expired                             int64 `json:"expired_cells"`
				Put                                 struct {
					Expired int64 `json:"expired_cells"`
				} `json:"put_load"`
			}
			found, _ := filepath.Glob("tsimport-runs/*/summary.json")
			if job, _ := filepath.Glob("jobs/summary.json"); len(job) > 0 {
				found = job
			}
			conformance.MustTrue(t, len(found) != 0, "there is no summary")
			text, err := os.ReadFile(found[len(found)-1])
			if err == nil {
				err = json.Unmarshal(text, &sum)
			}
			want := int64(rows)
			conformance.True(t, err == nil && sum.Rejected == 0 && sum.Expired+sum.Put.Expired == want && sum.Read == rows &&
				sum.Written == rows, "%v: %s", err, fmt.Sprintf("%+v", sum))
		})
	}
}
