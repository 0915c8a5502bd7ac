package pipeline

import (
	"testing"

	"tsimport/engine/server"
	"tsimport/engine/sim"
)

func TestANewTableBeginsWithTheRangesOfItsRows(t *testing.T) {
	text := numbered("k", 3000)
	want := lastOf(t, text)
	for answer, heard := range map[string]int{sim.PreSplitHeard: 6, sim.PreSplitIgnored: 1, sim.PreSplitRefused: 1} {
		t.Run(answer, virtual(func(t *testing.T, w *world) {
			must(t, w.server.Sim().Simulate("", server.Simulation{Config: sim.Config{Answers: sim.Answers{PreSplit: answer}}}))
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
