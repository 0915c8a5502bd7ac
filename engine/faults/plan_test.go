package faults

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
)

func TestLaterRequestsWaitForOverdueDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Plan{Within: time.Second}
		came := time.Now()
		kept := p.Begin(came)
		p.Await(came.Add(999 * time.Millisecond)) // it may still be applied, so nothing waits
		passed := false
		go func() {
			p.Await(came.Add(time.Second))
			passed = true
		}()
		synctest.Wait()
		conformance.Equal(t, passed, false, "a request passed one that was not decided in time")
		kept()
		synctest.Wait()
		conformance.Equal(t, passed, true, "a request waits for one that is decided")
		p.Await(came.Add(time.Hour))
	})
}

func TestOutageAffectsEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kind, want := range map[string][]Action{
			Busy: {Refuse, Refuse}, Throttle: {RefuseRows, RefuseRows}, Timeout: {Hang, Hang}, Reset: {DropBefore, DropAfter},
			Page503: {BadBody, BadBody},
		} {
			o, err := ParseOutage("1.5:" + kind + ":2")
			conformance.MustTrue(t, err == nil && o.String() == "1.5:"+kind+":2", "%v %v", o, err)
			p := &Plan{Outage: o}
			at := func(op string) Fault { return p.Next(op, 1) }
			conformance.True(t, at("DescribeTable").Action == None && at("BatchWriteRow").Action == None, "%s too early", kind)
			time.Sleep(2 * time.Second)
			first, second := at("DescribeTable"), at("BatchWriteRow")
			conformance.True(t, first.Action == want[0] && second.Action == want[1], "%s: %v, %v", kind, first, second)
			conformance.True(t, kind != Timeout || first.Applied != second.Applied,
				"one of two requests without an answer is not applied, or both are not")
			conformance.True(t, kind != Throttle || second.RowCode(0) != "", "a row is taken")
			time.Sleep(1500 * time.Millisecond)
			conformance.Equal(t, at("BatchWriteRow").Action, None, "%s: fault afterwards", kind)
		}
	})
}

func TestInvalidOutagesAreRefused(t *testing.T) {
	for _, text := range []string{"", "5", "busy", "0:busy", "-1:busy", "5:x", "5:busy:x", "5:busy:1:1", "NaN:busy",
		"1e9:busy"} {
		conformance.Refused(t, conformance.ErrorOf(ParseOutage(text)), "", "%q is an outage", text)
	}
}

func TestRandomPlanInjectsFaultsAtItsRate(t *testing.T) {
	p := conformance.Try(Random{Rate: 0.25, Seed: 7}.Plan()).Must(t)
	hit := 0
	for range 4000 {
		if p.Next("BatchWriteRow", 10).Action != None {
			hit++
		}
	}
	conformance.True(t, hit >= 900 && hit <= 1100, "%d of 4000 requests, want about 1000", hit)
	done := p.Done()
	sum := 0
	for _, name := range Actions() {
		sum += done[names[name]]
		if done[names[name]] == 0 && name != "hang" { // hang is injected only if named
			t.Errorf("no request suffered %s", name)
		}
	}
	conformance.Equal(t, sum, hit, "faults counted")
}

func TestRandomPlanIsReproducible(t *testing.T) {
	draw := func(seed uint64) (list []string) {
		p := conformance.Try(Random{Rate: 0.5, Seed: seed}.Plan()).Must(t)
		for range 100 {
			f := p.Next("PutRow", 5)
			text := f.Action.String() + f.Code
			if f.RowCode != nil {
				for row := range 5 {
					text += "," + f.RowCode(row)
				}
			}
			list = append(list, text)
		}
		return list
	}
	conformance.Same(t, draw(1), draw(1), "two plans of one seed differ")
	conformance.Equal(t, slices.Equal(draw(1), draw(2)), false, "plans of two seeds are the same")
}

func TestFaultKindMayNameCode(t *testing.T) {
	p := conformance.Try(Random{Rate: 1, Kinds: []string{"refuse:OTSTimeout"}}.Plan()).Must(t)
	f := p.Next("DeleteRow", 1)
	conformance.True(t, f.Action == Refuse && f.Code == "OTSTimeout", "%+v", f)
	conformance.Equal(t, p.Next("GetRow", 1).Action, None, "fault of a read")
	p = conformance.Try(Random{Rate: 1, Kinds: []string{"refuse-rows"}}.Plan()).Must(t)
	f = p.Next("BatchWriteRow", 100)
	refused := 0
	for row := range 100 {
		if f.RowCode(row) != "" {
			refused++
		}
	}
	conformance.True(t, refused >= 25 && refused <= 75, "%d of 100 rows refused, want about half", refused)
}

func TestInvalidPlansAreRefused(t *testing.T) {
	for _, r := range []Random{{Rate: -0.1}, {Rate: 1.1}, {Rate: 1, Kinds: []string{"explode"}}, {Rate: 1, Delay: -1}} {
		conformance.Refused(t, conformance.ErrorOf(r.Plan()), "", "%+v: no error", r)
	}
	for _, s := range [][]Step{{{N: -1, Action: "refuse"}}, {{Action: ""}}, {{Action: "refuse"}, {Action: "refuse"}},
		{{Action: "refuse", Delay: -1}}} {
		conformance.Refused(t, conformance.ErrorOf(Scripted(s, nil)), "", "%+v: no error", s)
	}
}
