package jobdir

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/objectstore"
	"example.com/tsimport/internal/objectstore/storetest"
	"example.com/tsimport/ratelimit"
)

// stores calls check with a store of each kind and its server, which is nil for a folder.
func stores(t *testing.T, check func(t *testing.T, s Store, server *storetest.Server)) {
	t.Helper()
	for _, kind := range []string{"folder", "oss", "s3"} {
		t.Run(kind, func(t *testing.T) {
			server := storetest.New(t, "states")
			place := kind + "://states/of/loads"
			if kind == "folder" {
				server, place = nil, filepath.Join(t.TempDir(), "states")
			}
			var o Options
			if server != nil {
				o.OSS = objectstore.OSS{Endpoint: server.URL(), Region: "cn-test", PathStyle: true,
					Credentials: func(context.Context) (string, string, string, error) { return "the-id", "the-secret", "", nil }}
			}
			check(t, conformance.Try(Open(t.Context(), place, o)).Must(t), server)
		})
	}
}

func TestStoresKeepContract(t *testing.T) {
	stores(t, func(t *testing.T, s Store, _ *storetest.Server) {
		ctx := t.Context()
		must(t, Probe(ctx, s))
		names, err := s.List(ctx, "")
		conformance.True(t, err == nil && len(names) == 0, "%q, %v", names, err)
		conformance.Is(t, conformance.ErrorOf(s.Get(ctx, "a/b")), fs.ErrNotExist, "error")
		conformance.Equal(t, Below(s, "a/b").String(), strings.TrimSuffix(s.String(), "/")+"/a/b", "string")
		must(t, errors.Join(s.PutAbsent(ctx, "a/b", []byte("1")), s.Put(ctx, "a/b", []byte("2")), s.Put(ctx, "a/empty", nil),
			s.Put(ctx, "c", []byte("3"))))
		conformance.Is(t, s.PutAbsent(ctx, "a/b", []byte("4")), ErrExists, "put absent")
		conformance.Equal(t, string(conformance.Try(s.Get(ctx, "a/b")).Must(t)), "2", "a/b")
		must(t, s.Put(ctx, "c", []byte("0123456789")))
		conformance.Equal(t, string(conformance.Try(s.GetRange(ctx, "c", 3, 4)).Must(t)), "3456", "a range of c")
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond) // the request is retried
		body, err := s.GetRange(short, "c", 8, 4)
		conformance.True(t, err != nil, "past the end: %q", body)
		cancel()
		conformance.Is(t, conformance.ErrorOf(s.GetRange(ctx, "none", 0, 1)), fs.ErrNotExist, "a range of none")
		body, err = s.Get(ctx, "a/empty")
		conformance.True(t, err == nil && len(body) == 0, "%q, %v", body, err)
		conformance.Same(t, conformance.Try(s.List(ctx, "a/")).Must(t), []string{"a/b", "a/empty"}, "names in a/")
		conformance.Same(t, conformance.Try(Below(s, "a").List(ctx, "b")).Must(t), []string{"b"}, "names below a")
		must(t, errors.Join(s.Delete(ctx, "a/b"), s.Delete(ctx, "a/b")))
		conformance.Same(t, conformance.Try(s.List(ctx, "")).Must(t), []string{"a/empty", "c"}, "names")
	})
}

func TestOneOfConcurrentPutsWins(t *testing.T) {
	stores(t, func(t *testing.T, s Store, _ *storetest.Server) {
		var won atomic.Int32
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				switch err := s.PutAbsent(t.Context(), "one", []byte(Nonce())); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, ErrExists):
					t.Error(err)
				}
			})
		}
		all.Wait()
		conformance.Equal(t, won.Load(), 1, "how many have won")
	})
}

