package keep

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source/sourcetest"
)

// steps records the steps of a saver in order, and makes one of them fail.
type steps struct {
	done []string
	fail string
}

func (s *steps) take(name string) error {
	s.done = append(s.done, name)
	if s.fail == name {
		return errors.New(name + " fails")
	}
	return nil
}

// recordedSaver returns a saver with a folder of its own. It has room for all checkpoints of a test.
func recordedSaver(t *testing.T, fail string) (*saver, *steps) {
	taken := &steps{fail: fail}
	s := newSaver(t.TempDir(), func() error { return taken.take("store") },
		func(*checkpoint.Snapshot) error { return taken.take("checkpoint") })
	s.jobs, s.done = make(chan *saving, 2), make(chan Saved, 2)
	return s, taken
}

func at(moment time.Time) *checkpoint.Snapshot {
	s := new(checkpoint.Snapshot)
	s.Job, s.Time, s.Attempt, s.Pieces = "job", moment.UTC(), 1, []checkpoint.Piece{{}}
	return s
}

func TestCheckpointIsWrittenAfterItsFilesAreSynced(t *testing.T) {
	s, taken := recordedSaver(t, "")
	file := conformance.Try(os.Create(filepath.Join(t.TempDir(), "rejects.csv"))).Must(t)
	defer file.Close()
	moment := time.Unix(1e9, 0)
	must(t, s.write(&saving{snapshot: at(moment), files: []*os.File{file}}))
	conformance.Same(t, taken.done, []string{"store", "checkpoint"}, "steps")
	kept, err := checkpoint.Read(s.path)
	conformance.True(t, err == nil && kept.Time.Equal(moment), "kept %+v, %v", kept, err)
}

func TestCheckpointIsNotWrittenIfItsFilesCannotBeSynced(t *testing.T) {
	closed := conformance.Try(os.Create(filepath.Join(t.TempDir(), "rejects.csv"))).Must(t)
	must(t, closed.Close())
	archived := errors.New("the archive is not whole")
	for name, tt := range map[string]struct {
		fail  string
		job   saving
		want  error
		steps []string
	}{
		"an archive that failed":           {job: saving{failed: archived}, want: archived},
		"a file that cannot be synced":     {job: saving{files: []*os.File{closed}}, want: os.ErrClosed},
		"a store that cannot be synced":    {fail: "store", steps: []string{"store"}},
		"a checkpoint that is not allowed": {fail: "checkpoint", steps: []string{"store", "checkpoint"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, taken := recordedSaver(t, tt.fail)
			tt.job.snapshot = at(time.Unix(1e9, 0))
			err := s.write(&tt.job)
			conformance.True(t, err != nil && (tt.want == nil || errors.Is(err, tt.want)) && slices.Equal(taken.done, tt.steps),
				"%v after %q", err, taken.done)
			conformance.Equal(t, checkpoint.Exists(s.path), false, "there is a checkpoint")
		})
	}
}

// Requests are sent only for a while after the moment of the newest checkpoint on disk.
func TestOnlyWrittenCheckpointAllowsMoreRequests(t *testing.T) {
	s, _ := recordedSaver(t, "")
	first, second := time.Unix(1e9, 0), time.Unix(1e9+1, 0)
	failed := errors.New("the archive is not whole")
	s.jobs <- &saving{snapshot: at(first)}
	s.jobs <- &saving{snapshot: at(second), failed: failed}
	close(s.jobs)
	must(t, s.work())
	for i, want := range []Saved{{first.UTC(), nil}, {second.UTC(), failed}} {
		conformance.Equal(t, <-s.done, want, "checkpoint %d", i+1)
	}
	last := s.onDisk.Load()
	conformance.True(t, last != nil && last.Equal(first), "the moment on the disk is %v, want %v", last, first)
}

