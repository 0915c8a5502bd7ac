package pipeline

import (
	"fmt"
	"strconv"
	"time"

	"tsimport/internal/table"
	"tsimport/partitioner"
	"tsimport/pipeline/intake"
	"tsimport/pipeline/plan"
	"tsimport/writer"
)

// take puts a parsed split into the ledger and its rows into their lanes.
func (d *dispatcher) take(p *intake.Parsed) {
	if limit := d.cfg.Limits.Records; limit > 0 {
		// Records that an earlier attempt has counted come first: such a load is read in order.
		fresh := d.keeper.fresh(p.Split, 0, int64(p.Records))
		if d.report.Read+fresh >= limit && d.keeper.reached(p) {
			p.Truncate(p.Records - int(fresh) + int(limit-d.report.Read))
			d.inputEnds()
			d.stopRead()
		}
	}
	d.admit(p)
	read := int64(0) // records of this split counted so far
	for i := range p.Rejects {
		r := &p.Rejects[i]
		at := int(r.Mark.Record) + 1
		d.report.Read += d.keeper.fresh(p.Split, read, int64(at)-read)
		read = int64(at)
		d.reject(p.Split.Header, p.Split.Reject(r.Mark, r.Reason, r.Raw))
		if r.Table != "" {
			d.tables.named(r.Table).Rejected++
		}
		if d.stop != nil {
			p.Truncate(at) // what follows is not read
			break
		}
	}
	d.report.Read += d.keeper.fresh(p.Split, read, int64(p.Records)-read)
	if d.keeper != nil {
		d.keeper.counted(p, d.report.BytesRead)
	}
	d.report.BytesRead += p.Split.Input
	if p.Split.Number == 0 {
		d.report.BytesRead += p.Split.Offset // the header
	}
	d.archiveRecords(p)
	d.record.point(time.Now())
	d.push(p)
	p.Arrived()
	d.flushRejects()
	d.publish()
}

func (d *dispatcher) push(p *intake.Parsed) {
	now := time.Now()
	for _, b := range p.Blocks {
		if d.tables != nil && p.Partitions.Gap(b.Lane) {
			d.findTables(b.Block)
		}
		d.countKeys(b.Block)
		if d.cfg.DryRun {
			d.dryRows += int64(len(b.Block.Rows))
			d.countDry(b.Block)
			continue
		}
		if p.Partitions != d.partitions {
			// The map has changed since the rows were divided.
			keys := p.Partitions.Range(b.Lane)
			d.queues.PushRouted(b.Block, &keys, d.partitions.Find)
			continue
		}
		d.queues.Push(b.Lane, b.Block)
		d.lanes[b.Lane].begin(now)
	}
	d.warnOfCrowd(false)
	if p.Partitions == d.partitions {
		return
	}
	for _, l := range d.lanes {
		if l.queue.Ready() > 0 || l.queue.More() {
			l.begin(now)
		}
	}
}

// tellQueued tells the intake what the lanes hold, which reads where there is least.
func (d *dispatcher) tellQueued() {
	if d.cfg.Write.Order != plan.OrderNone || d.splits == nil {
		return
	}
	share := d.shares.Lanes / 2 / int64(d.sending())
	d.intake.Queued(func(lane int) (n int, enough bool) {
		q := d.lanes[lane].queue
		n = q.Ready()
		return n, q.More() || n > 0 && q.Bytes() >= share
	})
}

// begin notes that rows have come.
func (l *lane) begin(now time.Time) {
	l.stale = true
	if l.begun.IsZero() {
		l.begun, l.lastSend = now, now // the first batch waits for company too
	}
}

// unfinished counts the rows that were read, by whatever attempt, and are not final.
func (d *dispatcher) unfinished() int64 {
	n := d.queues.Rows() + int64(d.cutter.Remaining()) + d.dryRows
	if d.keeper != nil {
		n += d.keeper.left
	}
	return n
}

// final enters a row into the ledger.
func (d *dispatcher) final(r table.Ref, end partitioner.End, o table.Outcome) {
	switch end {
	case partitioner.Written:
		d.report.Written++
		key := r.Key()
		if d.tables != nil {
			d.tables.row(key).Written++
			_, key = table.CutTable(key)
		}
		d.hot.Add(key)
		if err := d.extras.written(r, o, d.report); err != nil {
			d.halt(err)
		}
	case partitioner.Superseded:
		d.report.Superseded++
		if d.tables != nil {
			d.tables.row(r.Key()).Superseded++
		}
	case partitioner.Rejected:
		rejected := r.Reject(table.Reason{Code: o.Code, Message: o.Message, MaybeApplied: o.MaybeApplied})
		if o.MaybeApplied {
			d.report.MaybeApplied++
		}
		if c := d.extras.Increments; c != nil {
			c.Rejected(r, o.MaybeApplied) // that it was given up, only the cutter knows
		}
		if len(rejected.Raw) == 0 {
			rejected.Raw = appendRow(nil, r.Body())
		}
		d.reject(r.Block.Split.Header, rejected)
		if d.tables != nil {
			d.tables.row(r.Key()).Rejected++
		}
	}
	d.queues.Final(r)
}

