package commands

import (
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/tablestore/address"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/open"
	"example.com/tsimport/transfer/fromtable"
)

func copyCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:      "copy",
		Usage:     "copy a table with all versions and timestamps, under its key or another",
		ArgsUsage: "SOURCE TARGET",
		Description: addressHelp + "\n" +
			"Each row is copied as of the time its page is read, not in one snapshot. The source may change meanwhile, and " +
			"an\ninterrupted copy resumes at the keys reached. Run folder, exit codes and signals are as for tsimport load.\n" +
			signalHelp(),
		Flags:  flagsOf(options.Copy | options.Ending),
		Action: in.with(options.Copy|options.Ending, copyTable),
	}
}

func copyTable(c *call) error {
	return runLoad(c, new(copying))
}

type copying struct {
	*fromtable.Load
	from, to tableArgument
	source   *target // may be shared with the target
	reads    string  // place of the source table
}

func (k *copying) config(c *call, asked *options.Command) (cfg pipeline.Config, err error) {
	if c.NArg() != 2 {
		return cfg, usagef("copy takes two tables, SOURCE and TARGET, not %d; see tsimport copy --help", c.NArg())
	}
	switch from, err := c.Args().Get(0), open.Check(c.Args().Get(0), ""); {
	case address.Is(from):
	case err != nil:
		return cfg, usagef("%v", err)
	case strings.Contains(from, ":"):
		return cfg, usagef("copy reads a Tablestore table; use tsimport load %s --table TABLE", redacted(from))
	}
	if k.from, err = parseTableArgument(c.Args().Get(0)); err != nil {
		return cfg, err
	}
	if k.to, err = parseTableArgument(c.Args().Get(1)); err != nil {
		return cfg, err
	}
	asked.Table = k.to.name
	if k.Load, err = fromtable.New(asked, k.from.name, k.from.shown(), c.say); err != nil {
		return cfg, err
	}
	k.Read.Gate, k.Read.Waits = gateOf(c), waitsOf(c)
	if c.given.IsSet("job-dir") || c.in.task != nil {
		asked.Order = plan.LastWins.String() // one reader reads each key, so its rows are in order
	}
	if cfg, err = loadConfigOf(&asked.Request, c); err != nil {
		return cfg, err
	}
	k.Config(&cfg)
	return cfg, nil
}

func (k *copying) open(c *call, a access) (*target, error) {
	two := k.from.address != nil || k.to.address != nil
	a.create = a.create && two // the source must exist
	t, err := openSide(c, k.to, a)
	if err != nil {
		return nil, err
	}
	k.source = t
	if two {
		if k.source, err = openSide(c, k.from, access{readOnly: true, role: "source"}); err != nil {
			return nil, errors.Join(err, t.close())
		}
	}
	k.reads = k.source.place(k.from.name)
	if err := k.source.mustExist(); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (k *copying) begin(c *call, cfg *pipeline.Config, t *target) error {
	return k.Begin(c.interrupts.drain, cfg, k.source.Target, k.source.name, t.embedded)
}
