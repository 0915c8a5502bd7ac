package tsimport

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
)

// Loader writes rows into one table. It is safe for concurrent use. Close releases its goroutines and connections.
type Loader struct {
	key         []table.KeyColumn
	deleting    bool
	bufferBytes int                 // size at which a buffer is handed to the load
	flushing    *lanes.FlushRequest // set while a Flush waits
	stop        context.CancelCauseFunc

	put      chan struct{} // capacity 1; has a token when a buffer may be ready
	delivery chan struct{} // capacity 1; has a token when endings are ready; closed after the last
	started  chan struct{} // closed when the load accepts rows
	start    sync.Once
	done     chan struct{} // closed when the load has ended and every outcome is delivered

	coming []ending // endings that the load's goroutine has not passed on yet

	mu          sync.Mutex
	rowOutcomes rowOutcomes
	queue       queue
	closed      bool
	ended       bool          // the load has ended
	err         error         // why it ended, if it failed
	change      chan struct{} // closed on a change that a Put or a Flush waits for; nil if neither waits
}

// queue holds the rows between Put and the load.
type queue struct {
	open     *buffer // accepts rows; nil if there is none
	full     []*buffer
	flushing int // waiting calls of Flush
}

// mostWaiting is the maximum number of outcomes that may wait for a slow Done before Put waits too.
const mostWaiting = 1 << 15

// Open opens a table for writing. It fails if the table is missing and cannot be created, or does not fit the options.
//
// The load stops when ctx ends, even after Open has returned. Rows without an outcome are then Unfinished.
func Open(ctx context.Context, target Target, tableName string, o LoaderOptions) (*Loader, error) {
	cfg, err := loaderConfig(tableName, &o)
	if err != nil {
		return nil, public(err)
	}
	if cfg.Target.Client, cfg.Target.Name, err = target.Open(ctx); err != nil {
		return nil, public(err)
	}
	key, err := findKey(ctx, &cfg)
	if err != nil {
		return nil, public(err)
	}
	run, stop := context.WithCancelCause(ctx)
	l := &Loader{
		key: key, deleting: cfg.Write.Mode == table.Delete, flushing: lanes.NewFlushRequest(), stop: stop,
		bufferBytes: int(min(max(o.memory()/256, 16<<10), 256<<10)), put: make(chan struct{}, 1),
		delivery: make(chan struct{}, 1), started: make(chan struct{}), done: make(chan struct{}),
	}
	cfg.Read.Sources = origin{l: l}
	cfg.Lanes.FlushRequest, cfg.Watch.Ends = l.flushing, ends{l}
	if cfg.RunDir, err = os.MkdirTemp(o.TempDir, "tsimport-loader-"); err != nil {
		stop(nil)
		return nil, fmt.Errorf("create temporary folder: %w", err)
	}
	go l.run(run, cfg)
	select {
	case <-l.started:
		return l, nil
	case <-l.done:
		return nil, l.err
	}
}

func loaderConfig(tableName string, o *LoaderOptions) (pipeline.Config, error) {
	cfg, err := options.Config(&Request{
		From: []string{"rows"}, Table: tableName, Mapping: Mapping{PK: o.PK, OnNull: o.OnNull},
		NewTable: NewTable{Create: o.Create, TTL: o.TTL, MaxVersions: o.MaxVersions},
		Writing:  Writing{Mode: o.Mode, Condition: o.Condition, Order: o.Order},
		Rates: Rates{
			Concurrency: o.Concurrency, BatchBytes: o.BatchBytes, Compress: o.Compress, Memory: o.Memory, RetryFor: o.RetryFor,
			Settle: o.Settle, MaxWCU: o.MaxWCU, MaxRowsPerSecond: o.MaxRowsPerSecond, MaxBytesPerSecond: o.MaxBytesPerSecond,
		},
	})
	switch {
	case err != nil:
		return cfg, err
	case plan.IsTemplate(tableName):
		return cfg, usagef("table %s: the name is a template, but a loader writes to one table", tableName)
	case table.CheckTableName(tableName) != nil:
		return cfg, usagef("%v", table.CheckTableName(tableName))
	case cfg.Write.Mode == table.Increment:
		return cfg, usagef("--mode increment: a loader puts, updates or deletes rows")
	case len(cfg.Columns.Keys) > 0:
		return cfg, usagef("--pk %s: a loader computes no columns; rows need every key column", cfg.Columns.Keys[0].Name)
	}
	cfg.Limits.MaxErrors, cfg.Limits.Memory = ledger.MaxErrors{Rows: -1}, plan.MemoryForRows(o.memory())
	cfg.Limits.TempDir, cfg.Limits.NoSpill = o.TempDir, o.TempDir == ""
	cfg.Target.Define.MaxDeviation = o.MaxDeviation
	cfg.Read.Parsers = min(runtime.GOMAXPROCS(0), mostParsers)
	cfg.Checkpoint.None = true
	return cfg, nil
}

