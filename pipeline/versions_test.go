package pipeline

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/client"
	"tsimport/engine/faults"
	"tsimport/table"
)

// versions returns the timestamps of the versions of each cell of a row, the newest first.
func (w *world) versions(id string) map[string][]int64 {
	w.t.Helper()
	w.plan.WaitLate()
	sdk, err := client.New(context.Background(), w.target(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	key := new(tablestore.PrimaryKey)
	key.AddPrimaryKeyColumn("id", id)
	res, err := sdk.GetRow(&tablestore.GetRowRequest{SingleRowQueryCriteria: &tablestore.SingleRowQueryCriteria{TableName: "t", PrimaryKey: key, MaxVersion: 100}})
	if err != nil {
		w.t.Fatal(err)
	}
	got := map[string][]int64{}
	for _, c := range res.Columns {
		got[c.ColumnName] = append(got[c.ColumnName], c.Timestamp)
	}
	return got
}

func (w *world) versioned(text string) Config {
	cfg := w.config(w.file("in.csv", text))
	cfg.Target.Define.MaxVersions = 10
	cfg.Write.Mode = table.Update
	return cfg
}

func TestAnUpdateThatIsRepeatedLeavesOneVersion(t *testing.T) {
	for name, fault := range map[string]faults.Fault{
		"applied and lost": {Action: faults.DropAfter},
		"applied late":     {Action: faults.ApplyLate, Delay: lateness},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			cfg := w.versioned("id,a,b\nx,1,2\ny,3,\n")
			cfg.Write.Stamp = time.Now().Add(-time.Hour).UnixMilli()
			w.plan.Decide = func(r faults.Request) faults.Fault {
				if r.N < 3 {
					return fault
				}
				return faults.Fault{}
			}
			r := w.load(cfg)
			w.wantRows(contents{"x": {"a": "1", "b": "2"}, "y": {"a": "3"}})
			for _, id := range []string{"x", "y"} {
				for name, at := range w.versions(id) {
					if len(at) != 1 || at[0] != cfg.Write.Stamp {
						t.Errorf("%s.%s has versions %d, want %d", id, name, at, cfg.Write.Stamp)
					}
				}
			}
			if r.ExtraVersions != 0 || r.Stamp != cfg.Write.Stamp {
				t.Errorf("%d extra versions, stamp %d", r.ExtraVersions, r.Stamp)
			}
		})
	}
}

// The timestamp that an earlier attempt began with has left the table's window: rows get another.
func TestATimestampThatTheTableTakesNoMoreIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.versioned("id,a\nx,1\n")
	cfg.Target.Define.MaxDeviation = 1000
	cfg.Write.Stamp = time.Now().Add(-2000 * time.Second).UnixMilli()
	before := time.Now().UnixMilli()
	r := w.load(cfg)
	at := w.versions("x")["a"]
	if len(at) != 1 || at[0] < before-1000 || r.Rejected != 0 || r.Stamp != at[0] {
		t.Errorf("versions %d, %d rejected, stamp %d", at, r.Rejected, r.Stamp)
	}
}

// The timestamp leaves the window between a row's attempt of unknown outcome and its repeat: the row may have two versions,
// and is counted.
func TestARepeatWithAnotherTimestampIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.versioned("id,a\nx,1\ny,1\n")
	cfg.Write.Stamp, cfg.Write.Concurrency = time.Now().Add(-time.Hour).UnixMilli(), 1
	var passed atomic.Int64 // time, after the first request
	cfg.Write.window = func() (from, to int64) {
		now := cfg.Write.Stamp + passed.Load()
		return now - 100_000, now + 100_000
	}
	w.plan.Decide = func(r faults.Request) faults.Fault {
		if r.N > 0 {
			return faults.Fault{}
		}
		passed.Store(95_000)
		return faults.Fault{Action: faults.DropAfter}
	}
	r := w.load(cfg)
	if r.ExtraVersions != 2 || r.Written != 2 {
		t.Errorf("%d extra versions of %d rows", r.ExtraVersions, r.Written)
	}
	if got := w.versions("x")["a"]; len(got) != 2 || r.Stamp != cfg.Write.Stamp+95_000 {
		t.Errorf("versions %d, stamp %d", got, r.Stamp)
	}
}

func TestAVersionColumnKeepsVersionsInUpdates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now().UnixMilli()
	cfg := w.versioned(fmt.Sprintf("id,at,a\nx,%d,1\nx,%d,2\nx,%d,3\n", now-3000, now-1000, now-2000))
	cfg.Read.Convert.VersionColumn = "at"
	cfg.Columns.Exclude = []string{"at"}
	w.load(cfg)
	if at := w.versions("x")["a"]; fmt.Sprint(at) != fmt.Sprint([]int64{now - 1000, now - 2000, now - 3000}) {
		t.Errorf("versions %d", at)
	}
	cfg.Write.Mode, cfg.RunDir = table.Put, filepath.Join(w.dir, "run2")
	if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "--version-column with --mode put") {
		t.Errorf("%v", err)
	}
}
