package table

// Fate says what happened to one row of a request.
type Fate uint8

const (
	// Written: the service acknowledged the row.
	Written Fate = iota
	// Refused: the service will never take the row; sending it again is useless.
	Refused
	// Again: the row was not applied and may be sent again.
	Again
	// Unknown: the row may have been applied, or may be later. It may be sent again only if a repeat is harmless, and no
	// later row of its key may be sent until the first attempt can no longer be applied.
	Unknown
)

// Outcome is the service's answer for one row. The zero Outcome is Written without cost.
type Outcome struct {
	Fate Fate
	// Throttled: Again, because the partition is over its capacity.
	Throttled bool
	// Unavailable: Again or Unknown, because the partition, the table or the server is temporarily unavailable.
	Unavailable bool
	// TimedOut: Unknown, because the request made no progress for a whole time-out. Most of the settling time has passed.
	TimedOut bool
	WriteCU  int // write capacity units the service charged
	// Repeated: the row was sent again after an attempt of unknown outcome, so there may be two copies.
	Repeated bool
	// Unsent: an earlier process had not sent the row, which its checkpoint did not show.
	Unsent bool
	// Found: the row was not sent, because an earlier attempt had written it.
	Found bool
	// Number is the service's value of the row's auto-increment column; 0 if unknown or none.
	Number int64
	// From is the least number that the row can have, whichever attempt was applied; 0 if unknown.
	From int64
	// Stamp is the timestamp, in ms, given to cells without one; 0 for none. Restamped: an Unknown attempt had another.
	Stamp     int64
	Restamped bool
	// Unmet: Refused, because the stored row does not meet the load's condition on columns.
	Unmet bool
	// Expired is the number of cells dropped because they had become too old for the table.
	Expired int
	// MaybeApplied: Refused, and an earlier attempt may have been applied.
	MaybeApplied bool
	// Stale: Refused, perhaps only because of Stamp.
	Stale   bool
	Code    string
	Message string
}
