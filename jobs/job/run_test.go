package job

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
)

// recordOf makes a job of loads: a name, and after a colon those it comes after.
func recordOf(parallel int, loads ...string) *Record {
	r := &Record{Version: Version, Parallel: parallel}
	for _, text := range loads {
		name, after, _ := strings.Cut(text, ":")
		r.Loads = append(r.Loads, &State{Single: Single{Name: name, Command: Load, After: strings.Fields(after)}, State: Waiting})
	}
	return r
}

func states(r *Record) (all []string) {
	for _, s := range r.Loads {
		all = append(all, s.Name+" "+s.State)
	}
	return all
}

func TestLoadsRunInTheirOrderAndNoMoreThanMayAtATime(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := recordOf(2, "a:d", "b", "c", "d", "e:a b")
		var mu sync.Mutex
		now, most := 0, 0
		var order []string
		err := r.Run(t.Context(), dir, func(_ context.Context, s *State) Outcome {
			mu.Lock()
			now++
			most = max(most, now)
			order = append(order, s.Name)
			takes := time.Duration(len(order)) * time.Second
			mu.Unlock()
			time.Sleep(takes)
			mu.Lock()
			now--
			mu.Unlock()
			return Outcome{Counts: Counts{Read: 2, Written: 1, Rejected: 1}, ExitCode: 3}
		}, nil)
		if err != nil || most != 2 || r.ExitCode != 3 || r.State != Done || r.Unfinished() || r.Read != 10 || r.Written != 5 {
			t.Errorf("%v, %d at a time, code %d, %s, %+v", err, most, r.ExitCode, r.State, r.Counts)
		}
		at := func(name string) int { return slices.Index(order, name) }
		if len(order) != 5 || at("a") < at("d") || at("e") != 4 {
			t.Errorf("order %v", order)
		}
	})
}

// TestARecordIsReadAsItWasWhenItsProcessWasKilled: each load that begins sees how those before it have ended, though the record is not written again.
func TestARecordIsReadAsItWasWhenItsProcessWasKilled(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, ChangesFile), []byte(`{"of":"an earlier process","load":1,"state":{"state":"done"}}`+"\n"), 0o600))
	r := recordOf(1, "a", "b", "c")
	r.Loads[1].From = []string{"b.csv"}
	want := map[string][]string{"a": {"a running", "b waiting", "c waiting"}, "b": {"a done", "b running", "c waiting"}, "c": {"a done", "b failed", "c running"}}
	whole := ""
	err := r.Run(t.Context(), dir, func(_ context.Context, s *State) Outcome {
		text, err := os.ReadFile(filepath.Join(dir, FolderFile))
		must(t, err)
		if whole == "" {
			whole = string(text)
		}
		is, err := ReadRecord(dir)
		must(t, err)
		if got := states(is); !slices.Equal(got, want[s.Name]) || is.Loads[1].From[0] != "b.csv" || !is.Unfinished() || string(text) != whole {
			t.Errorf("while %s runs: %q, %+v", s.Name, got, is.Loads[1])
		}
		if s.Name == "c" {
			f, err := os.OpenFile(filepath.Join(dir, ChangesFile), os.O_APPEND|os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteString(`{"of":"` + is.Changes + `","load":2,"state":{"state":"done"}}`) // of which the end is missing
			must(t, errors.Join(err, f.Close()))
			if is, err = ReadRecord(dir); err != nil || is.Loads[2].State != Running || is.Loads[1].Read != 7 || is.Loads[1].Error != "no" {
				t.Errorf("a line that was cut counts: %v, %+v", err, is.Loads[1])
			}
		}
		if s.Name == "b" {
			return Outcome{ExitCode: 1, Error: "no", Counts: Counts{Read: 7}}
		}
		return Outcome{}
	}, nil)
	is, readErr := ReadRecord(dir)
	if _, statErr := os.Stat(filepath.Join(dir, ChangesFile)); err != nil || readErr != nil || !slices.Equal(states(is), []string{"a done", "b failed", "c done"}) || is.State != Failed || !errors.Is(statErr, fs.ErrNotExist) {
		t.Errorf("%v, %v, %v, %q", err, readErr, statErr, states(is))
	}
}

func TestLoadsAfterOneThatFailedAreNotRun(t *testing.T) {
	dir := t.TempDir()
	r := recordOf(1, "c:b", "b:a", "a", "d", "e:d")
	codes := map[string]int{"a": 1, "d": 3}
	run := func(_ context.Context, s *State) Outcome { return Outcome{ExitCode: codes[s.Name]} }
	must(t, r.Run(t.Context(), dir, run, nil))
	if got, want := states(r), []string{"c not run", "b not run", "a failed", "d done", "e done"}; !slices.Equal(got, want) || r.ExitCode != 1 || !r.Unfinished() {
		t.Errorf("%q, code %d, want %q", got, r.ExitCode, want)
	}
	// Once more: only what is not done.
	kept, err := ReadRecord(dir)
	must(t, err)
	codes["a"] = 0
	var again []string
	err = kept.Run(t.Context(), dir, func(ctx context.Context, s *State) Outcome {
		again = append(again, s.Name)
		return run(ctx, s)
	}, nil)
	if err != nil || !slices.Equal(again, []string{"a", "b", "c"}) || kept.ExitCode != 3 || kept.Unfinished() {
		t.Errorf("%v, %v, code %d", err, again, kept.ExitCode)
	}
}

