package commands

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/bench"
)

// firstDay returns the first day of purchases, counted back from the last one. It is zero if the last is not given.
func firstDay(until string, days int, now time.Time) (time.Time, error) {
	end := now.UTC().Truncate(time.Second)
	switch until {
	case "":
		return time.Time{}, nil
	case "now":
	default:
		day, err := time.Parse(time.DateOnly, until)
		if err != nil {
			return time.Time{}, usagef("--until %q: want a date such as 2026-01-31, or now", until)
		}
		end = day.AddDate(0, 0, 1)
	}
	return end.AddDate(0, 0, -days), nil
}

func genCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:  "gen",
		Usage: "write example data as CSV",
		Subcommands: []*cli.Command{{
			Name:  "student-cards",
			Usage: "write purchases made with student cards: CardID, SellerID, DeviceID, OrderNumber and attributes",
			Flags: []cli.Flag{
				&cli.Uint64Flag{Name: "rows", Usage: "number of rows (default: none, must be given)"},
				&cli.StringFlag{Name: "order", Usage: "sorted (by CardID), arrival or random", Value: string(bench.Arrival)},
				&cli.Uint64Flag{Name: "seed", Usage: "the same seed gives the same rows", Value: 1},
				&cli.IntFlag{Name: "days", Usage: "number of days over which the purchases were made", Value: bench.DefaultDays},
				&cli.StringFlag{Name: "until",
					Usage: "last day: `DATE`, such as 2026-01-31, or now; without it, the first day is 2024-01-01"},
				&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FILE` to write (default: stdout)"},
			},
			Action: in.act(func(c *call) error {
				if !c.IsSet("rows") {
					return usagef("give --rows, the number of rows to write")
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
				from, err := firstDay(c.String("until"), c.Int("days"), time.Now())
				if err != nil {
					return err
				}
				cards := bench.StudentCards{Rows: c.Uint64("rows"), Order: order, Seed: c.Uint64("seed"), Days: c.Int("days"),
					From: from}
				err = writeOutput(c.Context, c.String("output"), c.App.Writer,
					func(w io.Writer) error { return cards.WriteCSV(c.Context, w) })
				if err != nil {
					return fmt.Errorf("generate student cards: %w", err)
				}
				return nil
			}),
		}},
	}
}
