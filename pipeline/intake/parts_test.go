package intake

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source"
)

func TestASplitThatBecomesLargeIsHandedOverInParts(t *testing.T) {
	text, want := mixed("a.csv", 20_000)
	r := ask(file(t, "a.csv", text))
	r.Memory, r.Read.SplitBytes = 16<<20, 1<<20
	f := flow(t, r, "k0100", "k0900")
	limit := 2 * f.plan.Shares().SplitLimit(3)
	var got []place
	parts, input := 0, int64(0)
	if err := runs(t, f, func(p *Parsed) {
		all := places(p)
		conformance.Equal(t, len(all), p.Records, "rows and rejects of a part")
		if n := p.bytes(); n > int64(limit) {
			t.Errorf("a part of %d bytes, more than %d", n, limit)
		}
		if (p.Split.Number == 0) != (p.Split.FirstRecord == 0) {
			t.Errorf("the split at record %d has number %d", p.Split.FirstRecord, p.Split.Number)
		}
		got, parts, input = append(got, all...), parts+1, input+p.Split.Input
	}); err != nil {
		t.Error(err)
	}
	conformance.Equal(t, cmp.Diff(want, got), "", "(-want +got)")
	if parts < 10 || input != int64(len(text)-len("id,n\n")) {
		t.Errorf("%d parts of %d bytes, want 10 or more of %d", parts, input, len(text)-len("id,n\n"))
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
	conformance.Equal(t, <-ended, nil, "error")
}

// TestNothingPointsIntoATextThatWasGivenBack reads files of which some splits have rejected records, and looks at rows and rejects when
// all splits have been read.
func TestNothingPointsIntoATextThatWasGivenBack(t *testing.T) {
	for _, name := range []string{"a.csv", "a.jsonl"} {
		var text strings.Builder
		if name == "a.csv" {
			text.WriteString("id,n,s\n")
		}
		rnd := rand.New(rand.NewPCG(23, 1))
		for i := range 3000 {
			n := fmt.Sprint(i)
			if i%100 < 30 && i%10 == 0 {
				n = `"odd"`
			}
			if name == "a.csv" {
				fmt.Fprintf(&text, "k%04d,%s,\"with \"\"quotes\"\" %d\"\n", i, n, rnd.Uint64())
			} else {
				fmt.Fprintf(&text, "{\"id\":\"k%04d\",\"n\":%s,\"s\":\"tab\\t%d\"}\n", i, n, rnd.Uint64())
			}
		}
		read := func(spoil bool) (all []string, spoiled int64) {
			r := ask(file(t, name, text.String()))
			r.Columns.Types = map[string]plan.Type{"n": {Type: table.Integer}}
			f := flow(t, r)
			var spoils atomic.Int64
			if spoil {
				f.plan.Sources[0].GiveBack = func(sp source.Split) {
					spoils.Add(1)
					for i := range sp.Data {
						sp.Data[i] = 0xdd
					}
				}
			}
			var splits []*Parsed
			conformance.Equal(t, runs(t, f, func(p *Parsed) { splits = append(splits, p) }), nil, "runs")
			for _, p := range splits {
				for r := range rows(p) {
					all = append(all, fmt.Sprintf("%q %q %q", r.Key(), r.Body(), r.Record()))
				}
				for _, r := range p.Rejects {
					all = append(all, fmt.Sprintf("%q %v", r.Raw, r.Reason))
				}
			}
			slices.Sort(all)
			return all, spoils.Load()
		}
		want, _ := read(false)
		got, spoiled := read(true)
		if diff := cmp.Diff(want, got); diff != "" || len(got) != 3000 {
			t.Errorf("%s: %d records (-as they are +of texts that are spoiled)\n%.2000s", name, len(got), diff)
		}
		if spoiled < 50 {
			t.Errorf("%s: %d texts were given back", name, spoiled)
		}
	}
}
