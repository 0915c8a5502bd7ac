package pipeline

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

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
