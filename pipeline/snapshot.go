package pipeline

import (
	"slices"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/shuffle"
)

// snapshot describes the load as it is now. It fails when a file of the run folder cannot be written: a checkpoint that counts
// on more of it than there is could not be resumed from.
func (d *dispatcher) snapshot(now time.Time) (*checkpoint.Snapshot, error) {
	k, begun := d.checkpointer, time.Now()
	k.built = now
	s := &checkpoint.Snapshot{About: k.about}
	s.Time, s.Counters, s.Tables = now.UTC(), d.report.counters(), k.ids.known()
	s.Bad = slices.Clone(d.report.BadInputs)
	d.account.asides.keep(s.Counters)
	d.annotations.keep(s.Counters)
	d.account.tables.keep(s.Counters, d.survey.tables)
	if err := d.files.stamps.begin(d.lanes.cutter, k.base == nil || k.final); err != nil {
		return nil, err
	}
	if err := d.files.keep(s); err != nil {
		return nil, err
	}
	if err := d.files.archive.keep(s.Files); err != nil {
		d.stopper.stop(err)
	}
	s.Uptime, s.HoldFor = checkpoint.Now(), max(0, d.settling.hold.Sub(now))
	if until, any := d.lanes.cutter.Settling(now); any {
		s.HoldFor = max(s.HoldFor, until.Sub(now))
	}
	sends := !d.stopper.stopped() && !k.ended
	k.describeRows(s, d.lanes, sends, d.readToEnd())
	k.describeSources(s)
	s.Moments = d.report.keepMoments()
	var err error
	if s.Snapshots, err = d.report.keepSnapshots(); err != nil {
		return nil, err
	}
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

// describeRows adds which records were read, and which rows of them are not final. Sends says that lanes send more, and whole
// that all of the input was read.
func (k *checkpointer) describeRows(s *checkpoint.Snapshot, l *lanes, sends, whole bool) {
	s.Read = append(checkpoint.Set(nil), k.read...)
	out := l.out()
	for p := range k.out {
		out = append(out, p)
	}
	s.Out = checkpoint.OfPositions(out)
	ranges := l.ranges(func(one *lane) int64 {
		if !sends || !k.ordered {
			return 0 // no more is sent; or it does not matter, for nothing is promised of it
		}
		return k.allowance(one, len(l.all))
	})
	s.Pieces = checkpoint.Tile(ranges, l.waiting(k.ordered, k.again.End()))
	if k.base == nil {
		return
	}
	// A queue stands for all records of a split from its first row's on, those that were final before this attempt included: until it
	// stands for none of them, only base tells them apart.
	gone := s.Done(&k.base.State)
	s.Pieces = checkpoint.Continue(&k.base.State, k.again, s.Pieces)
	if s.Done(&k.base.State) && (!k.ordered || k.queued == 0 && (whole || k.passed)) {
		k.final = true
	}
	if k.final && gone && (k.ordered || whole) {
		k.base = nil
	}
}

// out returns the rows that have left their queue and are not final.
func (s *lanes) out() (all []checkpoint.Position) {
	s.cutter.Out(func(r table.Ref) { all = append(all, position(r)) })
	return all
}

func position(r table.Ref) checkpoint.Position {
	return positionAfter(r.Position(), 0)
}

// positionAfter is the position of the record that is so many after one.
func positionAfter(p table.Position, after int64) checkpoint.Position {
	return checkpoint.At(p.Source, p.Record+after)
}

// ranges returns the lanes and how many rows each may send. A gap sends none.
func (s *lanes) ranges(allowance func(*lane) int64) []checkpoint.LaneRange {
	lanes := make([]checkpoint.LaneRange, len(s.all))
	for i, l := range s.all {
		lanes[i].Lower = s.partitions.Lower(i)
		if !l.gap {
			lanes[i].Allowance = allowance(l)
		}
	}
	return lanes
}

// waiting returns what the lanes hold. In source order the rows of a key wait from the first one on to end, which is that of
// all that was read.
func (s *lanes) waiting(ordered bool, end checkpoint.Position) (all []checkpoint.Queued) {
	s.queues.Describe(func(p shuffle.Part) {
		keys := s.partitions.Range(p.Lane)
		if p.Keys != nil {
			within, any := p.Keys.Within(keys)
			if !any {
				return
			}
			keys = within
		}
		from, to := positionAfter(p.Split.Position, int64(p.From)), end
		if !ordered {
			to = positionAfter(p.Split.Position, int64(p.To))
		}
		all = append(all, checkpoint.Queued{Keys: keys, Interval: checkpoint.Interval{From: from, To: to}})
	})
	return all
}
