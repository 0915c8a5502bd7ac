package pipeline

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"tsimport/internal/table"
)

// publish says how far the load has come.
func (d *dispatcher) publish() {
	p := d.cfg.Watch.Progress
	p.Read.Store(d.report.Read)
	p.BytesRead.Store(d.report.BytesRead)
	p.Written.Store(d.report.Written)
	p.Trouble.Store(d.lanes.lastError())
	p.Rejected.Store(d.report.Rejected)
	p.Superseded.Store(d.report.Superseded)
	p.Archived.Store(d.report.Archived)
	p.Retried.Store(d.report.Retried)
	p.Throttled.Store(d.report.Throttled)
	if left, ok := d.lanes.sample(time.Now()); ok {
		p.SlowestLeft.Store(int64(min(left*1000, math.MaxInt32*1000)))
	}
}

// unfinished counts the rows that were read, by any attempt, and are not final.
func (d *dispatcher) unfinished() int64 {
	n := d.lanes.queues.Rows() + int64(d.lanes.cutter.Remaining()) + d.account.dryRows
	if d.checkpointer != nil {
		n += d.checkpointer.left
	}
	return n
}

// complete adds to the report what is known at the end of the load.
func (d *dispatcher) complete() {
	r := d.report
	r.Unfinished = d.unfinished()
	r.completeMoments()
	d.account.tables.complete(r, d.survey.tables)
	r.PartitionReads = d.survey.reads.Load()
	r.SpilledRows = d.lanes.queues.Stats().SpilledRows
	if d.disk.store != nil {
		u := d.disk.store.Usage()
		r.SpilledBytes, r.PeakSpillBytes = u.WrittenBytes, u.PeakDiskBytes
	}
	d.lanes.count(&r.ReportPartitions, r.Started)
	hot := d.account.hot.Report(d.lanes.sending())
	if len(hot) == 0 && d.cfg.DryRun {
		hot = d.account.hot.ReportWhole()
	}
	for _, h := range hot {
		r.HotKeys = append(r.HotKeys, ReportHotKey{Column: r.Schema[0].Name, Value: showKey(h.Value), Share: h.Share})
	}
	r.Timeline = d.record.timeline()
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
