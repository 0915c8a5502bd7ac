package pipeline

import (
	"time"

	"tsimport/internal/table"
	"tsimport/pipeline/checkpoint"
	"tsimport/shuffle"
)

// snapshot describes the load as it is now. It fails when a file of the run folder cannot be written: a checkpoint that counts
// on more of it than there is could not be resumed from.
func (d *dispatcher) snapshot(now time.Time) (*checkpoint.Snapshot, error) {
	k := d.checkpointer
	begun := time.Now()
	k.built = now
	if err := d.files.folder.Flush(); err != nil {
		return nil, err
	}
	s := &checkpoint.Snapshot{About: k.about}
	kept := d.files.folder.Kept()
	s.Time, s.Counters, s.Files, s.Sums, s.Tables = now.UTC(), d.report.counters(), kept.Lengths, kept.Sums, k.ids.known()
	if err := d.files.stamps.begin(d.lanes.cutter, k.base == nil); err != nil {
		return nil, err
	}
	d.annotations.keep(s.Counters)
	if err := d.files.keep(s.Counters); err != nil {
		return nil, err
	}
	if err := d.files.archive.keep(s.Files); err != nil {
		d.stopper.stop(err)
	}
	d.account.tables.keep(s.Counters, d.survey.tables)
	s.Uptime, s.HoldFor = checkpoint.Now(), max(0, d.settling.hold.Sub(now))
	if until, any := d.lanes.cutter.Settling(now); any {
		s.HoldFor = max(s.HoldFor, until.Sub(now))
	}
	s.Read = append(checkpoint.Set(nil), k.read...)
	s.Out = d.out()
	s.Pieces = checkpoint.Tile(d.ranges(), d.queued())
	if k.base != nil {
		s.Pieces = checkpoint.Continue(&k.base.State, k.again, s.Pieces)
		if s.Done(&k.base.State) && (!k.ordered || k.queued == 0 && (d.readToEnd() || k.passed)) {
			k.base = nil
		}
	}
	k.describeSources(s)
	k.cost = time.Since(begun)
	d.report.CheckpointSeconds += k.cost.Seconds()
	if hook := k.hooks.onSnapshot; hook != nil {
		hook(d, s)
	}
	return s, nil
}

// readToEnd reports whether all of the input was read. Reading that was stopped has ended too, but rows that an earlier
// attempt may have sent can be in the rest.
func (d *dispatcher) readToEnd() bool {
	return d.input.ended() && !d.stopper.stopped() && d.input.err == nil
}

// out returns the rows that have left their queue and are not final.
func (d *dispatcher) out() checkpoint.Set {
	var all []checkpoint.Position
	d.lanes.cutter.Out(func(r table.Ref) { all = append(all, position(r)) })
	for p := range d.checkpointer.out {
		all = append(all, p)
	}
	return checkpoint.OfPositions(all)
}

func position(r table.Ref) checkpoint.Position {
	return checkpoint.At(r.Block.Split.Ordinal, r.Number())
}

// ranges returns the lanes and how much each may send.
func (d *dispatcher) ranges() []checkpoint.Lane {
	lanes := make([]checkpoint.Lane, len(d.lanes.all))
	for i, l := range d.lanes.all {
		lanes[i] = checkpoint.Lane{Lower: d.lanes.partitions.Lower(i), Allowance: d.checkpointer.allowance(l, len(d.lanes.all))}
		if d.stopper.stopped() || d.checkpointer.ended || !d.checkpointer.ordered || l.gap {
			lanes[i].Allowance = 0 // no more is sent; or it does not matter, for nothing is promised of it
		}
	}
	return lanes
}

// queued returns what the lanes hold. In source order the rows of a key wait from the first one on to the end of what was
// read.
func (d *dispatcher) queued() (all []checkpoint.Queued) {
	end := d.checkpointer.again.End()
	d.lanes.queues.Describe(func(p shuffle.Part) {
		keys := d.lanes.partitions.Range(p.Lane)
		if p.Keys != nil {
			within, any := p.Keys.Within(keys)
			if !any {
				return
			}
			keys = within
		}
		from, to := checkpoint.At(p.Split.Ordinal, p.Split.FirstRecord+int64(p.From)), end
		if !d.checkpointer.ordered {
			to = checkpoint.At(p.Split.Ordinal, p.Split.FirstRecord+int64(p.To))
		}
		all = append(all, checkpoint.Queued{Keys: keys, Interval: checkpoint.Interval{From: from, To: to}})
	})
	return all
}
