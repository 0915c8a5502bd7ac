package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"tsimport/bench"
)

func genCommand() *cli.Command {
	return &cli.Command{
		Name:  "gen",
		Usage: "write example data as CSV",
		Subcommands: []*cli.Command{{
			Name:  "student-cards",
			Usage: "purchases made with student cards: CardID, SellerID, DeviceID, OrderNumber and some attributes",
			Flags: []cli.Flag{
				&cli.Uint64Flag{Name: "rows", Usage: "how many"},
				&cli.StringFlag{Name: "order", Usage: "sorted (by CardID), arrival or random", Value: string(bench.Arrival)},
				&cli.Uint64Flag{Name: "seed", Usage: "the same seed gives the same rows", Value: 1},
				&cli.IntFlag{Name: "days", Usage: "over how many days from 2024-01-01 on they were made", Value: bench.DefaultDays},
				&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FILE` to write (default: stdout)"},
			},
			Action: func(c *cli.Context) error {
				if !c.IsSet("rows") {
					return usagef("give --rows, how many rows to write")
				}
				if d := c.Int("days"); d < 1 || d > 36500 {
					return usagef("--days %d: want 1 to 36500", d)
				}
				order := bench.Order(c.String("order"))
				switch order {
				case bench.Sorted, bench.Arrival, bench.Random:
				default:
					return usagef("--order %q: want sorted, arrival or random", order)
				}
				if c.Args().Present() {
					return usagef("gen student-cards takes no arguments (%q); the output is named with -o", c.Args().First())
				}
				cards := bench.StudentCards{Rows: c.Uint64("rows"), Order: order, Seed: c.Uint64("seed"), Days: c.Int("days")}
				err := writeOutput(c.String("output"), c.App.Writer, func(w io.Writer) error { return cards.WriteCSV(c.Context, w) })
				if err != nil {
					return fmt.Errorf("generate student cards: %w", err)
				}
				return nil
			},
		}},
	}
}
