package pipeline

import (
	"cmp"
	"context"
	"time"

	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/condition"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/ratelimit"
)

type Config struct {
	Inputs     []string // arguments in order, as input.Expand understands them
	Read       plan.Read
	Target     plan.Target
	Columns    plan.Columns
	Write      Write
	Lanes      lanes.Config
	Limits     Limits
	RunDir     string // "" means rundir.DefaultPath
	DryRun     bool   // everything but the writes
	Compared   bool   // the table will be compared with the inputs: refuse the load if that is impossible
	Resume     keep.Resume
	Invocation keep.Invocation
	Checkpoint keep.Checkpoint
	Watch      Watch

	// When Drain ends, the load stops after its requests in flight. The cause is an *Interrupted. Drain may be nil.
	Drain context.Context
}

// Watch holds the observers of a load.
type Watch struct {
	// OnWait, if not nil, is called with the reason and maximum time of a table operation's wait for a silent endpoint.
	OnWait func(why string, most time.Duration)
	// OnPlan, if not nil, is called before the first write.
	OnPlan func(*plan.Plan)
	// OnHotKey, if not nil, is called while the load runs: at most once when nearly all rows so far have one partition-key
	// value, and at most once, with Bytes, when a value has more bytes than it should. It must not block.
	OnHotKey func(h ledger.ReportHotKey, rows int64)
	// OnReject, if not nil, is called with the reason of each reject that is kept, unless Ends is set. It must not block.
	OnReject func(*rundir.Reason)
	// OnKept, if not nil, is called with each kept reject and its source. It must not block or keep the reject.
	OnKept func(source int, r *table.Reject)
	// Progress, if not nil, is updated while the load runs.
	Progress *ledger.Progress
	// Monitor, if not nil, shows the state of the load while it runs.
	Monitor *Monitor
	// Ends, if not nil, receives the records that were written, superseded or rejected. Rejected ones are then not kept.
	Ends ledger.Ends
}

// Write configures how rows are written.
type Write struct {
	Mode table.Mode
	Conditions
	DeleteNull bool // in updates, a null deletes the column
	Order      plan.Order
	Marks      Marks
	Compress   string // compress requests: on or off; "" is off
	// Settle is the time for which an attempt of unknown outcome may still be applied; 0 means the request time-out.
	Settle time.Duration
}

// Conditions configure when a row is written.
type Conditions struct {
	Condition table.Existence
	When      *condition.When // must be true of the stored row for a row to be written; nil writes all rows
	Unchanged bool            // a row is written only if the stored row still equals the one in table.UnchangedColumn
}

// Marks configures loads with auto-increment keys or counters, which must not apply a row twice.
type Marks struct {
	Column       string // attribute that identifies rows; "" means plan.DefaultMarkColumn
	AtLeastOnce  bool   // rows have no marks and may be applied twice
	ReturnedKeys string // new file for the keys completed by the service; "" means none
	// LookFirst means that each row is looked up first, as an earlier load of the same files may have written it.
	LookFirst bool
}

// Limits end a load early.
type Limits struct {
	Records   int64 // records to read; 0 means all
	MaxErrors ledger.MaxErrors
	SetAside  bool // bad files are left out and named in the report; MaxErrors applies to each file
	// MaxTables limits the tables of a --table with expressions, without archived ones; 0 means plan.DefaultMaxTables.
	MaxTables int
	Memory    int64  // maximum bytes of memory of the process, without an embedded store; 0 means DefaultMemory
	TempDir   string // folder for spilled rows; "" means the system's folder for temporary files
	TempMax   int64  // maximum bytes of spilled rows on disk; 0 means no limit
	NoSpill   bool   // rows are not spilled: reading waits instead
}

// Defaults of a load.
const (
	DefaultConcurrency = 32
	DefaultRetryFor    = 15 * time.Minute
	DefaultMemory      = 1 << 30
)

