package commands

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/urfave/cli/v2"

	"tsimport/bench"
	"tsimport/bench/baseline"
	"tsimport/bench/cost"
	"tsimport/bench/null"
	"tsimport/engine/server"
	"tsimport/internal/tablestore/client"
	"tsimport/internal/tablestore/scan"
	"tsimport/pipeline"
)

func benchClientCommand() *cli.Command {
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
			&cli.DurationFlag{Name: "timeout", Usage: "end the command of --baseline-cmd, and the measurement, after this long; 0 means never", Value: 0},
			textsFlag("load-flag", "one more `FLAG` for tsimport load, such as --load-flag=--concurrency=8; may be repeated"),
			&cli.DurationFlag{Name: "latency", Usage: "of a request"},
			&cli.IntFlag{Name: "partitions", Usage: "of the table", Value: 1},
			&cli.BoolFlag{Name: "tls", Usage: "load over TLS, the server with a certificate of its own"},
			&cli.IntFlag{Name: "procs", Usage: "processors the loads may use (GOMAXPROCS); 0 means all"},
			&cli.StringFlag{Name: "keep", Usage: "`DIR` in which the input and the run folders stay (default: a temporary one)"},
			&cli.BoolFlag{Name: "json", Usage: "print the measurements as one JSON object"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show errors only"},
		},
		Action: benchClient,
	}
}

func benchClient(c *cli.Context) (err error) {
	if c.Args().Present() {
		return usagef("bench client takes no arguments (%q)", c.Args().First())
	}
	shape, err := bench.FindShape(c.String("shape"))
	if err != nil {
		return usagef("--%v", err)
	}
	cfg := cost.Config{
		What: c.String("what"), Rows: c.Uint64("rows"), Shape: shape, Rounds: c.Int("rounds"), Command: c.String("baseline-cmd"), Timeout: c.Duration("timeout"), LoadFlags: textsOf(c, "load-flag"),
		Latency: c.Duration("latency"), Partitions: c.Int("partitions"), TLS: c.Bool("tls"), Procs: c.Int("procs"), Dir: c.String("keep"),
		Say: func(format string, a ...any) { say(c, c.App.ErrWriter, format, a...) },
	}
	if only := c.String("only"); only != "" {
		cfg.Only = strings.Split(only, ",")
	}
	if cfg.Binary, err = os.Executable(); err != nil {
		return fmt.Errorf("find tsimport's own binary: %w", err)
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
	var usage *cost.UsageError
	if errors.As(err, &usage) {
		return usagef("%s", usage.Message)
	}
	if err != nil {
		return fmt.Errorf("bench client: %w", err)
	}
	if c.Bool("json") {
		return printIndented(c, report)
	}
	if err := report.WriteText(results(c)); err != nil {
		return fmt.Errorf("print measurements: %w", err)
	}
	return nil
}

// printIndented prints a result as JSON.
func printIndented(c *cli.Context, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(c.App.Writer, "%s\n", text)
	}
	if err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	return nil
}

func benchNullServerCommand() *cli.Command {
	return &cli.Command{
		Name:   "null-server",
		Usage:  "a Tablestore that answers success and keeps nothing",
		Hidden: true, // what bench client starts
		Description: "Prints url=… when it is ready; any instance will do. It signs its answers with the access\n" +
			"key in TABLESTORE_ACCESS_KEY_ID and TABLESTORE_ACCESS_KEY_SECRET, or else with that of serve; clients need the same one. For each line on\n" +
			"its standard input it prints what it has counted, as JSON; at the end of its input it ends.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Usage: "`ADDRESS`; port 0 picks a free one", Value: "127.0.0.1:0"},
			&cli.DurationFlag{Name: "latency", Usage: "of a BatchWriteRow"},
			&cli.IntFlag{Name: "partitions", Usage: "of a table whose first key column is an integer", Value: 1},
			&cli.StringFlag{Name: "shape", Usage: "of the rows that every table has to read", Value: "12"},
			&cli.Uint64Flag{Name: "rows", Usage: "that every table has; 0 is none, to be read by nobody"},
			&cli.StringFlag{Name: "tls-ca", Usage: "speak TLS and write the authority that signs the certificate to `FILE`"},
		},
		Action: nullServer,
	}
}

