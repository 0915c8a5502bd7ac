package pipeline

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/condition"
	"tsimport/pipeline/checkpoint"
	"tsimport/pipeline/plan"
)

var whenSeeds = flag.Int("when-seeds", 4, "how many seeds the test of loads under a condition on columns runs with")

func mustWhen(t *testing.T, text string) *condition.When {
	t.Helper()
	w, err := condition.ParseWhen(text)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// versioned are records of a few keys, each with a number that tells how new it is.
func versioned(rnd *rand.Rand, n, keys int, what string) (text string, each func(func(id string, at int, text string))) {
	var b strings.Builder
	b.WriteString("id,at,text\n")
	type rec struct {
		id, text string
		at       int
	}
	var all []rec
	for i := range n {
		r := rec{fmt.Sprint("key ", rnd.IntN(keys)), fmt.Sprint(what, " ", i), rnd.IntN(1000)}
		all = append(all, r)
		fmt.Fprintf(&b, "%s,%d,%s\n", r.id, r.at, r.text)
	}
	return b.String(), func(f func(string, int, string)) {
		for _, r := range all {
			f(r.id, r.at, r.text)
		}
	}
}

// TestALoadUnderAConditionLeavesWhatASequentialOneLeaves loads records of repeated keys into a table that has some, while requests fail in
// every way and the load is killed. The table is what one row after the other leaves, and the counts are those too unless the load was
// killed: a row that was written before, and replaced by a later one, is then left when it is sent again.
func TestALoadUnderAConditionLeavesWhatASequentialOneLeaves(t *testing.T) {
	for seed := range uint64(few(*whenSeeds)) {
		t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
			t.Parallel()
			loadWhen(t, seed+1)
		})
	}
}

func loadWhen(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 29))
	w := newWorld(t)
	passes := map[string]func(stored, now int) bool{
		"stored.at < new.at": func(stored, now int) bool { return stored < now }, "stored.at <= new.at": func(stored, now int) bool { return stored <= now },
		"new.at < stored.at": func(stored, now int) bool { return now < stored }, "not (stored.at >= new.at)": func(stored, now int) bool { return stored < now },
	}
	texts := []string{"stored.at < new.at", "stored.at <= new.at", "new.at < stored.at", "not (stored.at >= new.at)"}
	text := texts[rnd.IntN(len(texts))]
	pass := passes[text]

	stored, want := map[string]int{}, contents{}
	before, each := versioned(rnd, 150, 400, "old")
	each(func(id string, at int, what string) {
		stored[id], want[id] = at, map[string]string{"at": fmt.Sprint(at), "text": what}
	})
	first := w.config(w.file("old.csv", before))
	first.RunDir += "-old"
	w.load(first)

	news, each := versioned(rnd, 900, 400, "new")
	written, failed := int64(0), int64(0)
	each(func(id string, at int, what string) {
		if old, there := stored[id]; there && !pass(old, at) {
			failed++
			return
		}
		written++
		stored[id], want[id] = at, map[string]string{"at": fmt.Sprint(at), "text": what}
	})
	cfg := w.config(w.file("new.csv", news))
	cfg.Write.When = mustWhen(t, text)
	cfg.Write.Concurrency, cfg.Write.BatchRows = 1+rnd.IntN(8), 1+rnd.IntN(40)
	if rnd.IntN(2) == 0 {
		cfg.Write.Mode = table.Update
	}
	cfg.Checkpoint.Every, cfg.Resume.Look = time.Millisecond, true
	cfg.pacer = func() pacer { return restless{} }
	w.plan.Decide = randomFaults(rnd)
	kills := 0
	if seed%2 == 0 {
		kills = 1 + rnd.IntN(3)
	}
	for range kills {
		killAtSave(cfg, int64(1+rnd.IntN(12)))
	}
	r := w.load(cfg)
	w.plan.Change(w.plan.Only, nil)
	w.wantRows(want)
	if r.Read != 900 || r.Written+r.ConditionFailed != 900 || r.Rejected != 0 || r.Superseded != 0 {
		t.Errorf("%+v", r.ReportCounts)
	}
	if kills == 0 && (r.Written != written || r.ConditionFailed != failed) {
		t.Errorf("%d written and %d left, want %d and %d", r.Written, r.ConditionFailed, written, failed)
	}
	t.Logf("%s, mode %d, %d attempts, %d written, %d left, %d rows sent again", text, cfg.Write.Mode, r.Attempts, r.Written, r.ConditionFailed, r.Retried)
}

// killAtSave runs an attempt that ends at a checkpoint, unless the load ends before.
func killAtSave(cfg trial, at int64) {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	var saves atomic.Int64
	cfg.onSave = func(*checkpoint.Snapshot) error {
		if saves.Add(1) >= at {
			stop(errKilled)
			return errKilled
		}
		return nil
	}
	_, _ = cfg.run(ctx) // it ends as it may
}

func TestWhatAConditionOnColumnsCannotBeCombinedWithIsRefused(t *testing.T) {
	w := newWorld(t)
	in := w.file("in.csv", "id,at,text\na,1,x\n")
	for name, tt := range map[string]struct {
		change func(*trial)
		says   string
	}{
		"with --condition":     {func(c *trial) { c.Write.Condition = table.ExpectExist }, "--when with --condition"},
		"delete":               {func(c *trial) { c.Write.Mode = table.Delete }, "--mode delete"},
		"increment":            {func(c *trial) { c.Write.Mode = table.Increment }, "--mode increment"},
		"a key column":         {func(c *trial) { c.Write.When = mustWhen(t, "stored.id < new.id") }, "stored.id is a column of the primary key"},
		"a column that is not": {func(c *trial) { c.Write.When = mustWhen(t, "stored.x < new.x") }, "new.x"},
		"equality":             {func(c *trial) { c.Write.When = mustWhen(t, "stored.at == new.at") }, "--order none"},
		"a constant":           {func(c *trial) { c.Write.When = mustWhen(t, "stored.at < 5") }, "it compares nothing with the row that is written"},
		"verify":               {func(c *trial) { c.Compared = true }, "--verify"},
		"auto-increment column": {func(c *trial) {
			c.Target.Key = append(c.Target.Key, table.KeyColumn{Name: "n", Type: table.Integer, Auto: true})
		}, "always new"},
	} {
		cfg := w.config(in)
		cfg.Write.When = mustWhen(t, "stored.at < new.at")
		tt.change(&cfg)
		_, err := cfg.run(context.Background())
		if usage := new(plan.UsageError); !errors.As(err, &usage) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
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

// TestAConditionWithAConstantDoesNotRefuseWhatItHasWritten: the first attempt of a row makes the condition false, and its answer is lost.
func TestAConditionWithAConstantDoesNotRefuseWhatItHasWritten(t *testing.T) {
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
			cfg.Write.BatchRows = 20
			w.plan.Decide = randomFaults(rand.New(rand.NewPCG(uint64(mode), 31)))
			r := w.load(cfg)
			w.plan.Change(w.plan.Only, nil)
			w.wantRows(want)
			if r.Written != 250 || r.ConditionFailed != 150 || r.Retried == 0 {
				t.Errorf("mode %d: %+v, %d sent again", mode, r.ReportCounts, r.Retried)
			}
		}
	})
}
