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
	now := time.Unix(0, 0)
	look := func(seconds int) (over bool) {
		for range seconds {
			over = p.Over(now)
			now = now.Add(time.Second)
		}
		return over
	}
	if look(61) {
		t.Error("over too early")
	}
	p.Progress(now)
	if look(61) {
		t.Error("progress did not count")
	}
	if !look(1) {
		t.Error("not over after a minute without progress")
	}
	for ever := (Patience{}); ever.Over(now) || ever.Over(now.Add(1000*time.Hour)); {
		t.Fatal("no limit ran out")
	}
}

func TestAPauseOfTheProcessCostsLittlePatience(t *testing.T) {
	p := Patience{For: time.Minute}
	now := time.Unix(0, 0)
	p.Progress(now)
	for range 3 {
		if now = now.Add(1000 * time.Hour); p.Over(now) {
			t.Fatal("a pause was mistaken for time without progress")
		}
	}
	now = now.Add(-2 * time.Hour) // a clock that was set back
	if p.Over(now) {
		t.Fatal("over although the clock went back")
	}
	for range 3 {
		now = now.Add(time.Minute / 4)
		p.Over(now)
	}
	if !p.Over(now.Add(time.Second)) {
		t.Error("attempts without progress do not count")
	}
}

func TestTheShortestPatienceRunsOutToo(t *testing.T) {
	p := Patience{For: time.Nanosecond}
	now := time.Now()
	for range 10 {
		if p.Over(now) {
			return
		}
		now = now.Add(time.Second)
	}
	t.Error("a nanosecond is not over after ten seconds")
}
