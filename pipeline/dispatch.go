package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tsimport/partitioner"
	"tsimport/ratelimit"
	"tsimport/runfolder"
	"tsimport/shuffle"
	"tsimport/table"
	"tsimport/writer"
)

// linger is how long a batch that is not full waits for more rows while the input goes on.
const linger = 250 * time.Millisecond

// result is a flight that has come back.
type result struct {
	flight *partitioner.Flight
	stats  writer.Stats
	err    error
}

// errLimit ends a load whose rows are bad.
var errLimit = errors.New("too many rejected rows")

// dispatcher is where blocks become batches and outcomes become the ledger. It runs in one goroutine, which alone
// touches the lane, the cutter, the run folder and the report.
type dispatcher struct {
	cfg    *Config
	folder *runfolder.Folder
	report *Report

	lane   *shuffle.Lane
	cutter *partitioner.Cutter

	blocks  <-chan handed // nil once the input is complete
	flights chan *partitioner.Flight
	results chan result
	idle    []*partitioner.Flight // one for each free worker
	flying  int

	patience  ratelimit.Patience
	stuck     bool   // a row was not accepted since one became final
	lastError string // of the service, for the message when patience runs out
	lastCut   time.Time
	lingering bool // rows wait for a batch to fill

	inputErr error // why the input could not be read to its end; what came before it is loaded
	stop     error // why no further batch is cut; nil while the load goes on
	stopRead context.CancelFunc
	dryRows  int64 // rows of a dry run
}

func newDispatcher(cfg *Config, folder *runfolder.Folder, report *Report, stopRead context.CancelFunc, blocks <-chan handed) *dispatcher {
	d := &dispatcher{cfg: cfg, folder: folder, report: report, stopRead: stopRead, blocks: blocks, lane: new(shuffle.Lane)}
	d.patience.For = cfg.Write.RetryFor
	d.cutter = partitioner.New(d.lane, partitioner.Options{
		Supersede: cfg.Write.Mode == table.Put && cfg.Write.Condition == table.Ignore,
		Settle:    cfg.Write.Settle,
		Backoff:   cfg.Write.Backoff.After,
		Final:     d.final,
	})
	n := cfg.Write.Concurrency
	d.flights = make(chan *partitioner.Flight, n)
	d.results = make(chan result, n)
	for range n {
		f := new(partitioner.Flight)
		f.MaxRows = cfg.Write.BatchRows
		d.idle = append(d.idle, f)
	}
	return d
}

// run returns nil when every row is final, or why it stopped earlier. It returns only when no request is under way, and
// closes flights so that the workers end.
func (d *dispatcher) run(ctx context.Context) error {
	defer close(d.flights)
	drain := d.cfg.Drain.Done()
	for {
		now := time.Now()
		if d.stop == nil {
			d.cut(now)
			d.checkPatience(now)
		}
		if d.finished(now) {
			if d.stop == nil {
				return d.inputErr
			}
			return d.stop
		}
		blocks := d.blocks
		if d.stop != nil || int64(d.lane.Bytes()) >= d.cfg.Limits.Memory {
			blocks = nil
		}
		timer := time.NewTimer(d.nextEvent(now))
		select {
		case h, ok := <-blocks:
			switch {
			case !ok:
				d.blocks = nil
			case h.err != nil:
				d.inputErr = h.err
			default:
				d.take(h.block)
			}
		case r := <-d.results:
			d.landed(r)
		case <-drain:
			drain = nil
			d.halt(context.Cause(d.cfg.Drain))
		case <-ctx.Done():
			// Requests end with the context; wait for their workers, then leave.
			timer.Stop()
			d.halt(context.Cause(ctx))
			for d.flying > 0 {
				d.landed(<-d.results)
			}
			return d.stop
		case <-timer.C:
		}
		timer.Stop()
	}
}

// halt stops reading and cutting; the first cause stays.
func (d *dispatcher) halt(cause error) {
	if d.stop == nil {
		d.stop = cause
	}
	d.stopRead()
}

// finished reports whether there is nothing left to do or to wait for.
func (d *dispatcher) finished(now time.Time) bool {
	if d.flying > 0 {
		return false
	}
	if d.stop == nil {
		if d.blocks != nil || d.lane.Rows() > 0 || d.cutter.Idle() {
			return d.blocks == nil && d.lane.Rows() == 0
		}
		if until, unsettled := d.cutter.Unsettled(now); unsettled && d.cutter.Retrying() == 0 {
			d.cfg.Progress.Settling.Store(until.UnixMilli())
		}
		return false
	}
	// An attempt that may still be applied could undo what a later run writes: even a stopped load waits for it,
	// unless the user insists (then ctx ends).
	until, unsettled := d.cutter.Unsettled(now)
	if unsettled {
		d.cfg.Progress.Settling.Store(until.UnixMilli())
	}
	return !unsettled
}

// nextEvent returns the time until something is due without a block or a result coming in.
func (d *dispatcher) nextEvent(now time.Time) time.Duration {
	next := time.Minute
	if wait, ok := d.cutter.Wait(now); ok {
		next = min(next, wait)
	}
	if d.stop != nil {
		if until, ok := d.cutter.Unsettled(now); ok {
			next = min(time.Minute, until.Sub(now))
		}
		return next
	}
	if d.lingering {
		next = min(next, linger-now.Sub(d.lastCut))
	}
	if left, ok := d.patience.Left(now); ok && d.stuck {
		next = min(next, left)
	}
	return max(next, time.Millisecond)
}