func TestCheckpointIsDueAtOnceThenEverySecond(t *testing.T) {
	now := time.Unix(1e9, 0)
	s := &Schedule{keptFor: keptFor}
	conformance.True(t, s.AwaitsFirst() && s.Due(now) == 0 && s.MayWait(now) != 0 && s.SendUntil().IsZero(),
		"before the first checkpoint: %+v", s)
	s.built = now
	s.saving()
	conformance.Equal(t, s.Due(now), math.MaxInt64, "a second one is due while the first is on its way")
	s.Busy, s.last = false, now
	conformance.True(t, s.Due(now) == keepEvery && s.MayWait(now) == 0 && !s.AwaitsFirst() &&
		s.SendUntil().Equal(now.Add(keptFor)), "after the first: due in %v", s.Due(now))
	s.soon = true
	conformance.Equal(t, s.Due(now), keepSoon, "a lane that waits: due in")
	s.now = true
	conformance.Equal(t, s.Due(now), 0, "new lanes: due in")
	s.soon, s.now = false, false
	s.cost = 10 * time.Millisecond
	conformance.Equal(t, s.Due(now), 2*time.Second, "a load that takes long to describe: due in")
	s.cost = time.Second
	conformance.Equal(t, s.Due(now), keepAtMost, "one that takes very long: due in")
	late := now.Add(keptFor)
	conformance.True(t, s.MayWait(late) != 0 && s.Due(late) == 0, "rows are sent long after the last checkpoint")
}

func TestLoadWithoutCheckpointsNeverWaits(t *testing.T) {
	var s *Schedule
	now := time.Now()
	conformance.True(t, !s.AwaitsFirst() && s.MayWait(now) == 0 && s.Due(now) == math.MaxInt64 && s.SendUntil().IsZero(),
		"it waits")
}

type countedPosts struct{ posts atomic.Int32 }

func (c *countedPosts) Post(string, func([]byte) []byte) ([]byte, error) {
	c.posts.Add(1)
	return nil, nil
}

func TestNothingIsSentWithoutRecentCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last atomic.Pointer[time.Time]
		halted, halt := context.WithCancel(t.Context())
		sender := new(countedPosts)
		g := &staleGuard{Sender: sender, last: &last, keptFor: keptFor, halted: halted}
		post := func() chan error {
			done := make(chan error, 1)
			go func() {
				_, err := g.Post("BatchWriteRow", nil)
				done <- err
			}()
			synctest.Wait()
			return done
		}
		kept := func() {
			now := time.Now()
			last.Store(&now)
		}
		waiting := post()
		time.Sleep(time.Minute)
		conformance.MustEqual(t, sender.posts.Load(), 0, "requests before the first checkpoint")
		kept()
		err := <-waiting
		conformance.True(t, err == nil && sender.posts.Load() == 1, "after the first checkpoint: %v", err)
		time.Sleep(keptFor) // as if the batch had been cut before, and then delayed
		waiting = post()
		time.Sleep(time.Minute)
		conformance.MustEqual(t, sender.posts.Load(), 1, "requests while the checkpoint is too old")
		halt()
		if err := <-waiting; client.Classify(err) != client.Unavailable || sender.posts.Load() != 1 {
			t.Errorf("when the load stops: %v, and %d requests are sent", err, sender.posts.Load())
		}
	})
}

func TestWaitForPreviousAttempt(t *testing.T) {
	const settle, request = time.Minute, 30 * time.Second
	now := time.Unix(1_800_000_000, 0)
	then := checkpoint.Uptime{Boot: "a", Up: time.Hour}
	for name, tt := range map[string]struct {
		about         checkpoint.About
		uptime        checkpoint.Uptime
		suspect, hold time.Duration
	}{
		"at once": {uptime: checkpoint.Uptime{Boot: "a", Up: time.Hour}, suspect: settle},
		"a while later": {uptime: checkpoint.Uptime{Boot: "a", Up: time.Hour + 340*time.Second},
			suspect: 30 * time.Second},
		"long after":            {about: checkpoint.About{}, uptime: checkpoint.Uptime{Boot: "a", Up: 2 * time.Hour}},
		"after another boot":    {uptime: checkpoint.Uptime{Boot: "b", Up: 2 * time.Hour}, suspect: settle},
		"on an unknown machine": {about: checkpoint.About{}, uptime: checkpoint.Uptime{}, suspect: settle},
		"an older checkpoint": {about: checkpoint.About{Older: true},
			uptime: checkpoint.Uptime{Boot: "a", Up: 2 * time.Hour}, suspect: settle},
		"all is settled": {about: checkpoint.About{Settled: true}, uptime: checkpoint.Uptime{Boot: "b"}},
		"held at once": {about: checkpoint.About{Settled: true, HoldFor: 20 * time.Second},
			uptime: checkpoint.Uptime{Boot: "a", Up: time.Hour}, hold: 20 * time.Second},
		"held, a while later": {about: checkpoint.About{Settled: true, HoldFor: 20 * time.Second},
			uptime: checkpoint.Uptime{Boot: "a", Up: time.Hour + 15*time.Second}, hold: 5 * time.Second},
		"held, another boot": {about: checkpoint.About{Settled: true, HoldFor: 20 * time.Second},
			uptime: checkpoint.Uptime{Boot: "b", Up: time.Hour + 15*time.Second}, hold: 20 * time.Second},
	} {
		// The previous process's wall clock, which may be an hour fast or slow, does not matter.
		for _, wall := range []time.Duration{-time.Hour, 0, time.Hour} {
			tt.about.Time, tt.about.Uptime = now.Add(wall), then
			o := &Point{Snapshot: &checkpoint.Snapshot{About: tt.about}}
			o.settle(now, tt.uptime.Since(then), settle, request)
			wait := func(until time.Time) time.Duration {
				if until.IsZero() {
					return 0
				}
				return max(0, until.Sub(now))
			}
			got, hold := wait(o.SuspectUntil), wait(o.Hold)
			conformance.True(t, got == tt.suspect && hold == tt.hold,
				"%s: rows are suspect for %v, and nothing is sent for %v; want %v and %v", name, got, hold, tt.suspect, tt.hold)
		}
	}
}

