package commands

import (
	"encoding/json"
	"fmt"

	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/fromdatabase"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
)

// databaseHelp says how a table of a database takes the place of files.
const databaseHelp = "In place of files, one table of a database can be given: postgres://…, mysql://… or sqlite:FILE, with ?table=TABLE (docs/sql.md)."

// sqlOrigin returns the table of a database that a command reads, nil if no argument is the address of one. A sync needs all rows of one snapshot.
func sqlOrigin(c *call, args []string) (source.Origin, error) {
	of := c.command()
	of.From = args
	cfg, err := fromdatabase.Config(of)
	if cfg == nil || err != nil {
		return nil, err
	}
	cfg.Whole, cfg.RetryFor = cfg.Whole || c.Command.Name == job.Sync, c.of.RetryFor
	return sqltable.New(*cfg), nil
}

// sqlAgain makes a comparison with a run read the ranges of a database that the run has read, and returns its snapshots of them.
func sqlAgain(cfg *pipeline.Config, run *rundir.Run) (all []source.Snapshot, err error) {
	origin, ok := cfg.Read.Sources.(*sqltable.Origin)
	if !ok || run.Division == nil {
		return nil, nil
	}
	if err := json.Unmarshal(run.Snapshots, &all); err != nil {
		return nil, fmt.Errorf("read the snapshots of the run: %w", err)
	}
	origin.Again(run.Division)
	return all, nil
}
