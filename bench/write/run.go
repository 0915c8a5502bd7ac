package write

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/bench/result"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/writer"
)

// Intervals and timeouts of a run.
const (
	surveyEvery  = 2 * time.Second // interval of reading the partition map; shorter at first
	surveyFirst  = 125 * time.Millisecond
	readyFor     = 2 * time.Minute // maximum time until a new table accepts rows
	dropFor      = 15 * time.Second
	dropIfTold   = time.Second // time for dropping the table of a stopped run
	sayEvery     = 5 * time.Second
	mostWarmStep = time.Second // of a search step
)

type run struct {
	*Config
	*surroundings
	name   string // name of the table
	gentle context.Context
	sdk    *tablestore.TableStoreClient
	wire   *client.Connection
	asked  chan struct{} // requests for the partition map
}

// Run runs the benchmark. When gentle ends, requests in flight finish, and the result covers the time until then. When
// hard ends, requests are cancelled. Run drops the table that it created, unless c.Keep is set. The result is nil if
// nothing was measured.
func Run(gentle, hard context.Context, c Config) (res *result.Result, err error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	r := &run{Config: &c, name: c.TablePrefix + time.Now().UTC().Format("20060102T150405") + "_" + rand.Text()[:6],
		asked: make(chan struct{}, 1)}
	if r.sdk, err = client.New(hard, c.Client, nil); err != nil {
		return nil, plan.Usagef("%s", err.Error())
	}
	if r.wire, err = client.Connect(hard, c.Client, nil); err != nil {
		return nil, plan.Usagef("%s", err.Error())
	}
	made, err := newRows(c.Shape, uint64(c.Rows), r.name)
	if err != nil {
		return nil, err
	}
	making, err := client.New(gentle, c.Client, nil)
	if err != nil {
		return nil, plan.Usagef("%s", err.Error())
	}
	r.gentle = gentle
	admin := &client.Admin{Client: making, Context: gentle}
	if err := admin.Create(r.name, made.schema.Key, table.Definition{TimeToLive: -1, MaxVersions: 1}); err != nil {
		// If the answer was lost, the table may exist.
		return nil, r.dropUnsure(err)
	}
	c.Say.Line("table %s created", r.name)
	defer func() { err = errors.Join(err, r.drop()) }()
	r.prepare()
	if err := r.ready(gentle, made); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(gentle)
	var surveyed sync.WaitGroup
	surveyed.Go(func() { r.survey(ctx) })
	defer surveyed.Wait()
	defer stop()
	return r.measure(gentle)
}

func (r *run) prepare() {
	r.surroundings = &surroundings{
		newWriter: func() (rowWriter, func()) {
			sender := r.wire.Sender()
			return writer.New(sender, r.sdk, r.name, table.Put, table.Ignore), sender.Close
		},
		shape: r.Shape, table: r.name, batchRows: r.BatchRows, concurrency: r.Concurrency, retryFor: r.RetryFor,
		settings: r.Config.settings(r.name), samples: r.Samples, watch: r.watch,
		unavailable: func() {
			select {
			case r.asked <- struct{}{}:
			default: // already requested
			}
		},
	}
	r.partitions.Store(partitioner.NewMap(nil))
}

func (r *run) measure(gentle context.Context) (res *result.Result, err error) {
	if r.Search == nil {
		res, err = (&phase{surroundings: r.surroundings, rows: r.Rows, duration: r.Duration, warmUp: r.WarmUp,
			rate: r.Rate}).run(gentle)
	} else {
		phaseOf := func(duration, warmUp time.Duration) func(context.Context, float64) (*result.Result, error) {
			return func(ctx context.Context, rate float64) (*result.Result, error) {
				return (&phase{surroundings: r.surroundings, duration: duration, warmUp: warmUp, rate: rate}).run(ctx)
			}
		}
		s := &searcher{limits: *r.Search, try: phaseOf(r.Search.Step, min(mostWarmStep, r.Search.Step/4)),
			hold: phaseOf(r.Duration, r.WarmUp), say: r.Say,
			least: float64(r.BatchRows) / r.Search.Step.Seconds()}
		res, err = s.run(gentle)
	}
	if stopped := context.Cause(gentle); stopped != nil && res != nil {
		res.Stopped = stopped.Error()
		if err == nil || errors.Is(err, stopped) {
			return res, stopped
		}
	}
	if err == nil && res.Totals.Requests == 0 {
		err = errEnded
	}
	return res, err
}

