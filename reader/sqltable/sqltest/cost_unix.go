//go:build unix

package sqltest

import (
	"syscall"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqltable"
)

// Beside reads a table of this many rows alternately as a load would and by a query with the driver alone. It reports
// the CPU time of each in nanoseconds per row, and their ratio.
func Beside(b *testing.B, s sqltable.Server, rows int, byDriver func() int) {
	var alone, load time.Duration
	n := 0
	for b.Loop() {
		before := cpu(b)
		if got := byDriver(); got != rows {
			b.Fatalf("the driver reads %d rows of %d", got, rows)
		}
		middle := cpu(b)
		if got := read(b, s); got != rows {
			b.Fatalf("the source reads %d rows of %d", got, rows)
		}
		alone, load = alone+middle-before, load+cpu(b)-middle
		n += rows
	}
	b.ReportMetric(float64(alone.Nanoseconds())/float64(n), "driver-ns/row")
	b.ReportMetric(float64(load.Nanoseconds())/float64(n), "load-ns/row")
	b.ReportMetric(float64(load)/float64(alone), "times")
}

// cpu returns the CPU time of the process.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	conformance.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func read(b *testing.B, s sqltable.Server) (n int) {
	_, parts := Open(b, s, nil)
	Each(b, parts, nil, func(*record.Record) { n++ })
	return n
}
