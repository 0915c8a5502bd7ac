package tablesync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parquet-go/parquet-go"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/condition"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/tablescan"
	"example.com/tsimport/transfer/verify"
)

func TestOnlyTheDifferencesAreWritten(t *testing.T) {
	w := filled(t)
	for i := range 100 {
		w.put(fmt.Sprintf("k%02d", i), tabletest.Cells{"n": int64(i), "s": "text"})
	}
	var text strings.Builder
	text.WriteString("id,n,s\n")
	for i := range 110 {
		n := i
		switch {
		case i%10 == 3:
			continue
		case i%10 == 4:
			n++
		}
		fmt.Fprintf(&text, "k%02d,%d,text\n", i, n)
	}
	cfg := w.config(w.write("a.csv", text.String()))

	before := w.rows()
	look := conformance.Try(Look(context.Background(), cfg)).Must(t)
	wantCounts(t, look, "equal 80, missing 9, different 10, surplus 10")
	c := look.Costs
	conformance.True(t, c.PutCU == 19 && c.DeleteCU == 10 && c.FullLoadCU == 99 && c.ReadCU != 0 && look.Puts == 19 &&
		look.Deletes == 10, "costs %+v for %d puts and %d deletes", c, look.Puts, look.Deletes)
	_, err := os.Stat("tsimport-runs")
	conformance.True(t, err != nil && slices.Equal(before, w.rows()), "a look has written something")

	s := w.sync(cfg)
	wantCounts(t, s, "equal 80, missing 9, different 10, surplus 10, written 19, deleted 10")
	conformance.Equal(t, s.Costs.WriteCU, 29, "write units for 19 rows and 10 deletes")
	wantCounts(t, w.sync(cfg), "equal 99")
}

func TestEveryTypeIsWrittenAsCompared(t *testing.T) {
	w := filled(t)
	const row = "k\x00\u00e9\U0001F600,-0,\"\",AP8=,\"\",-9223372036854775808,false,中\x00\n"
	cfg := w.config(w.write("a.csv", "id,d,e,x,y,n,f,s\n"+row+"l,1e300,\"a\"\"b\",,AA==,9223372036854775807,true,x\n"))
	for c, typ := range map[string]table.Type{"d": table.Double, "e": table.String, "x": table.Binary, "y": table.Binary,
		"n": table.Integer, "f": table.Boolean, "s": table.String} {
		cfg.Load.Columns.Types[c] = plan.Type{Type: typ}
	}
	wantCounts(t, w.sync(cfg), "missing 2, written 2")
	wantCounts(t, w.sync(cfg), "equal 2")
}

