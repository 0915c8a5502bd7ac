package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/address"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/fromdatabase"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	archive "example.com/tsimport/reader/archivefile"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
	"example.com/tsimport/reader/tablescan"
	"example.com/tsimport/transfer/copytable"
	"example.com/tsimport/transfer/fromtable"
	"example.com/tsimport/transfer/restore"
	"example.com/tsimport/transfer/tablesync"
)

const tableSourceHelp = "In place of files, one archive of a table can be given, by its folder, or one table as " +
	"ots://[PROFILE@]INSTANCE/TABLE, with\n" +
	"variables of the environment for each profile as of tsimport copy; the instance of an embedded store is " +
	server.DefaultInstance + "."

// wholeFor refuses deletes by an archive that lacks rows of its table, and puts by an archive that lacks cells.
func wholeFor(interrupts *interrupts, cfg *tablesync.Config, to *target) error {
	m, err := restore.Find(interrupts.drain, cfg.Load.Inputs, cfg.Load.Read.Find)
	if m == nil || err != nil {
		return err
	}
	keeps := 0
	if m.Versions > 1 || m.Holds.Versions > 0 && m.Versions >= m.Holds.Versions { // the latter may be incomplete
		s, err := fromtable.Describe(interrupts.drain, &cfg.Load, to.Target, cfg.Load.Target.Table)
		if err != nil {
			return err
		}
		if s.Table != nil {
			keeps = s.Table.MaxVersions
			if err := keepsVersions(s.Table, "the archive "+m.Dir(), m.Versions); err != nil {
				return err
			}
		}
	}
	switch h := m.Holds; {
	case h.Columns != nil && cfg.Load.Write.Mode == table.Put:
		return usagef("the archive %s holds only some columns (%s); putting a row would lose the others; give --mode "+
			"update, which rejects rows that have none of them", m.Dir(), strings.Join(h.Columns, ", "))
	case h.Versions > 0 && m.Versions >= h.Versions && keeps > h.Versions && cfg.Load.Write.Mode == table.Put:
		newest := "the newest version"
		if h.Versions > 1 {
			newest = fmt.Sprintf("the newest %d versions", h.Versions)
		}
		return usagef("the archive %s holds only %s of each cell (--versions), and table %s keeps %d; putting a row would "+
			"lose the others; give --mode update",
			m.Dir(), newest, cfg.Load.Target.Table, keeps)
	case !cfg.Delete:
	case h.Filter != "" || h.Where != "":
		return usagef("--delete: the archive %s holds only the rows that passed its --filter or --where; all others would "+
			"be deleted; leave --delete out", m.Dir())
	case h.From != "" || h.To != "":
		cfg.Held = &tablesync.Held{Name: "the archive " + m.Dir(), Key: m.Key, From: h.From, To: h.To}
	}
	return nil
}

// keepsVersions refuses to sync more versions of a cell than a table keeps: the service would silently drop the rest.
func keepsVersions(to *client.Table, source string, versions int) error {
	if keeps := max(to.MaxVersions, 1); versions > keeps {
		return usagef("table %s keeps %s of a cell, but %s has up to %d, so older ones would be lost; raise the limit with "+
			"tsimport table update %s --max-versions %d, or sync an archive of --versions %d",
			to.Name, counted(int64(keeps), "version"), source, versions, to.Name, versions, keeps)
	}
	return nil
}