// Interrupted is the cause of a Drain, or of a cancelled context, when the user stops the load.
type Interrupted struct {
	Signal   string
	ExitCode int
}

func (i *Interrupted) Exit() int { return i.ExitCode }

func (i *Interrupted) Error() string { return "stopped by " + i.Signal }

// LongestLate returns how long a process's requests may still be applied after it has lost its lease.
func (c *Config) LongestLate() time.Duration { return c.kept().LongestLate() }

// kept returns what identifies the load to its later runs.
func (c *Config) kept() *keep.Load {
	request := cmp.Or(c.Target.Client.RequestTimeout, client.DefaultRequestTimeout)
	rows := []progress.Fact{{Name: "--condition", Value: [...]string{"ignore", "exist", "not-exist"}[c.Write.Condition]}}
	if when := c.Write.When; when != nil {
		rows = append(rows, progress.Fact{Name: "--when", Value: when.String()})
	}
	if define := c.Target.Asked.Columns; define != "" {
		rows = append(rows, progress.Fact{Name: "what a new table is defined with", Value: define})
	}
	if c.Write.Unchanged {
		rows = append(rows, progress.Fact{Name: "--if-unchanged", Value: "true"})
	}
	return &keep.Load{
		Inputs: c.Inputs, Target: c.Target.Name, Place: c.Target.Place, Table: c.Target.Table, RunDir: c.RunDir,
		ReturnedKeys: c.Write.Marks.ReturnedKeys, Nothing: !c.keeps(), Ordered: c.Write.Order == plan.LastWins, Rows: rows,
		PolicyNow: c.Target.PolicyNow, Settle: cmp.Or(c.Write.Settle, request), Request: request,
		Resume: c.Resume, Invocation: c.Invocation, Checkpoint: c.Checkpoint,
	}
}

func (c *Config) keeps() bool { return !c.DryRun && !c.Checkpoint.None }

// Request returns the request for a plan of the load.
func (c *Config) Request() *plan.Request {
	keep := plan.KeepRecord
	if c.Watch.Ends != nil {
		keep = plan.KeepNothing
	}
	return &plan.Request{
		Keep: keep,

		Inputs: c.Inputs, Read: c.Read, Target: c.Target, Columns: c.Columns, Mode: c.Write.Mode,
		Condition: c.Write.Condition, When: c.Write.When, Unchanged: c.Write.Unchanged, MarkColumn: c.Write.Marks.Column,
		AtLeastOnce: c.Write.Marks.AtLeastOnce, LookFirst: c.Write.Marks.LookFirst,
		Returned: c.Write.Marks.ReturnedKeys != "", DeleteNull: c.Write.DeleteNull, Order: c.Write.Order,
		Records: c.Limits.Records, Memory: c.Limits.Memory, RunDir: c.RunDir,
	}
}

func (c *Config) setDefaults() {
	c.Lanes.Concurrency = cmp.Or(c.Lanes.Concurrency, DefaultConcurrency)
	if c.Lanes.Backoff.Base == 0 {
		c.Lanes.Backoff = ratelimit.Backoff{Base: 50 * time.Millisecond, Max: 5 * time.Second}
	}
	c.Lanes.RetryFor = cmp.Or(c.Lanes.RetryFor, DefaultRetryFor)
	c.Target.Client.RequestTimeout = cmp.Or(c.Target.Client.RequestTimeout, client.DefaultRequestTimeout)
	c.Write.Settle = cmp.Or(c.Write.Settle, c.Target.Client.RequestTimeout)
	c.Limits.Memory = cmp.Or(c.Limits.Memory, DefaultMemory)
	c.Watch.Progress = cmp.Or(c.Watch.Progress, new(ledger.Progress))
	c.Watch.Monitor = cmp.Or(c.Watch.Monitor, NewMonitor())
	c.Drain = cmp.Or(c.Drain, context.Background())
	c.Target.Client.Connections = max(c.Target.Client.Connections, c.Lanes.Concurrency)
}
