package tablesync

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/tablescan"
)

// settling configures a sync of a table with another table. The sync calls do before it rereads rows of the table.
func settling(t *testing.T, w *world, do func()) (cfg Config, put func(table, id string, n int)) {
	t.Helper()
	at := time.Now().UnixMilli()
	must(t, w.Admin.Create("s", []table.KeyColumn{stringID}, tabletest.Plain))
	of := conformance.Try(w.Admin.Describe("s")).Must(t)
	cfg = w.config("s")
	cfg.Load.Read.Sources = tablescan.New(tablescan.Config{Client: w.SDK, Table: of})
	cfg.SettleFor = 20 * time.Millisecond
	busy := false
	w.faults.Only = func(op string) bool { return op == "BatchGetRow" }
	w.faults.Decide = func(faults.Request) faults.Fault {
		if !busy {
			busy = true
			do()
			busy = false
		}
		return faults.Fault{}
	}
	return cfg, func(table, id string, n int) {
		must(t, tabletest.Do(w.SDK, tabletest.Put(table, tabletest.Key("id", id), tabletest.Cells{"n": int64(n)}, at)))
	}
}

func TestSettledRowsAreNotWritten(t *testing.T) {
	for name, plan := range map[string]bool{"plan": true, "sync": false} {
		t.Run(name, func(t *testing.T) {
			w := filled(t)
			var put func(table, id string, n int)
			cfg, put := settling(t, w, func() {
				put("t", "late", 1)
				w.remove("gone")
				put("s", "wrong", 5) // has no effect, because the source has already been read
			})
			for _, id := range []string{"equal", "late", "wrong", "lacking"} {
				put("s", id, 1)
			}
			put("t", "equal", 1)
			put("t", "gone", 1)
			put("t", "wrong", 2)
			put("t", "surplus", 1)
			if plan {
				s := conformance.Try(Look(context.Background(), cfg)).Must(t)
				wantCounts(t, s, "equal 2, missing 1, different 1, surplus 1")
				conformance.True(t, s.Puts == 2 && s.Deletes == 1 && s.Costs.PutCU == 2 && s.Costs.DeleteCU == 1, "%+v", s)
				return
			}
			s := w.sync(cfg)
			wantCounts(t, s, "equal 2, missing 1, different 1, surplus 1, written 2, deleted 1")
			of := s.Settled
			conformance.True(t, of != nil && of.Differed == 5 && of.Settled == 2 && of.Remain == 3 && of.Rounds == 1, "%+v", of)
			w.wantRows("equal n=1", "lacking n=1", "late n=1", "wrong n=1")
		})
	}
}

func TestFullySettledSyncWritesNothing(t *testing.T) {
	w := filled(t)
	var put func(table, id string, n int)
	cfg, put := settling(t, w, func() { put("t", "late", 1) })
	put("s", "late", 1)
	wantCounts(t, w.sync(cfg), "equal 1")
	w.wantRows("late n=1")
}

func TestConditionUsesTheRereadRow(t *testing.T) {
	w := filled(t)
	var put func(table, id string, n int)
	cfg, put := settling(t, w, func() { put("t", "a", 3) })
	cfg.Delete, cfg.IfUnchanged = false, true
	put("s", "a", 1)
	put("t", "a", 2)
	s := w.sync(cfg)
	conformance.Equal(t, s.ConditionFailed, 0, "%+v", s)
	w.wantRows("a n=1")
}

// A sync that was interrupted while rows settle must not load the files of its first comparison.
func TestSyncInterruptedWhileSettlingComparesAgain(t *testing.T) {
	w := filled(t)
	drain, stop := context.WithCancelCause(context.Background())
	why := &pipeline.Interrupted{Signal: "test", ExitCode: exitcode.Interrupted}
	cfg, put := settling(t, w, func() {})
	put("s", "a", 1)
	put("t", "surplus", 1)
	first := cfg
	first.Load.Drain, first.SettleFor = drain, time.Hour
	time.AfterFunc(100*time.Millisecond, func() { stop(why) })
	s, err := Run(context.Background(), first)
	conformance.MustTrue(t, s == nil && errors.Is(err, why), "%+v, %v", s, err)
	w.wantRows("surplus n=1")
	put("t", "a", 1)
	s = w.sync(cfg)
	wantCounts(t, s, "equal 1, surplus 1, deleted 1")
	conformance.True(t, !s.Resumed && strings.Contains(strings.Join(w.said, "\n"), "its comparison did not finish"),
		"%+v, said %q", s, w.said)
	w.wantRows("a n=1")
}

var must = conformance.Must

func TestMain(m *testing.M) { conformance.Main(m) }

// world is an in-memory embedded store and a working folder.
type world struct {
	*tabletest.Store
	t      testing.TB
	faults *faults.Plan
	said   []string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	t.Chdir(t.TempDir())
	w := &world{t: t, faults: &faults.Plan{}}
	w.Store = tabletest.Open(t, server.Options{Faults: w.faults})
	return w
}

