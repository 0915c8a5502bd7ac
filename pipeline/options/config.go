package options

import (
	"fmt"
	"tsimport/internal/table"
	"tsimport/pipeline"
	"tsimport/pipeline/plan"
)

// Config reads the options of a load of inputs. Where its table is, what watches it and how it is resumed, the caller adds.
func Config(g Given, inputs []string) (cfg pipeline.Config, err error) {
	cfg = pipeline.Config{
		Inputs: inputs,
		Target: plan.Target{
			Table: g.String("table"), Create: g.Bool("create"),
			Define: table.Definition{
				TimeToLive: g.Int("ttl"), MaxVersions: g.Int("max-versions"),
			},
		},
		Limits: pipeline.Limits{Records: g.Int64("limit"), MaxTables: g.Int("max-tables")},
		RunDir: g.String("run-dir"),
		DryRun: g.Bool("dry-run"), Compared: g.Bool("verify"),
	}
	for _, f := range []string{"ttl", "max-versions"} {
		cfg.Target.DefineSet = cfg.Target.DefineSet || g.IsSet(f)
	}
	if g.String("version-column") != "" {
		cfg.Target.Define.MaxDeviation = table.AnyAge
	}
	cfg.Write.Concurrency, cfg.Write.RetryFor, cfg.Write.Settle = g.Int("concurrency"), g.Duration("retry-for"), g.Duration("settle")
	if err := checkNumbers(g, &cfg); err != nil {
		return cfg, err
	}
	for _, parse := range []func() error{
		func() (err error) {
			cfg.Limits.MaxErrors, err = pipeline.ParseMaxErrors(g.String("max-errors"))
			return
		},
		func() error { return parsePolicy(g, &cfg) },
		func() (err error) { cfg.Read, err = Read(g); return },
		func() (err error) { cfg.Columns, err = Columns(g); return },
		func() error { return Computed(g, &cfg.Target, &cfg.Columns) },
		func() error { return parseWrite(g, &cfg.Write) },
		func() error { return parseNumbers(g, &cfg) },
		func() error { return Rates(g, &cfg) },
	} {
		if err := parse(); err != nil {
			return cfg, usagef("%v", err)
		}
	}
	return cfg, nil
}

// checkNumbers refuses numbers out of range.
func checkNumbers(g Given, cfg *pipeline.Config) error {
	for _, check := range []struct {
		bad     bool
		message string
	}{
		{cfg.Write.Concurrency < 1 || cfg.Write.Concurrency > 4096, "--concurrency: want 1 to 4096"},
		{cfg.DryRun && g.Bool("verify"), "--verify: a dry run writes nothing that could be compared"},
		{cfg.Limits.Records < 0, "--limit: want 0 (no limit) or more"},
		{cfg.Write.RetryFor <= 0 || cfg.Write.Settle < 0, "--retry-for and --settle: want more than 0"},
		{g.Int("max-versions") < 1, "--max-versions: want 1 or more"},
		{g.Int("max-tables") < 1, "--max-tables: want 1 or more"},
	} {
		if check.bad {
			return usagef("%s", check.message)
		}
	}
	if err := table.CheckTimeToLive(g.Int("ttl")); err != nil {
		return usagef("--ttl %d: %v", g.Int("ttl"), err)
	}
	return nil
}

func usagef(format string, a ...any) error {
	return &plan.UsageError{Message: fmt.Sprintf(format, a...)}
}
