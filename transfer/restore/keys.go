package restore

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/archivefile"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/transfer/copytable"
	"example.com/tsimport/transfer/verify"
)

// FreeMark returns an error if marks need a column that the archive's rows have.
func FreeMark(m *archive.Manifest, cfg *pipeline.Config, key []table.KeyColumn) error {
	mark := MarkColumn(cfg)
	numbered := slices.ContainsFunc(key, func(k table.KeyColumn) bool { return k.Auto })
	at := slices.IndexFunc(m.Columns,
		func(name string) bool { return cfg.Columns.Takes(name) && cfg.Columns.To(name) == mark })
	if !numbered || cfg.Write.Marks.AtLeastOnce || at < 0 {
		return nil
	}
	return MarkTaken("the archive "+m.Dir(), mark, m.Columns[at])
}

// MarkColumn returns the column for the marks of a load.
func MarkColumn(cfg *pipeline.Config) string {
	return cmp.Or(cfg.Write.Marks.Column, plan.DefaultMarkColumn)
}

// MarkTaken returns the error for a mark column that rows of the source already have.
func MarkTaken(source, mark, column string) error {
	return plan.Usagef("rows of %s have cells in column %s, which is needed for marks; give marks another column with "+
		"--mark-column NAME, or leave the cells out with --exclude %s", source, mark, column)
}

// FitsKey returns an error if the target's key has a column that is not in the source's key, unless flags define it.
func FitsKey(source string, from []table.KeyColumn, cfg *pipeline.Config, target string, key []table.KeyColumn) error {
	columns := &cfg.Columns
	for _, k := range key {
		at := slices.IndexFunc(from, func(f table.KeyColumn) bool { return columns.To(f.Name) == k.Name })
		renamed := slices.Contains(slices.Collect(maps.Values(columns.Rename)), k.Name)
		said := slices.ContainsFunc(cfg.Target.Key,
			func(s table.KeyColumn) bool { return s.Name == k.Name && s.Type == k.Type })
		computed := slices.ContainsFunc(columns.Keys, func(c plan.Column) bool { return c.Name == k.Name })
		missing, another := at < 0 && !renamed && len(columns.Keys) == 0, at >= 0 && from[at].Type != k.Type
		if !k.Auto && !said && !computed && (missing || another) {
			return plan.Usagef("%s has a different primary key (%s) than %s (%s); define it with --pk, with types", target,
				columnsText(key), source, columnsText(from))
		}
	}
	return nil
}

// Fits is like FitsKey for an archive.
func Fits(m *archive.Manifest, cfg *pipeline.Config, target string, key []table.KeyColumn) error {
	return FitsKey("the archive "+m.Dir(), m.Key, cfg, target, key)
}

// LookAtKeys returns a function that checks the keys of all rows of look before any row is written.
func LookAtKeys(say words.Say, cfg *pipeline.Config, key []table.KeyColumn,
	look source.Origin) func(context.Context) error {
	return func(ctx context.Context) error {
		say.Line("the key may not tell all rows of the source apart: looking for rows that would get the same key")
		r := cfg.Request()
		r.Target.Key, r.Read.Sources = slices.Clone(key), look
		return copytable.CheckKeys(ctx, r, func(v *verify.CheckConfig) {
			v.Memory, v.TempDir = cfg.Limits.Memory, cfg.Limits.TempDir
		})
	}
}

func columnsText(key []table.KeyColumn) (text string) {
	for i, k := range key {
		if i > 0 {
			text += ", "
		}
		text += k.Name + " " + k.Type.String()
	}
	return text
}

// DefineIndexes adds the source's indexes to a new target, or fails if a name is taken. It returns notes for the user.
func DefineIndexes(rename map[string]string, cfg *pipeline.Config, from *client.Table,
	at *client.Admin) ([]string, error) {
	notes, err := copytable.DefineIndexes(&cfg.Target, &cfg.Columns, from, rename)
	if err != nil {
		return nil, err
	}
	for _, i := range cfg.Target.Indexes {
		switch _, err := at.Describe(i.Name); {
		case err == nil:
			return nil, plan.Usagef("index %s: the instance already has a table or an index with that name; give it another "+
				"name with --rename-index %s=NAME, or create the table first with tsimport table create, without indexes",
				i.Name, i.Name)
		case !errors.Is(err, client.ErrNoTable):
			return nil, err
		}
	}
	return notes, nil
}

// LackingIndexes returns a function to call at the end. It lists the source's indexes that the target lacks.
func LackingIndexes(say words.Say, rename map[string]string, cfg *pipeline.Config, from *client.Table,
	sdk *tablestore.TableStoreClient, ctx context.Context) func() {
	return func() {
		if len(from.Indexes) == 0 || cfg.DryRun {
			return
		}
		t, err := (&client.Admin{Client: sdk, Context: ctx, Proven: true}).Describe(cfg.Target.Table)
		if err != nil {
			say.Warn("cannot determine the indexes of table %s: %v", cfg.Target.Table, err)
			return
		}
		for _, name := range from.Indexes {
			if !slices.Contains(t.Indexes, cmp.Or(rename[name], name)) {
				say.Note("table %s does not have the index %s of its source", t.Name, name)
			}
		}
	}
}
