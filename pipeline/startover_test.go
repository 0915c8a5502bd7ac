package pipeline

import (
	"testing"
	"time"

	"example.com/tsimport/pipeline/keep"
)

// TestALoadThatIsStartedOverWaitsForTheAttemptBefore: a late request with the old content would come over the new one.
func TestALoadThatIsStartedOverWaitsForTheAttemptBefore(t *testing.T) {
	now := time.Now()
	before := &attempt{cfg: &Config{}, from: &keep.Point{Hold: now.Add(time.Second), SuspectUntil: now.Add(time.Minute)}}
	cfg := before.again(Config{Resume: keep.Resume{Look: true}}, errKilled)
	after := &attempt{cfg: &cfg, started: now}
	cfg.DryRun = true
	must(t, after.findResumePoint(t.Context()))
	if got := after.from.Hold; !got.Equal(now.Add(time.Minute)) || cfg.Resume.Look {
		t.Errorf("nothing is sent until %v, want %v", got, now.Add(time.Minute))
	}
}
