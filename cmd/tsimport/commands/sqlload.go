package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/mysql"
	"example.com/tsimport/reader/postgres"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqlite"
	"example.com/tsimport/reader/sqltable"
)

// databaseHelp says how a table of a database takes the place of files.
const databaseHelp = "In place of files, one table of a database can be given: postgres://…, mysql://… or sqlite:FILE, with ?table=TABLE (docs/sql.md)."

// isSQL reports whether an argument is the address of a database.
func isSQL(arg string) bool { return postgres.Is(arg) || mysql.Is(arg) || sqlite.Is(arg) }

// sqlServer reads the address of a table of a database, or of what a query of it gives.
func sqlServer(c *call, arg string) (sqltable.Server, error) {
	if c.IsSet("query") {
		return sqlQuery(arg, c.String("query"))
	}
	if mysql.Is(arg) {
		a, err := mysql.Parse(arg)
		if err != nil {
			return nil, usagef("%v", err)
		}
		return a, nil
	}
	if sqlite.Is(arg) {
		a, err := sqlite.Parse(arg)
		if err != nil {
			return nil, usagef("%v", err)
		}
		return a, nil
	}
	a, err := postgres.Parse(arg)
	if err != nil {
		return nil, usagef("%v", err)
	}
	return a, nil
}

// sqlQuery reads the address of a server and a query of it.
func sqlQuery(arg, query string) (sqltable.Server, error) {
	switch {
	case sqlite.Is(arg):
		return nil, usagef("--query: queries of SQLite files are not read, for nothing says how far one has come; load a table, or a file of the query: sqlite3 -quote -header FILE 'SELECT …'")
	case mysql.Is(arg):
		a, err := mysql.ParseQuery(arg, query)
		if err != nil {
			return nil, usagef("%v", err)
		}
		return a, nil
	}
	a, err := postgres.ParseQuery(arg, query)
	if err != nil {
		return nil, usagef("%v", err)
	}
	return a, nil
}

// sqlConfig reads the flags of a command that reads a table of a database, nil if no argument is the address of one.
func sqlConfig(c *call, args []string) (*sqltable.Config, error) {
	if !slices.ContainsFunc(args, isSQL) {
		for _, name := range []string{"query", "require-snapshot"} {
			if c.IsSet(name) {
				return nil, usagef("--%s is for tables of a database, such as postgres://USER@HOST/DATABASE?table=TABLE, mysql://… or sqlite:FILE?table=TABLE", name)
			}
		}
		return nil, nil
	}
	if len(args) > 1 {
		return nil, usagef("a table of a database is read by itself; give no other input beside it")
	}
	address, reading := cutReading(args[0])
	cfg, err := readingOf(reading)
	if err != nil {
		return nil, err
	}
	if cfg.Server, err = sqlServer(c, address); err != nil {
		return nil, err
	}
	for _, o := range options.Of(options.Looking) {
		if c.IsSet(o.Name) {
			return nil, usagef("--%s: it says how text is read, and a database gives its values types; leave it out", o.Name)
		}
	}
	if _, ok := cfg.Server.(sqltable.Lagging); !ok && cfg.MaxLag > 0 {
		return nil, usagef("max-lag: a SQLite file has no replicas; leave it out")
	}
	memory, err := parseMemory(c)
	if err != nil {
		return nil, err
	}
	cfg.MaxRow, cfg.RetryFor, cfg.MaxRows, cfg.Whole = memory/4, c.Duration("retry-for"), c.Float64("max-rows-per-second"), c.Bool("require-snapshot")
	return cfg, nil
}

// readingNames are what the address of a database says of how it is read, beside what its driver takes.
var readingNames = []string{"sessions", "max-lag"}

// cutReading cuts what readingNames say, such as "&sessions=1", from an address.
func cutReading(arg string) (address, reading string) {
	address, query, _ := strings.Cut(arg, "?")
	sep := "?"
	for pair := range strings.SplitSeq(query, "&") {
		switch name, _, _ := strings.Cut(pair, "="); {
		case slices.Contains(readingNames, name):
			reading += "&" + pair
		case query != "":
			address, sep = address+sep+pair, "&"
		}
	}
	return address, reading
}

// readingOf reads what cutReading has cut.
func readingOf(reading string) (*sqltable.Config, error) {
	cfg := &sqltable.Config{Sessions: sqltable.DefaultSessions}
	said, err := url.ParseQuery(reading)
	if err != nil {
		return nil, usagef("%s: %v", reading, err)
	}
	if text := said.Get("sessions"); said.Has("sessions") {
		if cfg.Sessions, err = strconv.Atoi(text); err != nil || cfg.Sessions < 1 || cfg.Sessions > sqltable.MaxSessions {
			return nil, usagef("sessions=%s: want 1 to %d", text, sqltable.MaxSessions)
		}
	}
	if text := said.Get("max-lag"); said.Has("max-lag") {
		if cfg.MaxLag, err = time.ParseDuration(text); err != nil || cfg.MaxLag < time.Second {
			return nil, usagef("max-lag=%s: want 1s or more, such as 10s", text)
		}
	}
	return cfg, nil
}

// sqlOrigin returns the table of a database that a command reads, nil if no argument is the address of one. A sync needs all rows of one snapshot.
func sqlOrigin(c *call, args []string) (source.Origin, error) {
	cfg, err := sqlConfig(c, args)
	if cfg == nil || err != nil {
		return nil, err
	}
	cfg.Whole = cfg.Whole || c.Command.Name == job.Sync
	return sqltable.New(*cfg), nil
}

