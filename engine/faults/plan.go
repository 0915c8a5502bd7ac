package faults

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Action is one way for a request to fail.
type Action int

const (
	None             Action = iota
	Refuse                  // answers the error Code for the whole request, which is not applied
	DropBefore              // the connection is cut, nothing is applied
	DropAfter               // the request is applied, then the connection is cut: the answer is lost
	AnswerErrorAfter        // the request is applied, then the error Code (OTSTimeout when empty) is answered
	ApplyLate               // the connection is cut (or the error Code is answered) at once; applied after Delay
	BadBody                 // answers an HTML page, like a proxy; nothing is applied. Code is its HTTP status ("": 502)
	PageAfter               // the request is applied, then the page is answered
	Redirect                // answers 307 to another host; nothing is applied
	FlipBit                 // the request is applied; one bit of the answer's body is flipped on its way
	TruncateBody            // the request is applied, the body of the answer is cut short
	ResetBody               // the request is applied, the connection is reset in the middle of the answer
	RefuseRows              // refuses rows with a RowCode, applies the rest of the batch
	Hang                    // no answer comes until the client gives up; applied at once if Applied says so
)

// Fault is what happens to one request.
type Fault struct {
	Action  Action
	Code    string               // of Refuse, AnswerErrorAfter and, if not empty, ApplyLate; of pages
	Bit     uint64               // of FlipBit, counted around the body
	Delay   time.Duration        // of ApplyLate
	Applied bool                 // of Hang
	RowCode func(row int) string // of RefuseRows: row counts over all tables of the request; "" applies it
}

// Request is the description of a request for Decide.
type Request struct {
	N         int // 0-based count of the requests that match Only
	Operation string
	Rows      int // rows of a write or keys of a read; 0 for table operations and GetRange
}

// Plan decides which requests fail. It is safe for concurrent use, as Only and Decide must be. Only Change changes it.
type Plan struct {
	Only   func(operation string) bool // nil is BatchWriteRow only
	Decide func(Request) Fault         // nil means no fault

	// Within is how long after a request it may still be applied late, like a service that finally gives up. 0 means
	// forever. It holds even if the machine stalls: later requests wait until earlier ones are decided.
	Within time.Duration

	// Outage replaces other faults, for requests of every operation. Nil means none.
	Outage *Outage

	// What the plan was made of, for callers that ask; a hand-made plan has neither.
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

// promise is a request's promise to be applied by a moment or never.
type promise struct {
	by   time.Time
	over chan struct{} // closed when that is decided
}

// Next counts a request and returns its fault. A nil plan has none.
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

// Done returns how many faults of each kind were injected.
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

// Requests is the number of matching requests.
func (p *Plan) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// Begin notes that a request received at came will be applied late: within Within, or never. The server calls it before
// it cuts the connection, and end when that is decided.
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

// Await waits until every request whose time has passed at now is decided.
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

// Late is the number of requests still to be applied late.
func (p *Plan) Late() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.late
}

// WaitLate returns when no request is left to be applied late.
func (p *Plan) WaitLate() { p.idle.Wait() }
