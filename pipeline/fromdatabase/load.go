package fromdatabase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/open"
	"example.com/tsimport/reader/sqltable"
)

// Config returns the configuration for reading the database that a request names, or nil if it names none.
func Config(r *options.Command) (*sqltable.Config, error) {
	target := suggest.Arg(cmp.Or(r.Table, "TARGET"))
	for _, o := range options.OfCommand("copy") { // the options that the command has as a copy
		if r.IsSet(o.Name) && o.Name != "table" && o.Name != "create" && !o.Kind.Repeated() && o.Kind != options.List {
			target += fmt.Sprintf(" --%s=%s", o.Name, suggest.Arg(fmt.Sprint(o.Value(r))))
		}
	}
	for _, from := range r.From {
		if err := open.Check(from, target); err != nil {
			return nil, plan.Usagef("%v", err)
		}
	}
	if !slices.ContainsFunc(r.From, open.IsDatabase) {
		for option, given := range map[string]bool{"query": r.Query != "", "require-snapshot": r.RequireSnapshot} {
			if given {
				return nil, plan.Usagef("--%s applies only to tables of a database, such as "+
					"postgres://USER@HOST/DATABASE?table=TABLE, mysql://… or sqlite:FILE?table=TABLE", option)
			}
		}
		return nil, nil
	}
	if len(r.From) > 1 {
		return nil, plan.Usagef("a database table cannot be loaded together with other inputs; load it separately")
	}
	for _, o := range options.Of(options.Looking) {
		if r.IsSet(o.Name) {
			return nil, plan.Usagef("--%s applies to files, not to a database; leave it out", o.Name)
		}
	}
	cfg, err := open.Config(r.From[0], r.Query)
	if err != nil {
		return nil, plan.Usagef("%v", err)
	}
	if cfg.Shards != nil && r.JobDir != "" {
		return nil, plan.Usagef("%s: one process loads all shards; for many machines, load each shard separately", r.From[0])
	}
	memory := cmp.Or(r.Memory, options.DefaultMemory())
	cfg.MaxRow, cfg.RetryFor, cfg.MaxRows, cfg.Whole = memory/4, r.RetryFor, r.MaxRowsPerSecond, r.RequireSnapshot
	return cfg, nil
}

// Load is a load of a table of a database.
type Load struct {
	Origin *sqltable.Origin
	read   sqltable.Config
	say    words.Say
}

// Of returns the load of the database that a request names, or nil if it names none. say receives notes for the user.
func Of(r *options.Command, say words.Say) (*Load, error) {
	cfg, err := Config(r)
	if cfg == nil || err != nil {
		return nil, err
	}
	cfg.RetryFor = cmp.Or(r.RetryFor, pipeline.DefaultRetryFor)
	cfg.OnPause = func(why string) { say.Note("%s", why) }
	return &Load{sqltable.New(*cfg), *cfg, say}, nil
}

// Share makes the load read its table as of the same moment as the other loads of its job.
func (l *Load) Share(with *sqltable.Moments) {
	if l.read.Moment = with.Of(l.read.Server); l.read.Moment != nil {
		l.Origin = sqltable.New(l.read)
	}
}

// Config makes the load read the database.
func (l *Load) Config(cfg *pipeline.Config, _ bool) { cfg.Read.Sources = l.Origin }

