package write

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/bench/result"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/ratelimit"
	"example.com/tsimport/writer"
)

// rowWriter is a *writer.Writer, or a fake in tests.
type rowWriter interface {
	Write(rows []table.Ref, repeated []bool, outcomes []table.Outcome) (writer.Stats, error)
}

// surroundings holds what all phases of a run share.
type surroundings struct {
	newWriter   func() (w rowWriter, closed func()) // closed releases its resources
	partitions  atomic.Pointer[partitioner.Map]
	shape       Shape
	table       string
	batchRows   int
	concurrency int
	retryFor    time.Duration
	settings    result.Settings
	samples     *result.SampleWriter         // nil means none
	unavailable func()                       // called, at any time, when a partition is unavailable
	watch       func(p *phase) (stop func()) // observes a phase; may be nil
}

// phase is one period of writing, at a fixed rate or in a closed loop.
type phase struct {
	*surroundings
	rows     int64         // 0 means no end
	duration time.Duration // 0 means no end
	warmUp   time.Duration
	rate     float64 // rows per second; 0 means a closed loop

	began   time.Time
	batches chan *batch
	cutter  *cutter

	mu         sync.Mutex
	rec        *result.Recorder
	sent       int64         // number of rows in sent batches
	end        time.Duration // end of the last request
	stopped    time.Duration // time at which the duration ended; 0 if the rows ran out first
	unfinished int64
	accepted   time.Duration // time of the last accepted row
}

// run writes until the rows or the time run out, or ctx ends. It returns an error if no further request can succeed.
func (p *phase) run(ctx context.Context) (*result.Result, error) {
	made, err := newRows(p.shape, uint64(p.rows), p.table)
	if err != nil {
		return nil, err
	}
	p.cutter = newCutter(made, p.rows, p.batchRows, &p.partitions, p.concurrency)
	p.rec = result.NewRecorder(p.warmUp)
	p.batches = make(chan *batch)
	p.began = time.Now()
	settings := p.settings
	settings.Rate = p.rate
	started := p.began.UTC().Format(time.RFC3339)
	if p.samples != nil {
		p.samples.Begin(result.Header{Started: started, WarmUp: p.warmUp.Seconds(), Settings: settings})
	}
	group, groupCtx := errgroup.WithContext(ctx)
	over, cancel := groupCtx, context.CancelFunc(func() {})
	if p.duration > 0 {
		over, cancel = context.WithTimeout(groupCtx, p.duration)
	}
	defer cancel()
	if p.watch != nil {
		defer p.watch(p)()
	}
	group.Go(func() error { return p.feed(over) })
	for range p.concurrency {
		group.Go(func() error { return p.work(over) })
	}
	err = group.Wait()
	p.countLate()
	res := p.rec.Result(max(p.end, p.stopped))
	res.Settings, res.Started, res.Unfinished = settings, started, p.unfinished
	return res, err
}

// feed hands out batches until the rows or the time run out.
func (p *phase) feed(over context.Context) error {
	defer close(p.batches) // ends the workers in any case; unsent batches do not matter
	for {
		b, err := p.cutter.next()
		if b == nil || err != nil {
			return err
		}
		select {
		case p.batches <- b:
		case <-over.Done():
			p.mu.Lock()
			p.stopped = time.Since(p.began)
			p.mu.Unlock()
			return nil
		}
	}
}

// due returns the time since the start at which the batch that begins with row first is due.
func (p *phase) due(first int64) time.Duration {
	return time.Duration(float64(first) / p.rate * float64(time.Second))
}

func (p *phase) work(over context.Context) error {
	w, closed := p.newWriter()
	defer closed()
	s := new(sending)
	for b := range p.batches {
		intended := time.Since(p.began)
		if p.rate > 0 {
			intended = p.due(b.first)
			if p.duration > 0 && intended >= p.duration || !sleep(over, time.Until(p.began.Add(intended))) {
				return nil
			}
		} else if over.Err() != nil {
			return nil
		}
		p.mu.Lock()
		p.sent = max(p.sent, b.first+int64(len(b.rows.Rows)))
		p.mu.Unlock()
		if err := p.send(over, w, s, b, intended); err != nil {
			return err
		}
		p.cutter.done(b)
	}
	return nil
}

// sleep waits for d or until ctx ends, and reports whether ctx is still active.
func sleep(ctx context.Context, d time.Duration) bool {
	if d > 0 {
		_ = ratelimit.Wait(ctx, d)
	}
	return ctx.Err() == nil
}

