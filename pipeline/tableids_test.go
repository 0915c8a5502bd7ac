package pipeline

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/lanes"
)

func (w *world) admin() *client.Admin {
	w.t.Helper()
	return &client.Admin{Client: w.sdk(), Context: context.Background()}
}

// remake drops a table and makes it again as it was.
func (w *world) remake(name string) {
	w.t.Helper()
	admin := w.admin()
	if err := admin.Drop(name); err != nil {
		w.t.Error(err)
	}
	if err := admin.Create(name, []table.KeyColumn{{Name: "id", Type: table.String}}, table.Definition{TimeToLive: -1, MaxVersions: 1}); err != nil {
		w.t.Error(err)
	}
}

func TestARunWithARecreatedOrDroppedTableIsNotResumed(t *testing.T) {
	for name, want := range map[string]string{"made again": "table t_b was dropped and created again", "gone": "table t_b was dropped"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.template = "t_{what}"
			cfg := w.config(w.file("in.csv", fortyRows()))
			cfg.Lanes.BatchRows, cfg.Lanes.Concurrency = 1, 1
			cfg.Pacer = func() lanes.Pacer { return restless{} }
			cfg.Resume.Look = true
			drain, stop := context.WithCancelCause(context.Background())
			sent := 0
			cfg.Drain, cfg.onSend = drain, func([]table.Ref) {
				if sent++; sent == 30 { // so there are both tables
					stop(&Interrupted{Signal: "the test", ExitCode: exitcode.Interrupted})
				}
			}
			if r := w.load(cfg); r.State != StateInterrupted {
				t.Fatalf("%+v", r)
			}
			cfg.Drain = nil
			w.remake("t_b")
			if name == "gone" {
				must(t, w.admin().Drop("t_b"))
			}
			if text := w.refused(cfg); !strings.Contains(text, want) || !strings.Contains(text, "--fresh") {
				t.Errorf("error %s", text)
			}
		})
	}
}

// fortyRows is a file whose rows go to t_a and t_b in turns.
func fortyRows() string {
	return rowsOf("id,what\n", 40, func(i int) string { return fmt.Sprintf("key%d,%c\n", i, 'a'+i%2) })
}

// Without a look at the end nobody would see it: the rows after it are written as well as those before.
func TestATableRecreatedDuringTheLoadFailsIt(t *testing.T) {
	for _, template := range []string{"", "t_{what}"} {
		t.Run("table "+template, func(t *testing.T) {
			w := newWorld(t)
			w.template = template
			cfg := w.config(w.file("in.csv", fortyRows()))
			cfg.Lanes.BatchRows, cfg.Lanes.Concurrency = 1, 1
			cfg.Pacer = func() lanes.Pacer { return restless{} }
			cfg.Resume.Look = true
			sent, name := 0, "t"
			if template != "" {
				name = "t_a"
			}
			cfg.onSend = func([]table.Ref) {
				if sent++; sent == 20 {
					w.remake(name)
				}
			}
			r, err := cfg.run(context.Background())
			if err == nil || r.ExitCode != exitcode.Refused || !strings.Contains(err.Error(), "table "+name+" was dropped and created again") {
				t.Fatalf("exit code %d, error %v", r.ExitCode, err)
			}
			if !r.Remade {
				t.Error("the report does not say that the table was made again")
			}
			conformance.Contains(t, w.refused(cfg), "was dropped and created again", "the same command again")
		})
	}
}

// A look at the partitions sees it before all rows are sent.
func TestALoadStopsWhenItsTableIsSeenToBeAnother(t *testing.T) {
	ids := keep.NewTableIDs()
	survey := newPartitionPoller(onePartition{}, 0)
	for _, created := range []int64{1, 0, 1} { // 0 is a service that does not say
		survey.note(false, ids.See("t", created))
	}
	select {
	case err := <-survey.fatal:
		t.Fatal(err)
	default:
	}
	for _, created := range []int64{2, 3} {
		survey.note(false, fmt.Errorf("look: %w", ids.See("t", created)))
	}
	select {
	case err := <-survey.fatal:
		if !strings.Contains(err.Error(), "created again") {
			t.Error(err)
		}
	default:
		t.Error("nothing stops the load")
	}
}

// clocked notes when the partitions were read.
type clocked struct {
	begun time.Time
	at    []time.Duration
}

func (c *clocked) Read(now time.Time) ([]table.Value, bool, error) {
	c.at = append(c.at, now.Sub(c.begun).Round(time.Second))
	return nil, true, nil
}

func TestTheMapIsReadSoonInTheBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &clocked{begun: time.Now()}
		s := newPartitionPoller(c, 0)
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Second)
		defer stop()
		must(t, s.run(ctx))
		// A quarter of a second passes after each reading before the next may come.
		if want := []time.Duration{1 * time.Second, 3 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, 62 * time.Second, 93 * time.Second}; !slices.Equal(c.at, want) {
			t.Errorf("read after %v, want %v", c.at, want)
		}
	})
}

// heldReading holds back the first DescribeTable that comes while rows are sent, which asks for the partitions, and the rows until it comes.
type heldReading struct {
	http.RoundTripper
	writing, waiting, over atomic.Bool
	held                   chan struct{} // closed when it waits
}

func (h *heldReading) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/BatchWriteRow"):
		h.writing.Store(true)
		<-h.held
	case strings.HasSuffix(r.URL.Path, "/DescribeTable") && h.writing.Load() && !h.over.Swap(true):
		h.waiting.Store(true)
		close(h.held)
		<-r.Context().Done()
		h.waiting.Store(false)
		return nil, context.Cause(r.Context())
	}
	return h.RoundTripper.RoundTrip(r)
}

// A reading of the partitions may take longer than the load. It must end with it: it would hold a connection, and could make tables.
func TestNoReadingOfPartitionsOutlivesTheLoad(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		h := &heldReading{RoundTripper: w.transport(), held: make(chan struct{})}
		cfg := w.config(w.file("in.csv", "id,n\na,1\nb,2\n"))
		cfg.Target.Client.Transport = h
		if r := w.load(cfg); r.Written != 2 || !h.over.Load() {
			t.Errorf("%d rows written; a reading was held back: %v", r.Written, h.over.Load())
		}
		if h.waiting.Load() {
			t.Error("a reading still waits for its answer")
		}
	})
}

// slowReading is a reading that takes a minute and cannot be stopped.
type slowReading struct{ running, most atomic.Int64 }

func (s *slowReading) Read(time.Time) ([]table.Value, bool, error) {
	s.most.Store(max(s.most.Load(), s.running.Add(1)))
	time.Sleep(time.Minute)
	s.running.Add(-1)
	return nil, true, nil
}

func TestReadingsOfPartitionsNeverRunTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := new(slowReading)
		s := newPartitionPoller(from, 0)
		gentle, stop := context.WithTimeout(t.Context(), time.Second) // the load drains while it first reads the partitions
		defer stop()
		conformance.Equal(t, s.readWithin(gentle), nil, "the first reading")
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		conformance.Equal(t, s.run(ctx), nil, "error")
		time.Sleep(2 * time.Minute)
		if most, running := from.most.Load(), from.running.Load(); most != 1 || running != 0 {
			t.Errorf("%d readings at the same time, %d still run", most, running)
		}
	})
}
