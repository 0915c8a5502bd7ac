package options

import "time"

// Request describes a load, or what a comparison or sync reads and compares. It comes from flags, the keys of a job
// file, library fields, or JSON from other machines. Config checks it.
type Request struct {
	// From lists the inputs: files, folders, globs, "-" (standard input), "@list" (a file with one name per line),
	// addresses (http, https, oss, s3), or one table of a database (postgres, mysql, sqlite).
	From  []string `json:"from,omitzero"`
	Table string   `json:"table,omitempty"` // an expression in braces gives each row its table

	Target
	Text
	Values
	Mapping
	NewTable
	Writing
	Numbered
	Rates
	Recurring
	Database
	Running
}

// Text configures how the text of inputs is cut into records and fields.
type Text struct {
	Format      string   `json:"format,omitempty"`       // csv, jsonl, parquet, arrow, dynamodb, mongodb, …; "" means auto
	SourceTable string   `json:"source-table,omitempty"` // in a dump or changes: TABLE or SCHEMA.TABLE; "": the only one
	Dialect     string   `json:"dialect,omitempty"`      // for CSV: the program that wrote it, or auto
	Delimiter   string   `json:"delimiter,omitempty"`
	Quote       string   `json:"quote,omitempty"`  // a character, or none; "" means a double quote
	Escape      string   `json:"escape,omitempty"` // a character, or none; "" means the dialect's
	Comment     string   `json:"comment,omitempty"`
	RecordEnd   string   `json:"record-end,omitempty"`
	NoHeader    bool     `json:"no-header,omitempty"`
	SkipLines   int      `json:"skip-lines,omitempty"`
	Names       []string `json:"names,omitzero"` // names of columns, with NoHeader
	Encoding    string   `json:"encoding,omitempty"`
	Ragged      string   `json:"ragged,omitempty"` // reject, pad or truncate; "" means reject
}

// Values configures how fields and nested values of inputs are interpreted.
type Values struct {
	Trim        bool     `json:"trim,omitempty"`         // drop spaces around unquoted fields
	Null        []string `json:"null,omitzero"`          // unquoted fields that mean null, besides empty ones
	Empty       string   `json:"empty,omitempty"`        // meaning of empty fields: null or string; "" means the dialect's
	Flatten     bool     `json:"flatten,omitempty"`      // make columns a.b.c of nested values
	PathColumns bool     `json:"path-columns,omitempty"` // make a column of each folder named name=value
}

// Mapping assigns input columns to table columns.
type Mapping struct {
	PK            []string          `json:"pk,omitzero"`       // NAME[:TYPE][=EXPR] of each primary-key column, in order
	Set           []string          `json:"set,omitzero"`      // attributes NAME[:TYPE]=EXPR, computed from input columns
	Columns       []string          `json:"columns,omitzero"`  // attributes to load; nil loads all, an empty list none
	Exclude       []string          `json:"exclude,omitzero"`  // columns to leave out
	Rename        map[string]string `json:"rename,omitempty"`  // input column to table column
	Type          map[string]string `json:"type,omitempty"`    // types by column: integer, timestamp(2006-01-02,UTC,ms), …
	Types         string            `json:"types,omitempty"`   // table, strict or infer; "" means table
	OnNull        string            `json:"on-null,omitempty"` // skip or delete; "" means skip
	Missing       string            `json:"missing,omitempty"` // columns that some files lack: null or refuse (also "")
	VersionColumn string            `json:"version-column,omitempty"`
}

// NewTable describes a table to be created, and the tables of periods.
type NewTable struct {
	Create      bool              `json:"create,omitempty"`
	TTL         int               `json:"ttl,omitempty"`          // time to live in seconds; 0 and -1 mean forever
	MaxVersions int               `json:"max-versions,omitempty"` // 0 means 1
	Define      []string          `json:"define,omitzero"`        // predefined columns and secondary indexes
	MaxTables   int               `json:"max-tables,omitempty"`   // maximum tables of a name with expressions; 0 means 64
	AgePolicy   string            `json:"age-policy,omitempty"`   // file with a policy; "" means none
	RenameIndex map[string]string `json:"rename-index,omitempty"` // for an archive or a copy: other names for indexes
	Now         string            `json:"now,omitempty"`          // RFC 3339 time to count ages from, for tests; "": now
}

