package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/convert"
)

func TestErrorLimitCountsAllAttempts(t *testing.T) {
	w := newWorld(t)
	b := rowsOf("id,n\n", 400, func(i int) string { return fmt.Sprintf("%d,%s\n", i, []string{"1", "x"}[i%2]) })
	cfg := w.config(w.file("in.csv", b))
	cfg.Columns.Types = map[string]plan.Type{"n": {Type: table.Integer}}
	cfg.Resume.Look = true
	for i, limit := range []int64{50, 50, 50, 120, 120, 200} {
		cfg.Limits.MaxErrors = ledger.MaxErrors{Rows: limit}
		r := w.load(cfg)
		if i == 5 {
			conformance.True(t, r.State == StateFinished && r.Rejected == 200 && r.Written == 200,
				"attempt %d, limit %d: %s, %d rejected, %d written", i+1, limit, r.State, r.Rejected, r.Written)
		} else if r.State != StateErrorLimit || r.ExitCode != exitcode.ErrorLimit || r.Rejected != limit+1 {
			t.Errorf("attempt %d, limit %d: %s, exit code %d, %d rejected", i+1, limit, r.State, r.ExitCode, r.Rejected)
		}
	}
}

func TestSeamsOfJoinedFilesDoNotCountAsErrors(t *testing.T) {
	w := newWorld(t)
	cfg := w.config(w.file("in.csv", "id,n\n"+strings.Repeat("1,1\nid,n\n", 150)+"2,x\n"))
	cfg.Columns.Types = map[string]plan.Type{"n": {Type: table.Integer}}
	cfg.Limits.MaxErrors = ledger.MaxErrors{Rows: 1}
	r := w.load(cfg)
	conformance.True(t, r.State == StateFinished && r.ExitCode == exitcode.Rejects && r.Rejected == 151 && r.Seams == 150,
		"%s, exit code %d, %d rejected, %d seams", r.State, r.ExitCode, r.Rejected, r.Seams)
}

