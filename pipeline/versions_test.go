package pipeline

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/pipeline/plan"
)

// versions returns the timestamps of the versions of each cell of a row, the newest first.
func (w *world) versions(id string) map[string][]int64 {
	w.t.Helper()
	got := map[string][]int64{}
	for _, c := range w.cells(id) {
		got[c.ColumnName] = append(got[c.ColumnName], c.Timestamp)
	}
	return got
}

// cells returns the versions of all cells of a row, the newest of each first.
func (w *world) cells(id string) []*tablestore.AttributeColumn {
	w.t.Helper()
	w.plan.WaitLate()
	key := new(tablestore.PrimaryKey)
	key.AddPrimaryKeyColumn("id", id)
	res, err := w.sdk().GetRow(&tablestore.GetRowRequest{SingleRowQueryCriteria: &tablestore.SingleRowQueryCriteria{TableName: "t", PrimaryKey: key, MaxVersion: 10_000}})
	must(w.t, err)
	return res.Columns
}

func (w *world) versioned(text string) trial {
	cfg := w.config(w.file("in.csv", text))
	cfg.Target.Define.MaxVersions = 10
	cfg.Write.Mode = table.Update
	return cfg
}

// skewed is a world whose clock is ahead of this machine's.
func skewed(t *testing.T, ahead func() time.Duration) *world {
	t.Helper()
	return newWorldOf(t, server.Options{Now: func() time.Time { return time.Now().Add(ahead()) }})
}

func TestUpdatesAreSeenWhenTheLoadersClockIsWrong(t *testing.T) {
	for _, ahead := range []time.Duration{10 * time.Second, 14 * time.Minute, -10 * time.Second, -14 * time.Minute} {
		for _, deviation := range []int64{0, 1, 5} {
			t.Run(fmt.Sprint(ahead, deviation), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := skewed(t, func() time.Duration { return ahead })
					cfg := w.versioned("id,a\nx,old\ny,old\n")
					cfg.Target.Define.MaxDeviation = deviation
					cfg.Write.Mode = table.Put
					w.load(cfg)
					cfg = w.versioned("id,a\nx,new\ny,older\ny,new\n")
					cfg.Target.Define.MaxDeviation = deviation
					cfg.RunDir = filepath.Join(w.dir, "run2")
					var warnings []string
					cfg.Watch.OnPlan = func(p *plan.Plan) { warnings = p.Warnings }
					r := w.load(cfg)
					w.wantRows(contents{"x": {"a": "new"}, "y": {"a": "new"}})
					if r.Rejected != 0 || r.ExtraVersions != 0 {
						t.Errorf("%d rejected, %d extra versions", r.Rejected, r.ExtraVersions)
					}
					if d := ahead.Seconds() - r.ClockBehind; d < -.5 || d > .5 {
						t.Errorf("clock behind by %v s, want %v", r.ClockBehind, ahead)
					}
					if !strings.Contains(strings.Join(warnings, "\n"), "this machine's clock is ") {
						t.Errorf("warnings %q", warnings)
					}
				})
			})
		}
	}
}

// Somebody writes a cell after the load began and before its row is sent: the load comes later, so it is what readers see.
func TestAnUpdateSentLaterThanAnotherWriterIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.versioned("id,a\nw,1\nx,load\n")
	cfg.Lanes.BatchRows, cfg.Lanes.Concurrency = 1, 1 // the second row is cut when the first is written
	first := true
	cfg.onSend = func([]table.Ref) {
		if !first {
			return
		}
		first = false
		w.update("x", "a", "other")
	}
	w.load(cfg)
	w.wantRows(contents{"w": {"a": "1"}, "x": {"a": "load"}})
}

// update is what another writer does.
func (w *world) update(id, column, value string) {
	if err := tabletest.Do(w.sdk(), tabletest.Update("t", tabletest.Key("id", id), tabletest.Cells{column: value})); err != nil {
		w.t.Error(err)
	}
}

// The timestamp leaves the window between a row's attempt of unknown outcome and its repeat: the row may have two versions,
// and is counted.
func TestARepeatWithAnotherTimestampIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.versioned("id,a\nx,1\ny,1\n")
	cfg.Lanes.Concurrency = 1
	var passed atomic.Int64 // time, after the first request
	begun := time.Now().Add(-time.Hour)
	cfg.Target.Define.MaxDeviation = 4000
	cfg.serviceTime = func() (earliest, latest time.Time) {
		now := begun.Add(time.Duration(passed.Load()))
		return now, now
	}
	w.plan.Decide = func(r faults.Request) faults.Fault {
		if r.N > 0 {
			return faults.Fault{}
		}
		passed.Store(int64(3900 * time.Second))
		return faults.Fault{Action: faults.DropAfter}
	}
	r := w.load(cfg)
	if r.ExtraVersions != 2 || r.Written != 2 {
		t.Errorf("%d extra versions of %d rows", r.ExtraVersions, r.Written)
	}
	if got := w.versions("x")["a"]; len(got) != 2 || got[0] != begun.Add(3900*time.Second).UnixMilli() || r.Stamp != got[0] {
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
}
