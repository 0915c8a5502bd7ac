package tsimport

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
)

// oracle knows the value of each row, and learns from the Dones the order in which a Loader accepted them.
type oracle struct {
	outcomes
	keys, values map[int64]string // keys and values by the test's own row numbers
}

func newOracle() *oracle { return &oracle{keys: map[int64]string{}, values: map[int64]string{}} }

// row makes row n, whose value is n.
func (o *oracle) row(n int64, key, column string) Row {
	o.mu.Lock()
	o.keys[n], o.values[n] = key, fmt.Sprintf("%s=int64 %d", column, n)
	o.mu.Unlock()
	return Row{Columns: []Column{Int64(column, n), String("id", key)}, Done: o.of(n)}
}

// last returns the value of each key's last row not rejected, and the keys with a row that may or may not be applied.
func (o *oracle) last() (values map[string]string, unsure map[string]bool) {
	values, unsure = map[string]string{}, map[string]bool{}
	numbers := map[string]int64{}
	for n, out := range o.all {
		key := o.keys[n]
		if out.End == Unfinished || out.MaybeApplied {
			unsure[key] = true
		}
		if out.End != Rejected && out.Number > numbers[key] {
			numbers[key], values[key] = out.Number, o.values[n]
		}
	}
	return values, unsure
}

// Requests fail in every way, the service and the Loader refuse rows, several goroutines put rows of the same keys and
// modify them afterwards, some with contexts that end, and Flushes are abandoned. Each key ends up with its last row
// that was not rejected, unless one of its rows may have been applied, and every accepted row has one outcome.
func TestLastAcceptedRowOfEachKeyWins(t *testing.T) {
	for _, mode := range []string{"put", "update"} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("%s, seed %d", mode, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { putWithFaults(t, mode, seed) })
			})
		}
	}
}

// refusing returns a fault function that follows plan. If rows is set, it refuses a row or two of every tenth request.
func refusing(seed uint64, rows bool, plan *faults.Plan) func(r faults.Request) faults.Fault {
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, 78))
	return func(r faults.Request) faults.Fault {
		mu.Lock()
		defer mu.Unlock()
		if !rows || rnd.IntN(10) > 0 {
			return plan.Decide(r)
		}
		bad := rnd.IntN(max(r.Rows, 1))
		return faults.Fault{Action: faults.RefuseRows, RowCode: func(i int) string {
			if i == bad || i == bad+1 {
				return "OTSParameterInvalid"
			}
			return ""
		}}
	}
}

func putWithFaults(t *testing.T, mode string, seed uint64) {
	w := newWorld(t)
	rnd := rand.New(rand.NewPCG(seed, 77))
	must(t, w.Sim().Simulate("", server.Simulation{Config: sim.Config{
		PartitionUnits: 10_000, Burst: 100 * time.Millisecond, Partitions: 3, Latency: time.Millisecond, Jitter: 0.5,
		Seed: seed}}))
	plan := conformance.Try(faults.Random{Rate: 0.15, Delay: 20 * time.Millisecond, Seed: seed}.Plan()).Must(t)
	o := loaderOptions()
	o.Mode, o.Memory, o.BatchBytes, o.Concurrency = mode, 16<<20, 1+rnd.Int64N(16<<10), 1+rnd.IntN(16)
	if rnd.IntN(2) == 0 {
		o.TempDir = t.TempDir()
	}
	l := w.open(context.Background(), o)
	refused := seed%2 == 0
	w.plan.Change(nil, refusing(seed, refused, plan))
	told, accepted := newOracle(), atomic.Int64{}
	var group sync.WaitGroup
	for g := range int64(4) {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(g)))
			within := func(most int) (context.Context, context.CancelFunc) {
				return context.WithTimeout(context.Background(), time.Duration(rnd.IntN(most))*time.Microsecond)
			}
			for n := range int64(2000) {
				key := fmt.Sprint("key", rnd.IntN(300))
				if rnd.IntN(4) == 0 {
					key = "hot"
				}
				row := told.row(g*1_000_000+n, key, "v")
				switch rnd.IntN(12) {
				case 0:
					row.Columns = append(row.Columns, Null("nothing"))
				case 1:
					row.Columns[1] = Bytes("id", []byte(key)) // rejected
				case 2:
					row.Columns = append(row.Columns, String("id", "twice")) // rejected
				}
				ctx, cancel := context.Background(), func() {}
				if rnd.IntN(10) == 0 {
					ctx, cancel = within(1000)
				}
				switch err := l.Put(ctx, row); {
				case err == nil:
					accepted.Add(1)
				case !errors.Is(err, context.DeadlineExceeded):
					t.Error(err)
				}
				cancel()
				clear(row.Columns)
				if rnd.IntN(300) == 0 {
					ctx, cancel := within(30_000)
					err := l.Flush(ctx)
					conformance.True(t, err == nil || errors.Is(err, context.DeadlineExceeded), "%v", err)
					cancel()
				}
			}
		})
	}
	group.Wait()
	c := w.close(l)
	w.plan.Change(nil, nil)
	told.check(t, c)
	if c.Accepted != accepted.Load() || c.Unfinished != 0 || c.Rejected == 0 || mode == "update" && c.Superseded > 0 {
		t.Errorf("%d rows were accepted, counts %+v", accepted.Load(), c)
	}
	want, unsure := told.last()
	conformance.True(t, refused || len(unsure) == 0, "%d keys are unsure", len(unsure))
	w.compare(want, unsure)
	t.Logf("%+v", c)
}

