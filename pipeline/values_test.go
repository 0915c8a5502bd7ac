package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/condition"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/google/go-cmp/cmp"
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
		// The second row is valid, because a file without a valid row is refused before any row is rejected.
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
			"it does not refer to the new row"},
		"verify": {func(c *trial) { c.Compared = true }, "--verify"},
		"verify of increments": {func(c *trial) {
			c.Compared, c.Write.Mode, c.Write.When, c.Columns.Exclude = true, table.Increment, nil, []string{"text"}
		}, "--verify"},
		"auto-increment column": {func(c *trial) {
			c.Target.Key = append(c.Target.Key, table.KeyColumn{Name: "n", Type: table.Integer, Auto: true})
		}, "accepts no condition for rows"},
	} {
		cfg := w.config(in)
		cfg.Write.When = mustWhen(t, "stored.at < new.at")
		tt.change(&cfg)
		_, err := cfg.run(context.Background())
		usage := new(plan.UsageError)
		conformance.True(t, errors.As(err, &usage) && strings.Contains(err.Error(), tt.says), "%s: %v", name, err)
	}
}

func TestRowWithoutComparedValueIsRejected(t *testing.T) {
	w := newWorld(t)
	cfg := w.config(w.file("in.csv", "id,at,text\na,1,x\nb,,y\nc,3,z\n"))
	cfg.Write.When = mustWhen(t, "stored.at < new.at")
	if r := w.load(cfg); r.Written != 2 || r.Rejected != 1 || r.RejectReasons[0].Code != table.CodeNoValue {
		t.Errorf("%+v %+v", r.ReportCounts, r.RejectReasons)
	}
}

// The first attempt, whose answer is lost, makes the condition false for the second one.
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

// skewed returns a world whose service's clock is ahead of this machine's.
func skewed(t *testing.T, ahead func() time.Duration) *world {
	t.Helper()
	return newWorldOf(t, server.Options{Now: func() time.Time { return time.Now().Add(ahead()) }})
}