func TestBadInputsWithholdDeletes(t *testing.T) {
	good := "id,n\na,1\n"
	for name, make := range map[string]func(w *world) Config{
		"a bad record": func(w *world) Config {
			cfg := w.config(w.write("a.csv", good+"b,x\n"))
			cfg.Load.Columns.Types["n"] = plan.Type{Type: table.Integer}
			return cfg
		},
		"an empty file": func(w *world) Config { return w.config(w.write("a.csv", good), w.write("b.csv", "id,n\n")) },
		"an empty file in a folder": func(w *world) Config {
			must(t, os.Mkdir("in", 0o700))
			w.write("in/a.csv", good)
			w.write("in/b.csv", "")
			return w.config("in")
		},
		"more surplus rows than may be": func(w *world) Config {
			cfg := w.config(w.write("a.csv", good))
			cfg.MaxDelete = ledger.MaxErrors{Percent: 50, Share: true}
			return cfg
		},
		"more surplus rows than a number": func(w *world) Config {
			cfg := w.config(w.write("a.csv", good))
			cfg.MaxDelete = ledger.MaxErrors{Rows: 1}
			return cfg
		},
		"an input that changes before the deletes": func(w *world) Config {
			return beforeLoads(w.config(w.write("a.csv", good)), func() { w.write("a.csv", good+"c,3\n") })
		},
		"a file comes before the deletes": func(w *world) Config {
			return w.folderChanged(func() { w.write("in/b.csv", "id,n\nc,3\n") })
		},
		"a file that leaves a folder before the deletes": func(w *world) Config {
			cfg := w.folderChanged(func() { _ = os.Remove("in/b.csv") })
			w.write("in/b.csv", good)
			return cfg
		},
		"an input that is written again with its size and time": func(w *world) Config {
			cfg := w.config(w.write("a.csv", good+"c,3\n"))
			info := conformance.Try(os.Stat("a.csv")).Must(t)
			return beforeLoads(cfg, func() {
				w.write("a.csv", good+"b,2\n")
				_ = os.Chtimes("a.csv", info.ModTime(), info.ModTime())
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := filled(t, "b", 2, "c", 3)
			s := w.sync(make(w))
			conformance.True(t, s.ExitCode == exitcode.Rejects && s.Withheld != "" && s.Deleted == 0 && s.Written == 1 &&
				s.Kept == s.Surplus, "%s, withheld %q", s.counts(), s.Withheld)
			w.wantRows("a n=1", "b n=2", "c n=3")
		})
	}
}

// folderChanged syncs a folder that changes before the first load.
func (w *world) folderChanged(change func()) Config {
	must(w.t, os.Mkdir("in", 0o700))
	w.write("in/a.csv", "id,n\na,1\n")
	return beforeLoads(w.config("in"), change)
}

func beforeLoads(cfg Config, do func()) Config {
	cfg.OnLoad = func(*pipeline.Config) func(*pipeline.Report) {
		do()
		return func(*pipeline.Report) {}
	}
	return cfg
}

func TestRejectedRowIsNotSurplus(t *testing.T) {
	w := filled(t, "b", 2, "c", 3)
	cfg := w.config(w.write("a.csv", "id,n\na,1\nb,x\n"))
	cfg.Load.Columns.Types["n"] = plan.Type{Type: table.Integer}
	s := w.sync(cfg)
	conformance.True(t, s.Surplus == 1 && s.OfRejects == 1 && s.RowsInTable == 2, "%+v", s)
	conformance.MustEqual(t, len(s.RejectsFiles), 2, "files of rejects %v", s.RejectsFiles)
	text, err := os.ReadFile(s.RejectsFiles[0])
	conformance.True(t, err == nil && string(text) == "id,n\nb,x\n", "the rejected records are %q, %v", text, err)
}

func TestUnreadableInputChangesNothing(t *testing.T) {
	whole := zipped("id,n\na,1\n" + strings.Repeat("b,2\n", 1000))
	for name, make := range map[string]func(w *world) Config{
		"truncated": func(w *world) Config { return w.config(w.write("a.csv.gz", whole[:len(whole)-9])) },
		"missing":   func(w *world) Config { return w.config(w.write("a.csv", "id,n\na,1\n"), "b.csv") },
		"empty":     func(w *world) Config { return w.config(w.write("a.csv", "")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := filled(t, "c", 3)
			s, err := Run(context.Background(), make(w))
			var input *verify.InputError
			var usage *plan.UsageError
			conformance.True(t, s == nil && (errors.As(err, &input) || errors.As(err, &usage) && usage.Input), "%v, %v", s, err)
			w.wantRows("c n=3")
		})
	}
}

func TestOnlyTheRangeIsComparedAndDeleted(t *testing.T) {
	w := newWorld(t)
	w.make(table.Definition{}, integerID)
	for i := range 10 {
		w.put(int64(i), tabletest.Cells{"n": int64(0)})
	}
	cfg := w.config(w.write("a.csv", "id,n\n1,1\n3,0\n5,1\n9,1\n"))
	cfg.Range = "3..6"
	s := w.sync(cfg)
	wantCounts(t, s, "equal 1, different 1, surplus 1, written 1, deleted 1")
	conformance.True(t, s.OutOfRange == 2 && s.RowsInTable == 3, "%+v", s)
	w.wantRows("0 n=0", "1 n=0", "2 n=0", "3 n=0", "5 n=1", "6 n=0", "7 n=0", "8 n=0", "9 n=0")
}

func TestUpdateWritesOnlyDifferingColumns(t *testing.T) {
	w := filled(t)
	w.put("a", tabletest.Cells{"n": int64(1), "m": int64(1), "own": "kept"})
	w.put("b", tabletest.Cells{"n": int64(1), "m": int64(1)})
	cfg := w.config(w.write("a.csv", "id,n,m\na,5,1\na,2,1\nb,1,1\nc,3,\n"))
	cfg.Load.Write.Mode, cfg.Delete = table.Update, false
	s := w.sync(cfg)
	wantCounts(t, s, "equal 1, missing 1, different 1, written 2")
	conformance.Equal(t, s.Superseded, 1, "superseded")
	w.wantRows("a m=1 n=2 own=kept", "b m=1 n=1", "c n=3")

	cfg = w.config(w.write("b.csv", "id,n,m\na,,1\nb,1,1\nc,3,\n"))
	cfg.Load.Write.Mode, cfg.Load.Write.DeleteNull, cfg.Delete = table.Update, true, false
	wantCounts(t, w.sync(cfg), "equal 2, different 1, written 1")
	w.wantRows("a m=1 own=kept", "b m=1 n=1", "c n=3")
}

func TestSyncMakesTheTableEqualTheInput(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			w := filled(t)
			rows := map[string]string{}
			for range 300 {
				id := fmt.Sprintf("k%03d", random.IntN(400))
				rows[id] = fmt.Sprint(random.IntN(3))
				w.put(id, tabletest.Cells{"v": rows[id]})
			}
			var text strings.Builder
			text.WriteString("id,v\n")
			want := map[string]string{}
			for range 300 {
				id := fmt.Sprintf("k%03d", random.IntN(400))
				want[id] = fmt.Sprint(random.IntN(3))
				fmt.Fprintf(&text, "%s,%s\n", id, want[id])
			}
			cfg := w.config(w.write("a.csv", text.String()))
			cfg.Load.Columns.Types["v"] = plan.Type{Type: table.String}
			cfg.Load.Read.SplitBytes = 100
			if seed%2 == 0 {
				cfg.Load.Limits.Memory = 1 << 20 // so small that rows are sorted on disk
			}
			if seed%3 == 0 {
				var requests atomic.Int64
				w.faults.Decide = func(faults.Request) faults.Fault {
					if n := requests.Add(1); n%5 == 3 {
						return faults.Fault{Action: []faults.Action{faults.DropAfter, faults.DropBefore}[n%2]}
					}
					return faults.Fault{}
				}
			}
			s := w.sync(cfg)
			w.faults.Decide = nil
			var lines []string
			for id, v := range want {
				lines = append(lines, id+" v="+v)
			}
			slices.Sort(lines)
			w.wantRows(lines...)
			conformance.True(t, s.Written == s.Missing+s.Different && s.Deleted == s.Surplus &&
				(s.Costs.WriteCU == s.Written+s.Deleted || seed%3 == 0), "%s, %d write units", s.counts(), s.Costs.WriteCU)
		})
	}
}