// compare compares the table with want, except for unsure keys.
func (w *world) compare(want map[string]string, unsure map[string]bool) {
	w.t.Helper()
	got := w.rows(1)
	for key, value := range want {
		conformance.True(w.t, got[key] == value || unsure[key], "%s is %q, want %q", key, got[key], value)
	}
	for key, value := range got {
		conformance.True(w.t, want[key] != "" || unsure[key], "%s is %q, and should not be there", key, value)
	}
}

// gate is a transport whose write requests wait until it is opened.
type gate struct {
	http.RoundTripper
	opened chan struct{}
}

func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "BatchWriteRow") {
		select {
		case <-g.opened:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return g.RoundTripper.RoundTrip(r)
}

// gated opens a Loader whose write requests wait until the gate is opened.
func (w *world) gated(ctx context.Context, o LoaderOptions) (*Loader, *gate) {
	w.t.Helper()
	g := &gate{w.Transport(), make(chan struct{})}
	to := w.target()
	to.Transport = g
	l := conformance.Try(Open(ctx, to, "t", o)).Must(w.t)
	return l, g
}

// blocked returns the number of accepted rows once every goroutine in the test's bubble waits.
func blocked(l *Loader) (accepted int64) {
	time.Sleep(5 * time.Second) // by the bubble's clock, after which lingering rows have been sent
	synctest.Wait()
	return l.Counts().Accepted
}

// heap returns the size of the live heap in bytes.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// While the table accepts nothing, Put blocks before rows, small or large, exceed Memory.
func TestPutBlocksWithinItsMemory(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(64)) // one parser per processor
	for _, c := range []struct{ size, mib int }{{0, 16}, {300, 16}, {300, 64}, {100_000, 16}} {
		t.Run(fmt.Sprintf("rows of %d bytes in %d MiB", c.size, c.mib), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { putUntilBlocked(t, c.size, int64(c.mib)<<20) })
		})
	}
}

