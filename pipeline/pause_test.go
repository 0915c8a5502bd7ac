package pipeline

import (
	"sync/atomic"
	"testing"
	"time"

	"tsimport/engine/faults"
	"tsimport/internal/table"
	"tsimport/ratelimit"
)

// A process that is stopped for hours (Ctrl-Z, a paused container) has tried nothing meanwhile.
func TestAPauseMakesNoLaneHopeless(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := &lane{pacer: restless{}, trouble: trouble{patience: ratelimit.Patience{For: 15 * time.Minute}}}
	fail := func() {
		l.landed(now, now, answer{rows: 1, failed: 1, code: "OTSTimeout"}, ratelimit.Backoff{Base: time.Second, Max: time.Second})
	}
	for range 10 {
		fail()
	}
	for range 3 {
		if now = now.Add(5 * time.Hour); l.hopeless(now) {
			t.Fatal("the load gives up because of a pause")
		}
		fail()
	}
	for range 8 {
		now = now.Add(l.patience.LookEvery())
		l.hopeless(now)
		fail()
	}
	if !l.hopeless(now.Add(time.Second)) {
		t.Error("a lane without progress is never given up")
	}
}

// What is cut and not sent while the last checkpoint counts is not sent at all: the attempt that resumes would take it for
// settled.
func TestARequestDelayedByAPauseIsNotSent(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		cfg := w.config(w.file("in.csv", "id,a\nx,1\n"))
		cfg.keptFor, cfg.Checkpoint.Every = 100*time.Millisecond, 5*time.Millisecond
		var tries, requests atomic.Int64
		cfg.onSend = func([]table.Ref) {
			if tries.Add(1) == 1 {
				time.Sleep(2 * cfg.keptFor)
			}
		}
		w.plan.Only = func(op string) bool { return op == "BatchWriteRow" }
		w.plan.Decide = func(faults.Request) faults.Fault { requests.Add(1); return faults.Fault{} }
		r := w.load(cfg)
		if requests.Load() != tries.Load()-1 || r.Written != 1 {
			t.Errorf("%d requests of %d that were cut, %d rows written", requests.Load(), tries.Load(), r.Written)
		}
	})
}
