package commands

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/bench"
	"example.com/tsimport/bench/result"
	"example.com/tsimport/bench/write"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
)

func benchCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:        "bench",
		Usage:       "measure how fast a table takes rows",
		Subcommands: []*cli.Command{benchWriteCommand(in)},
	}
}

func benchWriteCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:  "write",
		Usage: "measure how fast a table takes rows",
		Description: "Creates a table, writes generated rows to it, in requests of --batch-rows rows of one partition, and " +
			"drops it.\n" +
			"Without --rate each worker sends when its last request is answered; with it rows are due at a fixed rate, and " +
			"the latency of a batch counts from when it was due, so that a stall of the table shows in full. --find-max looks " +
			"for the highest rate within --max-p99 and --max-throttled, and holds it for --duration. docs/bench.md explains " +
			"each number.",
		Flags: append(flagsOf(options.Reaching), []cli.Flag{
			&cli.Int64Flag{Name: "rows", Usage: "rows to write (default: as many as --duration allows)"},
			&cli.DurationFlag{Name: "duration", Usage: "how long to write, including the warm-up (default 30s without --rows)"},
			&cli.DurationFlag{Name: "warmup", Usage: "time at the beginning that is not measured"},
			&cli.IntFlag{Name: "row-size", Usage: "`BYTES` of a row as the service counts them, names and values", Value: 200},
			&cli.IntFlag{Name: "columns", Usage: "attribute columns of a row", Value: 5},
			&cli.StringFlag{Name: "keys", Usage: "random, sequential, zipf (a few keys are frequent) or student-cards",
				Value: string(bench.RandomKeys)},
			&cli.IntFlag{Name: "batch-rows", Usage: "rows in a request (default: 200, the service's limit)"},
			&cli.IntFlag{Name: "concurrency", Usage: "maximum number of requests in flight", Value: pipeline.DefaultConcurrency},
			&cli.Float64Flag{Name: "rate", Usage: "`ROWS` a second, at fixed times (default: as fast as answers come)"},
			&cli.BoolFlag{Name: "find-max", Usage: "find the highest rate within the limits"},
			&cli.DurationFlag{Name: "max-p99", Usage: "find-max: limit of the 99th percentile of latency; 0s means none",
				Value: 20 * time.Millisecond},
			&cli.StringFlag{Name: "max-throttled", Usage: "find-max: limit of rows throttled, `SHARE%` of all", Value: "1%"},
			&cli.Float64Flag{Name: "start-rate", Usage: "find-max: `ROWS` a second to begin with", Value: 1000},
			&cli.DurationFlag{Name: "step", Usage: "find-max: how long each rate is tried", Value: 5 * time.Second},
			&cli.Uint64Flag{Name: "seed", Usage: "the same seed gives the same rows", Value: 1},
			&cli.StringFlag{Name: "table-prefix", Usage: "prefix of the table's name", Value: "tsimport_bench_"},
			&cli.BoolFlag{Name: "keep", Usage: "do not drop the table"},
			&cli.DurationFlag{Name: "retry-for", Usage: "give up after this long without progress", Value: time.Minute},
			&cli.StringFlag{Name: "sync", Usage: "embedded store: always (rows survive a crash) or none", Value: "always"},
			&cli.StringFlag{Name: "samples", Usage: "write every request to `FILE`, a JSON object a line"},
			&cli.StringFlag{Name: "benchfmt", Usage: "append the result to `FILE` in Go's benchmark format, for benchstat"},
			&cli.BoolFlag{Name: "json", Usage: "print the result as one JSON object"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show errors only"},
		}...),
		Action: in.with(options.Reaching, benchWrite),
	}
}

func benchWrite(c *call) (err error) {
	cfg, err := benchWriteConfig(c)
	if err != nil {
		return err
	}
	noSync, err := parseSync(c.String("sync"))
	if err != nil {
		return err
	}
	files, err := openBenchFiles(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.close()) }()
	cfg.Samples = files.samples
	closeTarget, err := benchTarget(c, &cfg, noSync)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeTarget()) }()
	c.interrupts.drains()
	res, err := write.Run(c.interrupts.drain, c.interrupts.hard, cfg)
	if res == nil || res.Totals.Requests == 0 {
		return err
	}
	return errors.Join(err, files.write(res), printed(c, res, res.WriteText))
}