// ready tries to write a row until the table accepts it, because a new table may be unavailable at first.
func (r *run) ready(ctx context.Context, made *rows) error {
	block := new(table.Block)
	if err := made.next(block); err != nil {
		return err
	}
	w, closed := r.newWriter()
	defer closed()
	s := new(sending)
	for began := time.Now(); ; {
		s.begin(&batch{rows: block})
		s.outcomes = make([]table.Outcome, 1)
		if _, err := w.Write(s.rows, s.repeated, s.outcomes); err != nil {
			return err
		}
		switch o := s.outcomes[0]; {
		case o.Fate == table.Written:
			return nil
		case o.Fate == table.Refused || time.Since(began) > readyFor:
			return fmt.Errorf("write the first row to table %s: %s %s", r.name, o.Code, o.Message)
		}
		if !sleep(ctx, 100*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// survey refreshes the partition map until ctx ends. It ignores errors, because rows do not need a current map.
func (r *run) survey(ctx context.Context) {
	p := scan.NewPartitions(&client.Admin{Client: r.sdk, Context: ctx, RetryFor: time.Nanosecond}, r.sdk, r.name)
	p.Created = true
	wait := surveyFirst
	tick := time.NewTimer(wait)
	defer tick.Stop()
	for {
		if bounds, _, err := p.Read(time.Now()); err == nil {
			if m := partitioner.NewMap(bounds); !m.Equal(r.partitions.Load()) {
				r.partitions.Store(m)
			}
		}
		select {
		case <-tick.C:
			wait = min(2*wait, surveyEvery)
			tick.Reset(wait)
		case <-r.asked:
			if !sleep(ctx, surveyEvery/10) { // a burst of errors causes one request
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (r *run) watch(p *phase) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var finished sync.WaitGroup
	finished.Go(func() {
		tick := time.NewTicker(sayEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				at, rows, throttled := p.progress()
				r.Say.Line("%v: %.0f rows/s, %.2f %% throttled", at.Round(time.Second), float64(rows)/at.Seconds(), 100*throttled)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		finished.Wait()
	}
}

// drop deletes the table, unless it is to be kept. It has its own context, because a stopped run's contexts have ended.
func (r *run) drop() error {
	if r.Keep {
		r.Say.Line("table %s kept", r.name)
		return nil
	}
	patience := dropFor
	if r.gentle.Err() != nil {
		patience = dropIfTold
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	target := r.Client
	target.RequestTimeout = min(target.RequestTimeout, patience)
	sdk, err := client.New(ctx, target, nil)
	if err == nil {
		err = (&client.Admin{Client: sdk, Context: ctx, RetryFor: patience}).Drop(r.name)
	}
	if err != nil && !errors.Is(err, client.ErrNoTable) {
		return fmt.Errorf("%w; delete it with tsimport table drop %s --yes", err, r.name)
	}
	r.Say.Line("table %s dropped", r.name)
	return nil
}

// dropUnsure drops a table whose creation failed but may have taken effect. It never drops a table that existed before.
func (r *run) dropUnsure(created error) error {
	class := client.Classify(cause(created))
	if errors.Is(created, client.ErrTableExists) || !class.Open() {
		return created
	}
	r.Keep = false
	if err := r.drop(); err != nil {
		return fmt.Errorf("%w; the table may have been created: %v", created, err)
	}
	return created
}

func cause(err error) error {
	if e, ok := errors.AsType[*client.Error](err); ok {
		return e.Cause
	}
	return err
}