func nullServer(c *cli.Context) error {
	o := null.Options{Latency: c.Duration("latency"), Partitions: c.Int("partitions"), First: bench.FirstID, Last: bench.LastID,
		AccessKeyID:     cmp.Or(os.Getenv("TABLESTORE_ACCESS_KEY_ID"), server.DefaultAccessKeyID),
		AccessKeySecret: cmp.Or(os.Getenv("TABLESTORE_ACCESS_KEY_SECRET"), server.DefaultAccessKeySecret)}
	if n := c.Uint64("rows"); n > 0 {
		shape, err := bench.FindShape(c.String("shape"))
		if err == nil {
			o.Rows, err = cost.StoredRows(shape, n)
		}
		if err != nil {
			return fmt.Errorf("make rows: %w", err)
		}
	}
	scheme := "http"
	if file := c.String("tls-ca"); file != "" {
		config, pem, err := null.NewAuthority()
		if err != nil {
			return fmt.Errorf("make a certificate: %w", err)
		}
		write := func(w io.Writer) error { _, err := w.Write(pem); return err }
		if err := writeOutput(c.Context, file, c.App.Writer, write); err != nil {
			return fmt.Errorf("write the authority: %w", err)
		}
		o.TLS, scheme = config, "https"
	}
	listener, err := net.Listen("tcp", c.String("listen"))
	if err != nil {
		return fmt.Errorf("listen on %s: %w", c.String("listen"), err)
	}
	sink := null.New(o)
	context.AfterFunc(c.Context, func() { listener.Close() })
	fmt.Fprintf(c.App.Writer, "url=%s://%s\n", scheme, listener.Addr())
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			counts := cost.Counts{Requests: sink.Requests.Load(), Rows: sink.Rows.Load(), Connections: sink.Connections.Load()}
			if printJSONLine(c.App.Writer, counts) != nil {
				break
			}
		}
		listener.Close()
	}()
	return sink.Serve(listener)
}

func benchBaselineCommand() *cli.Command {
	return &cli.Command{
		Name:        "baseline",
		Usage:       "load a file with the SDK",
		ArgsUsage:   "WAY",
		Hidden:      true, // what bench client starts
		Description: "The environment is that of bench client's --baseline-cmd; WAY is sequential, workers or timeline.",
		Action:      benchBaseline,
	}
}

func benchBaseline(c *cli.Context) error {
	load, ok := baseline.Ways[c.Args().First()]
	if !ok || c.NArg() != 1 {
		return usagef("bench baseline: want sequential, workers or timeline")
	}
	l := baseline.Load{File: os.Getenv("BENCH_FILE"), Table: os.Getenv("BENCH_TABLE")}
	for _, text := range strings.Split(os.Getenv("BENCH_COLUMNS"), ",") {
		name, kind, _ := strings.Cut(text, ":")
		kinds := map[string]baseline.Kind{"integer": baseline.Integer, "double": baseline.Double, "string": baseline.String}
		k, ok := kinds[kind]
		if !ok {
			return usagef("BENCH_COLUMNS: %q: want NAME:integer, :double or :string", text)
		}
		l.Columns = append(l.Columns, baseline.Column{Name: name, Kind: k})
	}
	l.Client = tablestore.NewClientWithConfig(os.Getenv(endpointEnv), os.Getenv(instanceEnv), os.Getenv("TABLESTORE_ACCESS_KEY_ID"),
		os.Getenv("TABLESTORE_ACCESS_KEY_SECRET"), "", nil)
	start := time.Now()
	written, err := load(l, c.Context)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Args().First(), &client.Error{Cause: err})
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	_, peak := pipeline.Resources()
	return printJSONLine(c.App.Writer, map[string]any{"written": written, "seconds": time.Since(start).Seconds(),
		"allocations": memory.Mallocs, "allocated_bytes": memory.TotalAlloc, "peak_rss_bytes": peak})
}

func benchScanTableCommand() *cli.Command {
	return &cli.Command{
		Name:        "scan-table",
		Usage:       "read a table and count its rows",
		ArgsUsage:   "TABLE",
		Hidden:      true, // what bench client starts
		Description: "The environment is that of bench client's --baseline-cmd.",
		Action:      benchScanTable,
	}
}

// benchScanTable reads a table as comparisons and copies do, and does nothing with its rows.
func benchScanTable(c *cli.Context) error {
	if c.NArg() != 1 {
		return usagef("bench scan-table: want a table")
	}
	target := client.Target{Endpoint: os.Getenv(endpointEnv), Instance: os.Getenv(instanceEnv), Credentials: &common.DefaultCredentialsProvider{
		AccessKeyID: os.Getenv("TABLESTORE_ACCESS_KEY_ID"), AccessKeySecret: os.Getenv("TABLESTORE_ACCESS_KEY_SECRET")}}
	sdk, err := client.New(c.Context, target, nil)
	if err != nil {
		return err
	}
	admin := &client.Admin{Client: sdk, Context: c.Context}
	t, err := admin.Describe(c.Args().First())
	if err != nil {
		return err
	}
	start, rows := time.Now(), int64(0)
	if err := scan.Packed(c.Context, sdk, t.Name, t.Key, scan.Options{}, new(scan.PackedPage), func(int) error {
		rows++
		return nil
	}); err != nil {
		return err
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	_, peak := pipeline.Resources()
	return printJSONLine(c.App.Writer, map[string]any{"rows": rows, "seconds": time.Since(start).Seconds(),
		"allocations": memory.Mallocs, "allocated_bytes": memory.TotalAlloc, "peak_rss_bytes": peak})
}

// noteUse writes what this process has allocated, and its peak memory, to the file that bench client names: what the system says of the peak has
// bench client's own in it. Commands whose output is theirs cannot say it there.
func noteUse() {
	name := os.Getenv(cost.UsedEnv)
	if name == "" {
		return
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	_, peak := pipeline.Resources()
	text, err := json.Marshal(map[string]any{"allocations": memory.Mallocs, "allocated_bytes": memory.TotalAlloc, "peak_rss_bytes": peak})
	if err == nil {
		cost.NoteUsed(name, text)
	}
}