func putUntilBlocked(t *testing.T, size int, memory int64) {
	w := newWorld(t)
	o := loaderOptions()
	o.Memory = memory
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	// A partition without rows makes the load read ahead as far as memory allows.
	w.close(w.open(ctx, o))
	must(t, w.Sim().Split(ctx, "t", server.Cut{Keys: []sim.Key{"z"}}))
	l, _ := w.gated(ctx, o)
	before := heap()
	var accepted int64
	ends := make(chan error)
	value := make([]byte, size)
	done := func(Outcome) {}
	go func() {
		for n := 0; ; n++ {
			row := Row{Columns: []Column{String("id", fmt.Sprint(n)), Bytes("v", value)}}
			if n%2 == 0 {
				row.Done = done
			}
			if err := l.Put(ctx, row); err != nil {
				ends <- err
				return
			}
			accepted++
		}
	}()
	blocked(l)
	held := heap() - before
	left, err := os.ReadDir(os.TempDir())
	conformance.True(t, err == nil && len(left) == 1, "beside the Loader's folder there are %v, %v", left, err)
	stop()
	if err := <-ends; !errors.Is(err, context.Canceled) && !errors.Is(err, ErrInterrupted) {
		t.Errorf("put: %v", err)
	}
	c, err := l.Close(context.Background())
	conformance.Is(t, err, ErrInterrupted, "close")
	w.balanced(c)
	rows := accepted * int64(size+60)
	t.Logf("%d rows, about %d MiB, take %d MiB", accepted, rows>>20, held>>20)
	conformance.True(t, c.Accepted == accepted && held <= memory && rows >= memory/8,
		"%d rows of about %d bytes take %d bytes, of %d; counts %+v", accepted, rows, held, memory, c)
}

// A context that ends while Put waits affects only that Put.
func TestCancelledPutIsNotAccepted(t *testing.T) { synctest.Test(t, cancelledPuts) }

func cancelledPuts(t *testing.T) {
	w := newWorld(t)
	o := loaderOptions()
	o.Memory = 16 << 20
	l, g := w.gated(context.Background(), o)
	ctx, stop := context.WithCancel(context.Background())
	told, accepted := newOracle(), atomic.Int64{}
	var group sync.WaitGroup
	for p := range int64(4) {
		group.Go(func() {
			for n := int64(0); ; n++ {
				row := told.row(p*1_000_000+n, fmt.Sprint(p, "/", n), "v")
				row.Columns = append(row.Columns, Bytes("b", make([]byte, 20_000)))
				if err := l.Put(ctx, row); err != nil {
					conformance.Is(t, err, context.Canceled, "error")
					return
				}
				accepted.Add(1)
			}
		})
	}
	blocked(l)
	stop()
	group.Wait()
	close(g.opened)
	c := w.close(l)
	told.check(t, c)
	conformance.True(t, c.Written == accepted.Load() && c.Written == c.Accepted && int64(len(w.rows(1))) == c.Written,
		"%d accepted; %+v", accepted.Load(), c)
}

// When the context of Open or Close ends, every row still has an outcome, and the written rows are in the table.
func TestCancelledLoaderCountsEveryRow(t *testing.T) {
	for _, how := range []string{"open's context", "close's context"} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t)
			defer noLeaks(t)()
			must(t, w.Sim().Simulate("", server.Simulation{Config: sim.Config{PartitionUnits: 5_000,
				Latency: 5 * time.Millisecond}}))
			ctx, kill := context.WithCancelCause(context.Background())
			defer kill(nil)
			reason := errors.New("the reason")
			l := w.open(ctx, loaderOptions())
			told, accepted := newOracle(), atomic.Int64{}
			var group sync.WaitGroup
			for p := range int64(4) {
				group.Go(func() {
					for n := range int64(20_000) {
						err := l.Put(context.Background(), told.row(p*1_000_000+n, fmt.Sprint("key", n%3000), "v"))
						if err != nil {
							conformance.True(t, errors.Is(err, ErrInterrupted) || errors.Is(err, ErrClosed), "%v", err)
							return
						}
						if accepted.Add(1) == 30_000 && how == "open's context" {
							kill(reason)
						}
					}
				})
			}
			closing, cancel := context.WithCancelCause(context.Background())
			if how == "close's context" {
				for l.Counts().Written < 2000 {
					runtime.Gosched()
				}
				cancel(reason)
			} else {
				group.Wait()
			}
			for range 2 {
				c, err := l.Close(closing)
				conformance.True(t, errors.Is(err, ErrInterrupted) && errors.Is(err, reason), "close: %v", err)
				w.balanced(c)
				group.Wait()
				told.check(t, c)
				conformance.True(t, c.Accepted == accepted.Load() && c.Unfinished != 0 && c.Written != 0,
					"%d accepted, %+v", accepted.Load(), c)
			}
			cancel(nil)
			conformance.Is(t, l.Flush(context.Background()), ErrInterrupted, "flush")
			want, unsure := told.last()
			w.compare(want, unsure)
		})
	}
}

