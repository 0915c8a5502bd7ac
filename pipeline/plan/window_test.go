package plan

import (
	"testing"
	"time"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
)

// A cell that is older than the table's time to live would be gone as soon as it is written.
func TestNoTimestampIsTakenThatIsOlderThanTheTimeToLive(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		live      int
		deviation int64
		before    time.Duration
	}{
		{-1, 3 * 86400, 3 * day},
		{86400, 3 * 86400, day},
		{5 * 86400, 3 * 86400, 3 * day},
	} {
		define := table.Definition{TimeToLive: tt.live, MaxVersions: 1, MaxDeviation: tt.deviation}
		for place, p := range map[string]*Plan{
			"a table that is there": {Request: &Request{}, table: &client.Table{Definition: define}},
			"a new table":           {Request: &Request{Target: Target{Define: define}}},
		} {
			now := time.UnixMilli(1e12)
			p.Request.Service = func() (earliest, latest time.Time) { return now, now }
			from, to := p.Window()()
			if before, after := now.UnixMilli()-from, to-now.UnixMilli(); before != tt.before.Milliseconds() || after != 3*day.Milliseconds() {
				t.Errorf("%s, time to live %d s, deviation %d s: timestamps from %d ms before to %d ms after now", place, tt.live, tt.deviation, before, after)
			}
		}
	}
}