func TestUpdatesAreVisibleDespiteWrongClock(t *testing.T) {
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

// Another writer writes a cell before the load sends its row. The load's value is later, so readers must see it.
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

// If a row's timestamp leaves the window before the row is repeated, the row may have two versions and is counted.
func TestRepeatWithNewTimestampIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.versioned("id,a\nx,1\ny,1\n")
	cfg.Lanes.Concurrency = 1
	var passed atomic.Int64 // how much time has passed after the first request
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

func TestVersionColumnKeepsVersionsInUpdates(t *testing.T) {
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

// fromWide returns a load from a source of self-describing rows.
func (w *world) fromWide(rows *sourcetest.Wide) trial {
	cfg := w.config(rows.Name)
	cfg.Read.Sources = rows
	cfg.Target.Key[0].Type = table.Integer
	cfg.Target.Define.MaxVersions = 5
	return cfg
}

// versionsOf holds a row's cells as text with their types, by column and timestamp. A timestamp of the service is 0.
type versionsOf map[string]map[int64]string

// wideRows reads a table with all versions. Timestamps from began on are taken for the service's.
func (w *world) wideRows(began time.Time) map[string]versionsOf {
	w.t.Helper()
	w.plan.WaitLate()
	got := map[string]versionsOf{}
	err := scan.Table(context.Background(), w.sdk(), "t", w.described("t").Key, scan.Options{Versions: 100},
		func(r *tablestore.Row) error {
			row := versionsOf{}
			for _, c := range r.Columns {
				at := c.Timestamp
				if at >= began.UnixMilli() {
					at = 0
				}
				if row[c.ColumnName] == nil {
					row[c.ColumnName] = map[int64]string{}
				}
				row[c.ColumnName][at] = fmt.Sprintf("%T %v", c.Value, c.Value)
			}
			got[fmt.Sprint(r.PrimaryKey.PrimaryKeys[0].Value)] = row
			return nil
		})
	must(w.t, err)
	return got
}

func wantOf(rows *sourcetest.Wide) map[string]versionsOf {
	want := map[string]versionsOf{}
	for i, cells := range rows.Cells {
		row := versionsOf{}
		for _, c := range cells {
			if c.Kind == record.Null {
				continue
			}
			name := string(c.Name)
			if row[name] == nil {
				row[name] = map[int64]string{}
			}
			row[name][max(c.At, 0)] = shownDatum(c.Datum)
		}
		want[fmt.Sprint(rows.Data[i][0].Int)] = row
	}
	return want
}

func shownDatum(d record.Datum) string {
	var v any = d.Int
	switch d.Kind {
	case record.Double:
		v = d.Double
	case record.Boolean:
		v = d.Int != 0
	case record.String:
		v = string(d.Bytes)
	case record.Binary:
		v = d.Bytes
	}
	return fmt.Sprintf("%T %v", v, v)
}

func TestSelfDescribingRowsArePutWithEveryCell(t *testing.T) {
	inEachOrder(t, func(t *testing.T, w *world, order plan.Order) {
		began := time.Now()
		rows := sourcetest.NewWide("wide", 1500, began.Add(-time.Minute))
		cfg := w.fromWide(rows)
		cfg.Write.Order = order
		r := w.load(cfg)
		w.verifies(cfg, r)
		conformance.Equal(t, cmp.Diff(wantOf(rows), w.wideRows(began)), "", "the table (-want +got)")
		conformance.Equal(t, r.Read, 1500, "read")
		conformance.Equal(t, r.Written, 1500, "written")
	})
}

func integerCell(name string, n int64) record.Cell {
	return sourcetest.WideCell(name, record.Datum{Kind: record.Integer, Int: n}, -1)
}

func textCell(name, s string) record.Cell {
	return sourcetest.WideCell(name, record.Datum{Kind: record.String, Bytes: []byte(s)}, -1)
}

func nullCell(name string) record.Cell { return sourcetest.WideCell(name, record.Datum{}, -1) }

func wideOf(rows ...[]record.Cell) *sourcetest.Wide {
	w := &sourcetest.Wide{Rows: sourcetest.Rows{Name: "wide", Columns: []string{"id"}, Page: 3}}
	for i, cells := range rows {
		w.Append(record.Datum{Kind: record.Integer, Int: int64(i)}, cells...)
	}
	return w
}

// An update does not change columns that a record lacks, and on request deletes columns whose value is null.
func TestUpdateDistinguishesAbsentNullAndEmpty(t *testing.T) {
	for _, deletes := range []bool{false, true} {
		t.Run(fmt.Sprint(deletes), virtual(func(t *testing.T, w *world) {
			old := []record.Cell{integerCell("a", 1), integerCell("b", 2), integerCell("c", 3)}
			cfg := w.fromWide(wideOf(old, old, old, old))
			cfg.Target.Define.MaxVersions = 1
			w.load(cfg)
			cfg = w.fromWide(wideOf([]record.Cell{textCell("a", ""), nullCell("b")},
				[]record.Cell{nullCell("c"), nullCell("never there")}, []record.Cell{textCell("new", "x")}, nil))
			cfg.Write.Mode, cfg.Write.DeleteNull, cfg.RunDir = table.Update, deletes, cfg.RunDir+"2"
			r := w.load(cfg)
			w.verifies(cfg, r)
			want := contents{"0": {"a": "", "b": "2", "c": "3"}, "1": {"a": "1", "b": "2", "c": "3"},
				"2": {"a": "1", "b": "2", "c": "3", "new": "x"}, "3": {"a": "1", "b": "2", "c": "3"}}
			rejected := int64(2) // records without a value have nothing to update
			if deletes {
				delete(want["0"], "b")
				delete(want["1"], "c")
				rejected = 1
			}
			w.wantRows(want)
			conformance.Equal(t, r.Rejected, rejected, "rejected")
			conformance.Equal(t, r.Written, 4-rejected, "written")
		}))
	}
}

// Columns that keys and expressions name may be missing in some records, and remain cells, except for the key's own.
func TestExpressionsMayNameMissingColumns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rows := wideOf([]record.Cell{textCell("city", "Bern"), integerCell("n", 1), integerCell("x", 7)},
		[]record.Cell{textCell("city", "Ulm"), textCell("old name", "y"), textCell("n", "0"), integerCell("drop", 1)},
		[]record.Cell{integerCell("n", 3)})
	cfg := w.fromWide(rows)
	cfg.Target.Key = []table.KeyColumn{{Name: "city", Type: table.String}, {Name: "spread", Type: table.String}}
	cfg.Columns.Keys = []keyexpr.Column{{Name: "spread", Type: table.String, Expr: `text(id) + "-" + lower(city)`}}
	cfg.Columns.Set = []keyexpr.Column{{Name: "made", Expr: `col("old name")`}, {Name: "n", Expr: `text(id)`}}
	cfg.Columns.Rename, cfg.Columns.Exclude = map[string]string{"x": "y"}, []string{"drop"}
	var warnings []string
	cfg.Watch.OnPlan = func(p *plan.Plan) { warnings = p.Warnings }
	r := w.load(cfg)
	w.verifies(cfg, r)
	w.wantRows(contents{"Bern/0-bern": {"n": "0", "y": "7"}, "Ulm/1-ulm": {"n": "1", "made": "y", "old name": "y"}})
	conformance.Equal(t, r.Rejected, 1, "rejected")
	conformance.Equal(t, len(warnings), 0, "warnings")
	// Rejected records without a key keep all of their cells, under the original names.
	again := w.config(w.onlyRejects(r))
	again.Target, again.Columns, again.RunDir = cfg.Target, cfg.Columns, cfg.RunDir+"2"
	again.Columns.Keys, again.Columns.Set = nil, nil
	again.Columns.Rename = map[string]string{"id": "city"}
	again.Columns.Keys = []keyexpr.Column{{Name: "city", Type: table.String, Expr: `"none"`},
		{Name: "spread", Type: table.String, Expr: `text(id)`}}
	w.load(again)
	conformance.Equal(t, w.rows()["none/2"]["n"], "3", "the reject was loaded")
}

// onlyRejects returns the single reject file of a run.
func (w *world) onlyRejects(r *Report) string {
	w.t.Helper()
	kept, err := filepath.Glob(filepath.Join(r.RunDir, "rejects*.ndjson"))
	conformance.MustTrue(w.t, err == nil && len(kept) == 1, "rejects: %v, %v", kept, err)
	return kept[0]
}

// awful returns records that each exceed one limit in one cell, by the code of the reason.
func awful(now int64) map[string][]record.Cell {
	with := func(cells ...record.Cell) []record.Cell {
		return append(cells, textCell("text", "\x00<ü>\u2028\""), sourcetest.WideCell("v", sourcetest.OfAnyType(3), now-1),
			sourcetest.WideCell("v", sourcetest.OfAnyType(1), now-2),
			sourcetest.WideCell("v", record.Datum{Kind: record.Double, Double: math.Copysign(0, -1)}, now-3),
			integerCell("max", math.MaxInt64))
	}
	long := func(name string, n int) record.Cell { return textCell(name, strings.Repeat("x", n)) }
	many := make([]record.Cell, 1025)
	for i := range many {
		many[i] = sourcetest.WideCell("bad", record.Datum{Kind: record.Integer, Int: int64(i)}, now-int64(i))
	}
	return map[string][]record.Cell{
		"#" + table.CodeColumnName:   with(integerCell("#bad", 1)),
		"id" + table.CodeColumnName:  with(integerCell("id", 1)),
		"é" + table.CodeColumnName:   with(integerCell("bad\xff", 1)),
		"000" + table.CodeColumnName: with(integerCell(strings.Repeat("bad", 86), 1)),
		"" + table.CodeColumnName:    with(integerCell("", 1)),
		table.CodeValueTooLong:       with(long("bad", table.MaxValueBytes+1)),
		table.CodeRowTooLarge:        with(long("big", table.MaxValueBytes), long("bad", table.MaxValueBytes)),
		table.CodeTooManyColumns:     with(many...),
		table.CodeRange:              with(sourcetest.WideCell("bad", record.Datum{Kind: record.Integer}, now+10*86_400_000)),
		"at 0" + table.CodeRange:     with(sourcetest.WideCell("bad", record.Datum{Kind: record.Integer}, 0)),
		table.CodeSameCell:           with(integerCell("bad", 1), integerCell("bad", 2)),
		"null" + table.CodeSameCell:  with(integerCell("bad", 1), nullCell("bad")),
		table.CodeUTF8:               with(textCell("bad", "\xff\x00")),
	}
}

// A record that exceeds a limit is rejected, also when it is loaded again, until it is corrected.
func TestRejectedSelfDescribingRowsLoadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	began := time.Now()
	records := awful(began.Add(-time.Minute).UnixMilli())
	codes := slices.Sorted(maps.Keys(records))
	rows := wideOf()
	for i, code := range codes {
		rows.Append(record.Datum{Kind: record.Integer, Int: int64(i)}, records[code]...)
	}
	cfg := w.fromWide(rows)
	cfg.Limits.Memory = 1 << 30
	first := w.load(cfg)
	reasons := w.reasons(first)
	for i, code := range codes {
		conformance.Equal(t, strings.HasSuffix(code, reasons[i].Code), true, "record %d, %s: %+v", i, code, reasons[i])
	}
	conformance.MustTrue(t, first.Rejected == int64(len(codes)) && first.Written == 0,
		"%d written, %d of %d rejected", first.Written, first.Rejected, len(codes))
	again := cfg
	again.Read.Sources, again.Inputs, again.RunDir = nil, []string{w.onlyRejects(first)}, cfg.RunDir+"2"
	second := w.load(again)
	conformance.MustEqual(t, second.Rejected, first.Rejected, "rejected again")
	for i, r := range w.reasons(second) {
		conformance.True(t, r.Code == reasons[i].Code && r.Message == reasons[i].Message && r.Column == reasons[i].Column,
			"record %d is rejected again for %+v, at first for %+v", i, r, reasons[i])
	}
	kept, _ := os.ReadFile(w.onlyRejects(first))
	keptAgain, _ := os.ReadFile(w.onlyRejects(second))
	conformance.Equal(t, bytes.Equal(kept, keptAgain), true, "the rejects are other ones the second time")
	third := again
	third.RunDir = cfg.RunDir + "3"
	third.Columns.Exclude = []string{"bad", "#bad", "bad\xff", "", strings.Repeat("bad", 86)}
	if r := w.load(third); r.Rejected != 1 { // id cannot be excluded
		t.Errorf("%d rejected the third time", r.Rejected)
	}
	for i := range rows.Cells {
		rows.Cells[i] = slices.DeleteFunc(rows.Cells[i],
			func(c record.Cell) bool { return slices.Contains(third.Columns.Exclude, string(c.Name)) })
	}
	want := wantOf(rows)
	delete(want, fmt.Sprint(slices.Index(codes, "id"+table.CodeColumnName)))
	conformance.Equal(t, cmp.Diff(want, w.wideRows(began)), "", "the table (-want +got)")
}

