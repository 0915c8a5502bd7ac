package scaleout

import (
	"slices"
	"strings"

	"example.com/tsimport/reader/source"
)

// SummaryLive describes sources that change while they are read. A row is as of the time when its range was read.
type SummaryLive struct {
	Live bool `json:"live,omitempty"`
	// Consistent reports whether all rows are from one snapshot of the source. It is nil if the source has none.
	Consistent *bool             `json:"consistent,omitempty"`
	Snapshots  []source.Snapshot `json:"snapshots,omitempty"` // the snapshots read, with the ranges read from each
	source.Position
}

// snapshotsOf returns the snapshots from which this process read the split.
func (t *splitTask) snapshotsOf() (all []source.Snapshot) {
	origin, ok := t.prepared.Plan.Request.Read.Sources.(source.Snapshots)
	if !ok {
		return nil
	}
	isOf := func(of string) bool {
		return slices.ContainsFunc(t.job.Plan.Splits[t.result.Split].Parts, func(p Part) bool {
			return strings.HasPrefix(of, t.job.Plan.Inputs[p.Source]+" ")
		})
	}
	for _, s := range origin.Snapshots() {
		s.Ranges = slices.DeleteFunc(s.Ranges, func(of string) bool { return !isOf(of) })
		if len(s.Ranges) > 0 {
			all = append(all, s)
		}
	}
	return all
}

func (l *SummaryLive) add(more []source.Snapshot) {
	for _, s := range more {
		at := slices.IndexFunc(l.Snapshots,
			func(o source.Snapshot) bool { return o.Name == s.Name && o.Taken.Equal(s.Taken) })
		if at < 0 {
			l.Snapshots = append(l.Snapshots, s)
			continue
		}
		l.Snapshots[at].Ranges = append(l.Snapshots[at].Ranges, s.Ranges...)
	}
	if len(l.Snapshots) > 0 {
		one := len(l.Snapshots) == 1
		l.Consistent = &one
	}
}
