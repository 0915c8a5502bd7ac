package commands

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/cmd/tsimport/advise"
	"example.com/tsimport/cmd/tsimport/advise/simulate"
	"example.com/tsimport/internal/tablestore/address"
	"example.com/tsimport/pipeline/fromdatabase"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/sqltable"
	"example.com/tsimport/reader/tablescan"
)

func adviseCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:      "advise",
		Usage:     "suggest a partition key, and warn of hot spots",
		ArgsUsage: "FILE... | ADDRESS",
		Description: inputsHelp + "\n" + lookedHelp + "\nReads the input once and rates every column as a partition key: " +
			"the share of the planned table's capacity\n" +
			"that live traffic in order of arrival, and a plain load in file order, could use. The last line is the load or\n" +
			"copy command with the recommended key, if there is one. docs/advise.md explains each number.",
		Flags: append(flagsOf(options.Looking), []cli.Flag{
			&cli.StringFlag{Name: "candidates", Usage: "rate only these columns `A,B,C`; A+B means both spliced"},
			&cli.IntFlag{Name: "partitions", Usage: "partitions of the planned table", Value: advise.DefaultPartitions},
			&cli.IntFlag{Name: "rate", Usage: "live `ROWS` a second that all partitions together take", Value: advise.DefaultRate},
			&cli.StringFlag{Name: "arrival-by",
				Usage: "`COLUMN` that gives the order of arrival (default: a column of times, else the order of the input " +
					"or, in a table, of write times)"},
			&cli.Float64Flag{Name: "growth", Usage: "rate for `TIMES` as many rows, to see which values exceed 10 GB", Value: 1},
			&cli.StringFlag{Name: "memory", Usage: "`SIZE` of memory for the rows, such as 512MiB, at least 16MiB; parts of a " +
				"longer input are skipped, with a note; the process may use 64MiB more (default: a quarter of the machine's, at " +
				"most 1GiB)"},
			&cli.BoolFlag{Name: "json", Usage: "print the report as one JSON object"},
		}...),
		Action: in.with(options.Looking, adviseRun),
	}
}

func adviseRun(c *call) error {
	if err := refuseArchives(c); err != nil {
		return err
	}
	cfg, stop, err := adviseConfig(c)
	if err != nil {
		return usagef("%v", err)
	}
	defer stop()
	limitMemory(cfg.Memory, false)
	report, err := advise.Run(c.Context, cfg)
	if usage, ok := errors.AsType[*advise.UsageError](err); ok {
		return usagef("%s", usage.Message)
	}
	if err != nil {
		return err
	}
	report.EachKey(func(k *advise.Key) {
		k.CommandText = commandLine(redactedAll(slices.Concat([]string{commandName()}, k.Command[:1], readFlagsOf(c),
			k.Command[1:])))
	})
	if c.of.JSON {
		return printJSON(c, report)
	}
	return newAdvicePrinter(c.App.Writer).print(report)
}

// adviseConfig returns the configuration that the flags describe. stop closes its source.
func adviseConfig(c *call) (cfg advise.Config, stop func() error, err error) {
	stop = func() error { return nil }
	defer func() {
		if err != nil {
			_ = stop() // the source was only read
		}
	}()
	if !c.Args().Present() {
		return cfg, stop, errors.New("no input: name the files to read, or - for standard input")
	}
	read, err := parseRead(c)
	if err != nil {
		return cfg, stop, err
	}
	cfg = advise.Config{
		Input:      advise.Input{Args: c.Args().Slice(), Options: read.Options, Convert: read.Convert, Find: read.Find},
		Partitions: c.Int("partitions"), Rate: c.Int("rate"), ArrivalBy: c.String("arrival-by"), Growth: c.Float64("growth"),
	}
	if slices.ContainsFunc(cfg.Input.Args, address.Is) {
		if cfg.Input.Sources, stop, err = lookedAt(c, cfg.Input.Args, true); err != nil {
			return cfg, stop, err
		}
		looked := cfg.Input.Sources.(tablescan.Looked)
		cfg.Input.Table, cfg.Input.Copied, cfg.Input.Written = looked.Name(), true, tablescan.Written
		if cfg.Input.Bounds, err = looked.Bounds(c.Context); err != nil {
			return cfg, stop, err
		}
		cfg.Input.Args = []string{cfg.Input.Table} // the form that copy takes
	} else if from, err := fromdatabase.Config(c.given); err != nil {
		return cfg, stop, err
	} else if from != nil {
		cfg.Input.Sources, cfg.Input.Table = sqltable.New(*from), from.Server.Name()
	}
	if c.IsSet("candidates") {
		if cfg.Candidates, err = options.ParseList(c.String("candidates")); err != nil {
			return cfg, stop, fmt.Errorf("--candidates: %w", err)
		}
	}
	if cfg.Memory, err = parseMemory(c); err != nil {
		return cfg, stop, err
	}
	cfg.Input.Options.Memory = plan.ReadingMemory(cfg.Memory)
	switch {
	case cfg.Partitions < 1 || cfg.Partitions > simulate.MaxPartitions:
		return cfg, stop, fmt.Errorf("--partitions %d: want 1 to %d", cfg.Partitions, simulate.MaxPartitions)
	case cfg.Rate < cfg.Partitions:
		return cfg, stop, fmt.Errorf("--rate %d: want at least one row a second per partition (%d)", cfg.Rate, cfg.Partitions)
	case !(cfg.Growth >= 1) || math.IsInf(cfg.Growth, 0):
		return cfg, stop, fmt.Errorf("--growth %v: want a finite factor of at least 1", cfg.Growth)
	}
	return cfg, stop, nil
}

// parseMemory parses --memory of commands that inspect files.
func parseMemory(c *call) (int64, error) {
	text := c.String("memory")
	if text == "" {
		return options.DefaultMemory(), nil
	}
	n, err := options.ParseSize(text)
	if err == nil && n < options.MinMemory {
		err = fmt.Errorf("%s: want at least 16MiB", text)
	}
	if err != nil {
		return 0, fmt.Errorf("--memory %w", err)
	}
	return n, nil
}

// readFlagsOf returns the flags for reading input that were given, for the command of the suggested load.
func readFlagsOf(c *call) (args []string) {
	for _, f := range flagsOf(options.Looking) {
		name := f.Names()[0]
		if !c.IsSet(name) {
			continue
		}
		if _, is := f.(*cli.BoolFlag); is {
			args = append(args, fmt.Sprintf("--%s=%v", name, c.Bool(name)))
			continue
		}
		for _, text := range valuesOf(c.line, f) {
			args = append(args, "--"+name, text)
		}
	}
	return args
}
