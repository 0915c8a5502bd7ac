package pipeline

import (
	"fmt"
	"testing"
	"time"

	"tsimport/engine/faults"
	"tsimport/engine/server"
)

// choose makes the embedded service answer where the real one's documentation leaves it open.
func (w *world) choose(c server.Choices) {
	w.t.Helper()
	must(w.t, w.server.Sim().Simulate("", server.Simulation{Choices: c}))
}

// Whether the lower edge of the window of timestamps is taken or refused, the service decides: such a row is written, or
// rejected with what the service said.
func TestATimestampAtTheLowerEdgeIsTheServicesToJudge(t *testing.T) {
	for _, exclusive := range []bool{false, true} {
		now := time.Now().Truncate(time.Second).Add(500 * time.Millisecond)
		w := &world{t: t, dir: t.TempDir(), plan: new(faults.Plan)}
		s, err := server.Open("", server.Options{InMemory: true, Now: func() time.Time { return now }})
		must(t, err)
		defer s.Close()
		w.server = s
		w.choose(server.Choices{ExclusiveLowerEdge: exclusive})
		edge := now.Truncate(time.Second).Add(-1000 * time.Second).UnixMilli()
		cfg := w.config(w.file("in.csv", fmt.Sprintf("id,at,a\nin,%d,1\nedge,%d,2\nout,%d,3\n", edge+1000, edge, edge-60_000)))
		cfg.Target.Define.MaxDeviation = 1000
		cfg.Read.Convert.VersionColumn, cfg.Columns.Exclude = "at", []string{"at"}
		r := w.load(cfg)
		want := contents{"in": {"a": "1"}, "edge": {"a": "2"}}
		if exclusive {
			delete(want, "edge")
		}
		got := w.rowsOf("t")
		if len(got) != len(want) || got["edge"]["a"] != want["edge"]["a"] || r.Written != int64(len(want)) || r.Rejected != int64(3-len(want)) {
			t.Errorf("exclusive %v: %v, %d written, %d rejected: %q", exclusive, got, r.Written, r.Rejected, lines(t, cfg.RunDir+"/rejects.jsonl"))
		}
	}
}
