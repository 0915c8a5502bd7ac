package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/bench"
	"example.com/tsimport/bench/cost"
	"example.com/tsimport/pipeline/plan"
)

func clientCommand() *cli.Command {
	return &cli.Command{
		Name:  "client",
		Usage: "measure what a row costs the client, compared with hand-written SDK programs",
		Description: "Generates rows and loads them into a server in a process of its own that reads requests and answers success:\n" +
			"  tsimport    tsimport load\n" +
			"  sequential  the SDK, one goroutine, 200 rows a request\n" +
			"  workers     the SDK, one goroutine that reads and 32 that take rows off a channel and write 200 at a time\n" +
			"  timeline    the batch writer of the SDK's timeline library\n" +
			"  external    --baseline-cmd\n" +
			"The floor is the least that any client needs, measured in the same run: encoding/csv, PlainBuffer encoding and the MD5\n" +
			"of the requests. With --what export, scan, verify or copy the server gives the same rows to read, and the floor is the MD5 of the answers\n" +
			"and PlainBuffer decoding with its checksums, beside that of the other side; with inspect (--count) and check (--unique) it is reading the file\n" +
			"and encoding/csv.\n" +
			"The command of --baseline-cmd finds TABLESTORE_ENDPOINT, TABLESTORE_INSTANCE,\n" +
			"TABLESTORE_ACCESS_KEY_ID, TABLESTORE_ACCESS_KEY_SECRET, BENCH_FILE (CSV with a header), BENCH_TABLE (which exists),\n" +
			"BENCH_COLUMNS (NAME:TYPE, comma-separated, the primary key first) and BENCH_ROWS in its environment; it must write\n" +
			"every row once, and may print {\"allocations\": N, \"allocated_bytes\": N, \"peak_rss_bytes\": N}.",
		Flags: []cli.Flag{
			&cli.Uint64Flag{Name: "rows", Usage: "how many", Value: 1_000_000},
			&cli.StringFlag{Name: "shape", Usage: "12 (columns, 150 bytes of CSV), 3 (60 bytes), 60; 4k, 64k or 2m (one cell of that size), 1000 (columns), null (no values), names (long ones)", Value: "12"},
			&cli.StringFlag{Name: "what", Usage: strings.Join(cost.Whats, ", ") + ": what is measured", Value: cost.Loading},
			&cli.IntFlag{Name: "rounds", Usage: "number of loads of each kind, in turns; the median counts", Value: 3},
			&cli.StringFlag{Name: "only", Usage: "only these `LOADS`, comma-separated"},
			&cli.StringFlag{Name: "baseline-cmd", Usage: "a further load, run by /bin/sh -c `COMMAND`"},
			&cli.DurationFlag{Name: "timeout", Usage: "end the command of --baseline-cmd, and the measurement, after this long; 0 means never"},
			&cli.StringSliceFlag{Name: "load-flag", Usage: "one more `FLAG` for tsimport load, such as --load-flag=--concurrency=8; may be repeated"},
			&cli.DurationFlag{Name: "latency", Usage: "of a request"},
			&cli.IntFlag{Name: "partitions", Usage: "of the table", Value: 1},
			&cli.BoolFlag{Name: "tls", Usage: "load over TLS, the server with a certificate of its own"},
			&cli.IntFlag{Name: "procs", Usage: "processors the loads may use (GOMAXPROCS); 0 means all"},
			&cli.StringFlag{Name: "keep", Usage: "`DIR` in which the input and the run folders stay (default: a temporary one)"},
			&cli.BoolFlag{Name: "json", Usage: "print the measurements as one JSON object"},
		},
		Action: measureClient,
	}
}

func measureClient(c *cli.Context) (err error) {
	if c.Args().Present() {
		return plan.Usagef("client takes no arguments (%q)", c.Args().First())
	}
	shape, err := bench.FindShape(c.String("shape"))
	if err != nil {
		return plan.Usagef("--%v", err)
	}
	cfg := cost.Config{
		What: c.String("what"), Rows: c.Uint64("rows"), Shape: shape, Rounds: c.Int("rounds"), Command: c.String("baseline-cmd"), Timeout: c.Duration("timeout"), LoadFlags: c.StringSlice("load-flag"),
		Latency: c.Duration("latency"), Partitions: c.Int("partitions"), TLS: c.Bool("tls"), Procs: c.Int("procs"), Dir: c.String("keep"), Say: say(c),
	}
	if only := c.String("only"); only != "" {
		cfg.Only = strings.Split(only, ",")
	}
	if cfg.Binary, err = os.Executable(); err != nil {
		return err
	}
	if cfg.Dir == "" {
		if cfg.Dir, err = os.MkdirTemp("", "tsimport-bench-*"); err != nil {
			return fmt.Errorf("make a folder for the input: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(cfg.Dir)) }()
	} else if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return fmt.Errorf("make a folder for the input: %w", err)
	}
	report, err := cost.Run(c.Context, cfg)
	if err != nil {
		return err
	}
	return show(c, report)
}