func TestErrorLimitStopsLoadAtNextReject(t *testing.T) {
	t.Parallel()
	text := rowsOf("id,n\n", 5000, func(i int) string {
		if i%10 == 9 {
			return fmt.Sprintf("k%d,bad\n", i)
		}
		return fmt.Sprintf("k%d,%d\n", i, i)
	})
	for _, tt := range []struct {
		limit          string
		exit           int
		rejected, read int64
		atLeast        bool
	}{{"0", exitcode.ErrorLimit, 1, 10, false}, {"1", exitcode.ErrorLimit, 2, 20, false},
		{"100", exitcode.ErrorLimit, 101, 1010, false}, {"499", exitcode.ErrorLimit, 500, 5000, false},
		{"500", exitcode.Rejects, 500, 5000, false}, {"-1", exitcode.Rejects, 500, 5000, false},
		{"10%", exitcode.Rejects, 500, 5000, false}, {"9.9%", exitcode.ErrorLimit, 100, 1000, false}} {
		t.Run(tt.limit, func(t *testing.T) {
			w := newWorld(t)
			cfg := w.config(w.file("in.csv", text))
			cfg.Columns.Types["n"] = plan.Type{Type: table.Integer}
			cfg.Read.SplitBytes = 777
			var err error
			cfg.Limits.MaxErrors, err = ledger.ParseMaxErrors(tt.limit)
			conformance.MustTrue(t, err == nil, "%v", err)
			r := w.load(cfg)
			conformance.True(t, r.ExitCode == tt.exit && r.Rejected == tt.rejected && r.Read == tt.read,
				"exit %d, %d rejected, %d read; want %d, %d, %d", r.ExitCode, r.Rejected, r.Read, tt.exit, tt.rejected, tt.read)
			conformance.Equal(t, int64(len(w.rows())), r.Written, "rows in the table")
			if kept := lines(t, filepath.Join(r.RunDir, "rejects.csv")); int64(len(kept)) != r.Rejected+1 {
				t.Errorf("rejects.csv has %d lines, want the header and %d records", len(kept), r.Rejected)
			}
		})
	}
	for _, bad := range []string{"", "x", "-2", "101%", "-1%", "1.5", "NaN%"} {
		conformance.Refused(t, conformance.ErrorOf(ledger.ParseMaxErrors(bad)), "", "max errors %q was accepted", bad)
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	w := newWorld(t)
	cfg := w.config(w.file("in.csv", "id,n\na,1\nb,2\n,3\n"))
	cfg.DryRun = true
	r := w.load(cfg)
	conformance.True(t, r.Written == 0 && r.Unfinished == 2 && r.Rejected == 1 && r.ExitCode == exitcode.Rejects &&
		r.Requests == 0, "%+v", r)
	conformance.Equal(t, w.plan.Requests(), 0, "rows were sent")
	cfg.Target.Create = false
	_, err := cfg.run(context.Background())
	conformance.True(t, isUsage(err), "the dry run made the table: %v", err)
}

func isUsage(err error) bool { return errors.As(err, new(*plan.UsageError)) }

func TestDrainFinishesOnlyRequestsInFlight(t *testing.T) {
	w := newWorld(t)
	drain, stop := context.WithCancelCause(context.Background())
	w.plan.Decide = func(r faults.Request) faults.Fault {
		if r.N == 3 {
			stop(&Interrupted{Signal: "a test", ExitCode: exitcode.Interrupted})
		}
		return faults.Fault{}
	}
	b := rowsOf("id,n\n", 100_000, func(i int) string { return fmt.Sprintf("k%d,%d\n", i, i) })
	cfg := w.config(w.file("in.csv", b))
	cfg.Lanes.Concurrency, cfg.Read.SplitBytes = 2, 4096
	cfg.Drain = drain
	r := w.load(cfg)
	conformance.Equal(t, r.State, StateInterrupted, "state")
	conformance.Equal(t, r.ExitCode, exitcode.Interrupted, "exit code")
	conformance.True(t, r.Written != 0 && r.Written != 100_000 && int64(len(w.rows())) == r.Written,
		"%d written, %d in the table", r.Written, len(w.rows()))
}

func TestSecondInterruptStopsAtOnce(t *testing.T) {
	w := newWorld(t)
	hard, stop := context.WithCancelCause(context.Background())
	w.plan.Decide = func(faults.Request) faults.Fault {
		stop(&Interrupted{Signal: "a test", ExitCode: exitcode.Terminated})
		return faults.Fault{Action: faults.ApplyLate, Delay: lateness}
	}
	cfg := w.config(w.file("in.csv", "id,n\na,1\n"))
	cfg.Write.Settle = time.Hour // too long to wait for
	r, err := cfg.run(hard)
	conformance.True(t, err == nil && r.ExitCode == exitcode.Terminated && r.Unfinished == 1, "%v, %+v", err, r)
	conformance.Equal(t, r.Balance(), nil, "error")
}

func TestFatalAnswersStopLoad(t *testing.T) {
	for _, f := range []faults.Fault{{Action: faults.Refuse, Code: "OTSAuthFailed"},
		{Action: faults.Refuse, Code: "OTSNoPermissionAccess"}, {Action: faults.Refuse, Code: "OTSObjectNotExist"},
		{Action: faults.RefuseRows, RowCode: func(i int) string { return everyThird(i, "OTSObjectNotExist") }}} {
		w := newWorld(t)
		w.load(w.config(w.file("before.csv", "id,n\nz,1\n"))) // a new table may be reported missing
		w.plan.Decide = func(faults.Request) faults.Fault { return f }
		r, err := w.config(w.file("in.csv", "id,n\na,1\nb,2\n")).run(context.Background())
		conformance.True(t, err != nil && r.ExitCode == exitcode.Refused && r.Rejected == 0 && r.Unfinished != 0,
			"%s: %v, %+v", f.Code, err, r)
		conformance.Equal(t, r.Balance(), nil, "error")
	}
}

func TestReadErrorFollowsPrecedingRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// A record that does not fit in memory cannot be read, but the rows before it can.
	cfg := w.config(w.file("in.csv", "id,n\na,1\nb,2\n\""+strings.Repeat("x", 8<<20)))
	cfg.Limits.Memory = 1
	cfg.Columns.Types["n"] = plan.Type{Type: table.String}
	cfg.Target.Key[0].Type = table.String
	r, err := cfg.run(context.Background())
	conformance.Refused(t, err, "byte 13", "where")
	conformance.MustTrue(t, r != nil && r.ExitCode == exitcode.Usage && r.Written == 2, "%+v", r)
	w.wantRows(contents{"a": {"n": "1"}, "b": {"n": "2"}})
}

