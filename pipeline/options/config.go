package options

import (
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
)

// Config returns the load that a request describes. The caller adds the table's place, observers and how to resume.
func Config(asked *Request) (cfg pipeline.Config, err error) {
	r, err := asked.withDefaults()
	if err != nil {
		return cfg, plan.Usagef("%v", err)
	}
	cfg = pipeline.Config{
		Inputs: r.From,
		Target: plan.Target{Table: r.Table, Create: r.Create,
			Define: table.Definition{TimeToLive: r.TTL, MaxVersions: r.MaxVersions}},
		Limits: pipeline.Limits{Records: r.Limit, MaxTables: r.MaxTables},
		RunDir: r.RunDir,
		DryRun: r.DryRun, Compared: r.Verify,
	}
	cfg.Target.Asked = plan.AskedOptions{Any: asked.TTL != 0 || asked.MaxVersions != 0 || asked.Define != nil,
		Columns: strings.Join(asked.Define, "; ")}
	if r.VersionColumn != "" {
		cfg.Target.Define.MaxDeviation = table.AnyAge
	}
	cfg.Write.Marks = pipeline.Marks{ReturnedKeys: r.ReturnedKeys, Column: r.MarkColumn, LookFirst: r.LookFirst,
		AtLeastOnce: r.AtLeastOnce}
	cfg.Lanes.Concurrency, cfg.Lanes.RetryFor, cfg.Write.Settle = r.Concurrency, r.RetryFor, r.Settle
	if r.Mode == "changes" {
		r.MaxErrors = "0"
	}
	if r.DryRun && r.Verify {
		return cfg, plan.Usagef("--verify: a dry run writes nothing to compare; leave it out")
	}
	if err := table.CheckTimeToLive(r.TTL); err != nil {
		return cfg, plan.Usagef("--ttl %d: %v", r.TTL, err)
	}
	for _, parse := range []func() error{
		func() error { return checkChanges(asked) },
		func() (err error) { cfg.Limits.MaxErrors, err = ledger.ParseMaxErrors(r.MaxErrors); return },
		func() error { return parsePolicy(&r, &cfg) },
		func() (err error) { cfg.Read, err = Read(&r); return },
		func() (err error) { cfg.Columns, err = Columns(&r); return },
		func() error { return Computed(&r, &cfg.Target, &cfg.Columns) },
		func() error { return Define(r.Define, &cfg.Target) },
		func() error { return parseWrite(&r, &cfg.Write) },
		func() error { return Speed(&r, &cfg) },
	} {
		if err := parse(); err != nil {
			return cfg, plan.Usagef("%v", err)
		}
	}
	return cfg, nil
}
