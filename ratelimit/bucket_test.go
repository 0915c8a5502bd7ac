package ratelimit

import (
	"math"
	"testing"
	"time"
)

func TestABucketGoesIntoDebtAndTheNextTakerPays(t *testing.T) {
	now := time.Unix(1000, 0)
	b := NewBucket(100, time.Second)
	if w := b.Wait(now); w != 0 {
		t.Fatalf("a new bucket makes wait for %v", w)
	}
	b.Take(now, 250)
	if w := b.Wait(now); w != 2500*time.Millisecond {
		t.Errorf("in debt by 250 at 100 a second: %v", w)
	}
	if w := b.Wait(now.Add(2500 * time.Millisecond)); w != 0 {
		t.Errorf("the debt is paid, and yet %v", w)
	}
}

func TestABucketKeepsNoMoreThanItsBurst(t *testing.T) {
	now := time.Unix(1000, 0)
	b := NewBucket(100, time.Second)
	b.Wait(now)
	now = now.Add(time.Hour)
	b.Take(now, 150)
	if w := b.Wait(now); w != 500*time.Millisecond {
		t.Errorf("150 of a burst of 100: %v", w)
	}
	b.Take(now, math.Inf(1))
	b.Take(now, math.NaN())
	b.Take(now, -5)
	if w := b.Wait(now); w != 500*time.Millisecond {
		t.Errorf("nonsense was taken: %v", w)
	}
	if w := b.Wait(now.Add(-time.Hour)); w != 500*time.Millisecond {
		t.Errorf("a clock that went back: %v", w)
	}
	b.Take(now, 1e15)
	if w := b.Wait(now); w != longest {
		t.Errorf("a wait without bounds: %v", w)
	}
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
