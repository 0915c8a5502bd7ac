package lanes

import (
	"math"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/sendwindow"
	"example.com/tsimport/writer"
)

// requestCopies is the number of copies of a request's rows in memory while it is sent: as a message and in buffers.
const requestCopies = 3

// flight is a batch of one lane that is being sent.
type flight struct {
	partitioner.Flight
	lane  *lane
	table string    // name of the table, if there are several
	bytes int64     // memory in addition to the blocks, in bytes
	until time.Time // it must not be sent after this time; zero means no limit
	mark  sendwindow.Mark

	onLink  time.Duration // known time for which the link is busy with this and earlier flights
	left    time.Time
	probe   bool // its lane gets no answers
	overdue bool // it was overdue at the last check
	silent  bool // it no longer counts as in flight
}

// Result is a flight that has come back, and how it went.
type Result struct {
	flight     *flight
	sent, done time.Time
	stats      writer.Stats
	err        error
}

// flights tracks the requests in flight, at most one per worker, and their memory. It belongs to the dispatcher's
// goroutine; workers receive from out and send to back, which hold all flights. A worker that receives nil ends.
type flights struct {
	out    chan *flight
	back   chan Result
	idle   []*flight // one for each free worker
	away   map[*flight]struct{}
	most   int
	bytes  int64
	budget int64
	waits  bool       // a free worker waits for memory
	answer time.Time  // time of the last answer, or when the first request was sent
	took   float64    // mean seconds that answers take
	room   func() int // returns how many requests the connections can take

	silence silence
}

func newFlights(workers int, budget int64, timeout time.Duration) *flights {
	f := &flights{
		out: make(chan *flight, workers+2*MostSilent(workers)), back: make(chan Result, workers+MostSilent(workers)),
		most: workers, budget: budget,
		room: func() int { return math.MaxInt }, away: map[*flight]struct{}{}, silence: silence{timeout: timeout},
	}
	for range workers {
		f.idle = append(f.idle, new(flight))
	}
	return f
}

func (f *flights) flying() int { return f.most - len(f.idle) }

func (f *flights) unanswered() int { return f.flying() + f.silence.count }

func (f *flights) open() bool {
	return len(f.idle) > 0 && f.flying() < f.room() && (f.flying() == 0 || f.bytes < f.budget)
}

// waitsMore reports whether a free worker begins to wait for memory now.
func (f *flights) waitsMore() bool {
	before := f.waits
	f.waits = len(f.idle) > 0 && f.flying() > 0 && f.bytes >= f.budget
	return f.waits && !before
}

func (f *flights) next() *flight { return f.idle[len(f.idle)-1] }

// leave counts the next flight as in flight. The caller then sends it or frees it.
func (f *flights) leave(now time.Time) {
	n := f.next()
	f.idle = f.idle[:len(f.idle)-1]
	n.bytes = int64(n.Size()) * requestCopies
	f.bytes += n.bytes
	n.left = now
	f.away[n] = struct{}{}
}

// free takes back a flight after its outcomes were taken.
func (f *flights) free(n *flight) {
	f.bytes -= n.bytes
	if n.silent { // another flight has taken its place
		f.silence.count--
		f.out <- nil // never blocks, as it holds one for each silent flight
		return
	}
	delete(f.away, n)
	n.Reset()
	n.lane, n.probe, n.overdue = nil, false, false
	f.idle = append(f.idle, n)
}

// A time without any answer counts as silence if it exceeds all of these that apply.
const (
	silentLeast = 3 * time.Second
	silentFirst = 10 * time.Second // silence before the first answer
	silentMeans = 5                // times the mean answer time
)

func (f *flights) began(now time.Time) {
	if f.answer.IsZero() || f.flying() == 0 {
		f.answer = now
	}
}

func (f *flights) answered(n *flight, sent, now time.Time) {
	f.answer = now
	f.silence.lastAnswered = keep.Later(f.silence.lastAnswered, n.left)
	f.took = meanOf(f.took, now.Sub(sent))
}

// meanOf updates a moving mean in seconds; 0 means that there is none yet.
func meanOf(mean float64, took time.Duration) float64 {
	t := max(took.Seconds(), 1e-9)
	if mean == 0 {
		return t
	}
	return mean + (t-mean)/8
}

// silent reports whether requests are unanswered, and none has been answered for a long time.
func (f *flights) silent(now time.Time) bool {
	if f.flying() == 0 {
		return f.silence.count > 0
	}
	least := silentFirst
	if f.took > 0 {
		least = max(silentLeast, time.Duration(silentMeans*f.took*float64(time.Second)))
	}
	return now.Sub(f.answer) >= least
}

// tooLate reports whether it is too late to send the flight, and if so sets the outcomes of its rows.
func (f *flight) tooLate(now time.Time) bool {
	if f.until.IsZero() || keep.Elapsed(f.until, now) <= 0 {
		return false
	}
	for i := range f.Outcomes {
		f.Outcomes[i] = table.Outcome{Fate: table.Again, Message: "not sent: the process was stopped in between"}
	}
	return true
}
