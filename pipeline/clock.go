package pipeline

import (
	"time"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/plan"
)

// serviceTime returns what says in which range the service's clock is now.
func serviceTime(clock *client.Clock) func() (earliest, latest time.Time) {
	return func() (earliest, latest time.Time) {
		earliest, latest, _ = clock.Range(time.Now())
		return earliest, latest
	}
}

// tellClock warns of a clock that is wrong. Where the load needs the service's time before its first row, it is asked for.
func tellClock(planned *plan.Plan, admin *client.Admin, clock *client.Clock) {
	if planned.Restamp || planned.Mark != "" || planned.Request.Read.Convert.VersionColumn != "" {
		admin.AskTime(clock)
	}
	if warning := clock.SkewWarning(); warning != "" {
		planned.Warnings = append(planned.Warnings, warning)
	}
}
