package faults

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Action is one way for a request to fail.
type Action int

const (
	None             Action = iota
	Refuse                  // the error Code is answered for the whole request; nothing is applied
	DropBefore              // the connection is cut, nothing is applied
	DropAfter               // the request is applied, then the connection is cut: the answer is lost
	AnswerErrorAfter        // the request is applied, then the error Code ("": OTSTimeout) is answered
	ApplyLate               // the connection is cut (or the error Code answered), then the request is applied after Delay
	BadBody                 // an HTML page with status Code ("": 502) is answered, as by a proxy; nothing is applied
	PageAfter               // the request is applied, then the page is answered
	Redirect                // 307 to another host is answered; nothing is applied
	FlipBit                 // the request is applied, then one bit of the answer's body is flipped
	TruncateBody            // the request is applied, then the body of the answer is cut short
	ResetBody               // the request is applied, then the connection is reset during the answer
	RefuseRows              // rows with a RowCode are refused, the rest of the batch is applied
	Hang                    // nothing is answered until the client gives up; the request is applied if Applied is set
)

// Fault describes what happens to one request.
type Fault struct {
	Action  Action
	Code    string               // for Refuse, AnswerErrorAfter, pages, and ApplyLate and RefuseRows if not empty
	Bit     uint64               // for FlipBit; counted modulo the body's bits
	Delay   time.Duration        // for ApplyLate
	Applied bool                 // for Hang
	RowCode func(row int) string // for RefuseRows; row is the index in the whole request; "" applies the row
}

// Request describes a request to Decide.
type Request struct {
	N         int // number, from 0, among the requests that match Only
	Operation string
	Rows      int // rows written or keys read; 0 for table operations and GetRange
}

// Plan decides which requests fail. It is safe for concurrent use if Only and Decide are. Change changes a plan in use.
type Plan struct {
	Only   func(operation string) bool // nil means BatchWriteRow only
	Decide func(Request) Fault         // nil means no fault

	// Within is the longest time from a request's arrival until it may be applied, as in a service that eventually gives
	// up; 0 means no limit. It holds even if the machine stalls, because later requests wait for the fate of earlier ones.
	Within time.Duration

	// Outage replaces the other faults while it lasts, for all operations. Nil means none.
	Outage *Outage

	// The origin of the plan, for callers that show it. A plan made by hand has none.
	Random     *Random  // set by Random.Plan
	Steps      []Step   // set by Scripted
	Operations []string // set by Scripted

	mu   sync.Mutex
	n    atomic.Int64   // requests that matched Only
	done map[Action]int // number of injected faults
	late atomic.Int64   // requests still to be applied late
	idle sync.WaitGroup // waits for late requests

	promised []promise // oldest first

	firstWrite time.Time // used by Outage
	refused    int       // requests during the outage
}

// promise says that a request is applied by a certain time or never.
type promise struct {
	by   time.Time
	over chan struct{} // closed once the request is applied or dropped
}

// Next returns the fault of a request, and counts the request if it matches Only. A nil plan has no faults.
func (p *Plan) Next(operation string, rows int) Fault {
	if p == nil {
		return Fault{}
	}
	if f, out := p.outage(operation, time.Now()); out {
		return p.given(f)
	}
	p.mu.Lock()
	only, decide := p.Only, p.Decide
	p.mu.Unlock()
	if only == nil && operation != "BatchWriteRow" || only != nil && !only(operation) {
		return Fault{}
	}
	n := p.n.Add(1) - 1
	if decide == nil {
		return Fault{}
	}
	return p.given(decide(Request{N: int(n), Operation: operation, Rows: rows}))
}

func (p *Plan) given(f Fault) Fault {
	if f.Action != None {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.done == nil {
			p.done = make(map[Action]int)
		}
		p.done[f.Action]++
	}
	return f
}

// Done returns the number of injected faults by kind.
func (p *Plan) Done() map[Action]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.done)
}

// Change sets Only and Decide while the plan is in use.
func (p *Plan) Change(only func(operation string) bool, decide func(Request) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Only, p.Decide = only, decide
}

// Requests returns the number of matching requests so far.
func (p *Plan) Requests() int { return int(p.n.Load()) }

// Begin records that a request received at came will be applied late: in time for Within, or never. The server calls it
// before it cuts the connection, and calls end once the request is applied or dropped.
func (p *Plan) Begin(came time.Time) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late.Add(1)
	p.idle.Add(1)
	over := make(chan struct{})
	if p.Within > 0 {
		p.promised = append(p.promised, promise{came.Add(p.Within), over})
	}
	return func() {
		close(over)
		p.late.Add(-1)
		p.idle.Done()
	}
}

// Await waits until every late request whose time has run out at now is applied or dropped.
func (p *Plan) Await(now time.Time) {
	if p == nil {
		return
	}
	p.mu.Lock()
	n := 0
	for n < len(p.promised) && !now.Before(p.promised[n].by) {
		n++
	}
	due := slices.Clone(p.promised[:n])
	p.mu.Unlock()
	for _, d := range due {
		<-d.over
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.promised = slices.DeleteFunc(p.promised, func(d promise) bool { return slices.Contains(due, d) })
}

// Late returns the number of requests still to be applied late.
func (p *Plan) Late() int { return int(p.late.Load()) }

// WaitLate waits until no request is left to be applied late.
func (p *Plan) WaitLate() { p.idle.Wait() }
