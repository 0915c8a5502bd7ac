package main

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/bench"
	"example.com/tsimport/bench/spread"
	"example.com/tsimport/engine/limiter"
	"example.com/tsimport/pipeline/plan"
)

func spreadCommand() *cli.Command {
	return &cli.Command{
		Name:      "spread",
		Usage:     "measure how evenly loads use the partitions of a table with limited capacity",
		ArgsUsage: "[FILE]",
		Description: "Loads the student-card dataset, or FILE, into a table of simulated partitions in several ways, each on a fresh\n" +
			"engine in a process of its own, and shows how much of the partitions' capacity each has used:\n" +
			"  naive          the official SDK, 200 rows a request in file order, one worker, the SDK's retries\n" +
			"  parallel       the same with 32 workers\n" +
			"  preshuffled    all rows shuffled first (that time counts), then loaded as parallel\n" +
			"  tsimport       tsimport load, the last row of a key wins\n" +
			"  tsimport-none  tsimport load --order none\n" +
			"After a load by tsimport it compares every row of the table with the file; exit code 1 means that they differ.",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "pk", Usage: "with FILE: primary-key column, as for tsimport load, in order, 1 to 4 times"},
			&cli.Uint64Flag{Name: "rows", Usage: "student cards: number of rows", Value: 1_000_000},
			&cli.StringFlag{Name: "order", Usage: "student cards: sorted (by CardID), arrival or random", Value: string(bench.Sorted)},
			&cli.IntFlag{Name: "partitions", Usage: "of the table, with equal numbers of rows", Value: 32},
			&cli.Float64Flag{Name: "partition-wcu", Usage: "write capacity `UNITS` a second of each partition", Value: 1000},
			&cli.StringFlag{Name: "limiter", Usage: "`NAME` of how capacity limits: " + strings.Join(limiter.Kinds, ", ") + " (default: " + limiter.TokenBucket + ")"},
			&cli.Float64Flag{Name: "limit-instance", Usage: "write capacity `UNITS` a second of the whole instance, which refuses requests with 429 OTSFlowControl"},
			&cli.Float64Flag{Name: "limit-table", Usage: "write capacity `UNITS` a second of the whole table, beside its partitions'"},
			&cli.StringFlag{Name: "outage", Usage: "`SECONDS:KIND[:AFTER]`, as tsimport serve has it"},
			&cli.DurationFlag{Name: "latency", Usage: "of a request", Value: 5 * time.Millisecond},
			&cli.StringSliceFlag{Name: "slow", Usage: "partition `N:FACTOR`, from 0 in key order, has this share of the capacity; may be repeated"},
			&cli.DurationFlag{Name: "splits", Usage: "begin with one partition and halve all of them, 2s after the first row and then each `EVERY`, until there are --partitions; each is unavailable for 1s"},
			&cli.StringFlag{Name: "only", Usage: "only these `WAYS` to load, comma-separated"},
			&cli.Float64Flag{Name: "baseline-seconds", Usage: "stop the SDK's loads after this many seconds and measure them until then", Value: 60},
			&cli.StringFlag{Name: "memory", Usage: "`SIZE` for tsimport load --memory"},
			&cli.Uint64Flag{Name: "seed", Usage: "the same seed gives the same rows and the same shuffle", Value: 1},
			&cli.StringFlag{Name: "keep", Usage: "`DIR` in which datasets, stores and run folders stay (default: a temporary one)"},
			&cli.BoolFlag{Name: "json", Usage: "print the measurements as one JSON object"},
		},
		Action: measureSpread,
	}
}

func measureSpread(c *cli.Context) error {
	cfg, err := spreadConfig(c)
	if err != nil {
		return err
	}
	report, err := spread.Run(c.Context, cfg)
	if err == nil {
		err = show(c, report)
	}
	if err == nil && report.Failed() {
		err = errors.New("a load by tsimport failed, or its table differs from the file; see above")
	}
	return err
}

func spreadConfig(c *cli.Context) (cfg spread.Config, err error) {
	if c.NArg() > 1 {
		return cfg, plan.Usagef("spread takes flags, then one file, not %q", c.Args().Slice())
	}
	cfg = spread.Config{
		Input: spread.Input{
			File: c.Args().First(), Keys: c.StringSlice("pk"),
			StudentCards: bench.StudentCards{Rows: c.Uint64("rows"), Order: bench.Order(c.String("order")), Seed: c.Uint64("seed")},
		},
		Table: spread.Table{
			Partitions: c.Int("partitions"), PartitionWCU: c.Float64("partition-wcu"), LatencyMS: float64(c.Duration("latency")) / 1e6, Limiter: c.String("limiter"),
			TableWCU: c.Float64("limit-table"), InstanceWCU: c.Float64("limit-instance"), Outage: c.String("outage"), SplitsMS: float64(c.Duration("splits")) / 1e6, Slow: map[int]float64{},
		},
		Baseline: time.Duration(c.Float64("baseline-seconds") * float64(time.Second)),
		Memory:   c.String("memory"), Keep: c.String("keep"), Seed: c.Uint64("seed"), Say: say(c),
	}
	switch cfg.Input.Order {
	case bench.Sorted, bench.Arrival, bench.Random:
	default:
		return cfg, plan.Usagef("--order %q: want sorted, arrival or random", cfg.Input.Order)
	}
	if cfg.Input.File != "" && (c.IsSet("rows") || c.IsSet("order")) {
		return cfg, plan.Usagef("--rows and --order are for the student cards, not for a file")
	}
	for _, text := range c.StringSlice("slow") {
		number, factor, _ := strings.Cut(text, ":")
		n, err1 := strconv.Atoi(number)
		f, err2 := strconv.ParseFloat(factor, 64)
		if err1 != nil || err2 != nil {
			return cfg, plan.Usagef("--slow %q: want N:FACTOR, such as 7:0.1", text)
		}
		cfg.Table.Slow[n] = f
	}
	if only := c.String("only"); only != "" {
		cfg.Scenarios = strings.Split(only, ",")
	}
	cfg.Binary, err = os.Executable()
	return cfg, err
}
