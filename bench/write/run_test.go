package write

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/tsimport/bench"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/internal/words"
)

func configOf(target client.Target) Config {
	return Config{Client: target, Target: "an engine in memory", TablePrefix: "bench_",
		Shape: Shape{RowSize: 100, Columns: 3, Keys: bench.RandomKeys, Seed: 1}, Rows: 5000, Concurrency: 4}
}

func tables(t *testing.T, a *client.Admin) []string {
	t.Helper()
	return conformance.Try(a.List()).Must(t)
}

func TestRunDropsOnlyItsOwnTable(t *testing.T) {
	store := tabletest.Open(t, server.Options{})
	must(t, store.Admin.Create("bench_mine", []table.KeyColumn{{Name: "id", Type: table.Integer}}, tabletest.Plain))
	res, err := Run(t.Context(), t.Context(), configOf(store.Target))
	must(t, err)
	conformance.True(t, res.Totals.Rows == 5000 && res.Totals.Units == 5000 && res.Totals.Bytes == 500000 &&
		res.Latency.Count == 25 && len(res.Partitions) == 1,
		"totals %+v, %d batches, %d partitions", res.Totals, res.Latency.Count, len(res.Partitions))
	conformance.Same(t, tables(t, store.Admin), []string{"bench_mine"}, "tables")
	keep := configOf(store.Target)
	keep.Keep = true
	res, err = Run(t.Context(), t.Context(), keep)
	conformance.True(t, err == nil && slices.Contains(tables(t, store.Admin), res.Settings.Table),
		"%v; the table that was to be kept is not in %v", err, tables(t, store.Admin))
}

func TestStoppedRunDropsTableAndReports(t *testing.T) {
	for _, hardToo := range []bool{false, true} {
		store := tabletest.Open(t, server.Options{})
		cause := errors.New("stopped by a test")
		gentle, stop := context.WithCancelCause(t.Context())
		hard, stopHard := context.WithCancelCause(t.Context())
		c := configOf(store.Target)
		c.Rows, c.Duration = 0, time.Hour
		c.Say = func(_ words.Kind, line string) {
			if strings.HasSuffix(line, " created") {
				time.AfterFunc(50*time.Millisecond, func() {
					stop(cause)
					if hardToo {
						stopHard(cause)
					}
				})
			}
		}
		res, err := Run(gentle, hard, c)
		conformance.Is(t, err, cause, "hard %v: cause", hardToo)
		conformance.True(t, res == nil || res.Stopped == cause.Error(), "hard %v: result %+v", hardToo, res)
		conformance.Equal(t, len(tables(t, store.Admin)), 0, "hard %v: tables are left", hardToo)
	}
}

func TestPhaseClosesConnections(t *testing.T) {
	store := tabletest.Open(t, server.Options{})
	var open atomic.Int64
	web := httptest.NewUnstartedServer(store)
	web.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	web.Start()
	defer web.Close()
	target := store.Target
	target.Endpoint, target.Transport = web.URL, nil
	c := configOf(target)
	c.Rows, c.Concurrency = 20_000, 32
	must(t, conformance.ErrorOf(Run(t.Context(), t.Context(), c)))
	// The SDK's clients keep a few connections.
	for end := time.Now().Add(5 * time.Minute); open.Load() > 8; time.Sleep(time.Millisecond) {
		conformance.MustTrue(t, !time.Now().After(end), "%d connections are still open", open.Load())
	}
}

func TestBatchesUseTablePartitions(t *testing.T) {
	c := configOf(tabletest.Open(t, server.Options{Simulation: &server.Simulation{Config: sim.Config{Partitions: 4,
		Sample: []sim.Key{sim.IntegerKey(-1 << 62), sim.IntegerKey(0), sim.IntegerKey(1 << 62),
			sim.IntegerKey(1<<62 + 1)}}}}).Target)
	c.Rows, c.Rate = 6000, 6000 // takes a second, during which the partition map is read
	res := conformance.Try(Run(t.Context(), t.Context(), c)).Must(t)
	sum := int64(0)
	for _, p := range res.Partitions {
		sum += p.Rows
	}
	conformance.True(t, len(res.Partitions) >= 3 && sum == 6000, "partitions %+v", res.Partitions)
}
