package pipeline

import (
	"math"
	"testing"
	"time"
)

func TestACheckpointIsDueAtOnceThenEverySecond(t *testing.T) {
	now := time.Unix(1e9, 0)
	s := &schedule{keptFor: keptFor}
	if !s.awaitsFirst() || s.due(now) != 0 || s.mayWait(now) == 0 || !s.sendUntil().IsZero() {
		t.Errorf("before the first checkpoint: %+v", s)
	}
	s.built = now
	s.saving()
	if s.due(now) != math.MaxInt64 {
		t.Error("a second one is due while the first is on its way")
	}
	s.busy, s.last = false, now
	if s.due(now) != keepEvery || s.mayWait(now) != 0 || s.awaitsFirst() || !s.sendUntil().Equal(now.Add(keptFor)) {
		t.Errorf("after the first: due in %v", s.due(now))
	}
	if s.soon = true; s.due(now) != keepSoon {
		t.Errorf("a lane that waits: due in %v", s.due(now))
	}
	if s.now = true; s.due(now) != 0 {
		t.Errorf("new lanes: due in %v", s.due(now))
	}
	s.soon, s.now = false, false
	if s.cost = 10 * time.Millisecond; s.due(now) != 2*time.Second {
		t.Errorf("a load that takes long to describe: due in %v", s.due(now))
	}
	if s.cost = time.Second; s.due(now) != keepAtMost {
		t.Errorf("one that takes very long: due in %v", s.due(now))
	}
	if late := now.Add(keptFor); s.mayWait(late) == 0 || s.due(late) != 0 {
		t.Error("rows are sent long after the last checkpoint")
	}
}

func TestALoadThatKeepsNothingWaitsForNoCheckpoint(t *testing.T) {
	var s *schedule
	if now := time.Now(); s.awaitsFirst() || s.mayWait(now) != 0 || s.due(now) != math.MaxInt64 || !s.sendUntil().IsZero() {
		t.Error("it waits")
	}
}

func TestALaneSendsNoMoreThanTheCheckpointAllows(t *testing.T) {
	a := new(allowance)
	a.described(a.following(1))
	if a.left != 0 {
		t.Fatalf("%d rows may leave before the first checkpoint is written", a.left)
	}
	a.saved()
	if a.left != fewAllowance {
		t.Fatalf("%d rows may leave after the first", a.left)
	}
	low := 0
	for a.left > 0 {
		if a.spend() {
			low++
		}
	}
	if low == 0 || low > fewAllowance/4 {
		t.Errorf("the last %d rows ask for a checkpoint", low)
	}
	a.described(a.following(100)) // nothing may leave until it is written
	if a.saved(); a.left != 2*fewAllowance+leastAllowance {
		t.Errorf("%d rows may leave next", a.left)
	}
	a.spend()
	before := a.left
	if a.saved(); a.left != before {
		t.Error("a checkpoint that was not made allows rows")
	}
}

func TestAPartOfALaneInheritsAPartOfItsAllowance(t *testing.T) {
	from := []*lane{{allowance: allowance{taken: 900}}, {allowance: allowance{taken: 50}}}
	a := new(allowance)
	if a.inherit(from, []int{3, 1}, true); a.taken != 350 || a.left != 0 {
		t.Errorf("%+v", a)
	}
	if a.inherit(nil, nil, false); a.left != math.MaxInt64 {
		t.Error("without an order a new lane waits for a checkpoint")
	}
}
