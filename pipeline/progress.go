package pipeline

import (
	"math"
	"time"

	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/plan"
)

// publish says how far the load has come.
func (d *dispatcher) publish() {
	p := d.cfg.Watch.Progress
	p.show(d.counts)
	p.Trouble.Store(d.lanes.lastError())
	if left, ok := d.lanes.sample(time.Now()); ok {
		p.SlowestLeft.Store(int64(min(left*1000, math.MaxInt32*1000)))
	}
}

// show takes over what has been counted so far.
func (p *Progress) show(r *Counted) {
	p.Read.Store(r.Read)
	read := r.BytesRead
	if total := p.BytesTotal.Load(); total > 0 {
		read = min(read, total) // a resumed load may read a little again
	}
	p.BytesRead.Store(read)
	p.Written.Store(r.Written)
	p.Rejected.Store(r.Rejected)
	p.Superseded.Store(r.Superseded)
	p.ConditionFailed.Store(r.ConditionFailed)
	p.Archived.Store(r.Archived)
	p.Retried.Store(r.Retried)
	p.Throttled.Store(r.Throttled)
}

// unfinished counts the rows that were read, by any attempt, and are not final.
func (d *dispatcher) unfinished() int64 {
	n := d.lanes.queues.Rows() + int64(d.lanes.cutter.Remaining()) + d.account.dryRows
	if d.checkpointer != nil {
		n += d.checkpointer.Unread()
	}
	return n
}

// complete counts what is known at the end of the load.
func (d *dispatcher) complete() {
	r := d.counts
	r.Unfinished = d.unfinished()
	r.completeMoments()
	d.account.tables.complete(r, d.survey.tables)
	r.PartitionReads = d.survey.reads.Load()
	r.SpilledRows = d.lanes.queues.SpilledRows()
	d.disk.count(&r.ReportMemory)
	d.lanes.count(&r.ReportPartitions, d.record.started)
	for _, h := range d.account.hotKeys(d.lanes.sending(), d.cfg.DryRun) {
		r.HotKeys = append(r.HotKeys, ReportHotKey{Column: d.admission.hotKeyWatch.column, Value: plan.ShowKey(h.Value), Share: h.Share})
	}
	d.record.meter.End(time.Now())
	for _, p := range d.record.meter.Parts() {
		r.LimitedBy = append(r.LimitedBy, ReportLimit{By: p.Word.String(), Seconds: p.Seconds, Share: p.Share})
	}
	r.Timeline = d.record.timeline()
}

// count adds to the report what was ever on the disk.
func (k *disk) count(r *ReportMemory) {
	if k.store != nil {
		u := k.store.Usage()
		r.SpilledBytes, r.PeakSpillBytes = u.WrittenBytes, u.PeakDiskBytes
	}
}

// hotKeys are the partition keys that too many of the final rows have for so many lanes. Of a whole input, which a dry run
// reads, fewer rows say so.
func (a *account) hotKeys(lanes int, whole bool) []partitioner.HotKey {
	hot := a.hot.Report(lanes)
	if len(hot) == 0 && whole {
		hot = a.hot.ReportWhole()
	}
	return hot
}
