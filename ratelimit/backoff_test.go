package ratelimit

import (
	"math"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
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
	shortest := Patience{For: time.Nanosecond}
	for i := range 10 {
		if over := shortest.Over(now.Add(time.Duration(i) * time.Second)); i == 9 && !over {
			t.Error("a nanosecond is not over after ten seconds")
		}
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

func TestABucketKeepsNoMoreThanItsBurstAndItsTakersPayTheirDebt(t *testing.T) {
	now := time.Unix(1000, 0)
	b := NewBucket(100, time.Second)
	if w := b.Wait(now); w != 0 {
		t.Fatalf("a new bucket makes wait for %v", w)
	}
	b.Take(now, 250)
	if now := now.Add(2500 * time.Millisecond); b.Wait(now.Add(-time.Second)) != time.Second || b.Wait(now) != 0 {
		t.Errorf("in debt by 250 at 100 a second: %v", b.Wait(now))
	}
	now = now.Add(time.Hour)
	b.Take(now, 150)
	conformance.Equal(t, b.Wait(now), 500*time.Millisecond, "150 of a burst of 100")
	b.Take(now, math.Inf(1))
	b.Take(now, math.NaN())
	b.Take(now, -5)
	conformance.Equal(t, b.Wait(now), 500*time.Millisecond, "nonsense was taken")
	conformance.Equal(t, b.Wait(now.Add(-time.Hour)), 500*time.Millisecond, "a clock that went back")
	b.Take(now, 1e15)
	conformance.Equal(t, b.Wait(now), longest, "a wait without bounds")
}

func TestABucketWithoutARateNeverMakesAnyoneWait(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		b := NewBucket(rate, time.Second)
		b.Take(time.Unix(1000, 0), 1e9)
		if b != nil || b.Wait(time.Unix(1000, 0)) != 0 || b.Rate() != 0 {
			t.Errorf("rate %v gives %+v", rate, b)
		}
	}
}