func (w *world) make(d table.Definition, key ...table.KeyColumn) {
	w.t.Helper()
	if d.TimeToLive == 0 {
		d.TimeToLive = -1
	}
	d.MaxVersions = max(d.MaxVersions, 1)
	must(w.t, w.Admin.Create("t", key, d))
}

var (
	stringID  = table.KeyColumn{Name: "id", Type: table.String}
	integerID = table.KeyColumn{Name: "id", Type: table.Integer}
)

// filled returns a world with a table of rows, each given by a string id and a value of n.
func filled(t testing.TB, rows ...any) *world {
	t.Helper()
	w := newWorld(t)
	w.make(table.Definition{}, stringID)
	for i := 0; i < len(rows); i += 2 {
		w.put(rows[i], tabletest.Cells{"n": int64(rows[i+1].(int))})
	}
	return w
}

func (w *world) put(id any, cells tabletest.Cells) {
	w.t.Helper()
	must(w.t, tabletest.Do(w.SDK, tabletest.Put("t", tabletest.Key("id", id), cells)))
}

func (w *world) remove(id any) {
	w.t.Helper()
	must(w.t, tabletest.Do(w.SDK, tabletest.Delete("t", tabletest.Key("id", id))))
}

func (w *world) rows() (all []string) {
	w.t.Helper()
	of := conformance.Try(w.Admin.Describe("t")).Must(w.t)
	err := scan.Table(w.t.Context(), w.SDK, "t", of.Key, scan.Options{Versions: of.MaxVersions}, func(r *scan.Row) error {
		var cells []string
		for _, c := range r.Columns {
			cells = append(cells, fmt.Sprintf("%s=%v", c.ColumnName, c.Value))
		}
		sort.Strings(cells)
		var key []string
		for _, k := range r.PrimaryKey.PrimaryKeys {
			key = append(key, fmt.Sprint(k.Value))
		}
		all = append(all, strings.Join(append([]string{strings.Join(key, "/")}, cells...), " "))
		return nil
	})
	must(w.t, err)
	return all
}

func (w *world) wantRows(want ...string) {
	w.t.Helper()
	conformance.Equal(w.t, strings.Join(w.rows(), "\n"), strings.Join(want, "\n"), "the table")
}

func (w *world) write(name, text string) string {
	w.t.Helper()
	must(w.t, os.WriteFile(name, []byte(text), 0o644))
	return name
}

func zipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text)) // a Buffer accepts all bytes
	_ = z.Close()
	return b.String()
}

// config configures a sync of table t with files that may delete any number of rows.
func (w *world) config(files ...string) Config {
	return Config{
		Delete: true, MaxDelete: ledger.MaxErrors{Percent: 100, Share: true}, Examples: 10,
		Say: func(_ words.Kind, line string) { w.said = append(w.said, line) },
		Load: pipeline.Config{Inputs: files, Target: plan.Target{Client: w.Target, Name: "here", Table: "t"},
			Columns: plan.Columns{Types: map[string]plan.Type{}}, Write: pipeline.Write{Settle: 1},
			Lanes:  lanes.Config{Concurrency: 4},
			Limits: pipeline.Limits{MaxErrors: ledger.MaxErrors{Rows: -1}, Memory: 64 << 20}},
	}
}

// sync runs a sync, which must finish.
func (w *world) sync(cfg Config) *Summary {
	w.t.Helper()
	s, err := Run(context.Background(), cfg)
	conformance.MustTrue(w.t, err == nil, "sync: %v", err)
	conformance.MustTrue(w.t, s.State == pipeline.StateFinished, "the sync is %s: %s", s.State, s.Error)
	left, err := filepath.Glob(filepath.Join(s.RunDir, "*", "checkpoint.*"))
	conformance.True(w.t, err == nil && len(left) <= 0, "left behind: %v, %v", left, err)
	conformance.Refused(w.t, conformance.ErrorOf(os.Stat(filepath.Join(s.RunDir, changesDir))), "",
		"the files of changes are left behind")
	return s
}

// counts formats the numbers of a summary that are not zero.
func (s *Summary) counts() string {
	all := fmt.Sprintf("equal %d, missing %d, different %d, surplus %d, written %d, deleted %d, kept %d, rejected %d, "+
		"exit %d",
		s.Equal, s.Missing, s.Different, s.Surplus, s.Written, s.Deleted, s.Kept,
		s.Rejected+s.PutsRejected+s.DeletesRejected, s.ExitCode)
	return strings.Trim(regexp.MustCompile(`(^|, )[a-z]+ 0\b`).ReplaceAllString(all, ""), ", ")
}

func wantCounts(t testing.TB, s *Summary, want string) {
	t.Helper()
	conformance.Equal(t, s.counts(), want, "result")
}
