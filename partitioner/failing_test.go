package partitioner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tsimport/internal/table"
	"tsimport/shuffle"
)

// TestARowThatFailsForeverIsGivenUpAndNoOther sends lanes of rows of which some fail each time, until all rows are final or nothing is left
// but rows that fail and the cutter cannot be made less patient with.
func TestARowThatFailsForeverIsGivenUpAndNoOther(t *testing.T) {
	away := table.Outcome{Fate: table.Again, Unavailable: true, Code: "OTSServerUnavailable"}
	internal := table.Outcome{Fate: table.Unknown, Code: "OTSInternalServerError"}
	for name, tt := range map[string]struct {
		rows     int
		fails    func(n, attempt int) bool
		how      table.Outcome
		patience int    // rounds in which nothing is written, until GiveUp is called
		want     string // rows that are rejected
		gaveUp   bool   // and whether it took GiveUp
	}{
		"the first of many":           {500, only(0), internal, 1000, "[0]", false},
		"one in the middle":           {500, only(250), internal, 1000, "[250]", false},
		"the last, patience is short": {500, only(499), internal, 2 * impatientAfter, "[499]", true},
		"patience is too short":       {500, only(499), internal, 1, "[499]", true},
		"two of four":                 {4, func(n, _ int) bool { return n < 2 }, internal, 1000, "[0 1]", false},
		"two of four, in a hurry":     {4, func(n, _ int) bool { return n < 2 }, internal, 40, "[0 1]", true},
		"alone from the start":        {1, only(0), internal, 100, "[]", false},
		"every row":                   {40, func(int, int) bool { return true }, internal, 100, "[]", false},
		"it is throttled":             {500, only(3), table.Outcome{Fate: table.Again, Throttled: true, Code: "OTSNotEnoughCapacityUnit"}, 100, "[]", false},
		"nobody answers":              {40, func(_, attempt int) bool { return attempt < 60 }, table.Outcome{Fate: table.Unknown}, 10, "[]", false},
		"the service is not there":    {40, func(n, attempt int) bool { return attempt < 60 }, away, 10, "[]", false},
		"it works after a while":      {500, func(n, attempt int) bool { return n == 7 && attempt < hopelessAfter }, internal, 1000, "[]", false},
	} {
		t.Run(name, func(t *testing.T) {
			var rejected []int
			attempts, gaveUp, written, idle := map[int]int{}, false, 0, 0
			c := New(Options{Backoff: func(int) time.Duration { return time.Millisecond }, Final: func(r table.Ref, end End, _ table.Outcome) {
				if written++; end == Rejected {
					rejected = append(rejected, number(r))
					written--
				}
			}})
			keys := make([]string, tt.rows)
			for i := range keys {
				keys[i] = fmt.Sprint(i)
			}
			queues := shuffle.New(1, shuffle.Options{Budget: 1 << 20})
			for _, b := range rowsOf(keys, 100) {
				queues.Push(0, b)
			}
			now := time.Unix(1, 0)
			for round := 0; round < 1000 && (queues.Lane(0).Ready() > 0 || c.Remaining() > 0); round++ {
				f := new(Flight)
				f.MaxRows = 10
				c.Wake(now)
				if !c.Cut(now, 0, queues.Lane(0), f, 200) {
					wait, _ := c.Wait(now)
					now = now.Add(max(wait, time.Millisecond))
					continue
				}
				for i, r := range f.Rows {
					n := number(r)
					f.Outcomes[i] = table.Outcome{Fate: table.Written}
					if tt.fails(n, attempts[n]) {
						f.Outcomes[i] = tt.how
					}
					attempts[n]++
				}
				before := written
				if c.Done(now, f); written > before {
					idle = 0
				} else if idle++; idle >= tt.patience && queues.Lane(0).Ready() == 0 && c.GiveUp(0) {
					gaveUp, idle = true, 0
				}
			}
			slices.Sort(rejected)
			if fmt.Sprint(rejected) != tt.want || gaveUp != tt.gaveUp {
				t.Errorf("rejected %v, want %s; gave up %v, want %v", rejected, tt.want, gaveUp, tt.gaveUp)
			}
			if left := c.Remaining(); left+len(rejected)+written != tt.rows {
				t.Errorf("%d rows written, %d rejected, %d left, of %d", written, len(rejected), left, tt.rows)
			}
		})
	}
}

func only(bad int) func(n, attempt int) bool { return func(n, _ int) bool { return n == bad } }