// sqlLoad is a load of a table of a database.
type sqlLoad struct {
	c      *call
	show   *display
	read   sqltable.Config
	origin *sqltable.Origin
}

// sqlOf returns the load of the database that an argument is the address of, nil if none is.
func sqlOf(c *call, show *display) (*sqlLoad, error) {
	cfg, err := sqlConfig(c, c.Args().Slice())
	if cfg == nil || err != nil {
		return nil, err
	}
	l := &sqlLoad{c: c, show: show, read: *cfg}
	l.read.OnPause = func(why string) { say(c, show, "note: %s", why) }
	l.origin = sqltable.New(l.read)
	return l, nil
}

func (l *sqlLoad) config(c *call, in *invocation, r *options.Request) (cfg pipeline.Config, err error) {
	if c.Bool("drop-expired") {
		return cfg, usagef("--drop-expired: only an archive of a table is checked for cells that are too old")
	}
	cfg, err = loadConfigOf(r, c, in)
	cfg.Read.Sources = l.origin
	return cfg, err
}

func (l *sqlLoad) open(c *call, a access, show *display) (*target, error) {
	return openTarget(c, a, show)
}

// begin gives columns the types that the database says, and a new table its primary key.
func (l *sqlLoad) begin(interrupts *interrupts, cfg *pipeline.Config, t *target) error {
	if cfg.Target.Table == "" {
		return nil // the load says so
	}
	if err := checkTable(cfg.Target.Table); err != nil {
		return err
	}
	columns, key, err := l.origin.Describe(interrupts.drain)
	if input.Passing(err) {
		return err // the server may answer the next time
	}
	if err != nil {
		return &plan.UsageError{Message: err.Error(), Input: true}
	}
	var to *client.Table
	if !t.missing && !plan.IsTemplate(cfg.Target.Table) {
		sdk, err := client.New(interrupts.drain, t.Target, nil)
		if err != nil {
			return usagef("%v", err)
		}
		admin := &client.Admin{Client: sdk, Context: interrupts.drain, RetryFor: cfg.Write.RetryFor}
		if to, err = admin.Describe(cfg.Target.Table); err != nil && !errors.Is(err, client.ErrNoTable) {
			return err
		}
		if err != nil {
			to = nil
		}
	}
	renamed := func(name string) string {
		if to, ok := cfg.Columns.Rename[name]; ok {
			return to
		}
		return name
	}
	isKey := map[string]bool{}
	if to != nil {
		for _, k := range to.Key {
			isKey[k.Name] = true
		}
	} else {
		if len(cfg.Target.Key) == 0 && len(key) > table.MaxKeyColumns {
			return usagef("the primary key of the source has %d columns, and a table here takes 1 to %d: make one of several with --pk, such as --pk 'key=splice(auto, %s, %s, …)' (docs/keys.md)",
				len(key), table.MaxKeyColumns, columns[key[0]].Name, columns[key[1]].Name)
		}
		l.proposeKey(cfg, columns, key, renamed)
		for _, k := range cfg.Target.Key {
			isKey[k.Name] = true
		}
	}
	for _, c := range columns {
		name := renamed(c.Name)
		_, given := cfg.Columns.Types[c.Name]
		_, also := cfg.Columns.Types[name]
		if given || also || isKey[name] || to != nil && to.Defined[name] != table.Null {
			continue
		}
		cfg.Columns.Types[c.Name] = plan.Type{Type: c.Type}
	}
	return nil
}

// proposeKey gives a new table the source's primary key, if the user names none, and the types of its columns.
func (l *sqlLoad) proposeKey(cfg *pipeline.Config, columns []sqltable.Column, key []int, renamed func(string) string) {
	if len(cfg.Target.Key) == 0 {
		var text string
		for _, k := range key {
			name := renamed(columns[k].Name)
			cfg.Target.Key = append(cfg.Target.Key, table.KeyColumn{Name: name})
			text += fmt.Sprintf(" --pk %s:%s", suggest.Arg(name), columns[k].Type)
		}
		say(l.c, l.show, "note: the new table's primary key is that of the source:%s", text)
	}
	for i := range cfg.Target.Key {
		k := &cfg.Target.Key[i]
		computed := slices.ContainsFunc(cfg.Columns.Keys, func(c keyexpr.Column) bool { return c.Name == k.Name })
		if at := slices.IndexFunc(columns, func(c sqltable.Column) bool { return renamed(c.Name) == k.Name }); at >= 0 && k.Type == table.Null && !computed && columns[at].Type.KeyType() {
			k.Type = columns[at].Type
		}
	}
}

func (l *sqlLoad) compared(cfg *pipeline.Config) {
	read := l.read
	read.Whole = false // a comparison reads a snapshot of its own
	cfg.Read.Sources = sqltable.New(read)
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

func (l *sqlLoad) ended(r *pipeline.Report) (notes []string) {
	if d := l.origin.Paused(); d > 0 {
		notes = append(notes, fmt.Sprintf("reading was held up for %v, while replication lagged by more than %v", round(d), l.read.MaxLag))
	}
	if r.Consistent == nil {
		return notes
	}
	switch {
	case *r.Consistent && r.Read == 0: // an empty table, or a load that failed before its first row
		return notes
	case *r.Consistent && r.State != pipeline.StateFinished:
		return append(notes, "all rows that were read are of one snapshot of the source")
	case *r.Consistent:
		return append(notes, "all rows are of one snapshot of the source")
	}
	return append(notes, fmt.Sprintf("warning: the rows are not of one moment: they come from %d snapshots of the source (\"snapshots\" of the summary)", len(r.Snapshots)))
}
