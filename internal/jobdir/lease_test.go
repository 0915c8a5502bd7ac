package jobdir

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/objectstore/storetest"
	"example.com/tsimport/ratelimit"
)

var (
	rounds = flag.Int("lease-rounds", 30, "rounds of random interleavings of leases")
	seed   = flag.Uint64("lease-seed", 1, "first seed of them")
)

func newMemory() *storetest.Memory { return storetest.NewMemory(ErrExists) }

// faulty is one process's view of the store: slow, failing, lying.
type faulty struct {
	Store
	mu   sync.Mutex
	rand *rand.Rand
	// Of 100 calls, this many are slow, fail, are applied although they fail, and are applied long after they failed.
	slow, fail, lie, late int
	frozen                time.Time // until when no call returns
	gone                  sync.WaitGroup
}

var errFault = errors.New("the connection was cut")

func (f *faulty) call(ctx context.Context, writes bool, do func() error) error {
	f.mu.Lock()
	n, pause, after := f.rand.IntN(100), time.Duration(f.rand.Int64N(int64(time.Second))), time.Duration(0)
	if f.rand.IntN(100) < f.slow {
		pause = time.Duration(f.rand.Int64N(int64(45 * time.Second)))
	}
	if f.rand.IntN(100) < f.slow {
		after = time.Duration(f.rand.Int64N(int64(45 * time.Second)))
	}
	lateness := time.Duration(f.rand.Int64N(int64(2 * time.Minute)))
	f.mu.Unlock()
	f.thaw()
	if err := ratelimit.Wait(ctx, pause); err != nil {
		return err
	}
	f.thaw()
	switch {
	case n < f.fail:
		return errFault
	case writes && n < f.fail+f.lie:
		_ = do()
		return errFault
	case writes && n < f.fail+f.lie+f.late:
		f.gone.Go(func() {
			time.Sleep(lateness)
			_ = do()
		})
		return errFault
	}
	err := do()
	if sleepErr := ratelimit.Wait(ctx, after); sleepErr != nil {
		return sleepErr
	}
	f.thaw()
	return err
}

// thaw waits while the process is paused.
func (f *faulty) thaw() {
	f.mu.Lock()
	until := f.frozen
	f.mu.Unlock()
	time.Sleep(time.Until(until))
}

func (f *faulty) freeze(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = time.Now().Add(d)
}

func (f *faulty) PutAbsent(ctx context.Context, name string, body []byte) error {
	return f.call(ctx, true, func() error { return f.Store.PutAbsent(ctx, name, body) })
}
func (f *faulty) Put(ctx context.Context, name string, body []byte) error {
	return f.call(ctx, true, func() error { return f.Store.Put(ctx, name, body) })
}
func (f *faulty) GetRange(ctx context.Context, name string, from, n int64) (body []byte, err error) {
	err = f.call(ctx, false, func() error { body, err = f.Store.GetRange(ctx, name, from, n); return err })
	return body, err
}
func (f *faulty) Get(ctx context.Context, name string) (body []byte, err error) {
	err = f.call(ctx, false, func() error { body, err = f.Store.Get(ctx, name); return err })
	return body, err
}
func (f *faulty) List(ctx context.Context, prefix string) (names []string, err error) {
	err = f.call(ctx, false, func() error { names, err = f.Store.List(ctx, prefix); return err })
	return names, err
}
func (f *faulty) Delete(ctx context.Context, name string) error {
	return f.call(ctx, true, func() error { return f.Store.Delete(ctx, name) })
}

// ledger records who acts.
type ledger struct {
	mu     sync.Mutex
	newest int64
	acts   map[int64]int
	wrong  []string
}

// act is called right after a successful Check.
func (l *ledger) act(epoch int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if epoch < l.newest {
		l.wrong = append(l.wrong, fmt.Sprintf("%v: epoch %d acts after %d", time.Now().Format("15:04:05"), epoch, l.newest))
	}
	l.newest = max(l.newest, epoch)
	l.acts[epoch]++
}

func virtual() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

