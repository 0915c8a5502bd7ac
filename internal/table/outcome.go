package table

// Fate is what happened to one row of one request.
type Fate uint8

const (
	// Written: the service acknowledged the row.
	Written Fate = iota
	// Refused: the service will never take the row; sending it again is useless.
	Refused
	// Again: the row was not applied and may be sent again.
	Again
	// Unknown: the row may have been applied, or may be later. It may be sent again only where a repeat is harmless, and
	// no later row of its key may follow until the first attempt can no longer be applied.
	Unknown
)

// Outcome is the service's answer for one row. The zero Outcome is Written without cost.
type Outcome struct {
	Fate Fate
	// Throttled: Again because the partition is over its capacity.
	Throttled bool
	// Unavailable: Again or Unknown because the partition, the table or the server does not serve now.
	Unavailable bool
	// TimedOut: Unknown because the request made no progress for a whole time-out. Most of the time to apply it is over.
	TimedOut bool
	WriteCU  int // write capacity units the service charged
	// Repeated: the row was sent again after an attempt of unknown outcome, so there may be two copies.
	Repeated bool
	// Unsent: an earlier process had not sent the row, though its checkpoint does not say so.
	Unsent bool
	// Found: the row was not sent, because an earlier attempt had written it.
	Found bool
	// Number is the service's value of the row's auto-increment column; 0 is unknown or none.
	Number int64
	// From is the least possible number of the row, whichever of its attempts was applied; 0 is unknown.
	From int64
	// Stamp is the milliseconds given to cells without a timestamp; 0 is none. Restamped: an unknown attempt had another.
	Stamp     int64
	Restamped bool
	// Unmet: Refused, because the table's row does not pass the load's condition on columns.
	Unmet bool
	// Expired is the number of cells dropped because they had become older than the table takes.
	Expired int
	// MaybeApplied: Refused, and an earlier attempt may have been applied.
	MaybeApplied bool
	// Stale: Refused, perhaps only for that timestamp.
	Stale   bool
	Code    string
	Message string
}