// tableSource sets the source if the only argument is the address of a table or an archive; files need nothing. stop
// closes the source, units returns the read units used. A sync has more requirements than a comparison.
func tableSource(c *call, cfg *pipeline.Config, to *target, how scan.Manner, syncs bool) (stop func() error,
	units func() int64, err error) {
	stop, units = func() error { return nil }, func() int64 { return 0 }
	if !slices.ContainsFunc(cfg.Inputs, address.Is) {
		cfg.Read.Sources, err = originOf(c.interrupts.drain, c, cfg.Inputs, cfg.Read.Find)
		if err == nil && cfg.Read.Sources != nil {
			err = archiveFits(c.interrupts, cfg, to)
		}
		return stop, units, err
	}
	if len(cfg.Inputs) != 1 {
		return stop, units, usagef("%q: a table must be the only source", cfg.Inputs)
	}
	arg, err := parseTableArgument(cfg.Inputs[0])
	if err != nil {
		return stop, units, err
	}
	from := to
	if !to.embedded || arg.address.Profile != "" || arg.address.Instance != server.DefaultInstance {
		if from, err = openSide(c, arg, access{readOnly: true, role: "source"}); err != nil {
			return stop, units, err
		}
		stop = from.close
	}
	a, err := fromtable.Describe(c.interrupts.drain, cfg, from.Target, arg.name)
	if err != nil {
		return stop, units, fmt.Errorf("source, %s: %w", from.name, err)
	}
	if a.Table == nil {
		return stop, units, usagef("the source, table %s, does not exist in %s", arg.name, from.name)
	}
	b, err := fromtable.Describe(c.interrupts.drain, cfg, to.Target, cfg.Target.Table)
	if err != nil {
		return stop, units, fmt.Errorf("target, %s: %w", to.name, err)
	}
	if err := copytable.Distinct(a, b); err != nil {
		return stop, units, err
	}
	if b.Table != nil {
		if err := comparable(cfg, arg.shown(), a.Table, b.Table, syncs); err != nil {
			return stop, units, err
		}
	}
	read := tablescan.Config{Client: a.Client, Table: a.Table, Name: arg.shown(), RetryFor: cfg.Lanes.RetryFor,
		Columns: cfg.Columns.Only, Manner: how}
	if cfg.Write.Marks.ReturnedKeys != "" { // rows with a cell in the mark's column could not be compared
		if err := seeMark(c.interrupts.drain, cfg, &read); err != nil {
			return stop, units, err
		}
	}
	origin := tablescan.New(read)
	origin.Clock = a.Clock
	cfg.Read.Sources = origin
	return stop, origin.Units, nil
}

// comparable refuses a source whose rows cannot be compared with the table's or, for a sync, cannot be stored in it.
func comparable(cfg *pipeline.Config, source string, from, to *client.Table, syncs bool) error {
	if syncs {
		if err := keepsVersions(to, source, from.MaxVersions); err != nil {
			return err
		}
	}
	if err := restore.FitsKey(source, from.Key, cfg, "table "+to.Name, to.Key); err != nil ||
		cfg.Write.Marks.ReturnedKeys != "" {
		return err
	}
	return copytable.CheckKey(to.Name, to.Key, cfg.Inputs[0],
		"rows are compared by their keys; verify takes the file that the load has written with --returned-keys")
}

// archiveFits refuses a table with key columns that are not in the archive's key.
func archiveFits(interrupts *interrupts, cfg *pipeline.Config, to *target) error {
	m, err := restore.Find(interrupts.drain, cfg.Inputs, cfg.Read.Find)
	if m == nil || err != nil {
		return err
	}
	s, err := fromtable.Describe(interrupts.drain, cfg, to.Target, cfg.Target.Table)
	if err != nil || s.Table == nil {
		return err // the comparison reports a missing table
	}
	if err := restore.Fits(m, cfg, "table "+s.Name, s.Table.Key); err != nil || cfg.Write.Marks.ReturnedKeys == "" {
		return err
	}
	return restore.FreeMark(m, cfg, s.Table.Key) // rows with a cell in the mark's column cannot be compared
}

// seeMark refuses marks in a column that one of the source's first rows has; usually all rows have the same columns.
func seeMark(ctx context.Context, cfg *pipeline.Config, from *tablescan.Config) error {
	mark := restore.MarkColumn(cfg)
	name := mark
	for from, to := range cfg.Columns.Rename {
		if to == mark {
			name = from
		}
	}
	if !cfg.Columns.Takes(name) || cfg.Columns.To(name) != mark {
		return nil
	}
	s := scan.Options{From: from.From, To: from.To, Versions: 1, RetryFor: from.RetryFor, Manner: from.Manner,
		Columns: []string{name}}
	rows, err := scan.NewPager(from.Client, from.Table.Name, from.Table.Key, s).Next(ctx)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if slices.ContainsFunc(rows, func(r *scan.Row) bool { return len(r.Columns) > 0 }) {
		return restore.MarkTaken("table "+from.Name, mark, name)
	}
	return nil
}