// Writing configures which rows are written, and how.
type Writing struct {
	Mode        string `json:"mode,omitempty"`         // put, update, delete, increment or changes; "" means put
	OpColumn    string `json:"op-column,omitempty"`    // for changes: NAME or NAME:VALUE=OP,…
	Condition   string `json:"condition,omitempty"`    // ignore, exist or not-exist; "" means ignore
	When        string `json:"when,omitempty"`         // write a row only if the stored one meets this
	Order       string `json:"order,omitempty"`        // last-wins or none; "" means last-wins
	Limit       int64  `json:"limit,omitempty"`        // maximum records; 0 means all
	DropExpired bool   `json:"drop-expired,omitempty"` // for an archive: leave out cells too old for the table
	DryRun      bool   `json:"dry-run,omitempty"`
	MaxErrors   string `json:"max-errors,omitempty"` // maximum rejected rows, N or N%; "" means 100, "-1" no limit
}

// Numbered configures loads with counters or with key columns that the service numbers.
type Numbered struct {
	ReturnedKeys string `json:"returned-keys,omitempty"` // new file for returned keys; "" means none
	MarkColumn   string `json:"mark-column,omitempty"`
	LookFirst    bool   `json:"look-first,omitempty"`
	AtLeastOnce  bool   `json:"at-least-once,omitempty"`
}

// Rates limits how fast rows are written, and the resources used.
type Rates struct {
	Concurrency       int     `json:"concurrency,omitempty"` // maximum requests in flight; 0 means 32
	BatchBytes        int64   `json:"batch-bytes,omitempty"` // maximum bytes of a request; 0 means 4 MiB
	MaxWCU            float64 `json:"max-wcu,omitempty"`     // 0 means no limit, also for the next two
	MaxRowsPerSecond  float64 `json:"max-rows-per-second,omitempty"`
	MaxBytesPerSecond int64   `json:"max-bytes-per-second,omitempty"`
	Compress          string  `json:"compress,omitempty"` // compress requests: on or off; "" means off
	// Memory is in bytes, at least 16 MiB; 0 means a quarter of the machine's memory, at most 1 GiB.
	Memory   int64         `json:"memory,omitempty"`
	RetryFor time.Duration `json:"retry-for,omitempty"` // in JSON, nanoseconds; 0 means 15 minutes
	Settle   time.Duration `json:"settle,omitempty"`    // 0 means RequestTimeout
}

// Recurring configures repeated loads (docs/how-to/nightly-files.md).
type Recurring struct {
	OnlyNew          bool   `json:"only-new,omitempty"`            // load each input once per table
	ReloadChanged    bool   `json:"reload-changed,omitempty"`      // with OnlyNew: load changed inputs
	FailIfNothingNew bool   `json:"fail-if-nothing-new,omitempty"` // return an error instead of an empty summary
	FilesBy          string `json:"files-by,omitempty"`            // order of inputs, name or time; "": name with OnlyNew
	// SettleFiles leaves out inputs that have changed within this time; 0 leaves out none.
	SettleFiles time.Duration `json:"settle-files,omitempty"`
	DoneMarker  string        `json:"done-marker,omitempty"` // file required beside an input: {}.done; {} is its name
	BadInputs   string        `json:"bad-inputs,omitempty"`  // set-aside or stop; "" means set-aside with OnlyNew
	State       string        `json:"state,omitempty"`       // where known files, checkpoints and the lease are kept
}

// Database configures how a database is read, besides its address (docs/sql.md).
type Database struct {
	Query           string `json:"query,omitempty"`            // load the rows of this SELECT instead of a table
	RequireSnapshot bool   `json:"require-snapshot,omitempty"` // stop if the snapshot is lost before all rows are read
}

// Running configures the load's files on the machine, and how it is resumed.
type Running struct {
	RunDir             string `json:"run-dir,omitempty"` // folder of the run's files; "" means one in ./tsimport-runs
	Fresh              bool   `json:"fresh,omitempty"`   // start over instead of resuming
	AcceptChangedInput bool   `json:"accept-changed-input,omitempty"`
	RetryRejects       string `json:"retry-rejects,omitempty"` // run folder whose corrected rejects are loaded
	Verify             bool   `json:"verify,omitempty"`        // compare the table with the inputs afterwards
}