// interruptedAt runs a sync that is interrupted before the load of a kind.
func (w *world) interruptedAt(cfg Config, load int) *Summary {
	w.t.Helper()
	drain, stop := context.WithCancelCause(context.Background())
	cfg.Load.Drain = drain
	loads := 0
	cfg.OnLoad = func(*pipeline.Config) func(*pipeline.Report) {
		if loads++; loads == load {
			stop(&pipeline.Interrupted{Signal: "test", ExitCode: exitcode.Interrupted})
		}
		return func(*pipeline.Report) {}
	}
	s, err := Run(context.Background(), cfg)
	conformance.MustTrue(w.t, err == nil && s.ExitCode == exitcode.Interrupted && s.State == pipeline.StateInterrupted,
		"%+v, %v", s, err)
	return s
}

func TestResumedSyncWritesTheComparedRows(t *testing.T) {
	for load := 1; load <= 2; load++ {
		w := filled(t, "b", 2)
		cfg := w.config(w.write("a.csv", "id,n\na,1\nc,3\n"))
		first := w.interruptedAt(cfg, load)
		w.put("b2", tabletest.Cells{"n": int64(0)}) // after the comparison, so not deleted
		s := w.sync(cfg)
		conformance.True(t, s.Resumed && s.RunDir == first.RunDir, "load %d: %+v", load, s)
		wantCounts(t, s, "missing 2, surplus 1, written 2, deleted 1")
		w.wantRows("a n=1", "b2 n=0", "c n=3")
		conformance.Contains(t, strings.Join(w.said, "\n"), "writing the differences found", "said %q", w.said)
		copied := w.interruptedAt(w.config(w.write("a.csv", "id,n\na,2\nb,2\n")), 1).RunDir
		must(t, os.CopyFS(copied+"-2", os.DirFS(copied)))
		conformance.Refused(t, conformance.ErrorOf(Run(context.Background(), cfg)), "2 unfinished runs of this sync", "error")
		for _, cfg.Fresh = range []bool{true, false} {
			conformance.Equal(t, w.sync(cfg).Resumed, false, "a sync that was started over is resumed")
		}
	}
}

func TestSyncInterruptedBeforeDeletesDeletesOnResume(t *testing.T) {
	w := filled(t, "b", 2)
	cfg := w.config(w.write("a.csv", "id,n\na,1\nc,3\n"))
	first := cfg
	drain, stop := context.WithCancelCause(context.Background())
	first.Load.Drain = drain
	first.OnLoad = func(*pipeline.Config) func(*pipeline.Report) {
		return func(*pipeline.Report) { stop(&pipeline.Interrupted{Signal: "test", ExitCode: exitcode.Interrupted}) }
	}
	s, err := Run(context.Background(), first)
	conformance.MustTrue(t, err == nil && s.State == pipeline.StateInterrupted && s.ExitCode == exitcode.Interrupted &&
		s.Withheld == "" && s.DeletesUnfinished == 1, "%+v, %v", s, err)
	w.wantRows("a n=1", "b n=2", "c n=3")
	wantCounts(t, w.sync(cfg), "missing 2, surplus 1, written 2, deleted 1")
	w.wantRows("a n=1", "c n=3")
}

func TestOldComparisonOfALiveSourceIsRepeated(t *testing.T) {
	w := filled(t, "b", 2)
	cfg := w.config(w.write("a.csv", "id,n\na,1\nb,2\n"))
	old := w.interruptedAt(cfg, 1)
	s := conformance.Try(readState(old.RunDir)).Must(t)
	s.Live, s.Compared = true, time.Now().Add(-2*longAgo)
	must(t, s.write(old.RunDir))
	if s := w.sync(cfg); s.Resumed || s.RunDir != old.RunDir || !strings.Contains(strings.Join(w.said, "\n"),
		"the source may have changed since") {
		t.Errorf("resumed %v, said %q", s.Resumed, w.said)
	}
}

func TestComparisonRespectsReadLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := filled(t)
		for i := range 20 {
			w.put(fmt.Sprint(i), tabletest.Cells{"s": strings.Repeat("x", 100_000)})
		}
		took := func(unitsPerSecond float64) (time.Duration, int64) {
			cfg := w.config(w.write("a.csv", "id,s\n1,x\n"))
			cfg.Gate = scan.NewGate(unitsPerSecond)
			began := time.Now()
			s := conformance.Try(Look(context.Background(), cfg)).Must(t)
			return time.Since(began), s.Costs.ReadCU
		}
		free, units := took(0)
		bound, _ := took(1)
		if units < 400 || free > time.Second || bound < 10*time.Second { // the last pages cost no time
			t.Errorf("%d units: %v without a bound, %v with one of 1 unit a second", units, free, bound)
		}
	})
}