// benchTarget opens the target. A store that it creates is removed by closeTarget, unless its table is kept.
func benchTarget(c *call, cfg *write.Config, noSync bool) (closeTarget func() error, err error) {
	_, statErr := os.Stat(cmp.Or(c.String("store"), defaultStore))
	t, err := openTarget(c, access{create: true, noSync: noSync})
	if err != nil {
		return nil, err
	}
	cfg.Client, cfg.Target = t.Target, t.name
	return func() error {
		err := t.close()
		if t.embedded && errors.Is(statErr, os.ErrNotExist) && !cfg.Keep {
			err = errors.Join(err, os.RemoveAll(t.dir))
		}
		return err
	}, nil
}

func benchWriteConfig(c *call) (cfg write.Config, err error) {
	if c.Args().Present() {
		return cfg, usagef("bench write takes no arguments (%q)", c.Args().First())
	}
	cfg = write.Config{
		TablePrefix: c.String("table-prefix"), Keep: c.Bool("keep"),
		Shape: write.Shape{RowSize: c.Int("row-size"), Columns: c.Int("columns"), Keys: bench.KeyKind(c.String("keys")),
			Seed: c.Uint64("seed")},
		Rows: c.Int64("rows"), Duration: c.Duration("duration"), WarmUp: c.Duration("warmup"),
		BatchRows: c.Int("batch-rows"), Concurrency: c.Int("concurrency"), Rate: c.Float64("rate"),
		RetryFor: c.Duration("retry-for"), Say: c.say,
	}
	if !c.IsSet("rows") && !c.IsSet("duration") {
		cfg.Duration = 30 * time.Second
	}
	for name, bad := range map[string]bool{
		"rows": cfg.Rows < 1, "duration": cfg.Duration <= 0, "rate": cfg.Rate <= 0, "batch-rows": cfg.BatchRows < 1,
		"retry-for": cfg.RetryFor <= 0, "start-rate": c.Float64("start-rate") <= 0, "step": c.Duration("step") <= 0,
	} {
		if bad && c.IsSet(name) {
			return cfg, usagef("--%s: want more than 0", name)
		}
	}
	if !c.Bool("find-max") {
		for _, name := range []string{"max-p99", "max-throttled", "start-rate", "step"} {
			if c.IsSet(name) {
				return cfg, usagef("--%s needs --find-max", name)
			}
		}
		return cfg, nil
	}
	cfg.Search = &write.Search{MaxP99: c.Duration("max-p99"), Start: c.Float64("start-rate"), Step: c.Duration("step")}
	cfg.Search.MaxThrottled, err = parseThrottled(c.String("max-throttled"))
	if err != nil {
		return cfg, usagef("--max-throttled %v", err)
	}
	return cfg, nil
}

// parseThrottled parses a percentage such as 1% or 0.5%.
func parseThrottled(text string) (float64, error) {
	number, ok := strings.CutSuffix(text, "%")
	p, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(p >= 0 && p < 100) {
		return 0, fmt.Errorf("%q: want a percentage below 100%%, such as 1%%", text)
	}
	return p / 100, nil
}

// benchFiles are the output files. They are opened before the run, so that an unwritable name fails at once.
type benchFiles struct {
	samples            *result.SampleWriter
	sampleFile, stream *os.File
}

func openBenchFiles(c *call) (f *benchFiles, err error) {
	f = new(benchFiles)
	for _, open := range []struct {
		flag string
		how  int
		to   **os.File
	}{
		{"samples", os.O_TRUNC, &f.sampleFile}, {"benchfmt", os.O_APPEND, &f.stream},
	} {
		name := c.String(open.flag)
		if name == "" {
			continue
		}
		if *open.to, err = createOutput(c, name, open.how); err != nil {
			return nil, errors.Join(usagef("--%s: %v", open.flag, err), f.close())
		}
	}
	if f.sampleFile != nil {
		f.samples = result.NewSampleWriter(f.sampleFile)
	}
	return f, nil
}

func (f *benchFiles) write(r *result.Result) (err error) {
	var text bytes.Buffer
	if f.stream != nil {
		// The result is written at once, so that two runs appending to one file do not interleave.
		r.WriteBenchmark(&text)
		if _, err = f.stream.Write(text.Bytes()); err != nil {
			err = fmt.Errorf("write --benchfmt: %w", err)
		}
	}
	return err
}

func (f *benchFiles) close() (err error) {
	if f.samples != nil {
		err = f.samples.Flush()
	}
	for _, file := range []*os.File{f.sampleFile, f.stream} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return err
}
