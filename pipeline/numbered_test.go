package pipeline

import (
	"context"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/lanes"
)

// numberedKey is the key of a table whose rows the service numbers.
var numberedKey = []table.KeyColumn{{Name: "user", Type: table.String}, {Name: "seq", Type: table.Integer, Auto: true}}

// numbered returns a load of files with the columns user and what into table t, which numbers its rows.
func (w *world) numbered(inputs ...string) trial {
	cfg := w.config(inputs...)
	cfg.Target.Key = numberedKey
	cfg.Write.Marks.ReturnedKeys = filepath.Join(w.dir, "keys.csv")
	return cfg
}

// users returns records with the columns user and what. what has the record's number, so it is unique.
func users(rnd *rand.Rand, records, users int) string {
	return rowsOf("user,what\n", records, func(i int) string { return fmt.Sprintf("key%d,w%d\n", rnd.IntN(users), i) })
}

// wantNumbered checks that each record is one row, that numbers rise in the records' order, and the returned keys.
func (w *world) wantNumbered(text string, cfg trial) {
	w.t.Helper()
	records := conformance.Try(csv.NewReader(strings.NewReader(text)).ReadAll()).Must(w.t)
	at, rows := map[string]int64{}, w.rows() // numbers by user/what
	for key, cells := range rows {
		user, n := numberOf(key)
		who := user + "/" + cells["what"]
		conformance.True(w.t, at[who] == 0, "%s is there twice, as %d and %d", who, at[who], n)
		at[who] = n
	}
	conformance.True(w.t, len(rows) == len(records)-1, "%d rows of %d records", len(rows), len(records)-1)
	last, returned := map[string]int64{}, []string{"file,record,user,seq"}
	for i, r := range records[1:] {
		n := at[r[0]+"/"+r[1]]
		conformance.True(w.t, n > last[r[0]], "record %d of %s has number %d, an earlier one %d", i+1, r[0], n, last[r[0]])
		last[r[0]] = n
		returned = append(returned, fmt.Sprintf("%s,%d,%s,%d", cfg.Inputs[0], i+1, r[0], n))
	}
	if cfg.Write.Marks.ReturnedKeys != "" {
		wantReturned(w.t, returned, cfg)
	}
}

// wantReturned compares the file of returned keys, whose lines may be in any order.
func wantReturned(t *testing.T, want []string, cfg trial) {
	t.Helper()
	got := lines(t, cfg.Write.Marks.ReturnedKeys)
	slices.Sort(want)
	slices.Sort(got)
	conformance.Equal(t, cmp.Diff(want, got), "", "returned keys (-want +got)")
}

// A load without marks repeats rows, and reports how many of them may be in the table twice.
func TestAtLeastOnceReportsPossibleDuplicates(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		cfg := w.numbered(w.file("in.csv", users(rand.New(rand.NewPCG(3, 3)), 40, 20)))
		cfg.Write.Marks.AtLeastOnce, cfg.Lanes.Concurrency = true, 1
		w.failNext(faults.Fault{Action: faults.DropAfter})
		r := w.load(cfg)
		rows := w.rows()
		conformance.True(t, int64(len(rows)) == r.Written+r.MaybeTwice && r.MaybeTwice != 0 && r.Searched == 0,
			"%d rows, %d written, %d maybe twice, %d searched", len(rows), r.Written, r.MaybeTwice, r.Searched)
		for key, cells := range rows {
			conformance.Equal(t, len(cells), 1, "%s: %v", key, cells)
		}
	})
}

func TestReturnedKeysFileIsNotOverwritten(t *testing.T) {
	w := newWorld(t)
	cfg := w.numbered(w.file("in.csv", "user,what\na,b\n"))
	w.file("keys.csv", "precious")
	r, err := cfg.run(t.Context())
	conformance.True(t, err != nil && strings.Contains(err.Error(), "keys.csv exists") && r.State == StateFailed,
		"%v", err)
	text := lines(t, cfg.Write.Marks.ReturnedKeys)
	conformance.True(t, len(text) == 1 && text[0] == "precious", "%q", text)
}

// A later load can change existing rows, given their numbers.
func TestReturnedNumbersIdentifyRowsToChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := w.numbered(w.file("in.csv", "user,what\na,w0\na,w1\nb,w2\n"))
	w.load(cfg)
	keys := lines(t, cfg.Write.Marks.ReturnedKeys)
	changes := "user,seq,what\n"
	want := contents{}
	for i, k := range keys[1:] {
		f := strings.Split(k, ",")
		changes += fmt.Sprintf("%s,%s,changed%d\n", f[2], f[3], i)
		want[f[2]+"/"+f[3]] = map[string]string{"what": fmt.Sprintf("changed%d", i)}
	}
	next := w.numbered(w.file("changes.csv", changes))
	next.Write.Marks.ReturnedKeys, next.Write.Condition, next.RunDir = "", table.ExpectExist, filepath.Join(w.dir, "run2")
	conformance.Equal(t, w.load(next).Written, 3, "written")
	w.wantRows(want)
	gone := next
	gone.Write.Condition, gone.Write.Mode, gone.RunDir = table.Ignore, table.Delete, filepath.Join(w.dir, "run3")
	w.load(gone)
	w.wantRows(contents{})
}