func TestRangeSourceDeletesOnlyWithinItsRange(t *testing.T) {
	w := filled(t)
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		w.put(id, tabletest.Cells{"n": int64(1)})
	}
	held := &Held{Name: "the source", Key: []table.KeyColumn{stringID}, From: "b", To: `"d"`}
	for _, tt := range []struct {
		keys string // the range of the sync
		held Held
		want string // part of the error; "" means no error
	}{{"", *held, "within it"}, {"a..d", *held, "within it"}, {"b..e", *held, "within it"}, {"b..", *held, "within it"},
		{"..d", *held, "within it"}, {"d", *held, "within it"},
		{"b..d", Held{Key: []table.KeyColumn{integerID}, From: "1"}, "another key"},
		{"b..d", Held{Key: []table.KeyColumn{{Name: "x", Type: table.String}}, From: "b"}, "another key"},
		{"b..d", Held{Key: held.Key, From: `"`}, "cannot be read"}, {"b..d", *held, ""}} {
		cfg := w.config(w.write("a.csv", "id,n\nb,1\n"))
		cfg.Range, cfg.Held = tt.keys, &tt.held
		if tt.want == "" {
			w.sync(cfg)
			continue
		}
		conformance.Refused(t, conformance.ErrorOf(Run(context.Background(), cfg)), tt.want, "%s of %+v", tt.keys, tt.held)
	}
	w.wantRows("a n=1", "b n=1", "d n=1", "e n=1")
}

func TestOutdatedComparisonIsRepeated(t *testing.T) {
	w := filled(t, "b", 2)
	cfg := w.config(w.write("a.csv", "id,n\na,1\nc,3\n"))
	w.interruptedAt(cfg, 1)
	w.write("a.csv", "id,n\na,1\nb,2\nd,4\n")
	s := w.sync(cfg)
	conformance.True(t, !s.Resumed && strings.Contains(strings.Join(w.said, "\n"), "the comparison is repeated"),
		"resumed %v, said %q", s.Resumed, w.said)
	w.wantRows("a n=1", "b n=2", "d n=4")
}

func TestDamagedChangesAreRefused(t *testing.T) {
	w := filled(t, "b", 2)
	cfg := w.config(w.write("a.csv", "id,n\na,1\nc,3\n"))
	names, err := filepath.Glob(filepath.Join(w.interruptedAt(cfg, 1).RunDir, changesDir, "delete-*"))
	conformance.MustTrue(t, err == nil && len(names) == 1, "%v %v", names, err)
	text := conformance.Try(os.ReadFile(names[0])).Must(t)
	text[len(text)/2] ^= 1
	w.write(names[0], string(text))
	if s, err := Run(context.Background(), cfg); s != nil || err == nil ||
		!strings.Contains(err.Error(), "is not what was written") {
		t.Errorf("%v, %v", s, err)
	}
	w.wantRows("b n=2")
	cfg.Fresh = true
	w.sync(cfg)
	is, open := Unfinished(filepath.Dir(filepath.Dir(names[0])))
	conformance.True(t, is && !open, "a run that was started over is a run %v and can be resumed %v", is, open)
	w.wantRows("a n=1", "c n=3")
}

func TestRecreatedTableIsNotWrittenTo(t *testing.T) {
	w := filled(t)
	cfg := w.config(w.write("a.csv", "id,n\na,1\n"))
	cfg.OnCompared = func(*Summary) {
		must(t, w.Admin.Drop("t"))
		w.make(table.Definition{}, stringID)
	}
	s, err := Run(context.Background(), cfg)
	conformance.True(t, err != nil && s.State == pipeline.StateFailed && strings.Contains(err.Error(), "created at"),
		"%+v, %v", s, err)
	w.wantRows()
}

// TestRecreatedSourceDeletesNothing drops the source after the comparison and creates another table with its name.
func TestRecreatedSourceDeletesNothing(t *testing.T) {
	w := filled(t, "b", 2)
	makeSource := func() *tablescan.Origin {
		must(t, w.Admin.Create("s", []table.KeyColumn{stringID}, tabletest.Plain))
		must(t, tabletest.Do(w.SDK, tabletest.Put("s", tabletest.Key("id", "a"), tabletest.Cells{"n": int64(1)})))
		return tablescan.New(tablescan.Config{Client: w.SDK, Table: conformance.Try(w.Admin.Describe("s")).Must(t)})
	}
	again := func() *tablescan.Origin {
		must(t, w.Admin.Drop("s"))
		return makeSource()
	}
	cfg := w.config("s")
	cfg.Load.Read.Sources = makeSource()
	cfg.OnLoad = func(*pipeline.Config) func(*pipeline.Report) {
		return func(*pipeline.Report) { again() } // after the row was put
	}
	s := w.sync(cfg)
	conformance.True(t, s.ExitCode == exitcode.Rejects && s.Surplus == 1 && s.Kept == 1 &&
		strings.Contains(s.Withheld, "the present one was created at"), "%+v", s)
	w.wantRows("a n=1", "b n=2")

	// A resumed sync does not write the result of a comparison with the earlier table either.
	w.remove("a")
	cfg.OnLoad, cfg.Load.Read.Sources = nil, again()
	w.interruptedAt(cfg, 1)
	cfg.Load.Read.Sources = again()
	s = w.sync(cfg)
	conformance.True(t, !s.Resumed && s.Deleted == 1 &&
		strings.Contains(strings.Join(w.said, "\n"), "the source was made was"), "%+v, said %q", s, w.said)
	w.wantRows("a n=1")
}