// Many goroutines put rows while another one closes: each Put either counts or reports that the Loader is closed.
func TestCloseDuringPutsFromManyGoroutines(t *testing.T) {
	w := newWorld(t)
	defer noLeaks(t)()
	l := w.open(context.Background(), loaderOptions())
	told, accepted := newOracle(), atomic.Int64{}
	var group sync.WaitGroup
	for p := range int64(16) {
		group.Go(func() {
			for n := int64(0); ; n++ {
				if err := l.Put(context.Background(), told.row(p*1_000_000+n, fmt.Sprint(p, "/", n), "v")); err != nil {
					conformance.Equal(t, err, ErrClosed, "the error of a closed loader")
					return
				}
				accepted.Add(1)
			}
		})
	}
	for accepted.Load() < 5000 {
		runtime.Gosched()
	}
	var closing sync.WaitGroup
	counts := make([]Counts, 4)
	for i := range counts {
		closing.Go(func() { counts[i] = w.close(l) })
	}
	group.Wait()
	closing.Wait()
	for _, c := range counts {
		conformance.Equal(t, c.Accepted, accepted.Load(), "accepted")
		conformance.Equal(t, c.Written, c.Accepted, "written")
		told.check(t, c)
	}
	conformance.Equal(t, int64(len(w.rows(1))), accepted.Load(), "the table: rows")
}

// After a load has failed, every Put, Flush and Close returns its error, and its counts add up.
func TestEveryCallFailsAfterFailedLoad(t *testing.T) {
	w := newWorld(t)
	defer noLeaks(t)()
	ctx := context.Background()
	l := w.open(ctx, loaderOptions())
	told := newOracle()
	must(t, l.Put(ctx, told.row(0, "a", "v")))
	must(t, l.Flush(ctx))
	w.plan.Change(nil, func(faults.Request) faults.Fault {
		return faults.Fault{Action: faults.Refuse, Code: "OTSNoPermissionAccess"}
	})
	var err error
	n := int64(1)
	for ; err == nil; n++ {
		err = l.Put(ctx, told.row(n, fmt.Sprint(n), "v"))
	}
	conformance.Is(t, err, ErrPermission, "put")
	conformance.Is(t, l.Flush(ctx), ErrPermission, "flush")
	for range 2 {
		c, err := l.Close(ctx)
		conformance.True(t, errors.Is(err, ErrPermission) && c.Accepted == n-1 && c.Written == 1 && c.Unfinished == n-2,
			"close: %v, %+v after %d rows", err, c, n-1)
		told.check(t, c)
	}
}

// A slow Done blocks Put, and the number of waiting outcomes is limited.
func TestSlowDoneBlocksPut(t *testing.T) { synctest.Test(t, slowDone) }

func slowDone(t *testing.T) {
	const rows = 200_000 // five to eight times the number accepted, which depends on the machine
	w := newWorld(t)
	ctx, o := context.Background(), loaderOptions()
	o.Memory = 16 << 20
	l := w.open(ctx, o)
	hold, accepted := make(chan struct{}), atomic.Int64{}
	rest := make(chan struct{})
	go func() {
		defer close(rest)
		for n := range rows {
			err := l.Put(ctx, Row{Columns: []Column{String("id", fmt.Sprint(n))}, Done: func(Outcome) { <-hold }})
			conformance.True(t, err == nil, "%v", err)
			accepted.Add(1)
		}
	}()
	n := blocked(l)
	conformance.True(t, n < rows, "all rows were accepted, and none has its outcome")
	close(hold)
	<-rest
	conformance.Equal(t, w.close(l).Written, rows, "written")
	t.Logf("%d rows were accepted", n)
}
