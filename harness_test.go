package tsimport

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
)

// settle is how long Loaders wait after a lost answer in tests; late requests are applied within half of that time.
const settle = 200 * time.Millisecond

// world is an embedded store in memory, with faults.
type world struct {
	t    *testing.T
	plan *faults.Plan
	*server.Server
}

var must = conformance.Must

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir()) // so that files left by a Loader are found
	w := &world{t: t, plan: &faults.Plan{Within: settle / 2}}
	var err error
	w.Server, err = server.Open("", server.Options{InMemory: true, Faults: w.plan})
	conformance.MustTrue(t, err == nil, "%v", err)
	t.Cleanup(func() {
		conformance.Equal(t, w.Server.Close(), nil, "Close")
		left, err := os.ReadDir(os.TempDir())
		conformance.True(t, err == nil && len(left) == 0, "%v is left in the temporary folder, %v", left, err)
	})
	return w
}

func (w *world) target() Target {
	return Target{
		Endpoint: "http://embedded", Instance: server.DefaultInstance, Transport: w.Transport(),
		AccessKeyID: server.DefaultAccessKeyID, AccessKeySecret: server.DefaultAccessKeySecret,
	}
}

// loaderOptions returns options that create table t with the string key id.
func loaderOptions() LoaderOptions {
	return LoaderOptions{Create: true, PK: []string{"id:string"}, Settle: settle, RetryFor: time.Minute}
}

func (w *world) open(ctx context.Context, o LoaderOptions) *Loader {
	w.t.Helper()
	return conformance.Try(Open(ctx, w.target(), "t", o)).Must(w.t)
}

// close closes a Loader whose load must not fail, and checks its counts.
func (w *world) close(l *Loader) Counts {
	w.t.Helper()
	c, err := l.Close(context.Background())
	conformance.True(w.t, err == nil, "close: %v", err)
	w.balanced(c)
	return c
}

func (w *world) balanced(c Counts) {
	w.t.Helper()
	conformance.Equal(w.t, c.Accepted, c.Written+c.Superseded+c.Rejected+c.Unfinished, "the counts do not add up: %+v", c)
}

// rows reads table t. It returns each key's cells as name=type value, followed by @timestamp if versions is above 1.
func (w *world) rows(versions int) map[string]string {
	w.t.Helper()
	w.plan.WaitLate()
	ctx := context.Background()
	at := w.target()
	to, _, err := at.Open(context.Background())
	must(w.t, err)
	sdk := conformance.Try(client.New(ctx, to, nil)).Must(w.t)
	described := conformance.Try((&client.Admin{Client: sdk, Context: ctx}).Describe("t")).Must(w.t)
	got := map[string]string{}
	err = scan.Table(ctx, sdk, "t", described.Key, scan.Options{Versions: versions}, func(r *scan.Row) error {
		var key, cells []string
		for _, k := range r.PrimaryKey.PrimaryKeys {
			key = append(key, fmt.Sprint(k.Value))
		}
		for _, c := range r.Columns {
			text := fmt.Sprintf("%s=%T %v", c.ColumnName, c.Value, c.Value)
			if versions > 1 {
				text += fmt.Sprintf("@%d", c.Timestamp)
			}
			cells = append(cells, text)
		}
		got[strings.Join(key, "/")] = strings.Join(cells, " ")
		return nil
	})
	must(w.t, err)
	return got
}

// outcomes collects the outcomes that Dones receive.
type outcomes struct {
	mu  sync.Mutex
	all map[int64]Outcome // outcomes by the test's own row numbers
	bad []string
}

// of returns the Done of a row.
func (o *outcomes) of(n int64) func(Outcome) {
	return func(out Outcome) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.all == nil {
			o.all = map[int64]Outcome{}
		}
		if was, twice := o.all[n]; twice {
			o.bad = append(o.bad, fmt.Sprintf("row %d has the outcomes %+v and %+v", n, was, out))
		}
		o.all[n] = out
	}
}

// check compares the collected outcomes with the Loader's counts.
func (o *outcomes) check(t *testing.T, c Counts) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	var told Counts
	for _, out := range o.all {
		told.Accepted++
		switch out.End {
		case Written:
			told.Written++
		case Superseded:
			told.Superseded++
		case Rejected:
			told.Rejected++
			if out.MaybeApplied {
				told.MaybeApplied++
			}
		case Unfinished:
			told.Unfinished++
		default:
			t.Errorf("the outcome %+v has no end", out)
		}
	}
	conformance.Equal(t, told, c, "told, counted")
	for _, text := range o.bad {
		t.Error(text)
	}
}

// noLeaks returns a function that fails the test if a goroutine started after the call is still running. A test in a
// synctest bubble does not need it: the bubble fails by itself.
func noLeaks(t *testing.T) func() {
	t.Helper()
	before := runtime.NumGoroutine()
	return func() {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
			if time.Now().After(deadline) {
				text := make([]byte, 1<<20)
				t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, text[:runtime.Stack(text, true)])
			}
		}
	}
}