func TestNewAutoIncrementRowsAreRefused(t *testing.T) {
	w := newWorld(t)
	w.make(table.Definition{}, stringID, table.KeyColumn{Name: "n", Type: table.Integer, Auto: true})
	_, err := Run(context.Background(), w.config(w.write("a.csv", "id,v\na,1\n")))
	conformance.Refused(t, err, "auto-increment column n", "without the column")
	_, err = Run(context.Background(), w.config(w.write("b.csv", "id,n,v\na,7,1\n")))
	conformance.Refused(t, err, "does not accept a chosen number", "with a row that is not there")
}

func TestUnsupportedSyncsAreRefused(t *testing.T) {
	w := filled(t)
	for want, change := range map[string]func(*Config){
		"--mode":      func(c *Config) { c.Load.Write.Mode = table.Increment },
		"--condition": func(c *Config) { c.Load.Write.Condition = table.ExpectExist },
		"--limit":     func(c *Config) { c.Load.Limits.Records = 1 },
		"--table":     func(c *Config) { c.Load.Target.Table = "t_{id}" },
		"no table":    func(c *Config) { c.Load.Target.Table = "none" },
		"--range":     func(c *Config) { c.Range = ".." },
		"--if-unchanged with --when": func(c *Config) {
			c.Delete, c.IfUnchanged, c.Load.Write.When = false, true, new(condition.When)
		},
		"--pk": func(c *Config) {
			c.Load.Target.Key = []table.KeyColumn{{Name: "other", Type: table.String}}
		},
	} {
		cfg := w.config(w.write("a.csv", "id,other\na,1\n"))
		change(&cfg)
		_, err := Run(context.Background(), cfg)
		conformance.True(t, errors.As(err, new(*plan.UsageError)) && strings.Contains(err.Error(), want), "%s: %v", want, err)
	}
}

func TestAutoIncrementRowsAreChangedAndDeleted(t *testing.T) {
	w := newWorld(t)
	w.make(table.Definition{}, stringID, table.KeyColumn{Name: "n", Type: table.Integer, Auto: true})
	for i := range 3 {
		change := tabletest.Put("t", tabletest.Key("id", fmt.Sprint("k", i)), tabletest.Cells{"v": int64(i)})
		change.PrimaryKey.AddPrimaryKeyColumnWithAutoIncrement("n")
		must(t, tabletest.Do(w.SDK, change))
	}
	number := func(row string) string {
		_, n, _ := strings.Cut(strings.Fields(row)[0], "/")
		return n
	}
	rows := w.rows()
	s := w.sync(w.config(w.write("a.csv", fmt.Sprintf("id,n,v\nk0,%s,0\nk1,%s,7\n", number(rows[0]), number(rows[1])))))
	wantCounts(t, s, "equal 1, different 1, surplus 1, written 1, deleted 1")
	w.wantRows("k0/"+number(rows[0])+" v=0", "k1/"+number(rows[1])+" v=7")
}

func TestTimestampsOfTheInputAreComparedAndWritten(t *testing.T) {
	w := filled(t)
	now := time.Now().UnixMilli()
	cfg := w.config(w.write("a.csv", fmt.Sprintf("id,v,at\na,1,%d\nb,2,%d\n", now, now-1)))
	cfg.Load.Read.Convert.VersionColumn, cfg.Load.Columns.Exclude = "at", []string{"at"}
	wantCounts(t, w.sync(cfg), "missing 2, written 2")
	wantCounts(t, w.sync(cfg), "equal 2")
	w.write("a.csv", fmt.Sprintf("id,v,at\na,1,%d\nb,2,%d\n", now, now-2))
	wantCounts(t, w.sync(cfg), "equal 1, different 1, written 1")
	w.wantRows("a v=1", "b v=2")
}

func TestUpdatesWithTimestampsAreWrittenInOrder(t *testing.T) {
	w := newWorld(t)
	w.make(table.Definition{MaxVersions: 3}, stringID)
	now := time.Now().UnixMilli()
	cfg := w.config(w.write("a.csv", fmt.Sprintf("id,v,at\na,2,%d\na,3,%d\n", now-1, now-1)))
	cfg.Load.Read.Convert.VersionColumn, cfg.Load.Columns.Exclude = "at", []string{"at"}
	cfg.Load.Write.Mode, cfg.Delete = table.Update, false
	// Rows of one request do not wait for each other, so a first row that is refused would be written last.
	w.faults.Change(nil, func(r faults.Request) faults.Fault {
		return faults.Fault{Action: faults.RefuseRows, RowCode: func(i int) string {
			return map[bool]string{true: "OTSServerBusy"}[r.N == 0 && i == 0]
		}}
	})
	s := w.sync(cfg)
	conformance.True(t, s.Missing == 1 && s.Written == 2, "%s", s.counts())
	w.wantRows("a v=3")
	wantCounts(t, w.sync(cfg), "equal 1")
}

