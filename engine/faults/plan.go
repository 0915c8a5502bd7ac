package faults

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Action is one way for a request to go wrong.
type Action int

// The actions.
const (
	None             Action = iota
	Refuse                  // answers the error Code for the whole request, which is not applied
	DropBefore              // the connection is cut, nothing is applied
	DropAfter               // the request is applied, then the connection is cut: the answer is lost
	AnswerErrorAfter        // the request is applied, then the error Code (OTSTimeout when empty) is answered
	ApplyLate               // the connection is cut (or the error Code is answered) at once; applied after Delay
	BadBody                 // answers an HTML page, as a proxy does; nothing is applied. Code is its HTTP status (502 when empty)
	PageAfter               // the request is applied, then the page is answered
	Redirect                // answers 307 to another host; nothing is applied
	FlipBit                 // the request is applied; one bit of the answer's body is flipped on its way
	TruncateBody            // the request is applied, the body of the answer is cut short
	ResetBody               // the request is applied, the connection is reset in the middle of the answer
	RefuseRows              // rows for which RowCode gives a code are refused, the others of a batch are applied
	Hang                    // no answer comes until the client gives up; applied at once if Applied says so
)

// Fault is what happens to one request.
type Fault struct {
	Action  Action
	Code    string               // of Refuse, AnswerErrorAfter and, if not empty, ApplyLate; of pages
	Bit     uint64               // of FlipBit: which, counted around the body
	Delay   time.Duration        // of ApplyLate
	Applied bool                 // of Hang
	RowCode func(row int) string // of RefuseRows: row counts over all tables of the request; "" applies it
}

// Request is what Decide is told about a request.
type Request struct {
	N         int // 0-based count of the requests that match Only
	Operation string
	Rows      int // rows of a write or keys of a read; 0 for table operations and GetRange
}

// Plan decides per request what goes wrong. It is safe for concurrent use; Only and Decide must be too, and are not to
// be changed while it is in use, except by Change.
type Plan struct {
	Only   func(operation string) bool // nil is BatchWriteRow only
	Decide func(Request) Fault         // nil means no fault

	// Within is how long after a request it may still be applied late: as a service that gives up at last. 0 means forever.
	// It holds on a machine that lets nothing run for a while, too: later requests wait until what came before is decided.
	Within time.Duration

	// Outage befalls requests of every operation, in place of other faults. Nil is none.
	Outage *Outage

	// What it was made of, for who asks; a plan made by hand has neither.
	Random     *Random  // Random.Plan's
	Steps      []Step   // Scripted's
	Operations []string // Scripted's

	mu   sync.Mutex
	n    int
	done map[Action]int // faults given
	late int
	idle sync.WaitGroup // of late requests

	promised []promise // oldest first

	firstWrite time.Time // with an Outage
	refused    int       // requests by it
}

// promise is that of a request that it will be applied by a moment or never.
type promise struct {
	by   time.Time
	over chan struct{} // closed when that is decided
}

// Next counts a request and gives its fault. A nil plan has none.
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
	p.mu.Lock()
	n := p.n
	p.n++
	p.mu.Unlock()
	if decide == nil {
		return Fault{}
	}
	return p.given(decide(Request{N: n, Operation: operation, Rows: rows}))
}

// given counts a fault.
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

// Done is how many faults of each kind were given.
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

// Requests is how many matching requests there were.
func (p *Plan) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// Begin notes that a request that came at a moment will be applied late: within Within, or never. The server calls it
// before it cuts the connection, and end when that is decided.
func (p *Plan) Begin(came time.Time) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late++
	p.idle.Add(1)
	over := make(chan struct{})
	if p.Within > 0 {
		p.promised = append(p.promised, promise{came.Add(p.Within), over})
	}
	return func() {
		close(over)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.late--
		p.idle.Done()
	}
}

// Await waits until no request may be applied any more whose time has passed at now.
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

// Late is how many requests have still to be applied late.
func (p *Plan) Late() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.late
}

// WaitLate returns when no request has still to be applied late.
func (p *Plan) WaitLate() { p.idle.Wait() }
