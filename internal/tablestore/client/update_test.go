package client

import (
	"errors"
	"testing"
	"time"

	"tsimport/internal/table"
)

func number(n int) *int { return &n }

func TestAnUpdateNamesOnlyWhatIsToChange(t *testing.T) {
	now := time.Now()
	a := clocked(t, &now, nil)
	deviation, off := int64(7), false
	want := table.Definition{TimeToLive: 86400, MaxVersions: 3, MaxDeviation: 1000}
	for _, step := range []struct {
		change Change
		apply  func()
	}{
		{Change{ReservedWrite: number(7)}, func() { want.ReservedWrite = 7 }},
		{Change{MaxVersions: number(4)}, func() { want.MaxVersions = 4 }},
		{Change{TimeToLive: number(-1)}, func() { want.TimeToLive = -1 }},
		{Change{MaxDeviation: &deviation}, func() { want.MaxDeviation = 7 }},
		{Change{ReservedRead: number(2), TimeToLive: number(100000)}, func() { want.ReservedRead, want.TimeToLive = 2, 100000 }},
	} {
		now = now.Add(ThroughputInterval)
		must(t, a.Update("t", step.change))
		step.apply()
		if got, err := a.Describe("t"); err != nil || got.Definition != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	must(t, a.Update("t", Change{AllowUpdate: &off}))
	want.NoUpdates = true
	if got, err := a.Describe("t"); err != nil || got.Definition != want {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAChangeThatComesTooSoonChangesNothingAndSaysWhenItMay(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	a := clocked(t, &now, nil)
	must(t, a.Update("t", Change{ReservedWrite: number(5)}))
	now = now.Add(30 * time.Second)
	if err := a.Update("t", Change{ReservedWrite: number(6), MaxVersions: number(9)}); !errors.Is(err, ErrTooFrequent) {
		t.Errorf("%v", err)
	}
	if got, err := a.Describe("t"); err != nil || got.ReservedWrite != 5 || got.MaxVersions != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	due, err := a.Changeable("t", ThroughputInterval, now)
	if err != nil || due.Sub(now) != 91*time.Second {
		t.Errorf("in %v, %v", due.Sub(now), err)
	}
	now = due
	must(t, a.Update("t", Change{ReservedWrite: number(6)}))
}
