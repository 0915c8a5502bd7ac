package tsimport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"tsimport/internal/tablestore/accesskey"
	"tsimport/pipeline"
	"tsimport/pipeline/options"
	"tsimport/pipeline/plan"
	"tsimport/pipeline/recurring"
)

// LoadOptions are the options of a load of files. The zero value reads files with a header into an existing table. Each field
// means what the flag of tsimport load of the same name means (VersionColumn is --version-column), and a zero field is a flag that
// is not given; docs/inputs.md, docs/loading.md and docs/keys.md describe them.
type LoadOptions struct {
	// How files are read.
	Format      string // csv, jsonl, parquet, dynamodb, mongodb, pg_dump, mysqldump or auto; "" is auto
	SourceTable string // of a dump: TABLE or SCHEMA.TABLE; "" is the only one with rows
	Dialect     string // of CSV: the program that wrote it, or auto
	Delimiter   string
	Quote       string // a character, or none
	Escape      string // likewise
	Comment     string
	RecordEnd   string
	NoHeader    bool
	SkipLines   int
	Names       []string // of columns, with NoHeader
	Encoding    string
	Ragged      string   // reject, pad or truncate; "" is reject
	Trim        bool     // drop spaces around unquoted fields
	Null        []string // unquoted fields that mean null, beside the empty one
	QuotedNull  []string // quoted fields that mean null
	Empty       string   // load an unquoted empty field as null or string; "" is null
	QuotedEmpty string   // load a quoted empty field as string or null; "" is string
	Flatten     bool     // nested values become columns a.b.c
	PathColumns bool     // a column for each folder named name=value

	// What goes into which columns.
	PK            []string          // NAME[:TYPE][=EXPR], for each column of the primary key in order
	Set           []string          // attributes NAME[:TYPE]=EXPR, computed from input columns
	Columns       []string          // attributes to load; nil loads all
	Exclude       []string          // columns to leave out
	Rename        map[string]string // columns of the input to columns of the table
	Type          map[string]string // types of columns, such as integer or timestamp(2006-01-02,UTC,ms)
	VersionColumn string            // timestamps of the cells of each row, in milliseconds
	Types         string            // table, strict or infer; "" is table
	Missing       string            // a column that only some files have: refuse or null; "" is refuse

	// Where they go to.
	Create      bool
	TTL         int    // seconds; 0 is never
	MaxVersions int    // 0 is 1
	MaxTables   int    // if the table's name has expressions; 0 is 64
	AgePolicy   string // file

	// Loads that come again (docs/nightly.md).
	OnlyNew          bool          // load each input once per table
	ReloadChanged    bool          // with OnlyNew: load a known input again whose content has changed, in place of refusing it
	FailIfNothingNew bool          // ErrNothingNew, in place of a summary without rows
	FilesBy          string        // name or time: the order of the inputs; "" is as they come, with OnlyNew by name
	SettleFiles      time.Duration // leave out inputs that were changed less than this long ago; 0 leaves out none
	DoneMarker       string        // load an input only if this stands beside it, such as {}.done, where {} is its name
	State            string        // a folder, oss://bucket/prefix or s3://bucket/prefix for known files, checkpoints and a lease; "" is ./tsimport-runs

	// How they are written.
	Mode              string // put, update, delete or increment; "" is put
	Condition         string // ignore, exist or not-exist; "" is ignore
	When              string // write a row only if the one in the table passes, such as stored.at < new.at (docs/loading.md)
	OnNull            string // skip or delete; "" is skip
	Order             string // last-wins or none; "" is last-wins
	Limit             int64  // records; 0 is all
	DryRun            bool
	MaxErrors         string        // rejected rows, N or N%; "" is 100, "-1" means no limit
	RetryFor          time.Duration // 0 is 15 minutes
	Settle            time.Duration // 0 is twice Target.RequestTimeout
	ReturnedKeys      string        // file
	MarkColumn        string
	LookFirst         bool
	AtLeastOnce       bool
	Concurrency       int     // requests in flight; 0 is 32
	BatchBytes        int64   // 0 is 4 MiB
	MaxWCU            float64 // 0 means no limit, here and below
	MaxRowsPerSecond  float64
	MaxBytesPerSecond int64
	Compress          string // requests: on or off; "" is off

	// What the load takes of the machine, and leaves there.
	Memory             int64  // bytes for rows, at least 16 MiB; 0 is a quarter of the machine's, at most 1 GiB
	RunDir             string // for the summary, the rejects and what a resumed load needs; "" is ./tsimport-runs/<time>-<table>
	Fresh              bool   // start over, even if an earlier run of this load is unfinished; otherwise it is resumed
	AcceptChangedInput bool
}