func TestAJobThatIsStoppedStartsNoMore(t *testing.T) {
	for code, want := range map[int]struct {
		state string
		code  int
	}{143: {Stopped, 143}, 0: {Done, 1}, 3: {Done, 1}} { // 3 would say that all that can be loaded is
		ctx, stop := context.WithCancel(t.Context())
		r := recordOf(1, "a", "b")
		err := r.Run(ctx, t.TempDir(), func(context.Context, *State) Outcome {
			stop()
			return Outcome{ExitCode: code}
		}, nil)
		if got := states(r); err != nil || !slices.Equal(got, []string{"a " + want.state, "b waiting"}) || r.State != Stopped || r.ExitCode != want.code {
			t.Errorf("%v, %q, %s, code %d, want %d", err, got, r.State, r.ExitCode, want.code)
		}
	}
}

// Loads that take what is new do not wait for others to be done.
func TestLoadsThatComeAgainAreBegunAgainBesideOnesThatHaveFailed(t *testing.T) {
	nightly := []Setting{{Key: "only-new", Values: []string{"true"}}}
	for _, failed := range []bool{true, false} {
		r := recordOf(1, "new", "whole", "failed")
		for i, s := range r.Loads {
			s.Command, s.State = Load, []string{Done, Done, Failed}[i]
		}
		r.Loads[0].Settings, r.Loads[0].Written = nightly, 7
		n := r.BeginAgain(failed)
		want := []string{"new waiting", "whole done", "failed failed"}
		if failed {
			want[1] = "whole waiting"
		}
		if got := states(r); !slices.Equal(got, want) || n != strings.Count(strings.Join(got, ","), "waiting") || r.Loads[0].Written != 0 {
			t.Errorf("failed %v: %q, %d begun again", failed, got, n)
		}
	}
	r := recordOf(1, "a", "b")
	if n := r.BeginAgain(true); n > 0 {
		t.Errorf("%d loads that do not come again are begun again", n)
	}
	r.Loads[0].State, r.Loads[1].State = Failed, Done
	if r.Restart([]string{"a"}); !r.Loads[0].Fresh || r.Loads[0].State != Waiting || r.Loads[1].State != Done {
		t.Errorf("%v", states(r))
	}
	next := recordOf(1, "a", "b") // the process was stopped before it came to them
	if err := next.Continue(r); err != nil || !next.Loads[0].Fresh {
		t.Errorf("%v, %v", err, next.Loads[0])
	}
}

func TestALoadThatHasBegunIsNotChangedUnderway(t *testing.T) {
	before := recordOf(1, "a", "b", "c", "d")
	for i, s := range before.Loads {
		s.Digest, s.State = "1", []string{Done, Stopped, Waiting, Failed}[i]
	}
	before.Loads[3].ExitCode, before.Loads[3].Read = 1, 100
	now := recordOf(1, "a", "b", "c", "d")
	for _, s := range now.Loads {
		s.Digest = "1"
	}
	now.Loads[2].Digest, now.Loads[3].Digest = "2", "2" // one has not begun, one has failed
	if err := now.Continue(before); err != nil || now.Loads[0].State != Done || now.Loads[2].Changed || !now.Loads[3].Changed {
		t.Errorf("%v, %q, %v", err, states(now), now.Loads[3])
	}
	for i, name := range []string{"a", "b"} {
		now := recordOf(1, "a", "b", "c", "d")
		for _, s := range now.Loads {
			s.Digest = "1"
		}
		now.Loads[i].Digest = "2"
		conformance.Refused(t, now.Continue(before), "load "+name+" was changed", "error")
	}
	begun := map[string]string{}
	for _, keys := range []string{"max-errors: 1", "max-errors: 9", "pk: [id]"} {
		f, err := Parse("job.yaml", []byte("version: 1\nloads: {a: {from: x.csv, table: t, "+keys+"}}"), small)
		must(t, err)
		r, err := NewRecord(f, nil, os.LookupEnv)
		must(t, err)
		begun[keys] = r.Loads[0].Digest
	}
	if begun["max-errors: 1"] != begun["max-errors: 9"] || begun["pk: [id]"] == begun["max-errors: 1"] {
		t.Errorf("a load that has passed its error limit is resumed with a higher one, and with nothing else: %v", begun)
	}
	conformance.Refused(t, recordOf(1).Continue(before), "load b has begun and is not in the job any more", "error")
}

func TestALoadTakesAsLongAsItsLastAttempt(t *testing.T) {
	monday := time.Date(2026, 11, 23, 4, 0, 0, 0, time.UTC)
	tuesday := monday.Add(24 * time.Hour)
	for _, c := range []struct {
		resumed, ended time.Time
		want           time.Duration
	}{{time.Time{}, monday.Add(time.Minute), time.Minute}, {tuesday, tuesday.Add(time.Second), time.Second}} {
		conformance.Equal(t, (&State{Started: monday, Resumed: c.resumed, Ended: c.ended}).Took(), c.want, "took")
	}
}
