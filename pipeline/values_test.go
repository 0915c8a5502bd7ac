package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/condition"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/pipeline/plan"
)

func TestTypesOfExistingTableChangeNoValue(t *testing.T) {
	w := newWorld(t)
	cfg := w.config(w.file("in.csv", "id,n\n7,1\n8,2\n"))
	cfg.Target.Key[0].Type = table.Integer
	w.load(cfg)
	cfg.Inputs = []string{w.file("more.csv", "id,n\n007,3\n+8,4\n9,5\n")}
	cfg.Target.Key = nil
	r := w.load(cfg)
	conformance.True(t, r.Rejected == 2 && r.Written == 1, "%+v", r)
	w.wantRows(contents{"7": {"n": "1"}, "8": {"n": "2"}, "9": {"n": "5"}})
	cfg.Columns.Types = map[string]plan.Type{"id": {Type: table.Integer}}
	conformance.Equal(t, w.load(cfg).Written, 3, "with --type")
}

func TestValueUnlikeSampleIsRejectedNotChanged(t *testing.T) {
	w := newWorld(t)
	var b strings.Builder
	b.WriteString("id,n,text\n")
	long := strings.Repeat("t", 1000)
	for range 10 << 10 { // more than the sample
		b.WriteString("a,1234," + long + "\n")
	}
	b.WriteString("b,007,x\nc,8,y\n")
	r := w.load(w.config(w.file("in.csv", b.String())))
	conformance.Equal(t, r.Rejected, 1, "rejected")
	conformance.Equal(t, r.ExitCode, exitcode.Rejects, "exit code")
	w.wantRows(contents{"a": {"n": "1234", "text": long}, "c": {"n": "8", "text": "y"}})
}

func TestLimitsAreCheckedBeforeSending(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wide := func(n int) string {
		var header, row strings.Builder
		header.WriteString("id")
		row.WriteString("k")
		for i := range n {
			header.WriteString(",c" + strings.Repeat("x", i%5) + string(rune('a'+i%26)) + strings.Repeat("y", i/26))
			row.WriteString(",1")
		}
		return header.String() + "\n" + row.String() + "\n"
	}
	big := func(n int) string { return "id,v\nk," + strings.Repeat("v", n) + "\n" }
	key := func(n int) string { return "id,v\n" + strings.Repeat("k", n) + ",1\n" }
	for name, tt := range map[string]struct{ text, code string }{
		"1,024 columns": {wide(table.MaxColumns), ""},
		// The second row is valid: a file with no valid row is refused before any row is rejected.
		"1,025 columns": {wide(table.MaxColumns+1) + "short,1" + strings.Repeat(",", table.MaxColumns) + "\n",
			table.CodeTooManyColumns},
		"a value of 2 MiB": {big(table.MaxValueBytes), ""},
		"a byte more":      {big(table.MaxValueBytes + 1), table.CodeValueTooLong},
		"a key of 1 KiB":   {key(table.MaxKeyBytes), ""},
		"a key byte more":  {key(table.MaxKeyBytes + 1), table.CodeKeyTooLong},
		"4 MB in a row":    {"id,a,b,c\nk," + strings.Repeat("a", 2<<20-6) + "," + strings.Repeat("b", 2<<20) + ",\n", ""},
		"a byte more, row": {"id,a,b,c\nk," + strings.Repeat("a", 2<<20-6) + "," + strings.Repeat("b", 2<<20) + ",c\n",
			table.CodeRowTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			cfg := w.config(w.file("in.csv", tt.text))
			cfg.RunDir = t.TempDir()
			r := w.load(cfg)
			reasons := strings.Join(lines(t, cfg.RunDir+"/rejects.jsonl"), "\n")
			conformance.True(t, tt.code != "" || r.Written == 1 && reasons == "", "%d written; %s", r.Written, reasons)
			conformance.True(t, tt.code == "" || r.Rejected == 1 && strings.Contains(reasons, tt.code),
				"%d rejected: %s; want %s", r.Rejected, reasons, tt.code)
		})
	}
}

func mustWhen(t *testing.T, text string) *condition.When {
	t.Helper()
	return conformance.Try(condition.ParseWhen(text)).Must(t)
}

func TestInvalidCombinationsWithWhenAreRefused(t *testing.T) {
	w := newWorld(t)
	in := w.file("in.csv", "id,at,text\na,1,x\n")
	for name, tt := range map[string]struct {
		change func(*trial)
		says   string
	}{
		"with --condition": {func(c *trial) { c.Write.Condition = table.ExpectExist }, "--when with --condition"},
		"delete":           {func(c *trial) { c.Write.Mode = table.Delete }, "--mode delete"},
		"increment":        {func(c *trial) { c.Write.Mode = table.Increment }, "--mode increment"},
		"a key": {func(c *trial) { c.Write.When = mustWhen(t, "stored.id < new.id") },
			"stored.id is a primary-key column"},
		"a column that is not": {func(c *trial) { c.Write.When = mustWhen(t, "stored.x < new.x") }, "new.x"},
		"equality":             {func(c *trial) { c.Write.When = mustWhen(t, "stored.at == new.at") }, "--order none"},
		"a constant": {func(c *trial) { c.Write.When = mustWhen(t, "stored.at < 5") },
			"it compares nothing with the new row"},
		"verify": {func(c *trial) { c.Compared = true }, "--verify"},
		"verify of increments": {func(c *trial) {
			c.Compared, c.Write.Mode, c.Write.When, c.Columns.Exclude = true, table.Increment, nil, []string{"text"}
		}, "--verify"},
		"auto-increment column": {func(c *trial) {
			c.Target.Key = append(c.Target.Key, table.KeyColumn{Name: "n", Type: table.Integer, Auto: true})
		}, "always new"},
	} {
		cfg := w.config(in)
		cfg.Write.When = mustWhen(t, "stored.at < new.at")
		tt.change(&cfg)
		_, err := cfg.run(context.Background())
		usage := new(plan.UsageError)
		conformance.True(t, errors.As(err, &usage) && strings.Contains(err.Error(), tt.says), "%s: %v", name, err)
	}
}