// A load that lost its run folder starts over, and finds its rows by their marks.
func TestLookFirstFindsRowsOfLostRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, whole := range []bool{false, true} {
			w := newWorld(t)
			text := users(rand.New(rand.NewPCG(5, 5)), 120, 7)
			cfg := w.numbered(w.file("in.csv", text))
			cfg.Read.SplitBytes = 200
			cfg.Lanes.Concurrency, cfg.Lanes.BatchRows = 2, 3
			if !whole {
				cfg.Limits.Records = 50
			}
			w.load(cfg)
			cfg.Limits.Records, cfg.RunDir, cfg.Write.Marks.LookFirst = 0, filepath.Join(w.dir, "other"), true
			cfg.Write.Marks.ReturnedKeys = filepath.Join(w.dir, "all.csv")
			r := w.load(cfg)
			w.wantNumbered(text, cfg)
			want := int64(50)
			if whole {
				want = 120
			}
			conformance.True(t, r.Found == want && r.Searched == 120 && r.SurplusDeleted == 0,
				"%d of %d found, want %d; %d deleted", r.Found, r.Searched, want, r.SurplusDeleted)
		}
	})
}

// The values of key columns after the number come from the input.
func TestAutoIncrementColumnMayBeInTheMiddle(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		cfg := w.numbered(w.file("in.csv", "user,day,n\na,5,x\na,4,y\n\"b\",,z\n"))
		cfg.Target.Key = append(numberedKey[:2:2], table.KeyColumn{Name: "day", Type: table.Integer})
		w.failNext(faults.Fault{Action: faults.DropAfter})
		r := w.load(cfg)
		var got []string
		for _, k := range lines(t, cfg.Write.Marks.ReturnedKeys) {
			f := strings.Split(k, ",")
			got = append(got, f[1]+" "+f[2]+" "+f[4])
		}
		if r.Written != 2 || r.Rejected != 1 || r.Found != 1 || strings.Join(got, ", ") != "record user day, 1 a 5, 2 a 4" {
			t.Errorf("%d written, %d rejected, %d found, keys %q", r.Written, r.Rejected, r.Found, got)
		}
		conformance.Equal(t, len(w.rows()), 2, "rows")
	})
}

// If a file of the same name is loaded every ten minutes, perhaps with equal records, each load writes its own rows.
func TestSecondLoadOfEqualRecordsAppendsThem(t *testing.T) {
	for name, fault := range map[string]faults.Fault{"not applied": {Action: faults.DropBefore},
		"applied": {Action: faults.DropAfter}, "applied late": {Action: faults.ApplyLate, Delay: lateness}} {
		t.Run(name, virtual(func(t *testing.T, w *world) {
			in := w.file("in.csv", "user,what\nd1,ok\nd2,ok\nd3,ok\n")
			for i := range 3 {
				cfg := w.numbered(in)
				cfg.Lanes.Concurrency = 1
				cfg.RunDir, cfg.Write.Marks.ReturnedKeys = filepath.Join(w.dir, fmt.Sprint("run", i)), ""
				if i > 0 {
					w.failNext(fault)
				}
				r := w.load(cfg)
				if rows := len(w.rows()); rows != 3*(i+1) || r.Written != 3 || r.SurplusDeleted != 0 {
					t.Errorf("load %d: %d rows, %d written, %d found, %d deleted", i+1, rows, r.Written, r.Found, r.SurplusDeleted)
				}
			}
		}))
	}
}

// A request of the previous load may be applied while the next one looks for its rows.
func TestLookFirstWaitsForLateRequests(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		text := "user,what\na,1\nb,2\n"
		cfg := w.numbered(w.file("in.csv", text))
		cfg.Write.Marks.ReturnedKeys, cfg.Write.Marks.LookFirst = "", true
		begun := time.Now()
		cfg.onSend = func([]table.Ref) {
			waited := time.Since(begun)
			conformance.True(t, waited >= cfg.Write.Settle, "looked after %v", waited)
		}
		w.load(cfg)
		w.wantNumbered(text, cfg)
	})
}

func (w *world) oldRows(keys, rows int) trial {
	text := rowsOf("user,what\n", rows, func(i int) string { return fmt.Sprintf("key%d,w%d\n", i%keys, i) })
	cfg := w.numbered(w.file("old.csv", text))
	cfg.Write.Marks.ReturnedKeys = ""
	return cfg
}

