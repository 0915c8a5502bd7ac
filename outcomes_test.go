package tsimport

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/internal/conformance"
)

// A row that was applied, without an answer, and is refused when it is sent again is not said to be absent.
func TestARowRefusedAfterALostAnswerMayBeApplied(t *testing.T) {
	for mode, refusal := range map[string]faults.Fault{
		"put":    {Action: faults.RefuseRows, RowCode: func(int) string { return "OTSParameterInvalid" }},
		"update": {Action: faults.Refuse, Code: "OTSParameterInvalid"},
	} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			ctx := context.Background()
			o := loaderOptions()
			o.Mode = mode
			l := w.open(ctx, o)
			w.plan.Change(nil, func(r faults.Request) faults.Fault {
				if r.N == 0 {
					return faults.Fault{Action: faults.DropAfter}
				}
				return refusal
			})
			var got []Outcome
			put := func(id string) {
				t.Helper()
				err := l.Put(ctx, Row{Columns: []Column{String("id", id), Int64("v", 1)}, Done: func(out Outcome) { got = append(got, out) }})
				if err == nil {
					err = l.Flush(ctx)
				}
				must(t, err)
			}
			put("applied")
			put("refused")
			if c := w.close(l); c.Rejected != 2 || c.MaybeApplied != 1 || !got[0].MaybeApplied || got[1].MaybeApplied || got[1].Code != "OTSParameterInvalid" {
				t.Errorf("%+v, %+v", c, got)
			}
			if rows := w.rows(1); len(rows) != 1 || rows["applied"] == "" {
				t.Errorf("the table has %q", rows)
			}
		})
	}
}

// A Done that ends its goroutine, as FailNow of a test does, takes no outcome of another row along.
func TestADoneThatEndsItsGoroutineEndsNoOther(t *testing.T) {
	w := newWorld(t)
	defer noLeaks(t)()
	ctx := context.Background()
	l := w.open(ctx, loaderOptions())
	told := &outcomes{}
	for n := range int64(100) {
		done := told.of(n)
		must(t, l.Put(ctx, Row{Columns: []Column{String("id", fmt.Sprint(n))}, Done: func(o Outcome) {
			done(o)
			if n%10 == 5 {
				runtime.Goexit()
			}
		}}))
	}
	must(t, l.Flush(ctx))
	c := w.close(l)
	told.check(t, c)
	conformance.Equal(t, c.Written, 100, "%+v", c)
}

// Rows that wait for long, as those of a slow partition do, do not hold what rows took that came with them and after them.
func TestRowsThatWaitHoldNoMemoryOfOthers(t *testing.T) {
	const batches, rows = 300, 500
	var g rowOutcomes
	told := make([]int, batches*rows)
	for b := range batches {
		g.live = append(g.live, &batch{first: int64(b * rows)})
		for i := range rows {
			g.accept(func(o Outcome) { told[b*rows+i]++ })
		}
		g.live[len(g.live)-1].whole = true
	}
	end := func(of func(n int) bool) {
		for n := range batches * rows {
			if of(n) {
				g.ends = append(g.ends, ending{record: int64(n), end: Written})
			}
		}
		ends := g.take(nil)
		tell(ends)
		g.delivered(ends)
	}
	// One row of every tenth batch waits.
	waits := func(n int) bool { return n%(10*rows) == 7 }
	end(func(n int) bool { return !waits(n) && n%2 == 0 })
	end(func(n int) bool { return !waits(n) && n%2 == 1 })
	held := 0
	for _, b := range g.live {
		held += len(b.done) + len(b.few)
	}
	if len(g.live) > 2*batches/10 || held > batches/10 {
		t.Errorf("%d rows hold %d batches with %d Dones", batches/10, len(g.live), held)
	}
	if g.final(8) {
		t.Error("row 8 has an outcome")
	}
	end(func(n int) bool { return waits(n) && n < batches*rows/2 })
	rest := g.abandon()
	tell(rest)
	if len(rest) != batches/20 || g.counts.Written != batches*rows-batches/20 {
		t.Errorf("%d rows are left, %+v", len(rest), g.counts)
	}
	for n, times := range told {
		if times != 1 {
			t.Fatalf("row %d was told of %d outcomes", n, times)
		}
	}
}