func TestUnwritableRunFolderStopsLoadBeforeFirstRow(t *testing.T) {
	w := newWorld(t)
	cfg := w.config(w.file("in.csv", "id,n\na,1\n"))
	cfg.RunDir = filepath.Join(w.file("file", ""), "run")
	r, err := cfg.run(context.Background())
	conformance.True(t, err != nil && r == nil, "%v, %+v", err, r)
}

func TestFilesLoadedTogetherNeedSameColumns(t *testing.T) {
	w := newWorld(t)
	a := w.file("a.csv", "id,x,y\n1,a,b\nbad\n")
	b := w.file("b.csv", "y,id,x\nd,2,c\nworse\n")
	_, err := w.config(a, b, w.file("c.csv", "id,x\n3,e\n")).run(context.Background())
	conformance.True(t, isUsage(err) && strings.Contains(err.Error(), "c.csv"), "error %v does not name the file", err)
	r := w.load(w.config(a, b))
	w.wantRows(contents{"1": {"x": "a", "y": "b"}, "2": {"x": "c", "y": "d"}})
	for name, want := range map[string]string{"rejects.csv": "id,x,y bad", "rejects-2.csv": "y,id,x worse"} {
		conformance.Equal(t, strings.Join(lines(t, filepath.Join(r.RunDir, name)), " "), want, "%s", name)
	}
}

// In an update, the stored cells of columns that a file lacks are kept.
func TestMissingColumnsLeaveStoredCells(t *testing.T) {
	type inner struct {
		A string `parquet:"a"`
		B string `parquet:"b"`
	}
	w := newWorld(t)
	typed := func(name string, write func(io.Writer) error) string {
		var text bytes.Buffer
		must(t, write(&text))
		return w.file(name, text.String())
	}
	inputs := []string{
		w.file("old.csv", "id,x\n1,a\n2,\n1,b,c\n"), // the last record has a field too many
		w.file("new.csv", "y,id,x\ne,3,\n"),
		w.file("more.jsonl", "{\"id\":\"4\",\"s\":{\"a\":\"f\"},\"y\":null}\n"),
		typed("old.parquet", func(to io.Writer) error {
			return parquet.Write(to, []struct {
				ID string `parquet:"id"`
				S  struct {
					A string `parquet:"a"`
				} `parquet:"s"`
			}{{ID: "5"}})
		}),
		typed("new.parquet", func(to io.Writer) error {
			return parquet.Write(to, []struct {
				ID string `parquet:"id"`
				S  inner  `parquet:"s"`
			}{{"6", inner{"g", "h"}}})
		}),
	}
	with := func(inputs ...string) trial {
		cfg := w.config(inputs...)
		cfg.RunDir = t.TempDir()
		cfg.Read.Named.Missing, cfg.Read.Convert.Missing, cfg.Read.Flatten = true, true, true
		return cfg
	}
	before := w.file("before.csv", "id,x,y,s.a,s.b\n1,-,-,-,-\n2,-,-,-,-\n3,-,-,-,-\n4,-,-,-,-\n5,-,-,-,-\n6,-,-,-,-\n")
	w.load(with(before))
	cfg := with(inputs...)
	cfg.Write.Mode, cfg.Write.DeleteNull = table.Update, true
	r := w.load(cfg)
	conformance.Equal(t, r.Rejected, 1, "rejected")
	w.wantRows(contents{"1": {"x": "a", "y": "-", "s.a": "-", "s.b": "-"}, "2": {"y": "-", "s.a": "-", "s.b": "-"},
		"3": {"y": "e", "s.a": "-", "s.b": "-"}, "4": {"x": "-", "s.a": "f", "s.b": "-"},
		"5": {"x": "-", "y": "-", "s.a": "", "s.b": "-"}, "6": {"x": "-", "y": "-", "s.a": "g", "s.b": "h"}})
	w.verifies(cfg, r)
	keyless := w.file("keyless.csv", "x,y\n1,2\n")
	for want, cfg := range map[string]trial{
		"keyless.csv has no column \"id\", which":      with(before, keyless),
		"old.csv has no column \"y\", which":           w.config(before, inputs[0]),
		"load its rows without it with --missing null": w.config(inputs[1], before),
		"the primary key and --version-column need it in every file": func() trial {
			c := with(before, inputs[0])
			c.Read.Convert.VersionColumn = "y"
			return c
		}(),
	} {
		_, err := cfg.run(context.Background())
		conformance.True(t, isUsage(err) && strings.Contains(err.Error(), want), "%v, want %s", err, want)
	}
}

