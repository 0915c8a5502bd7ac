package faults

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestOnlyMatchingRequestsAreCounted(t *testing.T) {
	p := &Plan{Decide: func(r Request) Fault {
		if r.N == 1 {
			return Fault{Action: DropAfter}
		}
		return Fault{}
	}}
	for i, op := range []string{"BatchWriteRow", "GetRow", "BatchWriteRow", "BatchWriteRow"} {
		if got := p.Next(op, 1).Action; (got == DropAfter) != (i == 2) {
			t.Errorf("request %d: action %d", i, got)
		}
	}
	if p.Requests() != 3 {
		t.Error(p.Requests())
	}
}

func TestNoPlanHasNoFaults(t *testing.T) {
	var p *Plan
	if f := p.Next("BatchWriteRow", 1); f.Action != None {
		t.Error(f)
	}
}

func TestWaitLateWaitsForTheLastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Plan{}
		p.WaitLate()
		p.Begin()
		p.Begin()
		done := false
		go func() { p.WaitLate(); done = true }()
		p.End()
		synctest.Wait()
		if done {
			t.Error("it did not wait for the second")
		}
		p.End()
		synctest.Wait()
		if !done || p.Late() != 0 {
			t.Error("it still waits")
		}
	})
}

func TestLaterRequestsWaitForWhatIsDecidedTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Plan{Within: time.Second}
		came := time.Now()
		kept := p.Promise(came)
		p.Await(came.Add(999 * time.Millisecond)) // it may still be applied: nobody waits
		passed := false
		go func() {
			p.Await(came.Add(time.Second))
			passed = true
		}()
		synctest.Wait()
		if passed {
			t.Error("a request passed one that was not decided in time")
		}
		kept()
		synctest.Wait()
		if !passed {
			t.Error("a request waits for one that is decided")
		}
		p.Await(came.Add(time.Hour))
	})
}
