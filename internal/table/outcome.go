package table

// Fate says what happened to one row of a request.
type Fate uint8

const (
	// Written means that the service acknowledged the row.
	Written Fate = iota
	// Refused means that the row, as it was sent, is not accepted, or that it was given up.
	Refused
	// Again means that the row was not applied and may be sent again.
	Again
	// Unknown means that the row may have been applied or may be applied later. It may be sent again only if a repeat is
	// harmless, and no later row of its key may be sent until the first attempt can no longer be applied.
	Unknown
)

// Outcome is the service's response for one row. The zero Outcome means Written at no cost.
type Outcome struct {
	Fate Fate
	// Throttled means Again because the partition is over its capacity.
	Throttled bool
	// Unavailable means Again or Unknown because the partition, the table or the server is temporarily unavailable.
	Unavailable bool
	// TimedOut means Unknown because a request made no progress until its time-out. Most of the settling time has passed.
	TimedOut bool
	WriteCU  int // write capacity units that the service charged
	// Repeated means that the row was sent again after an attempt with an unknown outcome, so there may be two copies.
	Repeated bool
	// Unsent means that an earlier process had not sent the row, although its checkpoint did not say so.
	Unsent bool
	// Found means that the row was not sent because an earlier attempt had written it.
	Found bool
	// Number is the value that the service gave the row's auto-increment column; 0 if it is unknown or there is none.
	Number int64
	// From is the smallest number that the row can have, whichever attempt was applied; 0 if unknown.
	From int64
	// Stamp is the timestamp, in ms, that cells without one were given, or 0. Restamped means that an Unknown attempt had
	// another one.
	Stamp     int64
	Restamped bool
	// Unmet means Refused because the stored row does not meet the load's condition on columns.
	Unmet bool
	// Expired is the number of cells dropped because they had become too old for the table.
	Expired int
	// MaybeApplied means Refused, although this or an earlier attempt may have been applied.
	MaybeApplied bool
	// Stale means Refused, perhaps only because of Stamp.
	Stale   bool
	Code    string
	Message string
}
