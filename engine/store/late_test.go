package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"example.com/tsimport/engine/wire"
)

// seen is what the indexes of a table were to have at a moment.
type seen struct {
	at   int64
	rows map[string]map[string]string
}

// An index shows at each moment what its table was the delay before, by a clock that jumps.
func TestADelayedIndexIsItsTableAsItWas(t *testing.T) {
	for seed := range uint64(*indexRounds) {
		rng := rand.New(rand.NewPCG(seed, 4))
		clock := time.UnixMilli(1_700_000_000_000)
		s := reopen(t, "", Options{InMemory: true, Now: func() time.Time { return clock }})
		tab := indexed(t, s, byA, byB)
		delay := time.Duration(1+rng.IntN(20)) * time.Millisecond
		must(t, s.Choose(Choices{IndexDelay: delay}))
		history := []seen{{s.millis(), computed(t, s, tab.meta.Load())}}
		since := map[string]int64{} // when an index was brought up to date regardless of the delay
		for step := range 150 {
			changes := drawChanges(rng, 1+rng.IntN(4))
			out := make([]wire.Outcome, len(changes))
			must(t, s.Write(ctx, []TableWrite{{Table: tab, Changes: changes, Outcomes: out}}, false))
			switch step {
			case 50:
				must(t, s.CreateIndex(ctx, &wire.CreateIndex{Table: []byte("t"), Index: byNP, BaseData: true}))
				since["by_np"] = s.millis()
			case 90:
				dropped := s.Table([]byte("by_b")).id
				must(t, s.DropIndex(ctx, &wire.DropIndex{Table: []byte("t"), Index: []byte("by_b")}))
				if rows := space(t, s, dropped); len(rows) > 0 {
					t.Errorf("of a dropped index there is %q", rows)
				}
				since["by_a"], since["by_np"] = s.millis(), s.millis()
			}
			m := tab.meta.Load()
			history = append(history, seen{s.millis(), computed(t, s, m)})
			clock = clock.Add(time.Duration(1+rng.IntN(8)) * time.Millisecond)
			if rng.IntN(3) > 0 {
				continue // nobody reads
			}
			want := map[string]map[string]string{}
			for _, x := range m.Indexes {
				must(t, s.upToDate(ctx, s.Table([]byte(x.Name)).meta.Load()))
				upTo := max(s.millis()-delay.Milliseconds(), since[x.Name])
				for _, h := range history {
					if h.at <= upTo {
						want[x.Name] = h.rows[x.Name]
					}
				}
			}
			compareIndexes(t, s, m, want, fmt.Sprintf("seed %d, step %d", seed, step))
		}
		if err := s.Choose(Choices{}); err != nil { // all at once
			t.Fatal(err)
		}
		checkIndexes(t, s, fmt.Sprintf("seed %d, without a delay", seed))
		must(t, s.Choose(Choices{IndexDelay: time.Hour}))
		c := drawChange(rng)
		must(t, s.Write(ctx, []TableWrite{{Table: tab, Changes: []wire.Change{c}, Outcomes: make([]wire.Outcome, 1)}}, false))
		must(t, s.DeleteTable(ctx, []byte("t")))
		it, err := s.db.NewIter(nil)
		must(t, err)
		for it.First(); it.Valid(); it.Next() {
			if k := it.Key()[0]; k == spaceLate || k == spaceRows {
				t.Fatalf("seed %d: of a table that was deleted there is %x", seed, it.Key())
			}
		}
		must(t, it.Close())
		must(t, s.Close())
	}
}

func TestTheDelayOfIndexesHasBounds(t *testing.T) {
	s := reopen(t, "", Options{InMemory: true})
	defer s.Close()
	for _, d := range []time.Duration{-1, 367 * 24 * time.Hour} {
		if err := s.Choose(Choices{IndexDelay: d}); err == nil {
			t.Errorf("%s is taken", d)
		}
	}
}