// cut hands batches to free workers.
func (d *dispatcher) cut(now time.Time) {
	d.lingering = false
	for len(d.idle) > 0 {
		f := d.idle[len(d.idle)-1]
		available := d.cutter.Available(now)
		if available == 0 || d.cutter.Retrying() > d.maxRetrying() {
			return
		}
		if d.lingering = !d.worthSending(now, available); d.lingering {
			return
		}
		if !d.cutter.Cut(now, f) {
			return // all fresh rows wait for rows of their key
		}
		d.idle = d.idle[:len(d.idle)-1]
		d.flying++
		d.report.Retried += int64(f.Retried)
		d.lastCut = now
		d.flights <- f // has room for every flight
	}
}

// worthSending holds small batches back while more rows are coming.
func (d *dispatcher) worthSending(now time.Time, available int) bool {
	full := d.cfg.Write.BatchRows
	if full == 0 {
		full = table.MaxBatchRows
	}
	inputWaits := int64(d.lane.Bytes()) >= d.cfg.Limits.Memory
	return available >= full || d.blocks == nil || inputWaits || now.Sub(d.lastCut) >= linger ||
		d.lane.Bytes() >= table.MaxBatchBytes
}

// maxRetrying bounds the rows that wait to be sent again: when the service refuses more, fresh rows must wait too.
func (d *dispatcher) maxRetrying() int { return d.cfg.Write.Concurrency * table.MaxBatchRows }

func (d *dispatcher) checkPatience(now time.Time) {
	if d.stuck && d.patience.Over(now) {
		d.halt(fmt.Errorf("no row was accepted for %v; last answer: %s", d.cfg.Write.RetryFor, d.lastError))
	}
}

// take puts a block into the ledger and its rows into the lane.
func (d *dispatcher) take(b *table.Block) {
	if limit := d.cfg.Limits.Records; limit > 0 && d.report.Read+int64(b.Records) >= limit {
		b.Truncate(int(limit - d.report.Read))
		d.blocks = nil
		d.stopRead()
	}
	read := int64(0) // records of this block counted so far
	for i := range b.Rejects {
		at := int(b.Rejects[i].Mark.Record) + 1
		d.report.Read += int64(at) - read
		read = int64(at)
		d.reject(b.Header, b.Reject(i))
		if d.stop != nil {
			b.Truncate(at) // what follows is not read
			break
		}
	}
	d.report.Read += int64(b.Records) - read
	d.report.BytesRead = d.bytesRead(b)
	if d.cfg.DryRun {
		d.dryRows += int64(len(b.Rows))
	} else {
		d.lane.Push(b)
	}
	d.flushRejects()
	d.publish()
}

// unfinished counts the rows that were read and are not final.
func (d *dispatcher) unfinished() int64 { return int64(d.cutter.Remaining()) + d.dryRows }

func (d *dispatcher) bytesRead(b *table.Block) int64 {
	n := d.report.BytesRead + b.Input
	if b.Split == 0 {
		n += b.Offset // the header
	}
	return n
}

// landed takes the outcomes of a flight.
func (d *dispatcher) landed(r result) {
	d.flying--
	d.report.Requests += int64(r.stats.Requests)
	for i := range r.flight.Outcomes {
		o := &r.flight.Outcomes[i]
		switch o.Fate {
		case table.Written:
			d.report.WriteCU += int64(o.WriteCU)
		case table.Again, table.Unknown:
			d.lastError = strings.TrimSpace(o.Code + " " + o.Message)
			if o.Throttled {
				d.report.Throttled++
			}
			if !d.stuck {
				d.stuck = true
				d.patience.Progress(time.Now())
			}
		}
	}
	d.cutter.Done(time.Now(), r.flight)
	r.flight.Reset()
	d.idle = append(d.idle, r.flight)
	if r.err != nil {
		d.halt(r.err)
	}
	d.flushRejects()
	d.publish()
}

func (d *dispatcher) publish() {
	p := d.cfg.Progress
	p.Read.Store(d.report.Read)
	p.BytesRead.Store(d.report.BytesRead)
	p.Written.Store(d.report.Written)
	trouble := ""
	if d.stuck {
		trouble = d.lastError
	}
	p.Trouble.Store(trouble)
	p.Rejected.Store(d.report.Rejected)
	p.Superseded.Store(d.report.Superseded)
	p.Retried.Store(d.report.Retried)
	p.Throttled.Store(d.report.Throttled)
}

// final enters a row into the ledger.
func (d *dispatcher) final(r table.Ref, end partitioner.End, o table.Outcome) {
	switch end {
	case partitioner.Written:
		d.report.Written++
	case partitioner.Superseded:
		d.report.Superseded++
	case partitioner.Rejected:
		rejected := r.Reject(table.Reason{Code: o.Code, Message: o.Message})
		if r.Block.Raw == nil {
			rejected.Raw = appendRow(nil, r.Body())
		}
		d.reject(r.Block.Header, rejected)
	}
	d.lane.Final(r)
	d.stuck = false
}

func (d *dispatcher) reject(header int, r table.Reject) {
	d.report.Rejected++
	if err := d.folder.Reject(header, r); err != nil {
		d.halt(err)
	}
	if d.cfg.Limits.MaxErrors.Exceeded(d.report.Rejected, d.report.Read, false) {
		d.halt(errLimit)
	}
}

func (d *dispatcher) flushRejects() {
	if err := d.folder.Flush(); err != nil {
		d.halt(err)
	}
}