func (w *world) reasons(r *Report) (all []rundir.Reason) {
	w.t.Helper()
	for _, line := range lines(w.t, filepath.Join(r.RunDir, rundir.ReasonsFile)) {
		var reason rundir.Reason
		must(w.t, json.Unmarshal([]byte(line), &reason))
		all = append(all, reason)
	}
	slices.SortFunc(all, func(a, b rundir.Reason) int { return int(a.Record - b.Record) })
	return all
}

func TestDescribedColumnsAreAdded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rows := wideOf([]record.Cell{integerCell("a", 1), integerCell("b", 2)}, []record.Cell{textCell("a", "1")},
		[]record.Cell{integerCell("c", 5)}, nil)
	rows.Append(record.Datum{Kind: record.Integer, Int: 0}, integerCell("a", 10))
	cfg := w.fromWide(rows)
	cfg.Target.Define.MaxVersions = 1
	cfg.Write.Mode = table.Increment
	r := w.load(cfg)
	got := w.rows()
	for _, cells := range got {
		delete(cells, plan.DefaultMarkColumn)
	}
	diff := cmp.Diff(contents{"0": {"a": "11", "b": "2"}, "2": {"c": "5"}}, got)
	conformance.True(t, diff == "" && r.Rejected == 2, "%d rejected (-want +got):\n%s", r.Rejected, diff)
}

