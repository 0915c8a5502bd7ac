package main

import (
	"encoding/json"
	"fmt"

	"github.com/urfave/cli/v2"

	"tsimport/keydesign"
	"tsimport/plan"
	"tsimport/table"
)

func explainCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "say what a design of primary keys means: order, ranges, how readers compute it",
		ArgsUsage: "FILE...",
		Description: inputsHelp + "\n" +
			"Looks at the beginning of the files. Nothing is written, no store is needed.",
		Flags: append(readFlags(), []cli.Flag{
			textsFlag("pk", "primary-key column `NAME[:TYPE][=EXPR]` as tsimport load takes it, in order, 1 to 4 times"),
			textsFlag("set", "attribute column `NAME[:TYPE]=EXPR` as tsimport load takes it; it is checked"),
			textsFlag("type", "type of a column, `NAME=TYPE`, as tsimport load takes it; may be repeated"),
			&cli.IntFlag{Name: "examples", Usage: "show the keys of the first `N` records", Value: 5},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		}...),
		Action: explain,
	}
}

func explain(c *cli.Context) error {
	r := &plan.Request{Inputs: c.Args().Slice(), Memory: minMemory}
	r.Target = plan.Target{Name: "explain", Table: "explain", Create: true, Absent: true}
	var err error
	if r.Read, err = parseRead(c); err != nil {
		return usagef("%v", err)
	}
	if r.Columns, err = parseColumns(c); err != nil {
		return usagef("%v", err)
	}
	if err = parseComputed(c, &r.Target, &r.Columns); err != nil {
		return usagef("%v", err)
	}
	if len(r.Target.Key) == 0 {
		return usagef("no key to explain: give --pk NAME[:TYPE][=EXPR], once for each primary-key column in order")
	}
	if c.Int("examples") < 0 {
		return usagef("--examples: want 0 or more")
	}
	p, err := plan.Make(c.Context, r, nil)
	if err != nil {
		return err
	}
	defer p.Close()
	x, err := explainPlan(p, c.Int("examples"))
	if err != nil {
		return err
	}
	if !c.Bool("json") {
		_, err = fmt.Fprint(c.App.Writer, x.Text())
		return err
	}
	text, err := json.MarshalIndent(x, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(c.App.Writer, "%s\n", text)
	}
	return err
}

// explainPlan explains the key of a plan with the first records as examples.
func explainPlan(p *plan.Plan, examples int) (x keydesign.Explanation, err error) {
	d, err := p.Design()
	if err != nil {
		return x, err
	}
	x = keydesign.Explain(d, nil)
	left := examples
	err = p.Sample(func(row []table.Value) bool {
		if left > 0 {
			x.Examples = append(x.Examples, d.Example(row))
		}
		left--
		return left > 0
	})
	return x, err
}