const databaseHelp = "In place of files, one table of a database can be given: postgres://…, mysql://… or " +
	"sqlite:FILE, with ?table=TABLE (docs/sql.md)."

const lookedHelp = databaseHelp + " So can a table of the service, ots://[PROFILE@]INSTANCE/TABLE."

// sqlOrigin returns the database table that a command reads, or nil. A sync needs all rows of one snapshot.
func sqlOrigin(c *call, args []string) (source.Origin, error) {
	of := c.command()
	of.From = args
	cfg, err := fromdatabase.Config(of)
	if cfg == nil || err != nil {
		return nil, err
	}
	if s := c.in.session; s != nil {
		cfg.Moment = s.moments.Of(cfg.Server)
	}
	cfg.Alone = !cfg.Whole
	cfg.Whole, cfg.RetryFor = cfg.Whole || c.Command.Name == job.Sync, c.of.RetryFor
	return sqltable.New(*cfg), nil
}

// lookedAt returns the table of a database or of the service that a command inspects, or nil if no argument is such an
// address. stop closes it. keyed requires keys made of the rows of a service's table to include that table's key.
func lookedAt(c *call, args []string, keyed bool) (origin source.Origin, stop func() error, err error) {
	stop = func() error { return nil }
	if !slices.ContainsFunc(args, address.Is) {
		origin, err = sqlOrigin(c, args)
		return origin, stop, err
	}
	if len(args) != 1 {
		return nil, stop, usagef("%q: a table must be the only source", args)
	}
	arg, err := parseTableArgument(args[0])
	if err != nil {
		return nil, stop, err
	}
	if endpoint, _, err := serviceOf(c); err == nil && endpoint == "" && arg.address.Profile == "" &&
		arg.address.Instance == server.DefaultInstance {
		arg.address = nil // an address of the embedded store
	}
	from, err := openSide(c, arg, access{readOnly: true, role: "source"})
	if err != nil {
		return nil, stop, err
	}
	s, err := fromtable.Describe(c.interrupts.drain, new(pipeline.Config), from.Target, arg.name)
	if err == nil && s.Table == nil {
		err = usagef("table %s does not exist in %s", arg.name, from.name)
	}
	if err != nil {
		return nil, stop, errors.Join(err, from.close())
	}
	return tablescan.Looked{Keyed: keyed, Origin: tablescan.New(tablescan.Config{Client: s.Client, Table: s.Table,
		Name: arg.shown(), RetryFor: c.of.RetryFor})}, from.close, nil
}

// sqlAgain makes a comparison read the same database ranges as the run, and returns its snapshots of them.
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

// refuseArchives refuses archives as arguments of commands that would misread their parts as files of rows.
func refuseArchives(c *call) error {
	for _, arg := range c.Args().Slice() {
		if m, err := restore.At(c.Context, arg, storesOf(c)); m != nil || errors.As(err, new(*plan.UsageError)) {
			return usagef("%s is an archive of a table, which %s does not read; tsimport verify compares it with a table, and "+
				"tsimport load restores it", suggest.Arg(arg), c.Command.Name)
		}
	}
	return nil
}

// originOf returns the source of the arguments, or nil if they are files.
func originOf(ctx context.Context, c *call, args []string, find input.Options) (source.Origin, error) {
	if origin, err := sqlOrigin(c, args); origin != nil || err != nil {
		return origin, err
	}
	m, err := restore.Find(ctx, args, find)
	if m == nil || err != nil {
		return nil, err
	}
	_, err = restore.New(m, &c.given.Request, nil)
	return archive.New(m), err
}

// isFolder reports whether an export's output is a folder or a prefix in an object store. Its name suffices.
func isFolder(name string) bool {
	if jobdir.IsAddress(name) {
		return name[len(name)-1] == '/' || path.Ext(name) == ""
	}
	info, err := os.Stat(name)
	return name != "" && (name[len(name)-1] == '/' || name[len(name)-1] == filepath.Separator || err == nil &&
		info.IsDir())
}