// mostParsers limits the parsers of a Loader. More are not needed, and each holds rows, which count against Memory.
const mostParsers = 8

// findKey requests the table's primary key, or returns the key of the table to be created.
func findKey(ctx context.Context, cfg *pipeline.Config) ([]table.KeyColumn, error) {
	connection, err := client.Connect(ctx, cfg.Target.Client, nil)
	if err != nil {
		return nil, usagef("%v", err)
	}
	defer connection.Sender().Close()
	t := cfg.Target.Client
	t.Transport = connection.Transport()
	sdk, err := client.New(ctx, t, nil)
	if err != nil {
		return nil, usagef("%v", err)
	}
	described, err := (&client.Admin{Client: sdk, Context: ctx}).Describe(cfg.Target.Table)
	key := cfg.Target.Key
	switch {
	case err == nil:
		key = described.Key
	case ctx.Err() != nil:
		return nil, &failure{ErrInterrupted, context.Cause(ctx)}
	case !errors.Is(err, client.ErrNoTable):
		return nil, err
	case !cfg.Target.Create:
		return nil, &failure{ErrTableMissing, fmt.Errorf("table %s does not exist in %s; to create it, set Create and PK",
			cfg.Target.Table, cfg.Target.Name)}
	case len(key) == 0:
		return nil, usagef("table %s does not exist in %s; to create it, set PK to NAME:TYPE for each primary-key column",
			cfg.Target.Table, cfg.Target.Name)
	}
	for _, k := range key {
		if k.Auto {
			return nil, usagef("table %s: its primary-key column %s is auto-increment; a loader cannot write such rows, but "+
				"tsimport.Load can", cfg.Target.Table, k.Name)
		}
		if k.Type == table.Null {
			return nil, usagef("--pk %s: give its type, as in %s:string", k.Name, k.Name)
		}
	}
	return key, nil
}

// Put accepts a copy of row, waiting for memory until ctx ends. If it returns an error, the row is not accepted.
//
// Rows of one key are written in the order in which they were accepted. An accepted row is sent within a quarter of a
// second, unless its partition falls behind, and earlier if its batch fills or Flush is called.
func (l *Loader) Put(ctx context.Context, row Row) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	l.mu.Lock()
	for {
		switch {
		case l.closed:
			l.mu.Unlock()
			return ErrClosed
		case l.ended:
			l.mu.Unlock()
			return l.err
		}
		if len(l.queue.full) == 0 && len(l.rowOutcomes.ends)+l.rowOutcomes.out < mostWaiting {
			break
		}
		if err := l.wait(ctx); err != nil {
			l.mu.Unlock()
			return err
		}
	}
	if l.queue.open == nil {
		first := l.rowOutcomes.counts.Accepted
		l.queue.open = &buffer{key: l.key, deleting: l.deleting, first: first}
		l.rowOutcomes.live = append(l.rowOutcomes.live, &batch{first: first})
	}
	b := l.queue.open
	b.add(row.Columns)
	l.rowOutcomes.accept(row.Done)
	full, first := b.bytes() >= l.bufferBytes, len(b.rows) == 1
	if full {
		l.seal()
	}
	l.mu.Unlock()
	if full || first {
		signal(l.put)
	}
	return nil
}

func (l *Loader) seal() {
	l.queue.full = append(l.queue.full, l.queue.open)
	l.queue.open = nil
	l.rowOutcomes.live[len(l.rowOutcomes.live)-1].whole = true
}