func TestProbeNamesUnfitPlace(t *testing.T) {
	for want, change := range map[string]func(s *storetest.Server){
		"conditional puts have no effect there": func(s *storetest.Server) { s.Unconditional = true },
		"cannot be written to":                  func(s *storetest.Server) { s.ReadOnly = true },
		"is full":                               func(s *storetest.Server) { s.Full = true },
		"has no conditional puts": func(s *storetest.Server) {
			s.Fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
				refuse := r.Header.Get("If-None-Match") != "" || r.Header.Get("X-Oss-Forbid-Overwrite") != ""
				if refuse {
					storetest.Refuse(w, r, http.StatusNotImplemented, "NotImplemented", "This header is not implemented.")
				}
				return refuse
			}
		},
	} {
		stores(t, func(t *testing.T, s Store, server *storetest.Server) {
			if server == nil {
				return
			}
			server.Change(change)
			err := Probe(t.Context(), s)
			conformance.True(t, err != nil && strings.Contains(err.Error(), want) &&
				strings.HasPrefix(err.Error(), s.String()) && !strings.Contains(err.Error(), "\n"), "%q: %v", want, err)
		})
	}
}

func TestUnwritableFolderIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	s := conformance.Try(Open(t.Context(), filepath.Join(file, "state"), Options{})).Must(t)
	conformance.InALine(t, Probe(t.Context(), s), file, "a file in the way")
}

func TestInvalidPlacesAreRefused(t *testing.T) {
	for place, want := range map[string]string{
		"ftp://x/y": "want a folder", "s3://": "not a bucket name", "oss://id:geheim@b/x": "not a bucket name",
	} {
		_, err := Open(t.Context(), place, Options{})
		conformance.True(t, err != nil && strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "geheim"),
			"%s: %v", place, err)
	}
}

func TestPutWithLostResponseIsRecognised(t *testing.T) {
	// Fail each request in turn, after it has been applied.
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{Store: newMemory(), rand: rand.New(rand.NewPCG(seed, 0)), lie: 30, fail: 10}
			err := (view{Store: f, patient: true}).PutAbsent(t.Context(), "x", []byte("mine"))
			body, getErr := f.Store.Get(t.Context(), "x")
			conformance.True(t, err != nil || getErr == nil && string(body) == "mine", "seed %d: %q, %v", seed, body, getErr)
			conformance.Equal(t, errors.Is(err, ErrExists), false, "seed %d: it takes its own object for another's", seed)
		})
	}
}

var must = conformance.Must

// into returns a function for Restore that places files below a folder.
func into(dir string) func(folder, name string) (string, error) {
	return func(folder, name string) (string, error) {
		return filepath.Join(dir, folder, filepath.FromSlash(name)), nil
	}
}

func TestSuccessorRestoresNewestCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock := newMemory(), virtual()
		r := rand.New(rand.NewPCG(1, 2))
		dir := t.TempDir()
		grows, whole := filepath.Join(dir, "grows"), filepath.Join(dir, "whole")
		var all []byte
		for epoch := range 3 {
			l := conformance.Try(Acquire(t.Context(), s, LeaseOptions{Clock: clock, Wait: time.Hour})).Must(t)
			m := NewMirror(s, l)
			if epoch > 0 {
				to := t.TempDir()
				conformance.MustEqual(t, conformance.Try(m.Restore(t.Context(), into(to))).Must(t), "run", "folder")
				for name, want := range map[string][]byte{"sub/grows": all, "whole": last(all, 10), "body": last(all, 3)} {
					if got, err := os.ReadFile(filepath.Join(to, "run", name)); err != nil || !bytes.Equal(got, want) {
						t.Errorf("epoch %d: %s has %d bytes, want %d, %v", l.Epoch, name, len(got), len(want), err)
					}
				}
			}
			for range 40 {
				all = append(all, make([]byte, r.IntN(5000))...)
				for i := range all {
					all[i] = byte(i * 31)
				}
				must(t, errors.Join(os.WriteFile(grows, all, 0o600), os.WriteFile(whole, last(all, 10), 0o600)))
				must(t, m.Save(t.Context(), "run", []MirrorFile{{Name: "sub/grows", Path: grows, Grows: true},
					{Name: "whole", Path: whole}, {Name: "body", Body: last(all, 3)},
					{Name: "gone", Path: filepath.Join(dir, "gone"), Grows: true}}))
			}
			names, _ := s.List(t.Context(), "")
			conformance.True(t, len(names) <= 40, "%d objects are kept: %q", len(names), names)
			if epoch == 1 {
				l.Abandon() // as if its holder were paused or presumed dead
				conformance.Refused(t, m.Save(t.Context(), "run", nil), "", "it keeps a checkpoint without the lease")
			} else if err := l.Release(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func last(all []byte, n int) []byte { return append([]byte{}, all[max(0, len(all)-n):]...) }

func TestLateCheckpointIsNotNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock := newMemory(), virtual()
		l, _ := Acquire(t.Context(), s, LeaseOptions{Clock: clock})
		m := NewMirror(s, l)
		defer l.Abandon()
		for _, text := range []string{"1", "2", "3"} {
			must(t, m.Save(t.Context(), "run", []MirrorFile{{Name: "f", Body: []byte(text)}}))
		}
		// A put of the first checkpoint, whose response was lost, takes effect only now.
		s.Objects["checkpoint.000000001.000000001"] = `{"version":1,"folder":"run"}`
		to := t.TempDir()
		must(t, conformance.ErrorOf(m.Restore(t.Context(), into(to))))
		got, _ := os.ReadFile(filepath.Join(to, "run", "f"))
		conformance.True(t, string(got) == "3", "%q", got)
		must(t, m.Finish(t.Context()))
		folder, err := m.Restore(t.Context(), into(to))
		conformance.True(t, folder == "" && err == nil, "%v %v", folder, err)
	})
}

// lateList is a store that does not list an object before a given time.
type lateList struct {
	*storetest.Memory
	name string
	from time.Time
}

func (s lateList) List(ctx context.Context, prefix string) ([]string, error) {
	names, err := s.Memory.List(ctx, prefix)
	if time.Now().Before(s.from) {
		names = slices.DeleteFunc(names, func(n string) bool { return n == s.name })
	}
	return names, err
}

// The previous checkpoint, which is still listed, cannot be restored: its parts are already deleted.
func TestRestoreWaitsForLateListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clock := newMemory(), virtual()
		first, _ := Acquire(t.Context(), s, LeaseOptions{Clock: clock})
		must(t, NewMirror(s, first).Save(t.Context(), "run", []MirrorFile{{Name: "f", Body: []byte("1")}}))
		before := s.Objects["checkpoint.000000001.000000001"]
		second := release(t, s, clock, first)
		must(t, NewMirror(s, second).Save(t.Context(), "run", []MirrorFile{{Name: "f", Body: []byte("2")}}))
		third := release(t, s, clock, second)
		defer third.Abandon()
		s.Objects["checkpoint.000000001.000000001"] = before // still listed, as in other stores with stale listings
		late := lateList{s, "checkpoint.000000002.000000001", time.Now().Add(40 * time.Second)}
		to := t.TempDir()
		must(t, conformance.ErrorOf(NewMirror(late, third).Restore(t.Context(), into(to))))
		got, _ := os.ReadFile(filepath.Join(to, "run", "f"))
		conformance.True(t, string(got) == "2", "%q", got)
		// In the same state, Restore fails if another process takes over.
		late.from = time.Now().Add(time.Hour)
		third.mu.Lock()
		third.lost = true
		third.mu.Unlock()
		conformance.Is(t, conformance.ErrorOf(NewMirror(late, third).Restore(t.Context(), into(to))), ErrLost, "taken over")
	})
}

