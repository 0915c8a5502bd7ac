package pipeline

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tsimport/internal/tablestore/client"
	"tsimport/pipeline/checkpoint"
)

// countedPosts is a sender that counts.
type countedPosts struct{ posts atomic.Int32 }

func (c *countedPosts) Post(string, func([]byte) []byte) ([]byte, error) {
	c.posts.Add(1)
	return nil, nil
}

func TestNothingIsSentLongAfterTheLastCheckpoint(t *testing.T) {
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
		if sender.posts.Load() != 0 {
			t.Fatal("a request is sent before the first checkpoint")
		}
		kept()
		if err := <-waiting; err != nil || sender.posts.Load() != 1 {
			t.Errorf("after the first checkpoint: %v", err)
		}
		time.Sleep(keptFor) // the batch was cut before, and stood still
		waiting = post()
		time.Sleep(time.Minute)
		if sender.posts.Load() != 1 {
			t.Fatal("a request is sent although the checkpoint is too old")
		}
		halt()
		if err := <-waiting; client.Classify(err) != client.Unavailable || sender.posts.Load() != 1 {
			t.Errorf("when the load stops: %v, and %d requests are sent", err, sender.posts.Load())
		}
	})
}

func TestHowLongAResumedLoadWaitsForTheAttemptBefore(t *testing.T) {
	const settle, request = time.Minute, 30 * time.Second
	now := time.Unix(1_800_000_000, 0)
	then := checkpoint.Uptime{Boot: "a", Up: time.Hour}
	for name, tt := range map[string]struct {
		about         checkpoint.About
		uptime        checkpoint.Uptime
		suspect, hold time.Duration
	}{
		"at once":               {about: checkpoint.About{}, uptime: checkpoint.Uptime{Boot: "a", Up: time.Hour}, suspect: settle},
		"a while later":         {about: checkpoint.About{}, uptime: checkpoint.Uptime{Boot: "a", Up: time.Hour + 340*time.Second}, suspect: 30 * time.Second},
		"long after":            {about: checkpoint.About{}, uptime: checkpoint.Uptime{Boot: "a", Up: 2 * time.Hour}},
		"after another boot":    {about: checkpoint.About{}, uptime: checkpoint.Uptime{Boot: "b", Up: 2 * time.Hour}, suspect: settle},
		"on an unknown machine": {about: checkpoint.About{}, uptime: checkpoint.Uptime{}, suspect: settle},
		"an older checkpoint":   {about: checkpoint.About{Older: true}, uptime: checkpoint.Uptime{Boot: "a", Up: 2 * time.Hour}, suspect: settle},
		"all is settled":        {about: checkpoint.About{Settled: true}, uptime: checkpoint.Uptime{Boot: "b"}},
		"held at once":          {about: checkpoint.About{Settled: true, HoldFor: 20 * time.Second}, uptime: checkpoint.Uptime{Boot: "a", Up: time.Hour}, hold: 20 * time.Second},
		"held, a while later":   {about: checkpoint.About{Settled: true, HoldFor: 20 * time.Second}, uptime: checkpoint.Uptime{Boot: "a", Up: time.Hour + 15*time.Second}, hold: 5 * time.Second},
		"held, another boot":    {about: checkpoint.About{Settled: true, HoldFor: 20 * time.Second}, uptime: checkpoint.Uptime{Boot: "b", Up: time.Hour + 15*time.Second}, hold: 20 * time.Second},
	} {
		// What the wall clock of the process before said does not count: it was an hour fast, or slow.
		for _, wall := range []time.Duration{-time.Hour, 0, time.Hour} {
			tt.about.Time, tt.about.Uptime = now.Add(wall), then
			o := &resumePoint{snapshot: &checkpoint.Snapshot{About: tt.about}}
			o.settle(now, tt.uptime.Since(then), settle, request)
			wait := func(until time.Time) time.Duration {
				if until.IsZero() {
					return 0
				}
				return max(0, until.Sub(now))
			}
			if got, hold := wait(o.suspectUntil), wait(o.hold); got != tt.suspect || hold != tt.hold {
				t.Errorf("%s: rows are suspect for %v, and nothing is sent for %v; want %v and %v", name, got, hold, tt.suspect, tt.hold)
			}
		}
	}
}

func TestTheMachineCountsItsUptime(t *testing.T) {
	first := checkpoint.Now()
	if first.Boot == "" {
		t.Skip("this system has no clock that counts from its boot")
	}
	if d := checkpoint.Now().Since(first); d < 0 || d > time.Hour {
		t.Errorf("%v between two moments", d)
	}
}
