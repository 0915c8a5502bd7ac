package pipeline

import (
	"time"

	"tsimport/internal/table"
	"tsimport/pipeline/checkpoint"
	"tsimport/shuffle"
)

// snapshot describes the load as it is now. It fails when a file of the run folder cannot be written: a checkpoint that counts
// on more of it than there is could not be gone on from.
func (d *dispatcher) snapshot(now time.Time) (*checkpoint.Snapshot, error) {
	k := d.keeper
	begun := time.Now()
	k.built = now
	if err := d.folder.Flush(); err != nil {
		return nil, err
	}
	s := &checkpoint.Snapshot{About: k.about}
	kept := d.folder.Kept()
	s.Time, s.Counters, s.Files, s.Sums, s.Tables = now.UTC(), d.report.counters(), kept.Lengths, kept.Sums, d.ids.known()
	if err := d.extras.stamps.begin(d.cutter, k.base == nil); err != nil {
		return nil, err
	}
	if err := d.extras.keep(s.Counters); err != nil {
		return nil, err
	}
	if err := d.archive.keep(s.Files); err != nil {
		d.halt(err)
	}
	d.tables.keep(s.Counters, d.survey.tables)
	s.Uptime, s.HoldFor = checkpoint.Now(), max(0, d.hold.Sub(now))
	if until, any := d.cutter.Settling(now); any {
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
	if hook := d.hooks.onSnapshot; hook != nil {
		hook(d, s)
	}
	return s, nil
}

// readToEnd reports whether all of the input was read. Reading that was stopped has ended too, but rows that an earlier
// attempt may have sent can be in the rest.
func (d *dispatcher) readToEnd() bool { return d.splits == nil && d.stop == nil && d.inputErr == nil }

// out returns the rows that have left their queue and are not final.
func (d *dispatcher) out() checkpoint.Set {
	var all []checkpoint.Position
	d.cutter.Out(func(r table.Ref) { all = append(all, position(r)) })
	for p := range d.keeper.out {
		all = append(all, p)
	}
	return checkpoint.OfPositions(all)
}

func position(r table.Ref) checkpoint.Position {
	return checkpoint.At(r.Block.Split.Ordinal, r.Number())
}

// ranges returns the lanes and how much each may send.
func (d *dispatcher) ranges() []checkpoint.Lane {
	lanes := make([]checkpoint.Lane, len(d.lanes))
	for i, l := range d.lanes {
		lanes[i] = checkpoint.Lane{Lower: d.partitions.Lower(i), Allowance: d.allowance(l)}
		if d.stop != nil || d.ended || !d.keeper.ordered || l.gap {
			lanes[i].Allowance = 0 // no more is sent; or it does not matter, for nothing is promised of it
		}
	}
	return lanes
}

// queued returns what the lanes hold. In source order the rows of a key wait from the first one on to the end of what was
// read.
func (d *dispatcher) queued() (all []checkpoint.Queued) {
	end := d.keeper.again.End()
	d.queues.Describe(func(p shuffle.Part) {
		keys := d.partitions.Range(p.Lane)
		if p.Keys != nil {
			within, any := p.Keys.Within(keys)
			if !any {
				return
			}
			keys = within
		}
		from, to := checkpoint.At(p.Split.Ordinal, p.Split.FirstRecord+int64(p.From)), end
		if !d.keeper.ordered {
			to = checkpoint.At(p.Split.Ordinal, p.Split.FirstRecord+int64(p.To))
		}
		all = append(all, checkpoint.Queued{Keys: keys, Interval: checkpoint.Interval{From: from, To: to}})
	})
	return all
}

// describeSources adds where each source is to be read from, and what streams were. Starts that will not be asked for again
// are forgotten.
func (k *keeper) describeSources(s *checkpoint.Snapshot) {
	if k.ordered {
		// One source has the first record that is not final: those before it are not read again, those behind it from their
		// beginning.
		open := s.Open()
		k.describeStarts(s, open.Source(), open.Record())
		for ; k.first < open.Source(); k.first++ {
			delete(k.starts, k.first)
		}
	}
	for _, source := range k.sources {
		if !k.ordered {
			k.describeStarts(s, source.Ordinal, -1)
		}
		if c, ok := source.Chain(); ok && len(c.Sums) > 0 {
			s.Chains = append(s.Chains, checkpoint.Chain{Source: source.Ordinal, Every: c.Every, Sums: c.Sums})
		}
	}
}

// describeStarts adds the last start of a source that is not behind its first open record; -1 finds that out.
func (k *keeper) describeStarts(s *checkpoint.Snapshot, source int, open int64) {
	starts := k.starts[source]
	if len(starts) == 0 {
		return
	}
	if open < 0 {
		open = s.FirstOpen(source)
	}
	n := 0
	for n+1 < len(starts) && starts[n+1].Record <= open {
		n++
	}
	k.starts[source] = starts[n:]
	if starts[n].Record <= open {
		s.Starts = append(s.Starts, starts[n])
	}
}