func (w *world) newRows(keys int) trial {
	text := rowsOf("user,what\n", keys, func(i int) string { return fmt.Sprintf("key%d,new\n", i) })
	cfg := w.numbered(w.file("new.csv", text))
	cfg.RunDir, cfg.Write.Marks.ReturnedKeys, cfg.Lanes.Concurrency = filepath.Join(w.dir, "run2"), "", 1
	return cfg
}

// A killed load cannot know which of thousands of rows were sent. Looking takes no more requests than sending.
func TestManyUncertainRowsAreLookedUpTogether(t *testing.T) {
	for name, keys := range map[string]int{"each its own key": 6000, "few keys": 50} {
		t.Run(name, virtual(func(t *testing.T, w *world) {
			text := rowsOf("user,what\n", 6000, func(i int) string { return fmt.Sprintf("key%d,w%d\n", i*7919%keys, i) })
			cfg := w.numbered(w.file("in.csv", text))
			cfg.Pacer, cfg.Resume.Look = func() lanes.Pacer { return restless{} }, true
			cfg.Write.Settle = time.Millisecond
			drain, stop := context.WithCancelCause(t.Context())
			cfg.Drain = drain
			sent := 0
			cfg.Lanes.Concurrency, cfg.Checkpoint.Every = 1, time.Millisecond
			var early *checkpoint.Snapshot
			cfg.onSend = func(rows []table.Ref) {
				if sent += len(rows); sent > 1500 && early == nil {
					var err error
					early, err = checkpoint.Read(cfg.RunDir)
					conformance.True(t, err == nil, "%v", err)
				}
				if sent > 3000 {
					stop(&Interrupted{Signal: "a test", ExitCode: exitcode.Interrupted})
				}
			}
			r, err := cfg.run(t.Context())
			conformance.MustTrue(t, err == nil && r.State == StateInterrupted, "%v, %+v", err, r)
			// A process killed a while after its last checkpoint leaves such a checkpoint.
			for i := range early.Pieces {
				early.Pieces[i].Allowance = max(early.Pieces[i].Allowance, 2500)
			}
			encoded, err := early.Encode()
			if err == nil {
				err = checkpoint.Write(cfg.RunDir, encoded)
			}
			must(t, err)
			cfg.Drain, cfg.onSend, cfg.Lanes.Concurrency = nil, nil, 8
			r = w.load(cfg)
			w.wantNumbered(text, cfg)
			conformance.True(t, r.Searched >= 2500 && r.Found >= 1000 && r.SearchRequests <= 100, "%+v", r)
			t.Logf("%d rows looked for, %d found, with %d requests", r.Searched, r.Found, r.SearchRequests)
		}))
	}
}

// The final sweep skips rows that a look-up found, as they have one copy, and reads a table with many keys only once.
func TestSweepReadsOnlyWhatItNeeds(t *testing.T) {
	for name, tt := range map[string]struct {
		keys  int
		fault faults.Action
		most  int64 // maximum requests after the last row is written or found
	}{
		"rows that were found are left out": {20, faults.DropAfter, 0},
		"many keys are read at once":        {60, faults.DropBefore, 8},
	} {
		t.Run(name, virtual(func(t *testing.T, w *world) {
			const each = 20
			w.load(w.oldRows(tt.keys, tt.keys*each))
			cfg := w.newRows(tt.keys)
			var reads, before atomic.Int64
			w.plan.Only = func(op string) bool {
				switch op {
				case "GetRange":
					reads.Add(1)
				case "BatchWriteRow":
					before.Store(reads.Load())
					return true
				}
				return false
			}
			w.failNext(faults.Fault{Action: tt.fault})
			r := w.load(cfg)
			after := reads.Load() - before.Load()
			if tt.fault == faults.DropAfter {
				after -= r.Found
			}
			if rows := len(w.rows()); rows != tt.keys*(each+1) || r.Written != int64(tt.keys) || after > tt.most {
				t.Errorf("%d rows, %d written, %d requests to sweep", rows, r.Written, after)
			}
		}))
	}
}

// In a sorted file, only a few keys are known at any moment, and each has one row in flight.
func TestRowsOfFewKeysAreSentTogether(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		// If there is only one processor, an instant answer would let the next row of its key be sent alone.
		w.simulate(t, server.Simulation{Config: sim.Config{Latency: 5 * time.Millisecond}})
		const rows, each = 30_000, 100
		text := rowsOf("user,what\n", rows, func(i int) string { return fmt.Sprintf("k%05d,w%d\n", i/each, i) })
		before := w.plan.Requests()
		w.load(w.numbered(w.file("in.csv", text)))
		sent := w.plan.Requests() - before
		conformance.True(t, sent <= rows/50, "%d requests for %d rows", sent, rows)
	})
}
