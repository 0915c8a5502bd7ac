package intake

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tsimport/keyexpr"
	"tsimport/pipeline/plan"
)

func TestASplitThatBecomesLargeIsHandedOverInParts(t *testing.T) {
	text, want := mixed("a.csv", 20_000)
	for _, order := range []plan.Order{plan.LastWins, plan.OrderNone} {
		r := ask(file(t, "a.csv", text))
		r.Order, r.Memory, r.Read.SplitBytes = order, 16<<20, 1<<20
		f := flow(t, r, "k0100", "k0900")
		limit := 2 * f.plan.Shares().SplitLimit(3)
		var got []place
		parts, input := 0, int64(0)
		if err := runs(t, f, func(p *Parsed) {
			all := places(p)
			if len(all) != p.Records {
				t.Errorf("%v: a part of %d records has %d rows and rejects", order, p.Records, len(all))
			}
			if n := p.bytes(); n > int64(limit) {
				t.Errorf("%v: a part of %d bytes, more than %d", order, n, limit)
			}
			if (p.Split.Number == 0) != (p.Split.FirstRecord == 0) {
				t.Errorf("%v: the split at record %d has number %d", order, p.Split.FirstRecord, p.Split.Number)
			}
			got, parts, input = append(got, all...), parts+1, input+p.Split.Input
			f.Queued(func(int) (int, bool) { return 0, false })
		}); err != nil {
			t.Error(err)
		}
		slices.SortFunc(got, func(a, b place) int { return int(a.Record - b.Record) })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%.2000s", order, diff)
		}
		if parts < 10 || input != int64(len(text)-len("id,n\n")) {
			t.Errorf("%v: %d parts of %d bytes, want 10 or more of %d", order, parts, input, len(text)-len("id,n\n"))
		}
	}
}

func TestPiecesWaitForRoomUnlessTheirRecordWaitsForThem(t *testing.T) {
	r := newByteBudget(100)
	if !r.take(t.Context(), 150) {
		t.Fatal("what is larger than the room was not let in alone")
	}
	taken := make(chan bool)
	go func() { taken <- r.take(t.Context(), 10) }()
	select {
	case <-taken:
		t.Fatal("taken while there is no room")
	case <-time.After(time.Millisecond):
	}
	r.setAside(150)
	if !<-taken {
		t.Error("a piece that its record waits for was not let in")
	}
	if r.try(1) {
		t.Error("try took what there is no room for")
	}
	r.setAside(-150)
	r.add(-150)
	if !r.try(90) || r.held != 100 {
		t.Errorf("%d bytes are held, want 100", r.held)
	}
}

func TestALoadWithSlowExpressionsStopsSoon(t *testing.T) {
	r := ask(file(t, "a.csv", "id\n"+strings.Repeat("x\n", 2_000_000))) // all rows take an hour
	r.Read.SplitBytes = 1 << 20
	r.Columns.Set = []keyexpr.Column{{Name: "n", Expr: "count(1..20000, # % 7 == 3)"}}
	f := flow(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	time.AfterFunc(10*time.Millisecond, cancel)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