// sending holds the unwritten rows of a batch in flight.
type sending struct {
	rows     []table.Ref
	repeated []bool
	outcomes []table.Outcome
}

func (s *sending) begin(b *batch) {
	s.rows, s.repeated = s.rows[:0], s.repeated[:0]
	for i := range b.rows.Rows {
		s.rows, s.repeated = append(s.rows, table.Ref{Block: b.rows, Index: int32(i)}), append(s.repeated, false)
	}
}

// send sends a batch. It resends the rows that were not written until all are written or the time runs out.
func (p *phase) send(over context.Context, w rowWriter, s *sending, b *batch, intended time.Duration) error {
	backoff := ratelimit.Backoff{Base: 20 * time.Millisecond, Max: time.Second}
	s.begin(b)
	for attempt := 1; ; attempt++ {
		s.outcomes = append(s.outcomes[:0], make([]table.Outcome, len(s.rows))...)
		sample := result.Sample{Intended: intended, Attempt: attempt, Rows: len(s.rows), Partition: b.shown,
			Sent: time.Since(p.began)}
		_, err := w.Write(s.rows, s.repeated, s.outcomes)
		sample.Done = time.Since(p.began)
		s.settle(&sample)
		if hopeless := p.count(&sample, b); hopeless != nil {
			return hopeless
		}
		if err != nil && over.Err() == nil {
			return err
		}
		if len(s.rows) == 0 {
			return nil
		}
		if err != nil || !sleep(over, backoff.After(attempt)) {
			p.leave(len(s.rows), intended)
			return nil
		}
	}
}

// settle records the outcomes of the rows in the sample, and keeps the rows to retry.
func (s *sending) settle(r *result.Sample) {
	kept := 0
	for i := range s.rows {
		o := &s.outcomes[i]
		if o.Fate == table.Written {
			r.Written++
			r.Units += int64(o.WriteCU)
			r.Bytes += int64(s.rows[i].Row().Size())
			continue
		}
		code := cmp.Or(o.Code, o.Message)
		if r.Codes == nil {
			r.Codes = map[string]int64{}
			r.Code = code
		}
		r.Codes[code]++
		switch {
		case o.Fate == table.Refused:
			r.Failed++
			continue
		case o.Throttled:
			r.Throttled++
		case o.Unavailable:
			r.Unavailable++
		}
		s.rows[kept], s.repeated[kept] = s.rows[i], s.repeated[i] || o.Fate == table.Unknown
		kept++
	}
	s.rows, s.repeated = s.rows[:kept], s.repeated[:kept]
	r.Last = kept == 0
	r.Outcome = outcomeOf(r)
}

func outcomeOf(r *result.Sample) string {
	switch {
	case r.Written == r.Rows:
		return result.OK
	case r.Written > 0:
		return result.Partly
	case r.Throttled > 0:
		return result.Throttled
	case r.Unavailable > 0:
		return result.Unavailable
	}
	return result.Failed
}

// count adds a request to the result. It returns an error if no row has been accepted for too long.
func (p *phase) count(s *result.Sample, b *batch) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Slot = p.rec.Slot(b.lower, b.shown)
	s.WarmUp = !p.rec.Measured(s.Done)
	p.rec.Add(s)
	p.end = max(p.end, s.Done)
	if p.samples != nil {
		p.samples.Write(s)
	}
	if s.Unavailable > 0 && p.unavailable != nil {
		p.unavailable()
	}
	if s.Written > 0 {
		p.accepted = s.Done
	}
	if s.Done-p.accepted < p.retryFor {
		return nil
	}
	return fmt.Errorf("no row was written for %v (--retry-for); last answer: %s", p.retryFor, s.Code)
}

// leave counts rows that were sent but not written when the time ran out.
func (p *phase) leave(rows int, intended time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unfinished += int64(rows)
	p.rec.Late(intended, max(p.end, time.Since(p.began)))
}

// countLate adds to the latency the waits of batches that were due but not sent when the time ran out.
func (p *phase) countLate() {
	if p.rate > 0 {
		p.rec.LateFrom(p.due(p.sent), time.Duration(float64(p.batchRows)/p.rate*float64(time.Second)), p.stopped)
	}
}

func (p *phase) progress() (at time.Duration, rows int64, throttled float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sent, refused := int64(0), int64(0)
	for _, point := range p.rec.Points() {
		rows += point.Rows
		refused += point.Throttled
		sent += point.Rows + point.Throttled + point.Refused
	}
	return time.Since(p.began), rows, float64(refused) / float64(max(sent, 1))
}
