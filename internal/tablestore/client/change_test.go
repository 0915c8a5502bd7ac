package client

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

// clocked is an embedded service with a clock of its own and a table t.
func clocked(t *testing.T, now *time.Time, plan *faults.Plan) *Admin {
	t.Helper()
	s := engine(t, server.Options{Faults: plan, Now: func() time.Time { return *now }})
	a := admin(t, of(s))
	must(t, a.Create("t", []table.KeyColumn{{Name: "s", Type: table.String}}, table.Definition{TimeToLive: 86400, MaxVersions: 3, MaxDeviation: 1000}))
	return a
}

func TestReservedThroughputIsChangedOnceInAnInterval(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	a := clocked(t, &now, nil)
	created := now
	adjusted := func(want time.Time) {
		t.Helper()
		if got, err := a.Adjusted("t"); err != nil || !got.Equal(want) {
			t.Errorf("adjusted at %v, %v; want %v", got, err, want)
		}
	}
	adjusted(created)
	now = now.Add(10 * time.Second)
	must(t, a.Reserve("t", 5, 7))
	adjusted(now)
	first := now
	now = now.Add(time.Minute)
	conformance.Is(t, a.Reserve("t", 5, 6), ErrTooFrequent, "a minute later")
	adjusted(first)
	now = now.Add(time.Minute)
	conformance.Equal(t, a.Reserve("t", 5, 6), nil, "two minutes later")
	adjusted(now) // a decrease
	got, err := a.Describe("t")
	if err != nil || got.ReservedRead != 5 || got.ReservedWrite != 6 || got.TimeToLive != 86400 || got.MaxVersions != 3 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestChangesOfTablesSurvivePassingFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, f := range []faults.Fault{{Action: faults.Refuse, Code: "OTSServerBusy"}, {Action: faults.AnswerErrorAfter, Code: "OTSTimeout"}} {
			failed := map[string]int{}
			plan := &faults.Plan{Only: func(op string) bool { return op != "CreateTable" }, Decide: func(r faults.Request) faults.Fault {
				if failed[r.Operation]++; failed[r.Operation]%2 == 1 {
					return f
				}
				return faults.Fault{}
			}}
			now := time.Now()
			a := clocked(t, &now, plan)
			for what, change := range map[string]func() error{
				"options": func() error { return a.SetOptions("t", -1, 1) }, "throughput": func() error { return a.Reserve("t", 1, 2) },
				"an update": func() error { return a.Update("t", Change{MaxDeviation: new(int64(7))}) },
				"adjusted":  func() error { _, err := a.Adjusted("t"); return err },
			} {
				conformance.Equal(t, change(), nil, "%s after %s", what, f.Code)
			}
			if failed["UpdateTable"] != 6 || failed["DescribeTable"] != 2 {
				t.Errorf("requests: %v", failed)
			}
			want := table.Definition{TimeToLive: -1, MaxVersions: 1, MaxDeviation: 7, ReservedRead: 1, ReservedWrite: 2}
			if got, err := a.Describe("t"); err != nil || got.Definition != want {
				t.Errorf("%+v, %v", got, err)
			}
			now = now.Add(ThroughputInterval)
			failed["UpdateTable"] = 0
			if err := a.Update("t", Change{ReservedWrite: number(5)}); err != nil || failed["UpdateTable"] != 2 {
				t.Errorf("an update of the throughput after %s: %v, %v", f.Code, err, failed)
			}
			if got, err := a.Describe("t"); err != nil || got.ReservedWrite != 5 {
				t.Errorf("%+v, %v", got, err)
			}
		}
	})
}

func TestAMissingTableCannotBeChanged(t *testing.T) {
	now := time.Now()
	a := clocked(t, &now, nil)
	_, adjusted := a.Adjusted("none")
	for what, err := range map[string]error{"options": a.SetOptions("none", -1, 1), "throughput": a.Reserve("none", 1, 1), "adjusted": adjusted} {
		conformance.Is(t, err, ErrNoTable, "%s", what)
	}
}

func TestWhenThroughputWasChangedIsReadFromTheAnswer(t *testing.T) {
	described := unhex(t, described)
	details := func(fields ...uint64) []byte { // number, value …, after the required units
		body := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte{0x08, 0, 0x10, 0})
		for i := 0; i < len(fields); i += 2 {
			body = protowire.AppendVarint(protowire.AppendTag(body, protowire.Number(fields[i]), protowire.VarintType), fields[i+1])
		}
		return protowire.AppendBytes(protowire.AppendTag(described[:len(described):len(described)], 2, protowire.BytesType), body)
	}
	for _, tt := range []struct {
		answer []byte
		want   int64
	}{
		{described, 1700000000}, {details(2, 1700000005, 3, 1700000009), 1700000009}, {details(2, 1700000009, 3, 1700000005), 1700000009},
	} {
		a, _ := answering(t, 200, tt.answer)
		if got, err := a.Adjusted("t1"); err != nil || got.Unix() != tt.want {
			t.Errorf("%v, %v; want %d", got, err, tt.want)
		}
	}
	a, _ := answering(t, 200, []byte("<html>"))
	if got, err := a.Adjusted("t1"); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, %v", got, err)
	}
}

// TestATableIsAsAChangeMakesItInEveryPart has tables that differ from a change in one part, first, in the middle and last.
func TestATableIsAsAChangeMakesItInEveryPart(t *testing.T) {
	number, seconds, yes := 7, int64(7), true
	whole := Change{&number, &number, &number, &number, &seconds, &yes}
	made := func(differs func(*Table)) *Table {
		of := &Table{}
		of.ReservedRead, of.ReservedWrite, of.TimeToLive, of.MaxVersions, of.MaxDeviation = 7, 7, 7, 7, 7
		differs(of)
		return of
	}
	for name, differs := range map[string]func(*Table){
		"reserved reads": func(of *Table) { of.ReservedRead = 8 }, "reserved writes": func(of *Table) { of.ReservedWrite = 8 },
		"time to live": func(of *Table) { of.TimeToLive = 8 }, "versions": func(of *Table) { of.MaxVersions = 8 },
		"deviation": func(of *Table) { of.MaxDeviation = 8 }, "updates": func(of *Table) { of.NoUpdates = true },
	} {
		if whole.madeOf(made(differs)) {
			t.Errorf("%s: a table of others is as the change makes it", name)
		}
		if none := new(Change); !none.madeOf(made(differs)) {
			t.Errorf("%s: what a change leaves alone may be anything", name)
		}
	}
	if !whole.madeOf(made(func(*Table) {})) {
		t.Error("a table with all parts is not as the change makes it")
	}
}

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
	conformance.Is(t, a.Update("t", Change{ReservedWrite: number(6), MaxVersions: number(9)}), ErrTooFrequent, "update")
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
