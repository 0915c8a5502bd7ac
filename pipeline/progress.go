package pipeline

import (
	"math"
	"time"

	"example.com/tsimport/pipeline/ledger"
)

func (d *dispatcher) publish() {
	p := d.cfg.Watch.Progress
	p.Show(d.counts)
	p.Hindrance.Trouble.Store(d.lanes.LastError())
	if left, ok := d.lanes.Sample(time.Now()); ok {
		p.SlowestLeft.Store(int64(min(left*1000, math.MaxInt32*1000)))
	}
}

// unfinished returns the number of rows that this or an earlier attempt has read and that are not final.
func (d *dispatcher) unfinished() int64 {
	n := d.lanes.Unfinished() + d.account.DryRows
	if d.checkpointer != nil {
		n += d.checkpointer.Unread()
	}
	return n
}

// complete adds to the counts what is known only at the end of the load.
func (d *dispatcher) complete() {
	r := d.counts
	r.Unfinished = d.unfinished()
	r.CompleteMoments()
	d.account.Tables.Complete(r, d.survey.tables)
	r.PartitionReads = d.survey.reads.Load()
	d.lanes.CountSpilled(&r.ReportMemory)
	d.lanes.Count(&r.ReportPartitions, d.record.started)
	for _, h := range d.account.HotKeys(d.lanes.Sending(), d.cfg.DryRun) {
		r.HotKeys = append(r.HotKeys, reportHotKey(d.admission.hotKeyWatch.column, h))
	}
	d.record.meter.End(time.Now())
	for _, p := range d.record.meter.Parts() {
		r.LimitedBy = append(r.LimitedBy, ledger.ReportLimit{By: p.Word.String(), Seconds: p.Seconds, Share: p.Share})
	}
	r.Timeline = d.record.timeline()
}
