//go:build unix

package sqltest

import (
	"context"
	"errors"
	"io"
	"syscall"
	"testing"
	"time"

	"tsimport/reader/record"
	"tsimport/reader/source"
	"tsimport/reader/sqltable"
)

// Beside reads a server's table of so many rows as a load does, and by a function as one query of the driver alone, in turns. It reports the CPU of
// each in nanoseconds a row, and how often that of the second the first takes.
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

// cpu is what the process has taken of the machine so far.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func read(b *testing.B, s sqltable.Server) (n int) {
	o := sqltable.New(sqltable.Config{Server: s})
	division, err := o.Divide(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	parts, err := o.Open(context.Background(), division)
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range parts {
		parser := p.NewParser(nil)
		for {
			piece, err := p.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			var splits []source.Split
			if err == nil {
				splits, err = p.Add(piece)
			}
			if err == nil {
				_, _, err = parser.Parse(splits[0], func(*record.Record) { n++ })
			}
			if err != nil {
				b.Fatal(err)
			}
			splits[0].Part.(source.Reusable).Reuse()
		}
	}
	for _, p := range parts {
		if err := p.Close(); err != nil {
			b.Fatal(err)
		}
	}
	return n
}