// wait waits for a change, without the lock.
func (l *Loader) wait(ctx context.Context) error {
	if l.change == nil {
		l.change = make(chan struct{})
	}
	change := l.change
	l.mu.Unlock()
	defer l.mu.Lock()
	select {
	case <-change:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// changed wakes every goroutine that waits for a change.
func (l *Loader) changed() {
	if l.change != nil {
		close(l.change)
		l.change = nil
	}
}

// signal puts a token into a channel of capacity 1.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// queueState says why take returned no buffer.
type queueState uint8

const (
	empty     queueState = iota
	gathering            // a buffer is filling
	ended                // no more rows
)

// take returns the next buffer, nil if none is ready. Without gather, a buffer that is not full is ready too.
func (l *Loader) take(gather bool) (*buffer, queueState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := &l.queue
	if len(q.full) == 0 && q.open != nil && (!gather || q.flushing > 0 || l.closed) {
		l.seal()
	}
	switch {
	case len(q.full) > 0:
		b := q.full[0]
		q.full = q.full[1:]
		l.changed()
		return b, empty
	case q.open != nil:
		return nil, gathering
	case l.closed:
		return nil, ended
	}
	return nil, empty
}

// Flush waits until the outcome of every row accepted so far has been delivered. Meanwhile rows do not wait for their
// batches to fill. It returns an error if the load has ended or ctx ends first, and a *RejectedError if rows without a
// Done were rejected since the last Flush.
func (l *Loader) Flush(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.rowOutcomes.counts.Accepted
	if !l.rowOutcomes.final(n) {
		l.queue.flushing++
		l.flushing.Begin()
		signal(l.put)
		defer func() {
			l.queue.flushing--
			l.flushing.End()
		}()
	}
	for !l.rowOutcomes.final(n) {
		if err := l.wait(ctx); err != nil {
			return err
		}
	}
	if l.err != nil {
		return l.err
	}
	return l.rowOutcomes.rejectedSinceFlush()
}

// Counts returns the numbers of accepted rows and of outcomes so far.
func (l *Loader) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rowOutcomes.now()
}

// Close accepts no more rows, waits until every accepted row has an outcome, and releases all resources. If ctx ends
// first, the load is stopped: the remaining rows are Unfinished.
//
// The counts add up. The error tells why the load failed, if it did, and wraps a *RejectedError if any rows without a
// Done were rejected. Further calls return the same results.
func (l *Loader) Close(ctx context.Context) (Counts, error) {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		l.changed()
	}
	l.mu.Unlock()
	signal(l.put)
	select {
	case <-l.done:
	case <-ctx.Done():
		l.stop(context.Cause(ctx))
		<-l.done
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rowOutcomes.now(), errors.Join(l.err, l.rowOutcomes.rejected())
}

func (l *Loader) run(ctx context.Context, cfg pipeline.Config) {
	defer close(l.done)
	defer l.stop(nil)
	delivered := make(chan struct{})
	go func() {
		defer close(delivered)
		l.deliver()
	}()
	report, err := pipeline.Run(ctx, cfg)
	if err != nil && ctx.Err() != nil {
		err = &failure{ErrInterrupted, errors.Join(err, context.Cause(ctx))}
	}
	close(l.delivery)
	<-delivered
	l.mu.Lock()
	if err == nil && report != nil {
		err = l.compare(report)
	}
	if err == nil && !l.closed {
		err = errors.New("the load ended before Close was called")
	}
	err = errors.Join(public(err), os.RemoveAll(cfg.RunDir))
	l.err, l.ended = err, true
	l.queue = queue{flushing: l.queue.flushing}
	rest := l.rowOutcomes.abandon()
	l.mu.Unlock()
	tell(rest)
	l.mu.Lock()
	l.changed()
	l.mu.Unlock()
}

// compare returns an error if the load's counts differ from the Loader's.
func (l *Loader) compare(r *pipeline.Report) error {
	c := l.rowOutcomes.now()
	if r.Written == c.Written && r.Superseded == c.Superseded && r.Rejected == c.Rejected && r.Read == c.Accepted {
		return nil
	}
	return fmt.Errorf("the counts do not balance: of %d rows, the load read %d; it counts %d written, %d superseded and "+
		"%d rejected rows, the loader %d, %d and %d",
		c.Accepted, r.Read, r.Written, r.Superseded, r.Rejected, c.Written, c.Superseded, c.Rejected)
}

func (l *Loader) deliver() {
	var spare []ending
	for more := true; more; {
		_, more = <-l.delivery
		l.mu.Lock()
		ends := l.rowOutcomes.take(spare)
		l.mu.Unlock()
		tell(ends)
		l.mu.Lock()
		l.rowOutcomes.delivered(ends)
		l.changed()
		l.mu.Unlock()
		clear(ends)
		spare = ends
	}
}

// tell calls the Dones. One that ends its goroutine, as FailNow does in a test, affects no other row.
func tell(ends []ending) {
	for i := 0; i < len(ends); {
		told := make(chan struct{})
		go func() {
			defer close(told)
			for i < len(ends) {
				e := &ends[i]
				i++
				if e.done != nil {
					e.done(e.outcome())
				}
			}
		}()
		<-told
	}
}

// ends receives the outcomes of the load's records.
type ends struct{ l *Loader }

func (e ends) Written(_ int, record int64) { e.add(ending{record: record, end: Written}) }

func (e ends) Superseded(_ int, record int64) { e.add(ending{record: record, end: Superseded}) }

func (e ends) Rejected(_ int, record int64, why *table.Reason) {
	kept := *why
	e.add(ending{record: record, end: Rejected, why: &kept})
}

func (e ends) add(one ending) { e.l.coming = append(e.l.coming, one) }

// Flush passes on the outcomes received.
func (e ends) Flush() {
	l := e.l
	if len(l.coming) == 0 {
		return
	}
	l.mu.Lock()
	l.rowOutcomes.ends = append(l.rowOutcomes.ends, l.coming...)
	l.mu.Unlock()
	clear(l.coming)
	l.coming = l.coming[:0]
	signal(l.delivery)
}
