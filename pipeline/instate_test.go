package pipeline

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"tsimport/internal/jobdir"
	"tsimport/internal/table"
)

// TestOnlyWhatAPredecessorMayHaveSentIsWaitedFor takes loads over from processes that were killed, with the time-outs of a user who gives none.
func TestOnlyWhatAPredecessorMayHaveSentIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sent, fresh bool // by the predecessor; the successor starts over
		first, end  time.Duration
	}{
		"no checkpoint":                 {false, false, 0, 0},
		"no checkpoint, and --fresh":    {false, true, 0, 0},
		"a checkpoint":                  {true, false, 0, 330 * time.Second},
		"a checkpoint, and --fresh":     {true, true, 330 * time.Second, 330 * time.Second},
		"an end, and then --fresh":      {true, true, 0, 0},
		"an end, and then another load": {true, false, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				store, err := jobdir.Open(t.Context(), t.TempDir(), jobdir.Options{})
				must(t, err)
				booted, in := time.Now(), w.file("in.csv", "id,a\nx,1\ny,2\n")
				ends := c.sent && c.end == 0
				hold := func() (*jobdir.Lease, Config) {
					l, err := jobdir.Acquire(t.Context(), store, jobdir.LeaseOptions{Wait: 2 * jobdir.Term, Clock: func() time.Duration { return time.Since(booted) }})
					must(t, err)
					cfg := w.config(in)
					cfg.Write.Settle, cfg.Resume.Look = 0, true
					cfg.Checkpoint.State, cfg.Watch.Progress, cfg.Watch.Monitor = jobdir.NewMirror(store, l), new(Progress), NewMonitor()
					return l, cfg.Config
				}
				killed, cfg := hold()
				if c.sent {
					ctx, kill := context.WithCancel(t.Context())
					h := hooks{processors: idle, onSend: func([]table.Ref) {
						if !ends {
							kill()
						}
					}}
					if _, err := run(ctx, cfg, &h); (err == nil) != ends {
						t.Fatalf("the predecessor: %v", err)
					}
					kill()
				}
				killed.Abandon()
				l, cfg := hold()
				defer l.Abandon()
				cfg.Resume.Look = !c.fresh
				began := time.Now()
				var first time.Duration
				h := hooks{processors: idle, onSend: func([]table.Ref) { first = time.Since(began) }}
				said := make(chan *Wait, 1)
				time.AfterFunc(100*time.Second, func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					s, err := cfg.Watch.Monitor.State(ctx)
					if err != nil {
						close(said)
						return
					}
					said <- s.Waiting
				})
				if _, err := run(t.Context(), cfg, &h); err != nil {
					t.Fatal(err)
				}
				end := time.Since(began)
				if near := func(got, want time.Duration) bool { return got >= want && got < want+10*time.Second }; !near(first, c.first) || !near(end, c.end) {
					t.Errorf("the first row was sent after %v, and the load has ended after %v; want %v and %v", first, end, c.first, c.end)
				}
				if s := <-said; (s != nil) != (c.end > 0) || s != nil && (s.Why == "" || s.Until.Sub(began).Round(time.Second) != c.end) {
					t.Errorf("the state says that it waits: %+v", s)
				}
				if l.Unsettled {
					t.Error("who holds the lease next is told to wait")
				}
				if err := l.Release(); err != nil {
					t.Error(err)
				}
				w.wantRows(contents{"x": {"a": "1"}, "y": {"a": "2"}})
			})
		})
	}
}