// A sync overwrites rows of a concurrent load only where it writes the same rows.
func TestForeignWritesAfterTheComparison(t *testing.T) {
	w := filled(t)
	for _, id := range []string{"equal", "different", "surplus"} {
		w.put(id, tabletest.Cells{"n": int64(1)})
	}
	cfg := w.config(w.write("a.csv", "id,n\ndifferent,2\nequal,1\nmissing,1\n"))
	cfg.OnCompared = func(*Summary) {
		for _, id := range []string{"equal", "different", "surplus", "missing", "new"} {
			w.put(id, tabletest.Cells{"other": true})
		}
	}
	wantCounts(t, w.sync(cfg), "equal 1, missing 1, different 1, surplus 1, written 2, deleted 1")
	w.wantRows("different n=2", "equal other=true", "missing n=1", "new other=true")
	cfg.OnCompared = nil
	wantCounts(t, w.sync(cfg), "equal 2, different 1, surplus 1, written 1, deleted 1")
	w.wantRows("different n=2", "equal n=1", "missing n=1")
}

// TestRowsThatFailTheConditionAreSkipped syncs files with older and newer rows than the table.
func TestRowsThatFailTheConditionAreSkipped(t *testing.T) {
	for name, text := range map[string]string{"rising": "stored.at <= new.at",
		"any": "stored.at != 7 and stored.n != new.n"} {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []table.Mode{table.Put, table.Update} {
				w := filled(t)
				w.put("equal", tabletest.Cells{"at": int64(5), "n": int64(1)})
				w.put("newer", tabletest.Cells{"at": int64(7), "n": int64(1)})
				w.put("older", tabletest.Cells{"at": int64(3), "n": int64(1)})
				w.put("same", tabletest.Cells{"at": int64(5), "n": int64(1)})
				w.put("unknown", tabletest.Cells{"n": int64(1)})
				cfg := w.config(w.write("a.csv", "id,at,n\nequal,5,1\nmissing,5,2\nnewer,5,2\nolder,5,2\nsame,5,2\nunknown,5,2\n"))
				cfg.Load.Write.Mode = mode
				cfg.Load.Write.When = conformance.Try(condition.ParseWhen(text)).Must(t)
				_, err := Run(context.Background(), cfg)
				conformance.MustTrue(t, err != nil && strings.Contains(err.Error(), "--when with --delete"), "%v", err)
				cfg.Delete = false
				s := w.sync(cfg)
				wantCounts(t, s, "equal 1, missing 1, different 4, written 4")
				conformance.True(t, s.ConditionFailed == 1 && s.PutsUnfinished == 0, "mode %v: %+v", mode, s)
				w.wantRows("equal at=5 n=1", "missing at=5 n=2", "newer at=7 n=1", "older at=5 n=2", "same at=5 n=2",
					"unknown at=5 n=2")

				// Another process writes a newer row after the comparison.
				w.put("same", tabletest.Cells{"at": int64(5), "n": int64(3)})
				cfg.OnCompared = func(*Summary) { w.put("same", tabletest.Cells{"at": int64(7), "n": int64(4)}) }
				if s := w.sync(cfg); s.ConditionFailed != 2 || s.Written != 0 {
					t.Errorf("mode %v: %d left, %d written", mode, s.ConditionFailed, s.Written)
				}
			}
		})
	}
}

// TestRowsChangedByOthersAreSkipped lets another process change rows after the comparison, before they are put.
func TestRowsChangedByOthersAreSkipped(t *testing.T) {
	for name, versions := range map[string]int{"one version": 1, "several": 3} {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []table.Mode{table.Put, table.Update} {
				w := newWorld(t)
				w.make(table.Definition{MaxVersions: versions}, stringID)
				for _, id := range []string{"added", "changed", "deleted", "equal", "other", "plain"} {
					w.put(id, tabletest.Cells{"n": int64(1), "s": "x"})
				}
				w.put("bare", nil)
				w.put("single", tabletest.Cells{"n": int64(1)})
				cfg := w.config(w.write("a.csv",
					"id,n,m\nadded,2,1\nbare,2,1\nchanged,2,1\ndeleted,2,1\nmade,2,1\nmissing,2,1\nother,2,1\nplain,2,1\nsingle,2,\n"))
				cfg.Load.Write.Mode, cfg.Delete, cfg.IfUnchanged = mode, false, true
				cfg.OnCompared = func(*Summary) {
					w.put("added", tabletest.Cells{"n": int64(1), "s": "x", "m": int64(9)}) // a column that the row to put also has
					w.put("changed", tabletest.Cells{"n": int64(7), "s": "x"})
					w.remove("deleted")
					w.put("made", tabletest.Cells{"n": int64(7)})
					w.put("other", tabletest.Cells{"n": int64(1), "s": "y"}) // in a column that an update does not write
					w.put("single", tabletest.Cells{"n": int64(7)})          // the condition has one column
				}
				s := w.sync(cfg)
				left, kept, other := int64(6), "", "other n=1 s=y"
				if mode == table.Update {
					left, kept, other = 5, " s=x", "other m=1 n=2 s=y"
				}
				conformance.True(t, s.ConditionFailed == left && s.Written == 9-left && s.PutsUnfinished == 0 &&
					s.ExitCode == exitcode.Rejects, "mode %v: %d left, %d written, %d unfinished, exit %d", mode, s.ConditionFailed,
					s.Written, s.PutsUnfinished, s.ExitCode)
				if mode == table.Put || versions == 1 { // updates keep older versions
					w.wantRows("added m=9 n=1 s=x", "bare m=1 n=2", "changed n=7 s=x", "equal n=1 s=x", "made n=7", "missing m=1 n=2",
						other, "plain m=1 n=2"+kept, "single n=7")
				}
				cfg.OnCompared = nil
				if s := w.sync(cfg); s.ConditionFailed != 0 || s.Written != left || s.ExitCode != 0 {
					t.Errorf("mode %v: the next sync: %d left, %d written, exit %d", mode, s.ConditionFailed, s.Written, s.ExitCode)
				}
			}
		})
	}
}

