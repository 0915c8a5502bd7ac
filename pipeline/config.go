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
	RunDir     string // zero: rundir.DefaultPath
	DryRun     bool   // everything but the writes
	Compared   bool   // the table will be compared with the inputs: refuse the load if that is impossible
	Resume     keep.Resume
	Invocation keep.Invocation
	Checkpoint keep.Checkpoint
	Watch      Watch

	// Drain, when it ends, stops the load gently: requests in flight end. Its cause is an *Interrupted. Nil never drains.
	Drain context.Context
}

// Watch holds the observers of a load.
type Watch struct {
	// OnWait is called with why a table operation waits for a silent endpoint, and the maximum wait. May be nil.
	OnWait func(why string, most time.Duration)
	// OnPlan is called before the first write. May be nil.
	OnPlan func(*plan.Plan)
	// OnHotKey is called while the load runs: at most once when nearly all rows read so far have one partition-key value,
	// and at most once when one value has more bytes than it should, with those bytes. May be nil; it must not block.
	OnHotKey func(h ledger.ReportHotKey, rows int64)
	// OnReject is called with each rejected record. May be nil; it must not block.
	OnReject func(*rundir.Reason)
	// OnKept gets each kept reject, valid only during the call, and its source's ordinal. May be nil; it must not block.
	OnKept func(source int, r *table.Reject)
	// Progress is updated while the load runs. May be nil.
	Progress *ledger.Progress
	// Monitor shows the state of the load while it runs. May be nil.
	Monitor *Monitor
	// Ends is called with the end of every record; rejected records are then not kept in the run folder. May be nil.
	Ends ledger.Ends
}

// Write configures how rows are written.
type Write struct {
	Mode table.Mode
	Conditions
	DeleteNull bool // update: a null deletes the column
	Order      plan.Order
	Marks      Marks
	Compress   string // requests: on or off; "" is off
	// Settle is how long an attempt of unknown outcome may still be applied; 0 means the request time-out.
	Settle time.Duration
}

// Conditions configure when a row is written.
type Conditions struct {
	Condition table.Existence
	When      *condition.When // only if the stored row meets it; nil writes all rows
	Unchanged bool            // only if the stored row still equals the one in table.UnchangedColumn
}

// Marks configures loads that must not apply a row twice: those with auto-increment keys or counters.
type Marks struct {
	Column       string // attribute that rows are recognised by; "" takes plan.DefaultMarkColumn
	AtLeastOnce  bool   // rows are repeated blindly instead
	ReturnedKeys string // new file for the keys made by the service; "" means none
	// LookFirst means that an earlier load of the same files may have written rows: each is looked up first.
	LookFirst bool
}

// Limits end a load early.
type Limits struct {
	Records   int64 // records to read; 0 means all
	MaxErrors ledger.MaxErrors
	SetAside  bool // a bad file is left out and named in the report; MaxErrors applies to each file
	// MaxTables limits the tables of a --table with expressions, except archived ones; 0 means plan.DefaultMaxTables.
	MaxTables int
	Memory    int64  // bytes of memory of the process, without an embedded store; 0 takes DefaultMemory
	TempDir   string // folder for spilled rows; "" takes the system's
	TempMax   int64  // maximum bytes of spilled rows on disk; 0 means no limit
	NoSpill   bool   // no row is spilled: reading waits instead
}

// Defaults of a load.
const (
	DefaultConcurrency = 32
	DefaultRetryFor    = 15 * time.Minute
	DefaultMemory      = 1 << 30
)

// Interrupted is the cause of a Drain or a cancelled context: the user stopped the load.
type Interrupted struct {
	Signal   string
	ExitCode int
}

func (i *Interrupted) Exit() int { return i.ExitCode }

func (i *Interrupted) Error() string { return "stopped by " + i.Signal }

// LongestLate is how long after a process has lost its lease its requests may still be applied.
func (c *Config) LongestLate() time.Duration { return c.kept().LongestLate() }

// kept identifies the load to its later runs.
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
	if c.Watch.Monitor == nil {
		c.Watch.Monitor = NewMonitor()
	}
	c.Drain = cmp.Or(c.Drain, context.Background())
	c.Target.Client.Connections = max(c.Target.Client.Connections, c.Lanes.Concurrency)
}