func TestDeletingSelfDescribingRowsNeedsOnlyKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rows := wideOf([]record.Cell{integerCell("a", 1)}, []record.Cell{integerCell("b", 1)})
	w.load(w.fromWide(rows))
	rows.Data, rows.Cells = rows.Data[:1], [][]record.Cell{{integerCell("#", 1), integerCell("#", 1)}}
	cfg := w.fromWide(rows)
	cfg.Write.Mode, cfg.RunDir = table.Delete, cfg.RunDir+"2"
	w.verifies(cfg, w.load(cfg))
	w.wantRows(contents{"1": {"b": "1"}})
}

// The service numbers the rows, which have marks in addition to their cells.
func TestSelfDescribingRowsAreNumbered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	many := make([]record.Cell, table.MaxColumns)
	for i := range many {
		many[i] = integerCell(fmt.Sprint("c", i), int64(i))
	}
	rows := wideOf([]record.Cell{integerCell("a", 1)}, many, many[1:],
		[]record.Cell{textCell(plan.DefaultMarkColumn, "mine")}, []record.Cell{integerCell("n", 1)})
	cfg := w.fromWide(rows)
	cfg.Target.Key = []table.KeyColumn{{Name: "id", Type: table.Integer}, {Name: "n", Type: table.Integer, Auto: true}}
	cfg.Target.Define.MaxVersions = 1
	r := w.load(cfg)
	var codes []string
	for _, reason := range w.reasons(r) {
		codes = append(codes, reason.Code)
	}
	want := []string{table.CodeTooManyColumns, table.CodeColumnName, table.CodeColumnName}
	conformance.True(t, slices.Equal(codes, want) && r.Written == 2,
		"%d written, rejected for %q, want %q", r.Written, codes, want)
}

func TestSelfDescribingSourcesAreNotMixedWithOthers(t *testing.T) {
	t.Parallel()
	cfg := newWorld(t).fromWide(wideOf(nil))
	cfg.Read.Sources = twoKinds{}
	_, err := cfg.run(context.Background())
	conformance.Refused(t, err, "only one of wide and rows is self-describing", "error")
}

type twoKinds struct{}

func (twoKinds) Divide(context.Context) ([]byte, error) { return nil, nil }

func (twoKinds) Open(context.Context, []byte) ([]source.Source, error) {
	return []source.Source{wideOf(nil), sourcetest.NewRows("rows", 3)}, nil
}