func TestARowWithoutAValueToCompareIsRejected(t *testing.T) {
	w := newWorld(t)
	cfg := w.config(w.file("in.csv", "id,at,text\na,1,x\nb,,y\nc,3,z\n"))
	cfg.Write.When = mustWhen(t, "stored.at < new.at")
	if r := w.load(cfg); r.Written != 2 || r.Rejected != 1 || r.RejectReasons[0].Code != table.CodeNoValue {
		t.Errorf("%+v %+v", r.ReportCounts, r.RejectReasons)
	}
}

// TestConstantConditionDoesNotRefuseOwnWrites: the first attempt, whose answer is lost, makes the condition false.
func TestConstantConditionDoesNotRefuseOwnWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, mode := range []table.Mode{table.Put, table.Update} {
			w := newWorld(t)
			var before, after strings.Builder
			before.WriteString("id,status\n")
			after.WriteString("id,status\n")
			want := contents{}
			for i := range 400 {
				id, status := fmt.Sprint("key ", i), []string{"open", "held"}[i%2]
				if i < 300 {
					fmt.Fprintf(&before, "%s,%s\n", id, status)
				}
				fmt.Fprintf(&after, "%s,closed\n", id)
				if want[id] = map[string]string{"status": "closed"}; i < 300 && i%2 == 1 {
					want[id]["status"] = status
				}
			}
			first := w.config(w.file("before.csv", before.String()))
			first.RunDir += "-before"
			w.load(first)
			cfg := w.config(w.file("after.csv", after.String()))
			cfg.Write.When, cfg.Write.Mode, cfg.Write.Order = mustWhen(t, `stored.status == "open"`), mode, plan.OrderNone
			cfg.Lanes.BatchRows = 20
			w.plan.Decide = randomFaults(rand.New(rand.NewPCG(uint64(mode), 31)))
			r := w.load(cfg)
			w.plan.Change(w.plan.Only, nil)
			w.wantRows(want)
			conformance.True(t, r.Written == 250 && r.ConditionFailed == 150 && r.Retried != 0, "%d: %+v", mode, r.ReportCounts)
		}
	})
}

// versions returns the timestamps of the versions of each cell of a row, newest first.
func (w *world) versions(id string) map[string][]int64 {
	w.t.Helper()
	got := map[string][]int64{}
	for _, c := range w.cells(id) {
		got[c.ColumnName] = append(got[c.ColumnName], c.Timestamp)
	}
	return got
}

func (w *world) cells(id string) []*tablestore.AttributeColumn {
	w.t.Helper()
	w.plan.WaitLate()
	key := new(tablestore.PrimaryKey)
	key.AddPrimaryKeyColumn("id", id)
	res := conformance.Try(w.sdk().GetRow(&tablestore.GetRowRequest{
		SingleRowQueryCriteria: &tablestore.SingleRowQueryCriteria{TableName: "t", PrimaryKey: key,
			MaxVersion: 10_000}})).Must(w.t)
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
					conformance.Equal(t, r.Rejected, 0, "rejected")
					conformance.Equal(t, r.ExtraVersions, 0, "extra versions")
					d := ahead.Seconds() - r.ClockBehind
					conformance.True(t, d >= -.5 && d <= .5, "clock behind by %v s, want %v", r.ClockBehind, ahead)
					conformance.Contains(t, strings.Join(warnings, "\n"), "this machine's clock is ", "warnings %q", warnings)
				})
			})
		}
	}
}

// Another writer writes a cell before its row is sent: the load comes later, so readers see it.
func TestUpdateAfterAnotherWriterIsVisible(t *testing.T) {
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

func (w *world) update(id, column, value string) {
	err := tabletest.Do(w.sdk(), tabletest.Update("t", tabletest.Key("id", id), tabletest.Cells{column: value}))
	conformance.True(w.t, err == nil, "%v", err)
}

// The timestamp leaves the window between an attempt and its repeat: the row may have two versions, and is counted.
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
	conformance.Equal(t, r.ExtraVersions, 2, "extra versions")
	conformance.Equal(t, r.Written, 2, "written")
	got := w.versions("x")["a"]
	conformance.True(t, len(got) == 2 && got[0] == begun.Add(3900*time.Second).UnixMilli() && r.Stamp == got[0],
		"versions %d, stamp %d", got, r.Stamp)
}

func TestAVersionColumnKeepsVersionsInUpdates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now().UnixMilli()
	cfg := w.versioned(fmt.Sprintf("id,at,a\nx,%d,1\nx,%d,2\nx,%d,3\n", now-3000, now-1000, now-2000))
	cfg.Read.Convert.VersionColumn = "at"
	cfg.Columns.Exclude = []string{"at"}
	w.load(cfg)
	at := w.versions("x")["a"]
	conformance.Equal(t, fmt.Sprint(at), fmt.Sprint([]int64{now - 1000, now - 2000, now - 3000}), "versions %d", at)
}