// A record with a surplus field may happen to have as many fields as there are columns.
func TestRaggedRecordKeepsFolderColumns(t *testing.T) {
	for ragged, want := range map[convert.Ragged]contents{
		convert.RejectRagged:   {"1": {"x": "a", "dt": "9"}},
		convert.PadRagged:      {"1": {"x": "a", "dt": "9"}, "3": {"dt": "9"}},
		convert.TruncateRagged: {"1": {"x": "a", "dt": "9"}, "2": {"x": "b", "dt": "9"}},
	} {
		w := newWorld(t)
		must(t, os.MkdirAll(filepath.Join(w.dir, "in", "dt=9"), 0o755))
		w.file("in/dt=9/in.csv", "id,x\n1,a\n2,b,c\n3\n")
		cfg := w.config(filepath.Join(w.dir, "in"))
		cfg.Read.Find.PathColumns, cfg.Read.Convert.Ragged = true, ragged
		r := w.load(cfg)
		w.wantRows(want)
		conformance.Equal(t, r.Rejected, int64(3-len(want)), "%v: rejected", ragged)
	}
}

func TestRejectsOfPartitionFoldersLoadAgain(t *testing.T) {
	w := newWorld(t)
	for _, day := range []string{"2024-01-01", "a%2Fb"} {
		must(t, os.MkdirAll(filepath.Join(w.dir, "in", "dt="+day), 0o755))
		w.file("in/dt="+day+"/in.csv", "id,n\nk,bad\nok,1\n")
	}
	cfg := w.config(filepath.Join(w.dir, "in"))
	cfg.Read.Find.PathColumns = true
	cfg.Columns.Types["n"] = plan.Type{Type: table.Integer}
	cfg.Target.Key = append(cfg.Target.Key, table.KeyColumn{Name: "dt", Type: table.String})
	r := w.load(cfg)
	conformance.MustTrue(t, r.Written == 2 && r.Rejected == 2 && len(r.RejectsFiles) == 3, "%+v", r)
	for _, path := range r.RejectsFiles[:2] {
		text := conformance.Try(os.ReadFile(path)).Must(t)
		must(t, os.WriteFile(path, bytes.ReplaceAll(text, []byte("bad"), []byte("2")), 0o644))
	}
	again := cfg
	again.Inputs, again.RunDir = r.RejectsFiles[:2], filepath.Join(w.dir, "again")
	w.load(again)
	w.wantRows(contents{"k/2024-01-01": {"n": "2"}, "ok/2024-01-01": {"n": "1"}, "k/a/b": {"n": "2"},
		"ok/a/b": {"n": "1"}})
}

func TestUnbalancedLedgerFailsRun(t *testing.T) {
	for _, tt := range []struct {
		written int64
		exit    int
	}{{4, exitcode.OK}, {5, exitcode.Failed}, {3, exitcode.Failed}} {
		folder := conformance.Try(rundir.Create(t.TempDir(), nil)).Must(t)
		r := &Report{Counted: ledger.Counted{ReportCounts: ledger.ReportCounts{Read: 7, Written: tt.written, Superseded: 2,
			Unfinished: 1}}}
		cfg := Config{DryRun: true, Limits: Limits{MaxErrors: ledger.MaxErrors{Rows: -1}}} // lets rows be unfinished
		r, err := finish(t.Context(), &cfg, r, folder, time.Now(), nil)
		conformance.True(t, r.ExitCode == tt.exit && (err != nil) == (tt.exit != exitcode.OK), "%+v: %v", tt, err)
	}
}

// A drain waits for attempts that could undo later writes.
func TestDrainWaitsForUnsettledAttempts(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		drain, stop := context.WithCancelCause(context.Background())
		w.plan.Decide = func(faults.Request) faults.Fault {
			stop(&Interrupted{Signal: "a test", ExitCode: exitcode.Interrupted})
			return faults.Fault{Action: faults.ApplyLate, Delay: settle / 2}
		}
		cfg := w.config(w.file("in.csv", "id,n\na,old\n"))
		cfg.Drain = drain
		conformance.MustEqual(t, w.load(cfg).Unfinished, 1, "unfinished")
		conformance.Equal(t, w.plan.Late(), 0, "attempts that may still be applied after the load")
		w.plan.Change(w.plan.Only, nil)
		w.load(w.config(w.file("new.csv", "id,n\na,new\n")))
		w.wantRows(contents{"a": {"n": "new"}})
	})
}

