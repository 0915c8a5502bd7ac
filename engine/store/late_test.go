package store

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tsimport/engine/wire"
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
		s, err := Open("", Options{InMemory: true, Now: func() time.Time { return clock }})
		if err != nil {
			t.Fatal(err)
		}
		tab := indexed(t, s, byA, byB)
		delay := time.Duration(1+rng.IntN(20)) * time.Millisecond
		if err := s.Choose(Choices{IndexDelay: delay}); err != nil {
			t.Fatal(err)
		}
		history := []seen{{s.millis(), computed(t, s, tab.meta.Load())}}
		since := map[string]int64{} // when an index was brought up to date regardless of the delay
		for step := range 150 {
			changes := drawChanges(rng, 1+rng.IntN(4))
			out := make([]wire.Outcome, len(changes))
			if err := s.Write(ctx, []TableWrite{{Table: tab, Changes: changes, Outcomes: out}}); err != nil {
				t.Fatal(err)
			}
			switch step {
			case 50:
				if err := s.CreateIndex(ctx, &wire.CreateIndex{Table: []byte("t"), Index: byNP, BaseData: true}); err != nil {
					t.Fatal(err)
				}
				since["by_np"] = s.millis()
			case 90:
				if err := s.DropIndex(ctx, &wire.DropIndex{Table: []byte("t"), Index: []byte("by_b")}); err != nil {
					t.Fatal(err)
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
				if err := s.upToDate(ctx, s.Table([]byte(x.Name)).meta.Load()); err != nil {
					t.Fatal(err)
				}
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
		if err := s.Choose(Choices{IndexDelay: time.Hour}); err != nil {
			t.Fatal(err)
		}
		c := drawChange(rng)
		if err := s.Write(ctx, []TableWrite{{Table: tab, Changes: []wire.Change{c}, Outcomes: make([]wire.Outcome, 1)}}); err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteTable(ctx, []byte("t")); err != nil {
			t.Fatal(err)
		}
		it, err := s.db.NewIter(nil)
		if err != nil {
			t.Fatal(err)
		}
		for it.First(); it.Valid(); it.Next() {
			if k := it.Key()[0]; k == spaceLate || k == spaceRows {
				t.Fatalf("seed %d: of a table that was deleted there is %x", seed, it.Key())
			}
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheDelayOfIndexesHasBounds(t *testing.T) {
	s, err := Open("", Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, d := range []time.Duration{-1, 367 * 24 * time.Hour} {
		if err := s.Choose(Choices{IndexDelay: d}); err == nil {
			t.Errorf("%s is taken", d)
		}
	}
}
