package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"tsimport/internal/exitcode"

	"github.com/urfave/cli/v2"

	"tsimport/bench"
	"tsimport/bench/spread"
	"tsimport/engine/faults"
	"tsimport/internal/limiter"
	"tsimport/pipeline/options"
)

func benchCommand(interrupts *interrupts) *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "benchmark loads and tables",
		Subcommands: []*cli.Command{
			benchSpreadCommand(), benchWriteCommand(interrupts), benchClientCommand(), benchReadInputCommand(), benchNullServerCommand(), benchBaselineCommand(), benchScanTableCommand(),
		},
	}
}

func benchSpreadCommand() *cli.Command {
	return &cli.Command{
		Name:      "spread",
		Usage:     "measure how evenly loads use the partitions of a table with limited capacity",
		ArgsUsage: "[FILE]",
		Description: "Loads the student-card dataset, or FILE, into a table of simulated partitions in several ways, each on a fresh\n" +
			"engine in a process of its own, and shows how much of the partitions' capacity each has used:\n" +
			"  naive          the official SDK, 200 rows a request in file order, one worker, the SDK's retries\n" +
			"  parallel       the same with 32 workers\n" +
			"  preshuffled    the whole file shuffled first (that time counts), then loaded as parallel\n" +
			"  tsimport       tsimport load, the last row of a key wins\n" +
			"  tsimport-none  tsimport load --order none\n" +
			"After a load by tsimport it compares every row of the table with the file; exit code 1 means that they differ.\n" +
			"Of FILE, the SDK's loaders need plain CSV with a header that has the key columns, or the columns they are computed from.",
		Flags: []cli.Flag{
			textsFlag("pk", "with FILE: primary-key column, as for tsimport load, in order, 1 to 4 times"),
			&cli.Uint64Flag{Name: "rows", Usage: "student cards: number of rows", Value: 1_000_000},
			&cli.StringFlag{Name: "order", Usage: "student cards: sorted (by CardID), arrival or random", Value: string(bench.Sorted)},
			&cli.IntFlag{Name: "partitions", Usage: "of the table, with equal numbers of rows", Value: 32},
			&cli.Float64Flag{Name: "partition-wcu", Usage: "write capacity `UNITS` a second of each partition", Value: 1000},
			&cli.StringFlag{Name: "limiter", Usage: "`NAME` of how capacity limits: " + limiterNames, Value: limiter.TokenBucket},
			&cli.Float64Flag{Name: "limit-instance", Usage: "write capacity `UNITS` a second of the whole instance, which refuses requests with 429 OTSFlowControl"},
			&cli.Float64Flag{Name: "limit-table", Usage: "write capacity `UNITS` a second of the whole table, beside its partitions'"},
			&cli.StringFlag{Name: "outage", Usage: outageUsage},
			&cli.BoolFlag{Name: "known-rate", Usage: "tell tsimport the partitions' capacity"},
			&cli.DurationFlag{Name: "latency", Usage: "of a request", Value: 5 * time.Millisecond},
			textsFlag("slow", "partition `N:FACTOR`, from 0 in key order, has this share of the capacity; may be repeated"),
			&cli.GenericFlag{Name: "splits", Usage: "begin with one partition and halve all of them, 2s after the first row and then each `EVERY` (--splits=3s; default 5s), until there are --partitions; each is unavailable for 1s", Value: new(optionalDuration)},
			&cli.StringFlag{Name: "only", Usage: "only these `WAYS` to load, comma-separated"},
			&cli.Float64Flag{Name: "baseline-seconds", Usage: "stop the SDK's loads after this many seconds and measure them until then", Value: 60},
			&cli.StringFlag{Name: "memory", Usage: "`SIZE` for tsimport load --memory"},
			&cli.Uint64Flag{Name: "seed", Usage: "the same seed gives the same rows and the same shuffle", Value: 1},
			&cli.StringFlag{Name: "keep", Usage: "`DIR` in which datasets, stores and run folders stay (default: a temporary one)"},
			&cli.BoolFlag{Name: "json", Usage: "print the measurements as one JSON object"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show errors only"},
		},
		Action: benchSpread,
	}
}

// optionalDuration is a flag that may stand without a value.
type optionalDuration time.Duration

// defaultSplits is --splits without a value.
const defaultSplits = 5 * time.Second

// IsBoolFlag tells the flag package that the value may be missing.
func (d *optionalDuration) IsBoolFlag() bool { return true }

func (d *optionalDuration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *optionalDuration) Set(text string) error {
	if text == "true" {
		*d = optionalDuration(defaultSplits)
		return nil
	}
	v, err := time.ParseDuration(text)
	if err != nil || v < time.Millisecond {
		return errors.New("want a duration such as 3s")
	}
	*d = optionalDuration(v)
	return nil
}

func benchSpread(c *cli.Context) error {
	cfg, err := benchSpreadConfig(c)
	if err != nil {
		return err
	}
	report, err := spread.Run(c.Context, cfg)
	var usage *spread.UsageError
	if errors.As(err, &usage) {
		return usagef("%s", usage.Message)
	}
	if err != nil {
		return err
	}
	if c.Bool("json") {
		text, err := json.MarshalIndent(report, "", "  ")
		if err == nil {
			_, err = fmt.Fprintf(c.App.Writer, "%s\n", text)
		}
		if err != nil {
			return fmt.Errorf("print measurements: %w", err)
		}
	} else if err := report.WriteText(results(c)); err != nil {
		return fmt.Errorf("print measurements: %w", err)
	}
	if report.Failed() {
		return &exitError{code: exitcode.Failed, err: errors.New("a load by tsimport failed, or its table differs from the file; see above")}
	}
	return nil
}

// checkBenchArgs finds out what would only be noticed after minutes, or be blamed on something else.
func checkBenchArgs(c *cli.Context) error {
	for _, arg := range c.Args().Slice() {
		if _, err := time.ParseDuration(arg); err == nil && c.IsSet("splits") {
			if _, err := os.Stat(arg); err != nil {
				return usagef("--splits %s: %s is read as a file name; write --splits=%s", arg, arg, arg)
			}
		}
	}
	if text := c.String("memory"); text != "" {
		bytes, err := options.ParseSize(text)
		if err != nil {
			return usagef("--memory: %v", err)
		}
		if err := options.CheckMemory(text, bytes); err != nil {
			return usagef("%v", err)
		}
	}
	return nil
}

func benchSpreadConfig(c *cli.Context) (cfg spread.Config, err error) {
	if err := checkBenchArgs(c); err != nil {
		return cfg, err
	}
	if c.NArg() > 1 {
		return cfg, usagef("bench spread takes one file, not %d", c.NArg())
	}
	cfg = spread.Config{
		Input: spread.Input{
			File: c.Args().First(), Keys: textsOf(c, "pk"),
			StudentCards: bench.StudentCards{Rows: c.Uint64("rows"), Order: bench.Order(c.String("order")), Seed: c.Uint64("seed")},
		},
		Table: spread.Table{
			Partitions: c.Int("partitions"), PartitionWCU: c.Float64("partition-wcu"), Latency: c.Duration("latency"), Slow: map[int]float64{},
		},
		Baseline: time.Duration(c.Float64("baseline-seconds") * float64(time.Second)), KnownRate: c.Bool("known-rate"),
		Memory: c.String("memory"), Keep: c.String("keep"), Seed: c.Uint64("seed"),
		Say: func(format string, a ...any) { say(c, c.App.ErrWriter, format, a...) },
	}
	cfg.Table.TableWCU, cfg.Table.InstanceWCU = c.Float64("limit-table"), c.Float64("limit-instance")
	if c.IsSet("limiter") {
		cfg.Table.Limiter = c.String("limiter")
	}
	if text := c.String("outage"); text != "" {
		o, err := faults.ParseOutage(text)
		if err != nil {
			return cfg, usagef("--outage: %v", err)
		}
		cfg.Table.Outage = o.String()
	}
	if d, ok := c.Generic("splits").(*optionalDuration); ok {
		cfg.Table.Splits = time.Duration(*d)
	}
	switch cfg.Input.Order {
	case bench.Sorted, bench.Arrival, bench.Random:
	default:
		return cfg, usagef("--order %q: want sorted, arrival or random", cfg.Input.Order)
	}
	if cfg.Input.File != "" && (c.IsSet("rows") || c.IsSet("order")) {
		return cfg, usagef("--rows and --order are for the student cards, not for a file")
	}
	for _, text := range textsOf(c, "slow") {
		number, factor, _ := strings.Cut(text, ":")
		n, err1 := strconv.Atoi(number)
		f, err2 := strconv.ParseFloat(factor, 64)
		if err1 != nil || err2 != nil {
			return cfg, usagef("--slow %q: want N:FACTOR, such as 7:0.1", text)
		}
		cfg.Table.Slow[n] = f
	}
	if only := c.String("only"); only != "" {
		cfg.Scenarios = strings.Split(only, ",")
	}
	if cfg.Binary, err = os.Executable(); err != nil {
		return cfg, fmt.Errorf("find tsimport's own binary: %w", err)
	}
	return cfg, nil
}
