package verify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/source"
)

// SourceRange is the result for a range of a database table.
type SourceRange struct {
	Range     string `json:"range"` // name of the range, including its first row
	Read      int64  `json:"read"`
	Equal     int64  `json:"equal"`
	Missing   int64  `json:"missing"`
	Different int64  `json:"different"`
	Expired   int64  `json:"expired,omitempty"`
	Extra     int64  `json:"extra"` // surplus rows with keys in the range
	// Loaded lists the snapshots from which the load read the range; nil means unknown.
	Loaded []LoadedRange `json:"loaded,omitempty"`
}

// LoadedRange is a range, or the rest of one, that a load read from a snapshot.
type LoadedRange struct {
	Range    string    `json:"range"`
	Snapshot string    `json:"snapshot"`
	Taken    time.Time `json:"taken"`
}

type bySource struct {
	of  source.Ranged
	key int // index of the table's key column that is the source's first key column; -1 if there is none

	found []Counts // counts by source, each of which is a range
}

// newBySource returns nil if results cannot be counted by range.
func (v *verifier) newBySource() *bySource {
	of, ok := v.plan.Request.Read.Sources.(source.Ranged)
	if !ok || v.cfg.Changes != nil || v.cfg.SettleFor > 0 || v.plan.Request.Mode == table.Delete {
		return nil
	}
	b := &bySource{of: of, key: -1, found: make([]Counts, len(v.plan.Sources))}
	if unique := v.plan.Sources[0].About().Unique; len(unique) > 0 {
		b.key = slices.IndexFunc(v.plan.Schema.Columns[:len(v.plan.Schema.Key)], func(c table.Column) bool {
			return c.Source == unique[0].Name && c.Type == table.Integer && c.Time == nil
		})
	}
	return b
}

func (t *tally) foundOf(source int) *Counts {
	f := t.found[source]
	if f == nil {
		f = new(Counts)
		t.found[source] = f
	}
	return f
}

// surplus counts a surplus row in the range of its key, if the range can be determined.
func (t *tally) surplus(key []table.Value) {
	if b := t.v.bySource; t.found != nil && b.key >= 0 {
		if n, ok := b.of.RangeOf(key[b.key].Int); ok {
			t.foundOf(n).Extra++
		}
	}
}

// noteRanges adds the results by range, and notes on the ranges with differences.
func (v *verifier) noteRanges() {
	if v.bySource == nil {
		return
	}
	r := v.result
	known := int64(0)
	for n, s := range v.plan.Sources {
		f := &v.bySource.found[n]
		one := SourceRange{rangeOf(r.Snapshots, s.Name), v.recordsOf[n], f.Equal, f.Missing, f.Different, f.Expired, f.Extra,
			loadedOf(v.cfg.Snapshots, s.Name)}
		known += one.Extra
		r.SourceRanges = append(r.SourceRanges, one)
	}
	if v.cfg.Snapshots == nil {
		return
	}
	var differ []string
	for _, one := range r.SourceRanges {
		if one.Missing+one.Different+one.Extra > 0 {
			differ = append(differ, one.note())
		}
	}
	switch n, all := len(differ), len(r.SourceRanges); {
	case n == 0 && r.Extra == known:
		r.Notes = append(r.Notes, fmt.Sprintf("source and table are equal, in each of the %d ranges of the run", all))
	case n > 0:
		if n > maxNoted {
			differ = append(differ[:maxNoted], fmt.Sprintf("%d more ranges differ (--json has all)", n-maxNoted))
		}
		r.Notes = append(r.Notes, fmt.Sprintf("the source or the table has changed in %d of the %d ranges that the run read",
			n, all))
		r.Notes = append(r.Notes, differ...)
	}
	if n := r.Extra - known; n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("the ranges of %d surplus rows are unknown: only a source key that begins "+
			"with an integer determines them", n))
	}
}

// maxNoted is the maximum number of ranges that notes name.
const maxNoted = 5

func (s *SourceRange) note() string {
	text := fmt.Sprintf("%s: %d missing, %d different, %d surplus", s.Range, s.Missing, s.Different, s.Extra)
	for i, l := range s.Loaded {
		if i == 0 {
			text += "; the run read it in the snapshot of "
		} else {
			text += ", the rest in that of "
		}
		text += l.Taken.Format(time.RFC3339)
	}
	return text
}

// rangeOf returns the name that snapshots give to the range of a source.
func rangeOf(all []source.Snapshot, name string) string {
	for _, s := range loadedOf(all, name) {
		return s.Range
	}
	return name
}

// loadedOf returns the snapshots from which the range of a source was read.
func loadedOf(all []source.Snapshot, name string) (of []LoadedRange) {
	for _, s := range all {
		for _, r := range s.Ranges {
			if strings.HasPrefix(r, name+" from ") {
				of = append(of, LoadedRange{r, s.Name, s.Taken})
			}
		}
	}
	return of
}
