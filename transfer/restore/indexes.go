package restore

import (
	"context"
	"errors"
	"slices"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/transfer/copytable"
)

// DefineIndexes completes a new target with the indexes of its source. It refuses names that are taken before the first row: they would be refused after
// the last.
func DefineIndexes(rename map[string]string, cfg *pipeline.Config, from *client.Table, at *client.Admin) ([]string, error) {
	notes, err := copytable.DefineIndexes(&cfg.Target, &cfg.Columns, from, rename)
	if err != nil {
		return nil, err
	}
	for _, i := range cfg.Target.Indexes {
		switch _, err := at.Describe(i.Name); {
		case err == nil:
			return nil, plan.Usagef("index %s: the instance has a table or an index of that name already; give it another name with --rename-index %s=NAME, or make the table first with tsimport table create, without indexes", i.Name, i.Name)
		case !errors.Is(err, client.ErrNoTable):
			return nil, err
		}
	}
	return notes, nil
}

// LackingIndexes returns what names to the user the indexes of the source that the target lacks when all is done: of a table that was there, or that was made without them.
func LackingIndexes(say words.Say, rename map[string]string, cfg *pipeline.Config, from *client.Table, sdk *tablestore.TableStoreClient, ctx context.Context) func() {
	return func() {
		if len(from.Indexes) == 0 || cfg.DryRun {
			return
		}
		t, err := (&client.Admin{Client: sdk, Context: ctx, Proven: true}).Describe(cfg.Target.Table)
		if err != nil {
			say.Warn("which indexes table %s has cannot be said: %v", cfg.Target.Table, err)
			return
		}
		for _, name := range from.Indexes {
			to := name
			if renamed := rename[name]; renamed != "" {
				to = renamed
			}
			if !slices.Contains(t.Indexes, to) {
				say.Note("table %s does not have the index %s of its source", t.Name, name)
			}
		}
	}
}
