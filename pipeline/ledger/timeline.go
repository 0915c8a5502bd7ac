package ledger

import (
	"time"

	"example.com/tsimport/internal/timeline"
	"example.com/tsimport/pipeline/bottleneck"
)

// Timeline is how a load went over time.
type Timeline struct {
	Every  time.Duration
	Points []Point
	Heat   timeline.Map // rows that became final, by partition
}

// Point is what happened in one interval.
type Point struct {
	Read        int64
	Final       int64 // rows written or refused
	Rejected    int64 // records of the input, and rows
	Throttled   int64 // rows, at any attempt
	Unavailable int64
	Retried     int64
	Requests    int64
	Units       float64 // write capacity units of rows that were accepted, as the rows' sizes say
	Queued      int64   // rows read and not final, at the end of the interval
	Limited     bottleneck.Spent
}
