package commands

import (
	"os"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
	"tsimport/pipeline"
	"tsimport/pipeline/plan"
)

// rateFlags are about how fast and in which order rows are written, and what a load may take of the machine.
func rateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "order", Usage: "last-wins (rows of a key are written in input order; a sorted file is read by a schedule that uses all partitions of a new table) or none (any order)", Value: plan.LastWins.String()},
		&cli.IntFlag{Name: "concurrency", Usage: "maximum number of requests in flight, 1 to 4096", Value: pipeline.DefaultConcurrency},
		&cli.StringFlag{Name: "batch-bytes", Usage: "maximum `SIZE` of a request, such as 512KiB, up to 4MiB; for gateways with a lower limit (also detected when they refuse)", Value: "4MiB"},
		&cli.Float64Flag{Name: "max-wcu", Usage: "write at most `UNITS` of capacity a second over all partitions; 0 means no limit"},
		&cli.Float64Flag{Name: "max-rows-per-second", Usage: "write at most `N` rows a second, and read no more of a database; 0 means no limit"},
		&cli.StringFlag{Name: "max-bytes-per-second", Usage: "write at most `SIZE` of rows a second, such as 10MiB, counted as the service does (names and values); 0 means no limit", Value: "0"},
		&cli.StringFlag{Name: "compress", Usage: "compress requests: on, for slow links, or off; the real service was not tried yet", Value: client.CompressOff},
		&cli.StringFlag{Name: "memory", Usage: "`SIZE` of memory for rows, such as 512MiB, at least 16MiB; the process may use 64MiB more, an embedded store 512MiB (default: a quarter of the machine's, at most 1GiB); rows that do not fit wait on disk, in TMPDIR"},
		&cli.StringFlag{Name: "status", Usage: "serve the state of the load over HTTP at `ADDRESS`, such as 127.0.0.1:0 (a free port): /status and /metrics"},
	}
}

const (
	smallMemory = 64 << 20
	// embeddedMemory is what a store in this process takes beside the load: its caches and the requests it answers.
	embeddedMemory = 512 << 20
)

// limitMemory tells the garbage collector how much the process may take, unless the user has told it.
func limitMemory(memory int64, embedded bool) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := plan.MemoryLimit(memory)
	if embedded {
		limit += embeddedMemory
	}
	debug.SetMemoryLimit(limit)
	// Garbage of large records is most of what a small load takes, and the collector overshoots on a busy machine.
	if memory < smallMemory && os.Getenv("GOGC") == "" {
		collectAt(25)
	}
}

// orderWarning says what --order none means for rows of a key that do not simply replace each other.
func orderWarning(w *pipeline.Write) string {
	if w.Order != plan.OrderNone {
		return ""
	}
	const any = "--order none: rows of the same key are written in any order"
	switch {
	case w.Condition != table.Ignore || w.When != nil:
		return any + ", so which of them the condition lets pass is chance"
	case w.Mode == table.Update:
		return any + ", so which of them a column is left with is chance"
	}
	return ""
}
