package ledger

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source"
)

// A live source changes while it is read. After an interruption, unfinished records may have changed or disappeared. So
// the new attempt gives records new numbers, and removes unfinished records from the counts. Final records remain
// counted, although they may be read again, which ReadAgain counts. So the ledger always balances.

// ReportLive describes sources that change while they are read. Each row is from a moment between ReadFrom and ReadTo.
type ReportLive struct {
	source.Position // where to follow the changes of a frozen source; for a load of changes, the last settled one

	Live bool `json:"live,omitempty"`
	// ReadAgain counts records that were final in one attempt and read again in the next. Other counts include both.
	ReadAgain int64          `json:"read_again,omitempty"`
	ReadFrom  *time.Time     `json:"read_from,omitempty"` // start of reading, by this machine's clock, over all attempts
	ReadTo    *time.Time     `json:"read_to,omitempty"`
	Moments   []ReportMoment `json:"moments,omitempty"` // one for each source, if there are at most 1,000

	// Consistent means that all rows are from one snapshot of the source; nil if it has none. Snapshots lists those of all
	// attempts, with the ranges read from each. A range ends where the next one begins.
	Consistent *bool             `json:"consistent,omitempty"`
	Snapshots  []source.Snapshot `json:"snapshots,omitempty"`
	// Division says where the ranges begin, as encoded by the source. A comparison with the run reads the same ranges.
	Division []byte `json:"division,omitempty"`

	origin   source.Snapshots // nil if the source has no snapshots
	earlier  []source.Snapshot
	division []byte
	resumed  bool
	names    []string // names of sources
	of       []*ReportMoment
}

// ReportMoment is the time during which a live source was read.
type ReportMoment struct {
	Source string    `json:"source"`
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
}

// maxMoments limits the sources with moments in a report.
const maxMoments = 1000

// BeginMoments begins to note when live sources are read, and takes over the moments of earlier attempts.
func (r *ReportLive) BeginMoments(planned *plan.Plan, s *checkpoint.Snapshot) {
	r.Position = planned.Position
	if r.Live = planned.Live; !r.Live {
		if s != nil && len(s.Snapshots) > 0 {
			_ = json.Unmarshal(s.Snapshots, &r.Position) // its sum was checked
		}
		return
	}
	for _, s := range planned.Sources {
		r.names = append(r.names, s.Name)
	}
	r.of = make([]*ReportMoment, len(r.names))
	r.origin, _ = planned.Request.Read.Sources.(source.Snapshots)
	r.division = planned.Division
	if s == nil {
		return
	}
	r.resumed = true
	_ = json.Unmarshal(s.Snapshots, &r.earlier) // missing in checkpoints of older versions; the sum was checked
	for _, m := range s.Moments {
		if m.Source < len(r.of) {
			r.ReadMoment(m.Source, intake.Moment{From: time.UnixMilli(m.From), To: time.UnixMilli(m.To)})
		}
	}
}

// ReadMoment notes when records of a live source were read.
func (r *ReportLive) ReadMoment(source int, m intake.Moment) {
	if !r.Live {
		return
	}
	from, to := m.From.UTC(), m.To.UTC()
	one := r.of[source]
	if one == nil {
		one = &ReportMoment{Source: r.names[source], From: from}
		r.of[source] = one
	}
	one.To = keep.Later(one.To, to)
	if r.ReadFrom == nil || from.Before(*r.ReadFrom) {
		r.ReadFrom = &from
	}
	if r.ReadTo = cmp.Or(r.ReadTo, &to); r.ReadTo.Before(to) {
		r.ReadTo = &to
	}
}

func (r *ReportLive) all() []source.Snapshot {
	if r.origin == nil {
		return nil
	}
	return append(slices.Clone(r.earlier), r.origin.Snapshots()...)
}

// KeepMoments returns the moments for the next attempt. Each is extended to the end of its last millisecond.
func (r *ReportLive) KeepMoments() (all []checkpoint.Moment) {
	for source, m := range r.of {
		if m != nil {
			to := m.To.Add(time.Millisecond - time.Nanosecond)
			all = append(all, checkpoint.Moment{Source: source, From: m.From.UnixMilli(), To: to.UnixMilli()})
		}
	}
	return all
}

// KeepSnapshots returns the snapshots of all attempts, or else the position, for the report of the next attempt.
func (r *ReportLive) KeepSnapshots() (json.RawMessage, error) {
	if all := r.all(); len(all) > 0 {
		return json.Marshal(all)
	}
	if !r.Live && r.ResumeFrom != nil {
		return json.Marshal(r.Position)
	}
	return nil, nil
}

// CompleteMoments sets the moments of each source, and the snapshots, in the report.
func (r *ReportLive) CompleteMoments() {
	if r.origin != nil {
		r.Snapshots, r.Division = r.all(), r.division
		// A resumed load reads another snapshot than its previous attempt, whose snapshot a kill may have left unrecorded.
		one := len(r.Snapshots) <= 1 && !r.resumed
		r.Consistent = &one
	}
	if len(r.of) > maxMoments {
		return
	}
	for _, m := range r.of {
		if m != nil {
			r.Moments = append(r.Moments, *m)
		}
	}
}

// Follower tracks how far a load of changes is in the log of their source. The zero value is ready to use.
type Follower struct{ marks []followMark }

// followMark is the place in the log that the changes before a position have reached.
type followMark struct {
	end checkpoint.Position
	of  source.Followed
}

// Read notes the place in the log that a split, which ends at a position, has reached. Splits must be in order.
func (f *Follower) Read(end checkpoint.Position, of source.Followed) {
	if of.Last != nil {
		f.marks = append(f.marks, followMark{end, of})
	}
}

// Settled returns the place in the log of the last split whose records all come before a position, if that is new.
func (f *Follower) Settled(before checkpoint.Position) (last source.Followed, any bool) {
	n := 0
	for n < len(f.marks) && f.marks[n].end <= before {
		n++
	}
	if n > 0 {
		last = f.marks[n-1].of
		f.marks = append(f.marks[:0], f.marks[n:]...)
	}
	return last, n > 0
}
