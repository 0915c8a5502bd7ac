package pipeline

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/ratelimit"
)

// What is cut and not sent while the last checkpoint counts is not sent at all: the attempt that resumes would take it for
// settled.
func TestARequestDelayedByAPauseIsNotSent(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		cfg := w.config(w.file("in.csv", "id,a\nx,1\n"))
		cfg.keeping.KeptFor, cfg.Checkpoint.Every = 100*time.Millisecond, 5*time.Millisecond
		var tries, requests atomic.Int64
		cfg.onSend = func([]table.Ref) {
			if tries.Add(1) == 1 {
				time.Sleep(2 * cfg.keeping.KeptFor)
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

// A process that is stopped for hours while a checkpoint is being written has not tried to write one meanwhile.
func TestAPauseWhileACheckpointIsWrittenEndsNoLoad(t *testing.T) {
	now := time.Unix(1e9, 0)
	d := &dispatcher{stopper: newStopper(func() {}), checkpointer: &keep.Checkpointer{
		Schedule: &keep.Schedule{Busy: true}, Patience: ratelimit.Patience{For: time.Minute}, Failed: errors.New("the disk is full"),
	}}
	d.keep(now)
	for range 3 {
		now = now.Add(5 * time.Hour)
		if d.keep(now); d.stopper.stopped() {
			t.Fatalf("the load fails because of a pause: %v", d.stopper.cause)
		}
	}
	for range 8 {
		now = now.Add(d.checkpointer.Patience.LookEvery())
		d.keep(now)
	}
	if !d.stopper.stopped() || !strings.Contains(d.stopper.cause.Error(), "no checkpoint could be written for 1m0s: the disk is full") {
		t.Errorf("a load without checkpoints: %v", d.stopper.cause)
	}
}

// A delete under the condition that the row exists is refused when its own first attempt, whose answer was lost, has deleted it.
func TestADeleteThatMayBeDoneIsRejectedAndSaysSo(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		w.load(w.config(w.file("rows.csv", "id,n\na,1\nb,2\n")))
		for i, tt := range []struct {
			fault faults.Action
			maybe int64
		}{{faults.DropAfter, 1}, {faults.None, 0}} {
			cfg := w.config(w.file("keys.csv", "id\na\n"))
			cfg.Write.Mode, cfg.Write.Condition, cfg.Target.Key, cfg.Target.Create = table.Delete, table.ExpectExist, nil, false
			cfg.RunDir += string(rune('1' + i))
			w.failNext(faults.Fault{Action: tt.fault})
			r := w.load(cfg)
			if r.Rejected != 1 || r.MaybeApplied != tt.maybe {
				t.Errorf("first answer %v: %d rejected, %d of them maybe applied", tt.fault, r.Rejected, r.MaybeApplied)
			}
			reasons := strings.Join(lines(t, cfg.RunDir+"/rejects.jsonl"), "\n")
			if got := strings.Contains(reasons, `"maybe_applied":true`); got != (tt.maybe > 0) {
				t.Errorf("first answer %v: %s", tt.fault, reasons)
			}
		}
	})
}

// Who is a second off is told.
func TestTheClockIsWarnedOfFromASecondOn(t *testing.T) {
	for ahead, want := range map[time.Duration]string{
		500 * time.Millisecond: "", -500 * time.Millisecond: "", 1600 * time.Millisecond: "behind the service's", -1600 * time.Millisecond: "ahead of the service's",
	} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			w := skewed(t, func() time.Duration { return ahead })
			cfg := w.versioned("id,a\nx,old\n")
			var warnings []string
			cfg.Watch.OnPlan = func(p *plan.Plan) { warnings = p.Warnings }
			w.load(cfg)
			cfg.RunDir += "2"
			w.load(cfg)
			text := strings.Join(warnings, "\n")
			if want == "" && strings.Contains(text, "clock") || !strings.Contains(text, want) {
				t.Errorf("warnings %q", warnings)
			}
		})
	}
}