// release releases a lease and acquires it again.
func release(t *testing.T, s Store, clock func() time.Duration, l *Lease) *Lease {
	t.Helper()
	must(t, l.Release())
	return conformance.Try(Acquire(t.Context(), s, LeaseOptions{Clock: clock, Wait: time.Hour})).Must(t)
}

func TestDamagedOrNewerMirrorIsRefused(t *testing.T) {
	for body, want := range map[string]string{
		`{"version":2}`: "newer version", `{`: "damaged", `{"version":1,"folder":"../x"}`: "damaged",
		`{"version":1,"folder":"x","files":{"../y":[]}}`:                                       "damaged",
		`{"version":1,"folder":"x","files":{"y":[{"object":"data/1-1","bytes":3}]}}`:           "data/1-1 is damaged",
		`{"version":1,"folder":"x","files":{"y":[{"object":"data/1-1","bytes":1,"sum":1}]}}`:   "data/1-1 is damaged",
		`{"version":1,"folder":"x","files":{"y":[{"object":"data/none","bytes":1,"sum":1}]}} `: "start over with --fresh",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newMemory()
			s.Objects["checkpoint.000000001.000000001"], s.Objects["data/1-1"] = body, "x"
			l := conformance.Try(Acquire(t.Context(), s, LeaseOptions{Clock: virtual()})).Must(t)
			defer l.Abandon()
			conformance.InALine(t, conformance.ErrorOf(NewMirror(s, l).Restore(t.Context(), into(t.TempDir()))), want,
				"%s", body)
		})
	}
}

var (
	rounds = flag.Int("lease-rounds", 30, "rounds of random interleavings of leases")
	seed   = flag.Uint64("lease-seed", 1, "first seed of them")
)

func newMemory() *storetest.Memory { return storetest.NewMemory(ErrExists) }

// faulty is one process's view of a store whose calls may be slow, fail, or take effect although they report an error.
type faulty struct {
	Store
	mu   sync.Mutex
	rand *rand.Rand
	// Percentages of calls that are slow, that fail, that take effect although they fail, and that do so much later.
	slow, fail, lie, late int
	frozen                time.Time // no call returns before this time
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

// ledger checks that no holder acts after a newer one has acted.
type ledger struct {
	mu     sync.Mutex
	newest int64
	acts   map[int64]int
	wrong  []string
}

// act records an action of a holder. It is called right after a successful Check.
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

func TestHoldersNeverActAtTheSameTime(t *testing.T) {
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

// work takes the lease and acts under it for a while. Then it releases the lease, dies, or continues to act whenever
// Check allows it.
func work(ctx context.Context, f *faulty, r *rand.Rand, book *ledger, clock func() time.Duration) {
	l, err := Acquire(ctx, view{Store: f, patient: true}, LeaseOptions{Clock: clock, Wait: time.Hour})
	if err != nil {
		_ = ratelimit.Wait(ctx, time.Second)
		return
	}
	steps := r.IntN(2000)
	for step := 0; step < steps && ctx.Err() == nil; step++ {
		if r.IntN(300) == 0 {
			f.freeze(time.Duration(r.Int64N(int64(2 * time.Minute)))) // its renewals stop
			if r.IntN(2) == 0 {
				f.thaw() // it also stops acting
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
		time.Sleep(10 * Term) // the lease is renewed all this time
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

func TestLeaseOfDeadProcessIsTakenAfterTerm(t *testing.T) {
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

// A process waits for all leases of a killed process at the same time, not for one after another.
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
				at, err := Watch(t.Context(), s, nil, clock)
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

// listsLate is a store that lists no objects.
type listsLate struct{ Store }

func (listsLate) List(context.Context, string) ([]string, error) { return nil, nil }

func TestLeaseNeedsTimelyListing(t *testing.T) {
	_, err := Acquire(t.Context(), listsLate{newMemory()}, LeaseOptions{})
	conformance.Refused(t, err, "does not list lease.", "error")
}

func TestReadingHolderChangesNothing(t *testing.T) {
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
