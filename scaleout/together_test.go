package scaleout

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

// failing is a store that does not keep some objects.
type failing struct {
	*process
	fails func(name string) bool
}

func (f *failing) PutAbsent(ctx context.Context, name string, body []byte) error {
	if f.fails(name) {
		return errStore
	}
	return f.process.PutAbsent(ctx, name, body)
}

// readAll reads all splits.
func (w *world) readAll() {
	w.t.Helper()
	if err := w.start("reader", 3, -1, 0).run(func(ctx context.Context, j *Job) (err error) {
		for i := range j.Plan.Splits {
			err = errors.Join(err, j.ReadSplit(ctx, i))
		}
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
}

func TestAFailureOfAPartOfAProcessEndsTheProcessAndIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := planned(t)
		w.readAll()
		p := w.start("worker", 5, -1, 0)
		j, err := p.open()
		if err != nil {
			t.Fatal(err)
		}
		if n := j.Plan.atATime(); n < 2 {
			t.Fatalf("the process writes %d shards at a time", n)
		}
		j.store = &failing{p, func(name string) bool { return strings.HasSuffix(name, reducedName) }}
		before := j.o.Drain
		stop, err := j.besides(p.ctx)
		if err != nil {
			t.Fatal(err)
		}
		<-j.o.Drain.Done() // what this part does ends
		if err := j.rest(p.ctx); !errors.Is(err, errStore) {
			t.Errorf("the process continues: %v", err)
		}
		if err := stop(); !errors.Is(err, errStore) {
			t.Errorf("the parts have failed with %v", err)
		}
		if j.o.Drain != before {
			t.Error("the process cannot work any more")
		}
		j.store = p
		s, err := j.Work(p.ctx)
		if err != nil {
			t.Fatal(err)
		}
		w.check(s)
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
}
