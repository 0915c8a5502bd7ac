package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/condition"
	"tsimport/pipeline/plan"
)

func mustWhen(t *testing.T, text string) *condition.When {
	t.Helper()
	w, err := condition.ParseWhen(text)
	must(t, err)
	return w
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
