package options

import (
	"slices"
	"strconv"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader"
	"example.com/tsimport/reader/csv"
)

const (
	files     = "Files"
	databases = "Databases"
	tables    = "Table and service"
	columns   = "Columns, keys and types"
	rows      = "Rows: which, and how"
	numbers   = "Numbers: auto-increment and counters"
	rates     = "Rates, requests and memory"
	again     = "Again: loads that are repeated"
	machines  = "Machines: many at a time"
	results   = "Results"
)

// Groups lists the groups in the order of help, in which users need them. "" is the first group.
var Groups = []string{"", files, databases, tables, columns, rows, numbers, rates, again, machines, results}

const (
	everything = loads | Export | Reaching
	notCopy    = Load | Sync | Verify | Export | Reaching
	reads      = Load | Sync | Verify | Looking
)

// everyOption has the options of all commands that a Command can be, in the order of help.
var everyOption = slices.Concat(ofTables, ofLoads)

// ofLoads has the options of loads, including those that other commands share.
var ofLoads = []*Option{
	{Name: "endpoint", Basic: true, Group: tables, MayChange: true, In: everything, Unused: Check,
		Usage: "`URL` of the Tablestore service, http(s)://host[:port] (or TABLESTORE_ENDPOINT)"},
	{Name: "instance", Basic: true, Group: tables, In: everything, Unused: Check,
		Usage: "`NAME` of the instance (or TABLESTORE_INSTANCE)"},
	{Name: "profile", Basic: true, Group: tables, MayChange: true, In: notCopy,
		Usage: "`NAME` of a profile: endpoint, instance and access keys not given otherwise (docs/jobs.md)"},
	{Name: "store", Basic: true, Group: tables, In: everything, Unused: Check,
		Usage: "`DIR` of an embedded store instead of a service (default ./tsimport-store without --endpoint)"},
	{Name: "request-timeout", Kind: Duration, Least: 1, Want: "more than 0",
		Default: client.DefaultRequestTimeout.String(), Group: tables, MayChange: true, In: everything, Unused: Check,
		Usage: "how long a request may go without progress: for sending a part of it, or for its answer"},
	{Name: "format", Basic: true, Default: "auto", Group: files, OfInputs: true, In: reads,
		Values: reader.FormatNames(),
		Usage: "csv, jsonl, parquet, arrow, dynamodb (its exports), mongodb (mongoexport), pg_dump, mysqldump, changes " +
			"(docs/changes.md) of debezium, canal, maxwell or dynamodb-changes, or auto"},
	{Name: "source-table", Group: files, OfInputs: true, In: reads,
		Usage: "dump of a database, or changes: load `TABLE` or SCHEMA.TABLE (default: the only one)"},
	{Name: "dialect", Group: files, In: reads,
		Values: append([]string{"auto"}, csv.Programs...),
		Usage: "`NAME` of the program that wrote the file: mysql, postgres, clickhouse, hive, excel, sqlite and others " +
			"(docs/dumps.md); or auto: detect delimiter, quote and escape from the text, and refuse ambiguous files"},
	{Name: "delimiter", Basic: true, Group: files, In: reads, NotEmpty: true,
		Usage: "`TEXT` between fields, such as a character, \\t or \\x01 (default: a comma; in .tsv files a tab)"},
	{Name: "quote", Default: `"`, Group: files, In: reads, ByDialect: true,
		Usage: "`CHAR` around fields, or none"},
	{Name: "escape", Default: "none", Group: files, In: reads, ByDialect: true,
		Usage: "`CHAR` that makes the next character literal (a doubled quote inside quotes always works), or none"},
	{Name: "comment", Group: files, In: reads,
		Usage: "lines that begin with `TEXT` are not records"},
	{Name: "record-end", Hidden: true, Group: files, In: reads, NotEmpty: true,
		Usage: "`TEXT` that ends a record instead of a line end, such as '&|' or \\x02 (default: a line end)"},
	{Name: "no-header", Basic: true, Kind: Switch, Group: files, In: reads,
		Usage: "the first record is data; columns are named c1, c2, … or by --names"},
	{Name: "skip-lines", Kind: Whole, Want: "0 or more", Group: files, OfInputs: true, In: reads,
		Usage: "skip the first `N` lines; the header is below them"},
	{Name: "names", Kind: List, Group: files, In: reads,
		Usage: "with --no-header: the columns' names `A,B,C`"},
	{Name: "encoding", Group: files, OfInputs: true, In: reads,
		Usage: "text encoding: utf-8, gb18030, gbk, utf-16le, utf-16be, big5, shift-jis, latin1, windows-1252, …; a ! " +
			"after it forces it on text that contradicts it"},
	{Name: "ragged", Default: "reject", Group: files, In: reads,
		Values: []string{"reject", "pad", "truncate"},
		Usage:  "records with too few or too many fields: reject, pad (missing ones are null) or truncate (drops surplus)"},
	{Name: "trim", Kind: Switch, Group: files, In: reads,
		Usage: "drop spaces and tabs around unquoted fields and around quotes"},
	{Name: "null", Basic: true, Kind: Texts, Group: files, In: reads,
		Usage: "`TEXT` of an unquoted field that means null, in addition to an empty field; in double quotes that of a " +
			"quoted one; may be repeated"},
	{Name: "empty", Default: "null", Group: files, In: reads, ByDialect: true,
		Values: []string{"null", "string"},
		Usage:  "load an unquoted empty field as null or string"},
	{Name: "flatten", Kind: Switch, Group: files, In: reads,
		Usage: "load nested values of JSON lines, Parquet and Arrow as columns a.b.c instead of JSON text"},
	{Name: "path-columns", Kind: Switch, Group: files, In: reads,
		Usage: "add a column for each folder named name=value to the records below it"},
	{Name: "table", Basic: true, Alias: "t", Group: tables, In: Load | Sync | Verify, Unused: Check,
		Usage: "`TABLE` to load into; with an expression in braces, such as 'consume_{month(PaidAt)}', each row goes to " +
			"the table of its period (docs/age.md)"},
	{Name: "max-tables", Kind: Whole, Least: 1, Want: "1 or more", Default: strconv.Itoa(plan.DefaultMaxTables),
		Group: tables, In: Load | Sync | Verify, Unused: Sync | Verify,
		Usage: "stop before rows go to more than `N` tables, if --table contains an expression"},
	{Name: "age-policy", Group: tables, In: Load | Sync | Verify, Unused: Sync,
		Usage: "`FILE` with a lifecycle policy: new tables get the throughput and time to live for their age, and rows " +
			"that are too old go to an archive (docs/age.md)"},
	{Name: "now", In: Load | Sync | Verify, Hidden: true,
		Usage: "count ages from `TIME` (RFC 3339) instead of now"},
	{Name: "create", Basic: true, Kind: Switch, Group: tables, Typed: true, In: loads | Jobs, Unused: Sync | Verify,
		Usage: "create the table if it does not exist (implied on an embedded store)"},
	{Name: "pk", Basic: true, Kind: Texts, Group: columns, In: loads,
		Usage: "primary-key column `NAME[:TYPE][=EXPR]`, in order, 1 to 4 times; TYPE is string, integer, binary (default: " +
			"inferred from a sample), or auto for a column that the service numbers (docs/auto-increment.md); EXPR computes " +
			"it from input columns (docs/keys.md)"},
	{Name: "set", Kind: Texts, Group: columns, In: loads,
		Usage: "attribute column `NAME[:TYPE]=EXPR`, from input columns; replaces a column of that name; may be repeated"},
	{Name: "ttl", Kind: Whole, Default: "-1", Group: tables, In: loads, Unused: Sync | Verify,
		Usage: "new table: `SECONDS` until data expires, a day (86400) or more; -1 means never"},
	{Name: "max-versions", Kind: Whole, Least: 1, Want: "1 or more", Default: "1", Group: tables, In: loads,
		Unused: Sync | Verify,
		Usage:  "new table: versions to keep of each cell"},
	{Name: "define", Kind: Texts, Group: tables, In: Load | Sync | Verify, Unused: Sync | Verify,
		Usage: "new table: a predefined column, 'column NAME[:TYPE]', or a secondary index, created after the rows are " +
			"written, '[local] index NAME(COLUMN,…) [COLUMN,…]'; may be repeated"},
	{Name: "columns", Basic: true, Kind: List, Group: columns, In: loads,
		Usage: "load only these attribute columns `A,B`; key columns are always loaded"},
	{Name: "exclude", Kind: Lists, Group: columns, In: loads,
		Usage: "leave out these columns `X,Y`"},
	{Name: "rename", Basic: true, Kind: Renamings, Group: columns, In: loads,
		Usage: "rename a column, `OLD=NEW`; may be repeated"},
	{Name: "type", Basic: true, Kind: Typings, Group: columns, In: Load | Sync | Verify,
		Usage: "type of a column, `NAME=TYPE`: string, integer, double, boolean, binary (base64), binary(hex), " +
			"any or timestamp(layout,zone,unit); may be repeated (default: inferred from a sample)"},
	{Name: "version-column", Group: columns, In: Load | Sync | Verify,
		Usage: "column with the timestamp of each row's cells, in milliseconds; it is also loaded unless excluded. A new " +
			"table then accepts timestamps of any age"},
	{Name: "mode", Basic: true, Default: "put", Group: rows, Typed: true, In: Load | Sync | Verify,
		Values: []string{"put", "update", "delete", "increment", "changes"},
		Usage: "put (replace rows), update (write only the columns given), delete, increment (add to integer columns; " +
			"docs/counters.md), or changes (apply the change in each record; docs/changes.md)"},
	{Name: "op-column", Group: rows, In: Load, NotEmpty: true,
		Usage: "--mode changes: the column with the operation of each record, `NAME[:VALUE=put|update|delete,…]` (default: " +
			"I, U and D, and their words)"},
	{Name: "condition", Default: "ignore", Group: rows, In: Load | Sync | Verify, Unused: Sync | Verify,
		Values: []string{"ignore", "exist", "not-exist"},
		Usage:  "write a row only if it exists, or does not: ignore, exist or not-exist"},
	{Name: "when", Group: rows, In: loads, Unused: Verify, NotEmpty: true,
		Usage: "write a row only if the one in the table meets `CONDITION`, such as 'stored.updated_at < new.updated_at'; " +
			"columns that it lacks meet it (docs/loading.md)"},
	{Name: "types", Default: "table", Group: columns, In: Load | Sync | Verify,
		Values: []string{"table", "strict", "infer"},
		Usage: "types of columns: the table's types if the values fit (table); refuse others, and reject the " +
			"few values that differ from the type of nearly all (strict); or use only the input (infer)"},
	{Name: "on-null", Default: "skip", Group: columns, In: Load | Sync | Verify,
		Values: []string{"skip", "delete"},
		Usage:  "skip a null, or (update mode) delete the column"},
	{Name: "missing", Default: "refuse", Group: columns, In: Load | Sync | Verify,
		Values: []string{"refuse", "null"},
		Usage:  "if files lack columns: refuse to load the files (refuse), or load their rows without them (null)"},
	{Name: "limit", Kind: Whole, Want: "0 (no limit) or more", Group: files, OfInputs: true, In: Load | Sync | Verify,
		Usage: "stop after `N` records; 0 means no limit"},
	{Name: "drop-expired", Kind: Switch, Group: rows, Typed: true, In: Load | Sync | Verify, Unused: Sync | Verify,
		Usage: "archive: leave out cells that are older than the table's time to live or maximum deviation, and count them " +
			"(default: refuse to load)"},
	{Name: "verify", Basic: true, Kind: Switch, Group: results, MayChange: true, In: loads | Jobs, Unused: Sync | Verify,
		Usage: "compare table and files after the load, like tsimport verify; exit code 6 if rows are missing or differ"},
	{Name: "dry-run", Basic: true, Kind: Switch, Group: results, OfInputs: true, In: loads | Jobs, Unused: Sync | Verify,
		Usage: "read, convert and check everything; write nothing"},
	{Name: "max-errors", Basic: true, Default: "100", Group: results, MayChange: true, In: loads | Jobs, Unused: Verify,
		Usage: "stop (exit code 4) when more than `N` rows, or N% of those read, are rejected; a percentage counts from " +
			"1,000 rows on; -1 means never"},
	{Name: "retry-for", Kind: Duration, Least: 1, Want: "more than 0", Default: pipeline.DefaultRetryFor.String(),
		Group: rates, MayChange: true, In: loads | Jobs, Unused: Check,
		Usage: "give up after this long without progress, such as 30s or 15m"},
	{Name: "settle", Kind: Duration, Want: "0 or more", Group: rates, MayChange: true, In: loads | Jobs, Unused: Verify,
		Usage: "how long a request without an answer may still be applied, such as 90s or 2m; 0s means --request-timeout"},
	{Name: "sync", Hidden: true, Default: "always", Group: tables, MayChange: true, In: loads | Jobs, Unused: Verify,
		Values: []string{"always", "none"},
		Usage:  "embedded store: always (rows survive a crash) or none"},
	{Name: "fresh", Kind: Switch, Group: again, MayChange: true, OfInputs: true, Typed: true, In: loads, Scope: NotInJobs,
		Instead: "give tsimport run --fresh",
		Usage:   "start over, even if an earlier run of this load is unfinished (default: resume it)"},
	{Name: "accept-changed-input", Kind: Switch, Group: again, MayChange: true, OfInputs: true, Typed: true,
		In: Load | Sync | Verify, Unused: Sync, Scope: NotInJobs,
		Instead: "give tsimport run --accept-changed-input",
		Usage:   "resume a run although its inputs have changed; the parts already read must be the same"},
	{Name: "retry-rejects", Group: again, MayChange: true, OfInputs: true, Typed: true, In: Load | Sync | Verify,
		Unused: Sync, Scope: NotInJobs,
		Instead: "give tsimport load --retry-rejects FOLDER, with the run folder of the load",
		Usage:   "load the corrected rejects of the run in `FOLDER`, with that run's settings; other flags override them"},
	{Name: "run-dir", Basic: true, Group: again, MayChange: true, OfInputs: true, In: loads, Unused: Verify,
		Scope:   NotInJobs,
		Instead: "the job's folder has a run folder for each load; name the job's with tsimport run --run-dir",
		Usage:   "`DIR` for the summary and rejects (default ./tsimport-runs/<time>-<table>)"},
	{Name: "json", Kind: Switch, Group: results, MayChange: true, In: loads, Scope: NotInJobs,
		Instead: "give tsimport run --json",
		Usage:   "print the summary as JSON on stdout"},
	{Name: "quiet", Basic: true, Alias: "q", Kind: Switch, Group: results, MayChange: true, In: loads | Machine,
		Scope:   NotInJobs,
		Instead: "give tsimport run --quiet",
		Usage:   "show errors only"},
	{Name: "returned-keys", Group: numbers, In: Load | Sync | Verify, Unused: Sync, NotEmpty: true,
		Usage: "auto-increment: write each key to the new CSV `FILE` (file, record, key; of an archive the old key, too)"},
	{Name: "mark-column", Group: numbers, In: Load | Sync | Verify, Unused: Sync, NotEmpty: true,
		Usage: "auto-increment and --mode increment: string `COLUMN` that identifies a row when it is unknown whether it " +
			"was written (default _tsimport)"},
	{Name: "look-first", Kind: Switch, Group: numbers, In: Load | Sync | Verify, Unused: Sync,
		Usage: "auto-increment: look for each row before writing it, in case an earlier load of the same files wrote it"},
	{Name: "at-least-once", Hidden: true, Kind: Switch, Group: numbers, In: Load | Sync | Verify, Unused: Sync,
		Usage: "auto-increment: write no marks; a row whose answer is lost is sent again and may be in the table twice"},
	{Name: "cpu-profile", MayChange: true, In: loads | Export, Hidden: true, Scope: NotInJobs,
		Usage: "write a CPU profile to `FILE`"},
	{Name: "allocations-profile", MayChange: true, In: loads | Export, Hidden: true, Scope: NotInJobs,
		Usage: "write a profile of every allocation to `FILE`; slow"},
	{Name: "order", Basic: true, Default: plan.LastWins.String(), Group: rows, In: Load | Sync | Verify | Jobs,
		Values: []string{plan.LastWins.String(), plan.OrderNone.String()},
		Usage: "last-wins (rows of a key are written in input order; a sorted file is read by a schedule that uses all " +
			"partitions of a new table) or none (any order)"},
	{Name: "concurrency", Basic: true, Kind: Whole, Least: 1, Most: 4096, Want: "1 to 4096",
		Default: strconv.Itoa(pipeline.DefaultConcurrency), Group: rates, MayChange: true, In: loads | Jobs | Machine,
		Unused: Check, Scope: OfBoth,
		Usage: "maximum number of requests in flight, 1 to 4096"},
	{Name: "batch-bytes", Hidden: true, Kind: Size, Least: 1, Most: table.MaxBatchBytes, Want: "up to 4MiB",
		Default: "4MiB", Group: rates, MayChange: true, In: loads | Jobs, Unused: Verify,
		Usage: "maximum `SIZE` of a request, such as 512KiB, up to 4MiB; for gateways that take less (also detected)"},
	{Name: "max-wcu", Basic: true, Kind: Number, Want: "a number above 0, or 0 for none", Group: rates, MayChange: true,
		In: loads | Jobs, Unused: Verify, Scope: OfBoth,
		Usage: "write at most `UNITS` of capacity a second over all partitions; 0 means no limit"},
	{Name: "max-rows-per-second", Kind: Number, Want: "a number above 0, or 0 for none", Group: rates, MayChange: true,
		In: loads | Jobs, Unused: Verify, Scope: OfBoth,
		Usage: "write at most `N` rows a second, and read no more of a database; 0 means no limit"},
	{Name: "max-bytes-per-second", Kind: Size, Group: rates, MayChange: true, In: loads | Jobs, Unused: Verify,
		Scope: OfBoth,
		Usage: "write at most `SIZE` of rows a second, such as 10MiB (names and values); 0 means no limit"},
	{Name: "compress", Hidden: true, Default: client.CompressOff, Group: rates, MayChange: true, In: loads | Jobs,
		Values: []string{"on", "off"},
		Usage:  "compress requests: on, for slow links, or off; not yet tested with the real service"},
	{Name: "memory", Kind: Size, Group: rates, MayChange: true, In: loads | Jobs | Machine, NotEmpty: true, Scope: OfJob,
		Usage: "`SIZE` of memory for rows, such as 512MiB, at least 16MiB; the process may use 64MiB more, an embedded " +
			"store 512MiB (default: a quarter of the machine's, at most 1GiB); rows that do not fit wait on disk, in TMPDIR"},
	{Name: "status", Group: results, MayChange: true, In: loads | Machine, Unused: Verify, Scope: NotInJobs,
		Instead: "loads of a job run concurrently; give tsimport load --status",
		Usage:   "serve the load's state over HTTP at `ADDRESS`, such as 127.0.0.1:0 (a free port): /status and /metrics"},
	{Name: "only-new", Basic: true, Kind: Switch, Group: again, In: Load,
		Usage: "leave out inputs whose content the table already has (docs/how-to/nightly-files.md)"},
	{Name: "reload-changed", Kind: Switch, Group: again, Typed: true, In: Load,
		Usage: "--only-new: reload known inputs whose content has changed (default: refuse them)"},
	{Name: "fail-if-nothing-new", Kind: Switch, Group: again, In: Load,
		Usage: "exit code 7 if no input is new, instead of 0"},
	{Name: "files-by", Group: again, In: Load,
		Values: []string{"name", "time"},
		Usage: "order of the inputs: name, or time (of the last change), over all arguments (default: the order " +
			"of the arguments; name with --only-new)"},
	{Name: "settle-files", Kind: Duration, Group: again, In: Load,
		Usage: "leave out inputs that were changed less than this long ago, such as 2m; they may be half written"},
	{Name: "done-marker", Group: again, In: Load,
		Usage: "load an input only if `MARKER` exists beside it, such as '{}.done', where {} is the input's name"},
	{Name: "bad-inputs", Group: again, In: Load, Hidden: true,
		Values: []string{"set-aside", "stop"},
		Usage: "set-aside (a file that cannot be read, or has more rejected rows than max-errors, is left out, named, and " +
			"the others are loaded) or stop (default: set-aside with only-new, otherwise stop; docs/how-to/nightly-files.md)"},
	{Name: "state", Group: again, In: Load | Jobs,
		Usage: "keep known files, checkpoints and a lease at `PLACE`, a folder, oss://bucket/prefix or s3://bucket/prefix, " +
			"where a load on another machine finds them (default: in ./tsimport-runs, on this machine; " +
			"docs/how-to/nightly-files.md)"},
	{Name: "query", NotEmpty: true, Group: databases, OfInputs: true, In: Load | Sync | Verify,
		Usage: "database: load the rows of this `SELECT` instead of a table; key=COLUMN in the address names the columns " +
			"that identify them (docs/sql.md)"},
	{Name: "require-snapshot", Kind: Switch, Group: databases, OfInputs: true, In: Load | Sync | Verify,
		Usage: "database: stop if the snapshot of all rows is lost (default: read the rest from a new one, " +
			"and report that in the summary; docs/sql.md)"},
	{Name: "rename-index", Hidden: true, Kind: Renamings, Group: tables, In: Load | Copy | Verify, Unused: Verify,
		Usage: "new table of an archive or a copy: another name for an index, `OLD=NEW`, as index names are unique in " +
			"an instance; may be repeated"},
	{Name: "job-dir", Group: machines, In: Load | Copy, Scope: NotInJobs,
		Instead: "it plans one load for many machines; give tsimport load --job-dir",
		Usage: "plan the load for many machines, in an empty `PLACE` that all of them can reach: a shared folder, " +
			"oss://bucket/prefix or s3://bucket/prefix; tsimport work carries it out (docs/many-machines.md)"},
	{Name: "plan", Kind: Switch, Group: machines, In: Load | Copy, Scope: NotInJobs,
		Instead: "it shows what would be done; give tsimport run --plan",
		Usage:   "--job-dir: estimate each step from measured rates, and create nothing"},
	{Name: "workers", Kind: Whole, Least: 1, Most: 4096, Want: "1 to 4096", Default: "4", Group: machines, In: Load | Copy,
		Scope:   NotInJobs,
		Instead: "it is for tsimport load --job-dir",
		Usage:   "--job-dir: how many `PROCESSES` are expected; there may be more or fewer"},
	{Name: "metrics-file", Group: results, MayChange: true, In: Ending, Scope: NotInJobs,
		Instead: "give tsimport run --metrics-file",
		Usage: "write metrics about the command's result to `FILE`, for the textfile collector of Prometheus's " +
			"node_exporter (docs/observing.md)"},
	{Name: "timeout", Kind: Duration, Want: "a time such as 90m", Group: results, MayChange: true, In: Ending,
		Usage: "stop after this long, as by SIGTERM, with exit code 1; the command can be resumed. 0 means never"},
}