func TestTwoHoldersNeverActAtTheSameTime(t *testing.T) {
	tookOver := 0
	for round := range *rounds {
		seed := *seed + uint64(round)
		synctest.Test(t, func(t *testing.T) {
			shared, book := newMemory(), &ledger{acts: map[int64]int{}}
			ctx, end := context.WithTimeout(t.Context(), 20*time.Minute)
			defer end()
			var all sync.WaitGroup
			r := rand.New(rand.NewPCG(seed, 0))
			clock := virtual()
			for range 2 + r.IntN(3) {
				own := rand.New(rand.NewPCG(r.Uint64(), 0))
				f := &faulty{Store: shared, rand: rand.New(rand.NewPCG(r.Uint64(), 0)), slow: r.IntN(12), fail: r.IntN(12),
					lie: r.IntN(12), late: r.IntN(8)}
				all.Go(func() {
					for ctx.Err() == nil {
						work(ctx, f, own, book, clock)
					}
					f.gone.Wait()
				})
			}
			all.Wait()
			conformance.True(t, len(book.wrong) == 0, "seed %d: %q", seed, book.wrong[:min(3, len(book.wrong))])
			tookOver += len(book.acts) - 1
		})
	}
	conformance.True(t, *rounds < 10 || tookOver >= *rounds, "%d rounds, %d times", *rounds, tookOver)
}

// work takes the lease and acts under it for a while. Then it gives the lease back, dies, or becomes a zombie that acts
// whenever it may.
func work(ctx context.Context, f *faulty, r *rand.Rand, book *ledger, clock func() time.Duration) {
	l, err := Acquire(ctx, view{Store: f, patient: true}, LeaseOptions{Clock: clock, Wait: time.Hour})
	if err != nil {
		_ = ratelimit.Wait(ctx, time.Second)
		return
	}
	steps := r.IntN(2000)
	for step := 0; step < steps && ctx.Err() == nil; step++ {
		if r.IntN(300) == 0 {
			f.freeze(time.Duration(r.Int64N(int64(2 * time.Minute)))) // its renewals stand still
			if r.IntN(2) == 0 {
				f.thaw() // and so does what it does
			}
		}
		if err := l.Check(); err == nil {
			book.act(l.Epoch)
		} else if errors.Is(err, ErrLost) {
			break
		}
		_ = ratelimit.Wait(ctx, time.Duration(r.Int64N(int64(time.Second))))
	}
	if r.IntN(2) == 0 {
		l.Abandon()
	} else {
		_ = l.Release()
	}
}

func TestReleasedLeaseIsTakenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock := newMemory(), virtual()
		a, err := Acquire(t.Context(), s, LeaseOptions{Clock: clock, Owner: "a"})
		conformance.MustTrue(t, err == nil && a.Check() == nil && !a.Former, "%v %v", err, a)
		time.Sleep(10 * Term) // it is renewed
		must(t, a.Check())
		var held *HeldError
		_, err = Acquire(t.Context(), s, LeaseOptions{Clock: clock})
		conformance.True(t, errors.As(err, &held) && held.Owner == "a", "%v", err)
		must(t, a.Release())
		conformance.Refused(t, a.Check(), "", "it may act after it has given the lease back")
		before := time.Now()
		b, err := Acquire(t.Context(), s, LeaseOptions{Clock: clock})
		conformance.True(t, err == nil && b.Check() == nil && !b.Former && b.Epoch == 2 && time.Now().Equal(before),
			"%v, %+v after %v", err, b, time.Since(before))
		// A holder that knows how long its requests may still be applied tells its successor.
		b.Unsettled, b.UnsettledFor = true, 40*time.Second
		must(t, b.Release())
		c, err := Acquire(t.Context(), s, LeaseOptions{Clock: clock})
		conformance.True(t, err == nil && c.Former && c.FormerFor == 40*time.Second && c.Unsettled &&
			c.UnsettledFor == c.FormerFor, "%v, %+v", err, c)
		c.Abandon()
	})
}

func TestDeadProcessesLeaseIsTakenAfterTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock := newMemory(), virtual()
		a, _ := Acquire(t.Context(), s, LeaseOptions{Clock: clock, Owner: "a"})
		a.Abandon()
		waited := ""
		before := time.Now()
		b, err := Acquire(t.Context(), s, LeaseOptions{Clock: clock, Wait: 2 * Term, OnWait: func(o string) { waited = o }})
		conformance.MustTrue(t, err == nil && b.Former && b.FormerFor == 0 && b.Check() == nil && waited == "a", "%v", err)
		took := time.Since(before)
		conformance.True(t, took >= Term && took <= 2*Term, "it took %v", took)
		b.Abandon()
	})
}

func TestHolderThatCannotRenewStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock := newMemory(), virtual()
		f := &faulty{Store: s, rand: rand.New(rand.NewPCG(1, 1))}
		a := conformance.Try(Acquire(t.Context(), f, LeaseOptions{Clock: clock})).Must(t)
		f.freeze(3 * Term)
		time.Sleep(2 * Term)
		err := a.Check()
		conformance.True(t, err != nil && !errors.Is(err, ErrLost), "%v", err)
		time.Sleep(2 * Term)
		conformance.Equal(t, a.Check(), nil, "nobody has taken it")
		f.freeze(4 * Term)
		b := conformance.Try(Acquire(t.Context(), s, LeaseOptions{Clock: clock, Wait: time.Hour})).Must(t)
		time.Sleep(4 * Term)
		conformance.Is(t, a.Check(), ErrLost, "check")
		a.Abandon()
		b.Abandon()
	})
}

func TestNewerOrDamagedLeaseIsRefused(t *testing.T) {
	for body, want := range map[string]string{`{"version":2}`: "newer version", `{`: "damaged"} {
		s := newMemory()
		s.Objects[leaseName(1)] = body
		conformance.InALine(t, conformance.ErrorOf(Acquire(t.Context(), s, LeaseOptions{})), want, "%s", body)
	}
}

// Leases of a killed process are waited for together, not one after the other.
func TestLeasesOfDeadProcessExpireTogether(t *testing.T) {
	for _, alive := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			clock := virtual()
			stores := []Store{newMemory(), newMemory(), newMemory()}
			var dead []*Lease
			for _, s := range stores {
				dead = append(dead, conformance.Try(Acquire(t.Context(), s, LeaseOptions{Clock: clock})).Must(t))
			}
			for i, l := range dead {
				if alive && i == 2 {
					defer l.Abandon()
				} else {
					l.Abandon()
				}
			}
			time.Sleep(time.Minute)
			began := time.Now()
			var seen []*Seen
			for _, s := range stores {
				at, err := lookBy(t.Context(), s, clock)
				conformance.MustTrue(t, err == nil && at != nil, "%v %v", at, err)
				seen = append(seen, at)
			}
			for i, s := range stores {
				l, err := Acquire(t.Context(), s, LeaseOptions{Clock: clock, Wait: 2 * Term, Seen: seen[i]})
				if alive && i == 2 {
					held := new(HeldError)
					conformance.True(t, errors.As(err, &held), "a lease that is renewed was taken: %v", err)
					return
				}
				conformance.MustTrue(t, err == nil && l.Former, "%v %v", l, err)
				defer l.Abandon()
			}
			took := time.Since(began)
			conformance.True(t, took <= Term+2*look, "it took %v to take the leases of a process that is gone", took)
		})
	}
}

// listsLate is a store that does not list new objects.
type listsLate struct{ Store }

func (listsLate) List(context.Context, string) ([]string, error) { return nil, nil }

func TestLeaseNeedsTimelyListing(t *testing.T) {
	_, err := Acquire(t.Context(), listsLate{newMemory()}, LeaseOptions{})
	conformance.Refused(t, err, "does not list lease.", "error")
}

func TestHolderChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemory()
		ask := func() string {
			t.Helper()
			before := maps.Clone(s.Objects)
			owner, _, err := Holder(t.Context(), s)
			must(t, err)
			conformance.Equal(t, maps.Equal(before, s.Objects), true, "something was put")
			return owner
		}
		conformance.Equal(t, ask(), "", "nobody")
		l := conformance.Try(Acquire(t.Context(), s, LeaseOptions{Owner: "pod-1"})).Must(t)
		conformance.Equal(t, ask(), "pod-1", "held")
		must(t, l.Release())
		conformance.Equal(t, ask(), "", "given back")
		s.Objects[leaseName(9)] = "damaged"
		_, _, err := Holder(t.Context(), s)
		conformance.True(t, err != nil, "a damaged lease is not noticed")
	})
}