// Summary is how a load of files ended. Read = Written + Rejected + Superseded + ConditionFailed + Archived + Unfinished. The counts are those of all
// attempts of a load that was resumed.
type Summary struct {
	Read, Written, Rejected, Superseded int64
	MaybeApplied                        int64    // of Rejected: rows that may be in the table all the same
	ConditionFailed                     int64    // rows not written, for the row in the table did not pass When
	Archived                            int64    // rows that AgePolicy has put into files
	Unfinished                          int64    // after an error; of a dry run, all rows that would have been written
	RunDir                              string   // summary.json there says more
	RejectsFiles                        []string // with the rejected records; the one with the reasons is the last
}

// ErrNothingNew: no input is new, and LoadOptions.FailIfNothingNew is set.
var ErrNothingNew = errors.New("no input is new")

// ErrErrorLimit: more records were rejected than LoadOptions.MaxErrors allows.
var ErrErrorLimit = errors.New("too many rejected rows")

// LoadFiles loads files into a table, as tsimport load does: files, folders, globs, "-" for standard input, "@list", and http, https,
// oss and s3 addresses. A load that did not finish is resumed when it is called again with the same arguments.
//
// When ctx ends the load stops at once. The summary is nil if the load could not begin. Up to LoadOptions.MaxErrors, rejected
// records do not fail the load: the summary counts them. With OnlyNew the summary is empty if no input is new.
func LoadFiles(ctx context.Context, target Target, tableName string, files []string, o LoadOptions) (summary *Summary, err error) {
	given := givenBy(&o)
	given["table"] = tableName
	cfg, err := options.Config(given, files)
	if err != nil {
		return nil, public(err)
	}
	cfg.Read.Find.NotData = options.NotData(given)
	cfg.Read.Find.OSS.Credentials = func(context.Context) (id, secret, token string, err error) {
		provider, err := accesskey.Find(ctx, nil)
		if err != nil {
			return "", "", "", err
		}
		keys := provider.GetCredentials()
		return keys.GetAccessKeyID(), keys.GetAccessKeySecret(), keys.GetSecurityToken(), nil
	}
	cfg.Resume = pipeline.Resume{Look: !o.Fresh, AcceptChanged: o.AcceptChangedInput, LocksDir: options.LocksDir()}
	command := options.CommandOf(ctx)
	if command != nil {
		command.Complete(&cfg)
	}
	if !cfg.Target.Absent {
		to, name, err := target.open(ctx)
		if err != nil {
			return nil, public(err)
		}
		cfg.Target.Client = to
		cfg.Target.Name = cmp.Or(cfg.Target.Name, name)
	}
	if command == nil { // the command has opened it
		again, openErr := recurring.Open(ctx, given, &cfg, func(string, ...any) {})
		if openErr != nil {
			return nil, public(openErr)
		}
		defer func() {
			if closeErr := again.Close(); err == nil {
				err = closeErr
			}
		}()
	}
	report, err := pipeline.Run(ctx, cfg)
	if command != nil {
		command.Report, command.Err = report, err
	} else if nothing := new(plan.NothingNew); errors.As(err, &nothing) {
		if o.FailIfNothingNew {
			return nil, &failure{ErrNothingNew, err}
		}
		return &Summary{}, nil
	}
	if err != nil && ctx.Err() != nil {
		err = &failure{ErrInterrupted, errors.Join(err, context.Cause(ctx))}
	}
	if report == nil {
		return nil, public(err)
	}
	s := &Summary{
		Read: report.Read, Written: report.Written, Rejected: report.Rejected, Superseded: report.Superseded, ConditionFailed: report.ConditionFailed, MaybeApplied: report.MaybeApplied,
		Archived: report.Archived, Unfinished: report.Unfinished, RunDir: report.RunDir, RejectsFiles: report.RejectsFiles,
	}
	switch {
	case err != nil:
		err = public(err)
	case report.State == pipeline.StateErrorLimit:
		err = &failure{ErrErrorLimit, fmt.Errorf("load into table %s: %d of %d records were rejected, more than MaxErrors allows; see %s", tableName, s.Rejected, s.Read, s.RunDir)}
	case report.State == pipeline.StateInterrupted:
		err = &failure{ErrInterrupted, fmt.Errorf("load into table %s: interrupted: %w", tableName, ErrInterrupted)}
	}
	return s, err
}
