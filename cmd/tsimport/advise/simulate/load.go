package simulate

import (
	"math/rand/v2"
	"slices"
)

// Parameters of a typical loader, the baseline of tsbench spread, whose workers share one reader.
const (
	batchRows = 200
	workers   = 32
	latency   = 5_000_000 // nanoseconds per request
)

// Retries of the official SDK: at most ten, for at most 5 s. Each pause is twice the last plus 1 to 9 ms, up to 320 ms.
const (
	sdkRetries  = 10
	sdkRetryFor = 5_000_000_000
	sdkPause    = 10
	sdkMaxPause = 320
	millisecond = 1_000_000
)

// maxLoad limits the simulated load, in nanoseconds, as in tsbench spread.
const maxLoad = 60_000_000_000

// Loaded is the result of a simulated load in file order.
type Loaded struct {
	Share   float64 // used share of the capacity until the last row was accepted
	Rows    int64   // accepted rows
	Lost    int64   // rows dropped after all retries
	Seconds float64 // time until the last row was accepted
}

// Load simulates a load of rows in order: 32 workers each send the next 200 rows in one request, regardless of
// partition. Each partition accepts rate rows per second, saves up at most a second's rows, and refuses the rest.
func Load(of []uint16, partitions int, rate float64) Loaded {
	l := &load{of: of, rate: rate / 1e9, buckets: make([]bucket, partitions),
		random: rand.New(rand.NewPCG(1, uint64(len(of))))}
	l.workers = make([]loader, workers)
	for i := range l.workers {
		l.workers[i].begin(l, 0)
	}
	for {
		w := &l.workers[0]
		for i := range l.workers {
			if l.workers[i].at < w.at {
				w = &l.workers[i]
			}
		}
		if w.at >= maxLoad {
			break
		}
		w.send(l)
	}
	seconds := float64(l.last) / 1e9
	out := Loaded{Rows: l.taken, Lost: l.lost, Seconds: seconds}
	if seconds > 0 {
		out.Share = min(1, float64(l.taken)/(rate*float64(partitions)*seconds))
	}
	return out
}

type load struct {
	of      []uint16
	next    int // next row to be read
	rate    float64
	buckets []bucket
	workers []loader
	random  *rand.Rand

	taken, lost int64
	last        int64 // time when the last row was accepted
}

type bucket struct {
	tokens float64
	at     int64
}

// loader is a worker with a request in flight.
type loader struct {
	at      int64 // time of sending
	begun   int64
	rows    []int32
	retries int
	pause   int64 // milliseconds
}

const never = 1 << 62

func (w *loader) begin(l *load, at int64) {
	*w = loader{at: at, begun: at, rows: w.rows[:0]}
	for len(w.rows) < batchRows && l.next < len(l.of) {
		w.rows = append(w.rows, int32(l.next))
		l.next++
	}
	if len(w.rows) == 0 {
		w.at = never
	}
}

func (w *loader) send(l *load) {
	w.rows = slices.DeleteFunc(w.rows, func(row int32) bool { return l.take(int(l.of[row]), w.at) })
	answered := w.at + latency
	switch {
	case len(w.rows) == 0:
	case w.retries == sdkRetries || answered > w.begun+sdkRetryFor:
		l.lost += int64(len(w.rows))
	default:
		w.retries++
		w.pause = min(sdkMaxPause, 2*w.pause+1+l.random.Int64N(sdkPause-1))
		w.at = answered + w.pause*millisecond
		return
	}
	w.begin(l, answered)
}

func (l *load) take(partition int, at int64) bool {
	b := &l.buckets[partition]
	burst := max(1, l.rate*1e9) // at least one row must be able to pass
	b.tokens = min(burst, b.tokens+float64(at-b.at)*l.rate)
	b.at = at
	if b.tokens < 1-1e-6 {
		return false
	}
	b.tokens--
	l.taken++
	l.last = max(l.last, at)
	return true
}