// The condition of a repeated row fails because its first attempt was applied. That is not a change by others.
func TestOwnEarlierWritesAreNotForeignChanges(t *testing.T) {
	w := newWorld(t)
	w.make(table.Definition{}, integerID)
	var text strings.Builder
	text.WriteString("id,n\n")
	for i := range 500 {
		if i%2 == 0 {
			w.put(int64(i), tabletest.Cells{"n": int64(1)})
		}
		fmt.Fprintf(&text, "%d,2\n", i)
	}
	cfg := w.config(w.write("a.csv", text.String()))
	cfg.Delete, cfg.IfUnchanged = false, true
	var lost atomic.Int64
	cfg.OnCompared = func(*Summary) {
		w.faults.Change(nil, func(r faults.Request) faults.Fault {
			if r.N%2 == 0 && r.N < 20 {
				lost.Add(1)
				return faults.Fault{Action: faults.DropAfter}
			}
			return faults.Fault{}
		})
	}
	s := w.sync(cfg)
	conformance.True(t, s.Written == 500 && s.ConditionFailed == 0 && s.ExitCode == 0 && lost.Load() != 0, "%+v", s)
}

func TestRowsWithoutAPossibleConditionAreRefused(t *testing.T) {
	w := filled(t)
	cells, head, line := tabletest.Cells{}, "id", "a"
	for i := range 40 {
		name := fmt.Sprintf("c%02d", i)
		cells[name] = int64(1)
		head, line = head+","+name, line+",1"
	}
	w.put("a", cells)
	cfg := w.config(w.write("a.csv", head+"\n"+strings.Replace(line, "a,1", "a,2", 1)+"\n"))
	cfg.Delete, cfg.IfUnchanged = false, true
	_, err := Run(context.Background(), cfg)
	conformance.Refused(t, err, "1 of the rows to put would need a condition with more than 31 columns", "error")
	cfg.Load.Write.Mode = table.Update
	wantCounts(t, w.sync(cfg), "different 1, written 1")
	for i := 31; i < 40; i++ {
		delete(cells, fmt.Sprintf("c%02d", i))
	}
	w.put("a", cells)
	cfg = w.config(w.write("b.csv", head[:len("id")+31*4]+"\n"+"a"+strings.Repeat(",3", 31)+"\n"))
	cfg.Delete, cfg.IfUnchanged = false, true
	wantCounts(t, w.sync(cfg), "different 1, written 1")
	cfg.Delete = true
	_, err = Run(context.Background(), cfg)
	conformance.Refused(t, err, "--if-unchanged with --delete", "with --delete")
}

// TestFinishedRunHasItsSummary fails a run between writing the summary and recording the end.
func TestFinishedRunHasItsSummary(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, StateFile, "in the way"), 0o700))
	r := &run{dir: dir, state: &state{Phase: deleting}, summary: &Summary{State: pipeline.StateFinished}}
	err := r.finish()
	conformance.MustTrue(t, err != nil, "the state was written over a folder")
	s, err := ReadSummary(dir)
	conformance.True(t, err == nil && s.State == pipeline.StateFinished, "%+v, %v", s, err)
	r.dir = t.TempDir()
	must(t, os.MkdirAll(filepath.Join(r.dir, "summary.json", "in the way"), 0o700))
	conformance.True(t, r.finish() != nil, "the summary was written over a folder")
}

func TestSyncThatLeavesRowsOutHasTheExitCodeOfRejects(t *testing.T) {
	for _, c := range []struct {
		s    Summary
		want int
	}{{Summary{ConditionFailed: 1, Kept: 1, Deleted: 1}, exitcode.OK}, {Summary{Rejected: 1}, exitcode.Rejects},
		{Summary{ConditionFailed: 1, IfUnchanged: true}, exitcode.Rejects}, {Summary{PutsRejected: 1}, exitcode.Rejects},
		{Summary{DeletesRejected: 1}, exitcode.Rejects}, {Summary{Withheld: "why"}, exitcode.Rejects}} {
		c.s.conclude()
		conformance.Equal(t, c.s.ExitCode, c.want, "%s, withheld %q", c.s.counts(), c.s.Withheld)
	}
}