func (d *dispatcher) reject(header int, r table.Reject) {
	d.report.Rejected++
	if err := d.folder.Reject(header, r); err != nil {
		d.halt(err)
	}
	if d.cfg.Limits.MaxErrors.Exceeded(d.report.Rejected-d.report.rejectedBefore, d.report.Read-d.report.readBefore, false) {
		d.halt(errLimit)
	}
}

func (d *dispatcher) flushRejects() {
	if err := d.folder.Flush(); err != nil {
		d.halt(err)
	}
}

// count adds an answer to the report.
func (r *Report) count(f *flight, a answer, stats writer.Stats) {
	r.Requests += int64(stats.Requests)
	r.RowsSent += int64(a.rows - stats.Found)
	r.Searched += int64(stats.Searched)
	r.Found += int64(stats.Found)
	r.Throttled += int64(a.throttled)
	r.Unavailable += int64(a.unavailable)
	for i := range f.Outcomes {
		if f.Outcomes[i].Fate == table.Written {
			r.WriteCU += int64(f.Outcomes[i].WriteCU)
		}
	}
}

func (d *dispatcher) publish() {
	p := d.cfg.Watch.Progress
	p.Read.Store(d.report.Read)
	p.BytesRead.Store(d.report.BytesRead)
	p.Written.Store(d.report.Written)
	trouble := ""
	for _, l := range d.lanes {
		if l.stuck {
			trouble = l.lastError
		}
	}
	p.Trouble.Store(trouble)
	p.Rejected.Store(d.report.Rejected)
	p.Superseded.Store(d.report.Superseded)
	p.Archived.Store(d.report.Archived)
	p.Retried.Store(d.report.Retried)
	p.Throttled.Store(d.report.Throttled)
	d.sample(time.Now())
}

// complete adds to the report what is known at the end of the load.
func (d *dispatcher) complete(start time.Time) {
	r := d.report
	r.Unfinished = d.unfinished()
	r.Partitions = d.sending()
	d.completeTables()
	r.PartitionReads = d.survey.reads.Load()
	s := d.queues.Stats()
	r.SpilledRows = s.SpilledRows
	if d.disk.store != nil {
		u := d.disk.store.Usage()
		r.SpilledBytes, r.PeakSpillBytes = u.WrittenBytes, u.PeakDiskBytes
	}
	for _, l := range d.lanes {
		if !l.begun.IsZero() && !l.gap {
			r.PartitionsUsed++
			r.LastLaneSeconds = max(r.LastLaneSeconds, l.begun.Sub(start).Seconds())
		}
	}
	r.Slowest = d.slowest(time.Since(start))
	hot := d.hot.Report(d.sending())
	if len(hot) == 0 && d.cfg.DryRun {
		hot = d.hot.ReportWhole()
	}
	for _, h := range hot {
		r.HotKeys = append(r.HotKeys, ReportHotKey{Column: r.Schema[0].Name, Value: showKey(h.Value), Share: h.Share})
	}
}

// showKey shows a key value: text as it is, binary in hexadecimal.
func showKey(v table.Value) string {
	switch v.Type {
	case table.Integer:
		return strconv.FormatInt(v.Int, 10)
	case table.Binary:
		return fmt.Sprintf("%.60x", v.Bytes)
	}
	return table.Show(v.Bytes)
}

// ofPartition names a partition by its key range, if there are several.
func (d *dispatcher) ofPartition(i int) string {
	if len(d.lanes) == 1 {
		return ""
	}
	of := ""
	if t := d.partitions.Table(i); t != "" {
		of = " of table " + t
	}
	from, to := "the first key", "the last key"
	if v, ok := d.partitions.LowerValue(i); ok {
		from = showKey(v)
	}
	if i+1 < d.partitions.Len() {
		if v, ok := d.partitions.LowerValue(i + 1); ok {
			to = showKey(v)
		}
	}
	return of + " of the partition from " + from + " to " + to
}
