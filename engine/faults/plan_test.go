package faults

import (
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
)

func TestOnlyMatchingRequestsAreCounted(t *testing.T) {
	p := &Plan{Decide: func(r Request) Fault {
		if r.N == 1 {
			return Fault{Action: DropAfter}
		}
		return Fault{}
	}}
	for i, op := range []string{"BatchWriteRow", "GetRow", "BatchWriteRow", "BatchWriteRow"} {
		conformance.Equal(t, (p.Next(op, 1).Action == DropAfter), i == 2, "request %d: action", i)
	}
	conformance.Equal(t, p.Requests(), 3, "requests")
}

func TestNoPlanHasNoFaults(t *testing.T) {
	var p *Plan
	conformance.Equal(t, p.Next("BatchWriteRow", 1).Action, None, "action")
}

func TestWaitLateWaitsForTheLastOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Plan{}
		p.WaitLate()
		first, second := p.Begin(time.Now()), p.Begin(time.Now())
		done := false
		go func() { p.WaitLate(); done = true }()
		first()
		synctest.Wait()
		if done {
			t.Error("it did not wait for the second")
		}
		second()
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
		kept := p.Begin(came)
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

func TestAnOutageBefallsEveryRequestForItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kind, want := range map[string][]Action{
			Busy: {Refuse, Refuse}, Throttle: {RefuseRows, RefuseRows}, Timeout: {Hang, Hang}, Reset: {DropBefore, DropAfter}, Page503: {BadBody, BadBody},
		} {
			o, err := ParseOutage("1.5:" + kind + ":2")
			if err != nil || o.String() != "1.5:"+kind+":2" {
				t.Fatal(o, err)
			}
			p := &Plan{Outage: o}
			at := func(op string) Fault { return p.Next(op, 1) }
			if at("DescribeTable").Action != None || at("BatchWriteRow").Action != None {
				t.Errorf("%s: begins too early", kind)
			}
			time.Sleep(2 * time.Second)
			first, second := at("DescribeTable"), at("BatchWriteRow")
			if first.Action != want[0] || second.Action != want[1] {
				t.Errorf("%s: %v and %v", kind, first.Action, second.Action)
			}
			if kind == Timeout && first.Applied == second.Applied {
				t.Error("one of two requests without an answer is not applied, or both are not")
			}
			if kind == Throttle && second.RowCode(0) == "" {
				t.Error("a row is taken")
			}
			time.Sleep(1500 * time.Millisecond)
			conformance.Equal(t, at("BatchWriteRow").Action, None, "%s: fault afterwards", kind)
		}
	})
}

func TestOutagesThatAreNoneAreRefused(t *testing.T) {
	for _, text := range []string{"", "5", "busy", "0:busy", "-1:busy", "5:nap", "5:busy:x", "5:busy:1:1", "NaN:busy", "1e9:busy"} {
		if _, err := ParseOutage(text); err == nil {
			t.Errorf("%q is an outage", text)
		}
	}
}
