package tsimport

import (
	"context"
	"strconv"
	"testing"

	"example.com/tsimport/engine/server"
)

// BenchmarkPut puts rows of three columns into the embedded engine, which takes most of the time.
func BenchmarkPut(b *testing.B) {
	s, err := server.Open("", server.Options{InMemory: true})
	must(b, err)
	defer s.Close()
	w := &world{Server: s}
	ctx := context.Background()
	l, err := Open(ctx, w.target(), "t", loaderOptions())
	must(b, err)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		must(b, l.Put(ctx, Row{Columns: []Column{String("id", strconv.Itoa(n)), Int64("n", int64(n)), Float64("x", 0.5)}}))
	}
	if c, err := l.Close(ctx); err != nil || c.Written != int64(n) {
		b.Fatal(c, err)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
}