func TestWaitingRowsAreBoundedByMemory(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		release := make(chan struct{})
		const records, split = 50_000, 4096
		text := rowsOf("id,n\n", records, func(i int) string { return fmt.Sprintf("k%d,%d\n", i, i) })
		cfg := w.config(w.file("in.csv", text))
		cfg.Read.SplitBytes, cfg.Read.Parsers = split, 2
		cfg.Limits.Memory = 256 << 10
		cfg.Lanes.Concurrency = 1
		cfg.Watch.Progress = new(ledger.Progress)
		var readWhileBlocked atomic.Int64
		w.plan.Decide = func(r faults.Request) faults.Fault {
			if r.N == 0 {
				<-release
			}
			return faults.Fault{}
		}
		go func() {
			// Reading stops by itself once the memory is used up. Then everything waits, and the clock advances.
			time.Sleep(time.Second)
			readWhileBlocked.Store(cfg.Watch.Progress.Ended.Read.Load())
			close(release)
		}()
		conformance.Equal(t, w.load(cfg).Written, records, "written")
		n := readWhileBlocked.Load()
		conformance.True(t, n != 0 && n < records/2, "%d of %d records were read while the service took none", n, records)
	})
}

func TestRunFolderFilesAreNotInputs(t *testing.T) {
	w := newWorld(t)
	cfg := w.config(w.file("in.csv", "id,n\na,1\n,2\n"))
	r := w.load(cfg)
	cfg.Inputs = []string{r.RejectsFiles[0]}
	if _, err := cfg.run(context.Background()); !isUsage(err) || !strings.Contains(err.Error(), "--run-dir") {
		t.Errorf("loading the rejects into their own folder: %v", err)
	}
	conformance.Equal(t, len(lines(t, r.RejectsFiles[0])), 2, "rejects now")
	cfg.RunDir = filepath.Join(w.dir, "another")
	conformance.Equal(t, w.load(cfg).Read, 1, "read")
}

func TestFileChangedDuringLoadFailsRun(t *testing.T) {
	for name, change := range map[string]func(string) error{
		"shrinks": func(path string) error { return os.Truncate(path, 5000) },
		"grows": func(path string) error {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("kz,1\n")
			return errors.Join(err, f.Close())
		},
		"is replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", []byte("id,n\nz,1\n"), 0o644), os.Rename(path+".new", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			b := rowsOf("id,n\n", 10_000, func(i int) string { return fmt.Sprintf("k%05d,1\n", i) })
			path := w.file("in.csv", b)
			cfg := w.config(path)
			cfg.Read.SplitBytes, cfg.Limits.Memory, cfg.Lanes.Concurrency = 512, 4096, 1
			var changed error
			if name == "is replaced" {
				cfg.Watch.OnPlan = func(*plan.Plan) { changed = change(path) } // before the file is opened
			} else {
				w.plan.Decide = func(r faults.Request) faults.Fault {
					if r.N == 0 {
						changed = change(path)
					}
					return faults.Fault{}
				}
			}
			r, err := cfg.run(context.Background())
			conformance.MustEqual(t, changed, nil, "reason")
			conformance.True(t, err != nil && strings.Contains(err.Error(), "changed since it was found") &&
				r.ExitCode == exitcode.Failed, "%v, %+v", err, r)
		})
	}
}

func TestTableCreatedByAnotherProcessIsUsed(t *testing.T) {
	w := newWorld(t)
	cfg := w.config(w.file("in.csv", "id,n\na,1\n"))
	cfg.Watch.OnPlan = func(*plan.Plan) { // the plan is to create the table, but another load does so now
		other := w.config(w.file("other.csv", "id,n\nb,2\n"))
		other.RunDir = filepath.Join(w.dir, "other")
		w.load(other)
	}
	conformance.True(t, !w.load(cfg).Created, "the report says that this run made the table")
	w.wantRows(contents{"a": {"n": "1"}, "b": {"n": "2"}})
}
