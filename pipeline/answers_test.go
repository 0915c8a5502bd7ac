package pipeline

import (
	"testing"
	"time"

	"tsimport/engine/server"
	"tsimport/engine/sim"
)

// Nobody knows for certain what the real service answers: a load is right under each answer.
func TestALoadIsRightForAnyDescriptionOfATable(t *testing.T) {
	for name, answers := range map[string]sim.Answers{
		"a new table is missing": {NewTableMissing: 300 * time.Millisecond},
		"no bounds":              {HideBounds: true},
		"places are machines":    {HideBounds: true, Locations: sim.LocateNodes},
		"places are blocks":      {HideBounds: true, Locations: sim.LocateBlocks},
		"places have no names":   {HideBounds: true, Locations: sim.LocateNothing},
	} {
		for _, template := range []string{"", "t_{bucket(id, 3)}"} {
			t.Run(name+" "+template, virtual(func(t *testing.T, w *world) {
				w.template = template
				text := numbered("k", 1000)
				simulated := server.Simulation{Config: sim.Config{Partitions: 6, Answers: answers}}
				must(t, w.server.Sim().Simulate("", simulated))
				for range 2 { // into a new table, and into one that is there
					cfg := w.config(w.file("in.csv", text))
					cfg.surveyEvery = 10 * time.Millisecond
					if r := w.load(cfg); r.Written != 1000 || r.State != StateFinished {
						t.Errorf("%+v", r)
					}
				}
				want := lastOf(t, text)
				w.wantRows(want)
			}))
		}
	}
}
