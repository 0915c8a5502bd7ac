package pipeline

import (
	"math"
	"time"

	"tsimport/internal/table"
	"tsimport/partitioner"
	"tsimport/pipeline/sendwindow"
	"tsimport/writer"
)

// requestCopies is how often the rows of a request are in memory while it is sent: as a message and in buffers.
const requestCopies = 3

// flight is a batch of one lane on its way.
type flight struct {
	partitioner.Flight
	lane  *lane
	table string    // among several
	bytes int64     // of memory, beside the blocks
	until time.Time // after which it must not be sent; zero is never
	mark  sendwindow.Mark
}

// result is a flight that has come back.
type result struct {
	flight     *flight
	sent, done time.Time
	stats      writer.Stats
	err        error
}

// flights are the requests in flight, one for each worker at most, and the memory that they take. They belong to the
// dispatcher's goroutine; the workers take from out and give to back, which both have room for every flight.
type flights struct {
	out    chan *flight
	back   chan result
	idle   []*flight // one for each free worker
	most   int
	bytes  int64
	budget int64
	waits  bool       // a free worker waits for memory
	answer time.Time  // the last one, or when the first request left
	took   float64    // seconds that answers take, the mean
	room   func() int // requests that the connection can take
}

func newFlights(workers int, budget int64) *flights {
	f := &flights{
		out: make(chan *flight, workers), back: make(chan result, workers), most: workers, budget: budget,
		room: func() int { return math.MaxInt },
	}
	for range workers {
		f.idle = append(f.idle, new(flight))
	}
	return f
}

// flying is how many requests are in flight.
func (f *flights) flying() int { return f.most - len(f.idle) }

// open reports whether one more may leave.
func (f *flights) open() bool {
	return len(f.idle) > 0 && f.flying() < f.room() && (f.flying() == 0 || f.bytes < f.budget)
}

// waitsMore reports whether a free worker begins to wait for memory.
func (f *flights) waitsMore() bool {
	before := f.waits
	f.waits = len(f.idle) > 0 && f.flying() > 0 && f.bytes >= f.budget
	return f.waits && !before
}

// next is the flight that leaves next, to be filled.
func (f *flights) next() *flight { return f.idle[len(f.idle)-1] }

// leave counts the next flight as sent. It is sent, or given back, by the caller.
func (f *flights) leave() {
	n := f.next()
	f.idle = f.idle[:len(f.idle)-1]
	n.bytes = int64(n.Size()) * requestCopies
	f.bytes += n.bytes
}

// free takes a flight back whose outcomes have been taken.
func (f *flights) free(n *flight) {
	f.bytes -= n.bytes
	n.Reset()
	n.lane = nil
	f.idle = append(f.idle, n)
}

// How long nobody answers before it is silence: the largest that applies.
const (
	silentLeast = 3 * time.Second
	silentFirst = 10 * time.Second // before the first answer
	silentMeans = 5                // times the mean that answers took
)

// began notes that a request leaves.
func (f *flights) began(now time.Time) {
	if f.answer.IsZero() || f.flying() == 0 {
		f.answer = now
	}
}

// answered notes that a request has been answered.
func (f *flights) answered(sent, now time.Time) {
	f.answer = now
	took := max(now.Sub(sent).Seconds(), 1e-9)
	if f.took == 0 {
		f.took = took
	}
	f.took += (took - f.took) / 8
}

// silent reports whether requests are in flight and none has been answered for long.
func (f *flights) silent(now time.Time) bool {
	if f.flying() == 0 {
		return false
	}
	least := silentFirst
	if f.took > 0 {
		least = max(silentLeast, time.Duration(silentMeans*f.took*float64(time.Second)))
	}
	return now.Sub(f.answer) >= least
}

// tooLate reports whether the flight must not be sent any more, and says so of its rows.
func (f *flight) tooLate(now time.Time) bool {
	if f.until.IsZero() || elapsed(f.until, now) <= 0 {
		return false
	}
	for i := range f.Outcomes {
		f.Outcomes[i] = table.Outcome{Fate: table.Again, Message: "not sent: the process was stopped in between"}
	}
	return true
}