func TestUptimeAdvances(t *testing.T) {
	first := checkpoint.Now()
	if first.Boot == "" {
		t.Skip("this system has no clock that counts from its boot")
	}
	d := checkpoint.Now().Since(first)
	conformance.True(t, d >= 0 && d <= time.Hour, "%v between two moments", d)
}

func must(t *testing.T, err error) {
	t.Helper()
	conformance.Must(t, err)
}

// Thousands of parts take bounded memory while their rows wait, and hardly any once the rows are final.
func TestPlacesOfManyPartsAreBounded(t *testing.T) {
	const parts, splits = 10_000, 20
	planned := &plan.Plan{Parallel: true}
	sources := conformance.Try(sourcetest.NewKeyed("keyed", 0).Open(context.Background(), []byte("[0,1]"))).Must(t)
	for i := range parts {
		planned.Sources = append(planned.Sources, &plan.Source{Source: sources[0], Ordinal: i})
	}
	k := NewReadProgress(planned, false, nil)
	most := 0
	for i := range parts {
		for j := range int64(splits) {
			k.Counted(&intake.Parsed{Split: &table.Split{Ordinal: i, FirstRecord: 10 * j,
				Position: table.Position{Source: i, Record: 10 * j}}, Records: 10, Key: make([]byte, 100)}, 0)
			most = max(most, k.held)
		}
		k.Ended(&intake.Ended{Source: i})
	}
	conformance.True(t, most <= 2*maxStartBytes, "%d bytes of places", most)
	// The last record of every part waits.
	s := &checkpoint.Snapshot{State: checkpoint.State{Read: slices.Clone(k.read), Pieces: []checkpoint.Piece{{}}}}
	for i := range parts {
		last := checkpoint.At(i, 10*splits-1)
		s.Pieces[0].Waiting = s.Pieces[0].Waiting.Add(last, last+1)
	}
	k.DescribeSources(s)
	conformance.Equal(t, len(s.Starts), parts, "places of each part")
	s = &checkpoint.Snapshot{State: checkpoint.State{Read: slices.Clone(k.read), Pieces: []checkpoint.Piece{{}}}}
	k.DescribeSources(s)
	conformance.True(t, len(s.Starts) == 0 && k.held == 0 && len(k.starts) == 0 && len(s.Read) == 1,
		"all is final: %d places, %d bytes, %d intervals", len(s.Starts), k.held, len(s.Read))
	for _, i := range []int{0, parts / 2, parts - 1} {
		conformance.Equal(t, s.Complete(i, false), true, "part %d is not complete", i)
	}
}

// A resumed load joins keys with the same separator. With another one, rows would be in the table twice.
func TestResumedLoadKeepsSeparator(t *testing.T) {
	for _, want := range []rune{'|', '\x1f', '–'} {
		r := new(plan.Request)
		(&Point{Job: &checkpoint.Job{Separator: string(want)}}).Settings(r, nil)
		conformance.Equal(t, r.Separator, want, "separator")
	}
}