// Begin gives columns the database's types and a new table the source's key. missing means that there is no target yet.
func (l *Load) Begin(ctx context.Context, cfg *pipeline.Config, at *client.Target, missing bool) error {
	name := cfg.Target.Table
	if name == "" {
		return nil // the load reports that it is missing
	}
	if err := table.CheckTableName(name); err != nil && !plan.IsTemplate(name) {
		return plan.Usagef("%v; give another with --table", err)
	}
	columns, key, err := l.Origin.Describe(ctx)
	if input.Passing(err) || errors.Is(err, sqltable.ErrSnapshot) {
		return err // the server may answer the next time
	}
	if err != nil {
		return &plan.UsageError{Message: err.Error(), Input: true}
	}
	var to *client.Table
	if !missing && !plan.IsTemplate(name) {
		sdk, err := client.New(ctx, *at, nil)
		if err != nil {
			return plan.Usagef("%v", err)
		}
		admin := &client.Admin{Client: sdk, Context: ctx, RetryFor: cfg.Lanes.RetryFor}
		if to, err = admin.Describe(name); err != nil && !errors.Is(err, client.ErrNoTable) {
			return err
		}
	}
	if to == nil {
		if len(cfg.Target.Key) == 0 && len(key) > table.MaxKeyColumns {
			return plan.Usagef("the source's primary key has %d columns, but a table takes 1 to %d: combine several with "+
				"--pk, such as --pk 'key=splice(auto, %s, %s, …)' (docs/keys.md)",
				len(key), table.MaxKeyColumns, columns[key[0]].Name, columns[key[1]].Name)
		}
		l.proposeKey(cfg, columns, key)
		to = &client.Table{Key: cfg.Target.Key}
	}
	for _, c := range columns {
		name := cfg.Columns.To(c.Name)
		_, given := cfg.Columns.Types[c.Name]
		_, also := cfg.Columns.Types[name]
		isKey := slices.ContainsFunc(to.Key, func(k table.KeyColumn) bool { return k.Name == name })
		if !given && !also && !isKey && to.Defined[name] == table.Null {
			cfg.Columns.Types[c.Name] = plan.Type{Type: c.Type}
		}
	}
	return nil
}

// proposeKey gives a new table the source's primary key, unless the user names another, with the columns' types.
func (l *Load) proposeKey(cfg *pipeline.Config, columns []sqltable.Column, key []int) {
	if len(cfg.Target.Key) == 0 {
		var text string
		for _, k := range key {
			name := cfg.Columns.To(columns[k].Name)
			cfg.Target.Key = append(cfg.Target.Key, table.KeyColumn{Name: name})
			text += fmt.Sprintf(" --pk %s:%s", suggest.Arg(name), columns[k].Type)
		}
		l.say.Note("the new table gets the source's primary key:%s", text)
	}
	for i := range cfg.Target.Key {
		k := &cfg.Target.Key[i]
		computed := slices.ContainsFunc(cfg.Columns.Keys, func(c keyexpr.Column) bool { return c.Name == k.Name })
		if at := slices.IndexFunc(columns,
			func(c sqltable.Column) bool { return cfg.Columns.To(c.Name) == k.Name }); at >= 0 && k.Type == table.Null &&
			!computed && columns[at].Type.KeyType() {
			k.Type = columns[at].Type
		}
	}
}

// Compared prepares the load's source to be compared with the table.
func (l *Load) Compared(cfg *pipeline.Config) {
	l.Origin.HangUp() // the plan has opened it
	read := l.read
	read.Whole, read.Moment = false, nil // a comparison reads its own snapshot
	cfg.Read.Sources = sqltable.New(read)
}

// Ended shows the user the final notes of the load.
func (l *Load) Ended(r *pipeline.Report) {
	if d := l.Origin.Paused(); d > 0 {
		l.say.Line("reading waited %v while replication lagged by more than %v", d.Round(time.Second), l.read.MaxLag)
	}
	if text := r.Follow(); text != "" {
		l.say.Line("%s", text)
	}
	switch {
	case r.Consistent == nil:
	case !*r.Consistent:
		l.say.Warn("rows are from %d snapshots of the source, not one (see \"snapshots\" in the summary)", len(r.Snapshots))
	case r.Read == 0: // an empty table, or a load that failed before its first row
	case r.State != pipeline.StateFinished:
		l.say.Line("all rows read are from one snapshot of the source")
	default:
		l.say.Line("all rows are from one snapshot of the source")
	}
}
