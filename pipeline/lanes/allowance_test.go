package lanes

import (
	"math"
	"testing"
)

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
