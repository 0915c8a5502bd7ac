package scaleout

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/jobdir"
)

// TestTakeoverTime disturbs one of three workers with default timeouts, and starts a replacement or not.
func TestTakeoverTime(t *testing.T) {
	for name, disturb := range map[string]func(*process){
		"killed": func(p *process) { p.kill(errDied) },
		"stopped": func(p *process) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.frozen = time.Now().Add(10 * time.Minute)
		},
	} {
		for _, replaced := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, another is started: %v", name, replaced), func(t *testing.T) {
				if replaced {
					conformance.NotForRaces(t)
				}
				synctest.Test(t, func(t *testing.T) { takeover(t, disturb, replaced) })
			})
		}
	}
}

func takeover(t *testing.T, disturb func(*process), replaced bool) {
	const rows = 20_000
	w := newWorld(t)
	w.tune = byDefault
	text := new(strings.Builder)
	text.WriteString("id,what\n")
	for n := range rows {
		key, what := fmt.Sprintf("k%04x", uint16(n*40503)), fmt.Sprint("record ", n)
		w.want[key] = what
		fmt.Fprintf(text, "%s,%s\n", key, what)
	}
	w.inputs, w.good = []string{w.file("in.csv", text.String())}, rows
	w.planned(func(r *Request) { r.Workers, r.SplitSize = 3, 1<<20 })
	w.readAll()
	var all sync.WaitGroup
	start := func(name string) *process {
		p := w.start(name, 1, -1, 0)
		p.wire = func(*http.Request) (time.Duration, bool) { // so that writing takes two minutes
			time.Sleep(time.Second)
			return 0, false
		}
		all.Go(func() {
			err := p.run(workAll)
			conformance.True(t, err == nil || errors.Is(err, errDied), "%s: %v", p.name, err)
		})
		return p
	}
	first := start("first")
	start("second")
	start("third")
	time.Sleep(30 * time.Second)
	disturb(first)
	disturbed := time.Now()
	if replaced {
		start("in place of the first")
	}
	all.Wait()
	w.finish()
	must(t, w.start("looks", 2, -1, 0).run(func(ctx context.Context, j *Job) error {
		taken := 0
		for i := range j.Plan.Shards {
			r, err := j.shard(ctx, i)
			if err != nil || r == nil {
				return errors.Join(err, errors.New("it is not written"))
			}
			if r.Started.Before(disturbed) {
				continue
			}
			taken++
			if after := r.Started.Sub(disturbed); after > jobdir.Term+5*time.Second || r.RowsSent > r.Written*11/10 {
				t.Errorf("shard %d was taken over after %v, and %d rows were sent for %d", i, after, r.RowsSent, r.Written)
			}
		}
		conformance.True(t, taken == shardsEach, "%d shards were taken over, want %d", taken, shardsEach)
		return nil
	}))
	time.Sleep(10 * time.Minute) // requests that nobody waits for any more
}

// TestDatabaseSessionsAreLimited has a process that waits while another one reads.
func TestDatabaseSessionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.inputs = []string{w.extra()}
		w.planned(func(r *Request) { r.Readers = 1 })
		must(t, w.start("waits", 1, -1, 0).run(func(ctx context.Context, j *Job) error {
			readers, o := jobdir.Below(w.store, "readers/0000"), jobdir.LeaseOptions{Owner: "other", Clock: j.o.Clock}
			other := conformance.Try(jobdir.Acquire(ctx, readers, o)).Must(t)
			worked := conformance.Try(j.takeOne(ctx, j.stages()[0], []int{0})).Must(t)
			conformance.Equal(t, worked, false, "it reads beside the other")
			must(t, other.Release())
			worked, err := j.takeOne(ctx, j.stages()[0], []int{0})
			conformance.Equal(t, worked, true, "it reads when the other does not")
			_, err2 := jobdir.Acquire(ctx, readers, o)
			conformance.Equal(t, errors.As(err2, new(*jobdir.HeldError)), true, "another reads while it has the sources open")
			return err
		}))
		w.check(w.finish())
	})
}

// A lost process holds a share of the ceilings and leases of shards: they must not be waited for one after the other.
func TestShardLeasesAreWatchedWhileWaitingForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.inputs = []string{w.extra()}
		w.planned(func(r *Request) { r.Workers, r.Load.Lanes.Rates.MaxRows = 1, 100 })
		w.readAll()
		must(t, w.start("waits", 1, -1, 0).run(func(ctx context.Context, j *Job) error {
			gone := func(folder string) {
				l, err := jobdir.Acquire(ctx, jobdir.Below(w.store, folder), jobdir.LeaseOptions{Owner: "gone", Clock: j.o.Clock})
				must(t, err)
				l.Abandon()
			}
			gone("budget/0000")
			gone(shardFolder(0))
			worked, err := j.takeOne(ctx, j.stages()[1], []int{0})
			conformance.True(t, !worked && err == nil && j.seen[shardFolder(0)] != nil,
				"worked: %v, %v; the lease of the shard is watched: %v", worked, err, j.seen[shardFolder(0)] != nil)
			time.Sleep(jobdir.Term + time.Second)
			worked, err = j.takeOne(ctx, j.stages()[1], []int{0})
			conformance.Equal(t, worked, true, "it is taken over when the leases have ended")
			return err
		}))
		time.Sleep(10 * time.Minute)
	})
}

// TestProcessLooksAgainWhenItsOwnPartHasWorked: otherwise a small load would take two seconds longer.
func TestProcessLooksAgainWhenItsOwnPartHasWorked(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		j := conformance.Try(w.start("worker", 2, -1, 0).open()).Must(t)
		part := conformance.Try(j.newPart(t.Context(), 1, 2)).Must(t)
		began := time.Now()
		var works sync.WaitGroup
		works.Go(func() {
			steps := 0
			must(t, part.persist(t.Context(), func() (worked, over bool, err error) {
				steps++
				return true, steps == 3, nil
			}))
		})
		must(t, j.pause(t.Context(), time.Hour))
		conformance.True(t, time.Since(began) < lookEvery, "it waited %v", time.Since(began))
		works.Wait()
		must(t, errors.Join(part.Close(), j.Close()))
	})(t)
}