// A load that does not finish must not count as a finished sync, and rows must not be deleted after a failure.
func TestUnfinishedSyncDoesNotConclude(t *testing.T) {
	limit := &pipeline.Report{ReportOutcome: ledger.ReportOutcome{State: pipeline.StateErrorLimit, ExitCode: 4}}
	r := &run{summary: new(Summary), drain: t.Context()}
	must(t, r.stopped(limit, nil))
	conformance.True(t, r.summary.State == limit.State && r.summary.ExitCode == 4, "%+v", r.summary)
	why, err := (&run{summary: &Summary{PutsRejected: 2}}).mayDelete()
	conformance.True(t, err == nil && why == "2 rows to put were rejected", "%q, %v", why, err)
	conformance.True(t, withheld(new(Config), &state{Found: new(verify.Result)}) != "" && withheld(new(Config),
		&state{Found: &verify.Result{Read: 3, Rejected: 2}}) != "", "rows are deleted")
	t.Chdir(t.TempDir())
	must(t, os.WriteFile(rundir.Root, nil, 0o600))
	conformance.True(t, conformance.ErrorOf(unfinishedRuns("any")) != nil, "runs that cannot be listed count as none")
}

func TestOverlappingSyncsDoNotRunTogether(t *testing.T) {
	for _, tt := range []struct {
		first, second string // ranges
		refused       bool
	}{{"", "", true}, {"", "b..d", true}, {"b..d", "", true}, {"b..d", "c", true}, {"b..d", "..c", true},
		{"b..d", "b..d", true}, {"b..d", "d..", false}, {"b..d", "..b", false}, {"..b", "b..", false},
		{strings.Repeat("x", 150) + ".." + strings.Repeat("y", 150), "a..b", true}} {
		w := filled(t, "x", 1)
		first, second := w.config(w.write("a.csv", "id,n\nc,1\n")), w.config(w.write("b.csv", "id,n\nc,2\n"))
		first.Range, second.Range, second.Load.RunDir = tt.first, tt.second, "elsewhere"
		first.Load.Resume.LocksDir = t.TempDir()
		second.Load.Resume.LocksDir = first.Load.Resume.LocksDir
		ran := false
		first.OnCompared = func(*Summary) {
			s, err := Run(context.Background(), second)
			refused := err != nil && strings.Contains(err.Error(), "is syncing the same rows of table t")
			conformance.True(t, refused == tt.refused && (refused || err == nil && s.State == pipeline.StateFinished),
				"%q beside %q: %v", tt.second, tt.first, err)
			ran = true
		}
		w.sync(first)
		conformance.Equal(t, ran, true, "no second sync")
		w.sync(second) // allowed after the first has ended
	}
}

// A run whose deletes have not been made is not finished.
func TestRunIsResumableIfTheServiceFailsBeforeDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := filled(t, "b", 2)
		cfg := w.config(w.write("a.csv", "id,n\na,1\nc,3\n"))
		cfg.Load.Lanes.RetryFor = time.Millisecond
		cfg.OnLoad = func(load *pipeline.Config) func(*pipeline.Report) {
			return func(*pipeline.Report) { // after the rows have been put
				w.faults.Change(func(op string) bool { return op == "DescribeTable" }, func(faults.Request) faults.Fault {
					return faults.Fault{Action: faults.Refuse, Code: "OTSServerBusy"}
				})
			}
		}
		s, err := Run(context.Background(), cfg)
		conformance.True(t, err != nil && strings.Contains(err.Error(), "check the inputs again before deleting rows") &&
			s.ExitCode == exitcode.Failed && s.Withheld == "" && s.DeletesUnfinished == 1, "%+v, %v", s, err)
		w.faults.Change(nil, nil)
		w.wantRows("a n=1", "b n=2", "c n=3")
		cfg.OnLoad = nil
		s = w.sync(cfg)
		conformance.Equal(t, s.Resumed, true, "not resumed")
		w.wantRows("a n=1", "c n=3")
	})
}

func TestSyncKeepsTheUnitsOfTheLastRun(t *testing.T) {
	w := filled(t)
	w.put("z", nil)
	file := func(name string, v parquet.Node) string {
		var b bytes.Buffer
		out := parquet.NewWriter(&b, parquet.NewSchema("", parquet.Group{"id": parquet.String(), "v": v}))
		row := parquet.Row{parquet.ValueOf("a").Level(0, 0, 0), parquet.ValueOf(int64(1_700_000_000_000)).Level(0, 0, 1)}
		must(t, conformance.ErrorOf(out.WriteRows([]parquet.Row{row})))
		must(t, out.Close())
		return w.write(name, b.String())
	}
	ms, us := file("ms.parquet", parquet.Timestamp(parquet.Millisecond)),
		file("us.parquet", parquet.Timestamp(parquet.Microsecond))
	config := func(file string) Config {
		cfg := w.config(file)
		cfg.Load.Columns.Types["v"] = plan.Type{Type: table.Integer}
		return cfg
	}
	w.sync(config(ms))
	w.sync(w.config(w.write("a.csv", "id,w\na,5\n"))) // a file without the column
	want := "the last run has it as timestamp, ms, and us.parquet as timestamp, µs"
	conformance.Refused(t, conformance.ErrorOf(Run(t.Context(), config(us))), want, "sync")
	load := config(us).Load
	conformance.Refused(t, conformance.ErrorOf(pipeline.Run(t.Context(), load)), want, "load")
}
