package pipeline

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tsimport/engine/server"
	"tsimport/engine/sim"
	"tsimport/pipeline/plan"
)

func TestANewTableBeginsWithTheRangesOfItsRows(t *testing.T) {
	text := numbered("k", 3000)
	want, _ := model{}.apply(t, contents{}, text)
	for answer, heard := range map[string]int{sim.PreSplitHeard: 6, sim.PreSplitIgnored: 1, sim.PreSplitRefused: 1} {
		t.Run(answer, virtual(func(t *testing.T, w *world) {
			if err := w.server.Sim().Simulate("", server.Simulation{Config: sim.Config{Answers: sim.Answers{PreSplit: answer}}}); err != nil {
				t.Fatal(err)
			}
			cfg := w.config(w.file("in.csv", text))
			cfg.Target.PreSplit = 6
			r := w.load(cfg)
			w.wantRows(want)
			w.verifies(cfg, r)
			if r.PreSplit == nil || r.PreSplit.Ranges != 6 || r.PreSplit.Heard != heard || (r.PreSplit.Refused != "") != (answer == sim.PreSplitRefused) {
				t.Errorf("%+v", r.PreSplit)
			}
			if r.Partitions != heard || !r.Created {
				t.Errorf("%d partitions, created %v", r.Partitions, r.Created)
			}
			for _, p := range w.server.Sim().Stats()["t"].Partitions {
				if each := int64(3000 / heard); p.Position >= 0 && (p.Rows < each*2/3 || p.Rows > each*3/2) {
					t.Errorf("partition %d got %d rows, want about %d", p.Position, p.Rows, each)
				}
			}
		}))
	}
}

func TestAPreSplitLoadOfAnyArrangementLeavesTheTableOfASequentialLoad(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed+1, 37))
			m := &mixedLoad{t: t, w: newWorld(t), rnd: rnd, key: &mixKeys[rnd.IntN(len(mixKeys)-1)]} // the last one's are several tables
			m.mix = mix{arrangement: arrangements[rnd.IntN(len(arrangements))], perID: m.key.perID, records: 300 + rnd.IntN(1000),
				repeats: rnd.IntN(2) == 0, late: rnd.IntN(2) == 0, strays: rnd.IntN(2) == 0, spoiled: true}
			m.mix.keys = 1 + rnd.IntN(m.mix.records)
			m.oracle = sequence{key: m.key}
			m.records = m.mix.draw(rnd, "")
			m.configure(m.w.writeMix(rnd, "in", m.records, mixFormats, 1+rnd.IntN(3)))
			m.cfg.Target.PreSplit = plan.PreSplit(2 + rnd.IntN(9))
			want := m.oracle.apply(contents{}, m.records)
			r, _ := m.run(rnd.IntN(2) == 0)
			m.w.wantRows(want.rows)
			m.checkRejected(want)
			if r.State != StateFinished || r.Read != int64(len(m.records)) {
				t.Errorf("%s: %d read of %d", r.State, r.Read, len(m.records))
			}
			t.Logf("%s, key %s, %v: %d partitions, pre-split %+v", m.mix.arrangement, m.key.name, strings.Join(fileKinds(m.cfg.Inputs), " "), r.Partitions, r.PreSplit)
		})
	}
}
