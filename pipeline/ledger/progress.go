package ledger

import (
	"sync/atomic"
	"time"

	"example.com/tsimport/writer"
)

// Progress is the progress of a load, for a user interface that polls. It is safe for concurrent use.
type Progress struct {
	Ended              Ended
	Retried, Throttled atomic.Int64
	BytesRead          atomic.Int64
	BytesTotal         atomic.Int64 // -1 if a source is a stream
	Limit              atomic.Int64 // maximum number of records to read; 0 means all
	SlowestLeft        atomic.Int64 // ms that the slowest partition needs for its waiting rows; 0 means unknown
	Waiting            atomic.Pointer[Wait]
	Swept              atomic.Int64 // rows sent more than once that were checked for surplus copies
	Settled            atomic.Int64 // source time of the last settled change in ms since 1970; 0 means unknown
	Done               atomic.Bool
	Hindrance          Hindrance

	Numbers atomic.Pointer[writer.AutoIncrement]
}

// Wait tells until when, and why, a load waits although it could send rows or end.
type Wait struct {
	Until time.Time `json:"until"`
	Why   string    `json:"why"`
}

// Wait returns the current wait, or nil.
func (p *Progress) Wait() *Wait {
	if w := p.Waiting.Load(); w != nil && time.Until(w.Until) > 0 {
		return w
	}
	return nil
}

// Ended counts the records read, and how the final ones ended.
type Ended struct {
	Read, Written, Rejected, Superseded, ConditionFailed, Archived atomic.Int64
}

// Hindrance is the current limit of the load's speed.
type Hindrance struct {
	LimitedBy atomic.Uint32 // bottleneck.Word
	Trouble   atomic.Value  // a string, the service's answer while it does not accept rows
}

// Lag returns the number of changes read but not final, and the last settled one's age; known is false without times.
func (p *Progress) Lag() (changes int64, since time.Duration, known bool) {
	settled := p.Settled.Load()
	e := &p.Ended
	changes = max(0, e.Read.Load()-e.Written.Load()-e.Rejected.Load()-e.Superseded.Load())
	return changes, max(0, time.Since(time.UnixMilli(settled))), settled > 0
}

// LookUps returns how many rows that may have been written were looked up and found, and the number of requests for it.
func (p *Progress) LookUps() (rows, found, requests int64) {
	if n := p.Numbers.Load(); n != nil {
		return n.Searched.Load(), n.Found.Load(), n.Requests.Load()
	}
	return 0, 0, 0
}

// Show publishes the counts so far.
func (p *Progress) Show(r *Counted) {
	p.Ended.Read.Store(r.Read)
	read := r.BytesRead
	if total := p.BytesTotal.Load(); total > 0 {
		read = min(read, total) // a resumed load may read some bytes again
	}
	p.BytesRead.Store(read)
	p.Ended.Written.Store(r.Written)
	p.Ended.Rejected.Store(r.Rejected)
	p.Ended.Superseded.Store(r.Superseded)
	p.Ended.ConditionFailed.Store(r.ConditionFailed)
	p.Ended.Archived.Store(r.Archived)
	p.Retried.Store(r.Retried)
	p.Throttled.Store(r.Throttled)
}
