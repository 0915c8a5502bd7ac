package commands

import (
	"fmt"

	"github.com/urfave/cli/v2"

	benchcompare "tsimport/bench/compare"
)

func benchCompareCommand() *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "compare two measurements of bench write and test whether they differ significantly",
		ArgsUsage: "A B",
		Description: "A and B are files of bench write: --json, --samples or --benchfmt. With several runs a side, in one --benchfmt file or as\n" +
			"files A1,A2,…, it compares runs (Mann-Whitney U test, at least four a side). With one run a side it compares pieces of\n" +
			"the runs, each long enough to be independent of the next: throughputs by the U test, percentiles by a bootstrap.",
		Flags: []cli.Flag{
			&cli.Float64Flag{Name: "alpha", Usage: "significance level", Value: 0.05},
			&cli.BoolFlag{Name: "json", Usage: "print the comparison as one JSON object"},
		},
		Action: benchCompare,
	}
}

func benchCompare(c *cli.Context) error {
	if c.NArg() != 2 {
		return usagef("bench compare takes two results, not %d: tsimport bench compare A B", c.NArg())
	}
	alpha := c.Float64("alpha")
	if !(alpha >= 0.002 && alpha <= 0.5) {
		return usagef("--alpha %v: want 0.002 to 0.5", alpha)
	}
	var sides [2]*benchcompare.Side
	for i := range sides {
		var err error
		if sides[i], err = benchcompare.Read(c.Args().Get(i)); err != nil {
			return usagef("%v", err)
		}
	}
	result := benchcompare.Compare(sides[0], sides[1], alpha)
	if c.Bool("json") {
		return printJSON(c, result)
	}
	if err := result.WriteText(results(c)); err != nil {
		return fmt.Errorf("print comparison: %w", err)
	}
	return nil
}
