package ratelimit

import (
	"testing"
	"time"
)

func TestBackoffGrowsStaysBoundedAndIsSpread(t *testing.T) {
	b := Backoff{Base: 100 * time.Millisecond, Max: 2 * time.Second}
	for attempt, full := range map[int]time.Duration{
		1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 5: 1600 * time.Millisecond, 6: 2 * time.Second, 1000: 2 * time.Second,
	} {
		different := map[time.Duration]bool{}
		for range 100 {
			d := b.After(attempt)
			if d < full/2 || d > full {
				t.Fatalf("attempt %d waits %v, want %v to %v", attempt, d, full/2, full)
			}
			different[d] = true
		}
		if len(different) < 10 {
			t.Errorf("attempt %d: %d different times in 100", attempt, len(different))
		}
	}
}

func TestPatienceRunsOutOnlyWithoutProgress(t *testing.T) {
	p := Patience{For: time.Minute}
	start := time.Unix(0, 0)
	if p.Over(start) || p.Over(start.Add(time.Minute)) {
		t.Error("over too early")
	}
	p.Progress(start.Add(30 * time.Second))
	if p.Over(start.Add(90 * time.Second)) {
		t.Error("progress did not count")
	}
	if !p.Over(start.Add(91 * time.Second)) {
		t.Error("not over after a minute without progress")
	}
	if left, ok := p.Left(start.Add(60 * time.Second)); !ok || left != 30*time.Second {
		t.Errorf("left %v", left)
	}
	for ever := (Patience{}); ever.Over(start) || ever.Over(start.Add(1000*time.Hour)); {
		t.Fatal("no limit ran out")
	}
}
