package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/ratelimit"
)

// DefaultInterval is the service's minimum time between changes of a table's reserved throughput.
const DefaultInterval = client.ThroughputInterval

// Clock is the clock that paces changes.
type Clock struct {
	Now func() time.Time
	// Wait waits for a duration. If the context ends first, it returns the cause.
	Wait func(context.Context, time.Duration) error
}

var SystemClock = Clock{Now: time.Now, Wait: ratelimit.Wait}

// Pace controls the execution of a plan.
type Pace struct {
	Interval time.Duration // between changes of a table's throughput; 0 means DefaultInterval, negative no wait
	Clock    Clock         // the zero Clock means SystemClock
	Say      words.Say     // receives progress; may be nil
	RetryFor time.Duration // how long a page of a table is retried; 0 means client.Patience
}

// Run carries out a plan and records the results in its items. A table that cannot be changed does not stop the others.
// The error is the context's cause or an error that stops every item. Unfinished items remain Planned.
//
// Run changes options first, because they may change at any time, and then throughput when each change is due. It
// retires expired tables while it waits.
func (p *Plan) Run(ctx context.Context, pace Pace) (err error) {
	r := &runner{Plan: p, Pace: pace}
	r.Interval = cmp.Or(r.Interval, DefaultInterval)
	if r.Clock.Now == nil {
		r.Clock = SystemClock
	}
	if p.Archive != nil {
		r.lock = sync.OnceValue(func() error { return p.Archive.Lock(ctx) })
		defer func() { err = errors.Join(err, p.Archive.Close()) }()
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	for len(r.waiting) > 0 || len(r.expired) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		next := r.next()
		switch {
		case next != nil && !r.Clock.Now().Before(next.due):
			err = r.reserve(ctx, next)
		case len(r.expired) > 0:
			item := r.expired[0]
			r.expired = r.expired[1:]
			err = r.settle(ctx, item, r.retire(ctx, item))
		default:
			err = r.wait(ctx, next)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type runner struct {
	*Plan
	Pace
	waiting []*turn
	expired []*Item
	lock    func() error // locks the archive once
}

// turn is a throughput change that is not done yet.
type turn struct {
	item     *Item
	due      time.Time
	refusals int
}

// begin changes options, and determines when each throughput change is due.
func (r *runner) begin(ctx context.Context) error {
	for _, item := range r.Items {
		if item.State != Planned {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if item.Expired() {
			r.expired = append(r.expired, item)
			continue
		}
		var err error
		if item.Options() {
			if err = r.Admin.SetOptions(item.Have.Name, item.Want.TTL, item.Want.MaxVersions); err == nil {
				r.Say.Line("table %s: ttl %d, max versions %d", item.Have.Name, item.Want.TTL, item.Want.MaxVersions)
			}
		}
		if err == nil && item.Reserves() {
			t := &turn{item: item}
			if t.due, err = r.dueOf(item); err == nil {
				r.waiting = append(r.waiting, t)
				continue
			}
		}
		if err := r.settle(ctx, item, err); err != nil {
			return err
		}
	}
	return nil
}

// settle records the end of an item. It returns an error only if the error stops all items.
func (r *runner) settle(ctx context.Context, item *Item, err error) error {
	if err == nil {
		item.State = Done
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if hopeless(err) {
		return err
	}
	item.State, item.Err = Failed, err
	r.Say.Line("%v", err)
	return nil
}

// hopeless reports whether an error means that no table can be changed: the service is unreachable or refuses the key.
func hopeless(err error) bool {
	var ots *tablestore.OtsError
	var dial *net.OpError
	return errors.As(err, &ots) && ots.Code == "OTSAuthFailed" || errors.As(err, &dial) && dial.Op == "dial"
}

func (r *runner) dueOf(item *Item) (time.Time, error) {
	if r.Interval < 0 {
		return time.Time{}, nil
	}
	return r.Admin.Changeable(item.Have.Name, r.Interval, r.Clock.Now())
}

// next returns the change with the earliest due time, of several that of the oldest period, or nil if there is none.
func (r *runner) next() *turn {
	if len(r.waiting) == 0 {
		return nil
	}
	return slices.MinFunc(r.waiting, func(a, b *turn) int { return a.due.Compare(b.due) })
}

// reserve changes a table's throughput, or postpones the change if the service refuses it as too early.
func (r *runner) reserve(ctx context.Context, t *turn) error {
	item := t.item
	err := r.Admin.Reserve(item.Have.Name, item.Want.Read, item.Want.Write)
	if errors.Is(err, client.ErrTooFrequent) {
		t.refusals++
		var already bool
		if already, err = r.putOff(t); err == nil && !already {
			return nil
		}
	}
	r.waiting = slices.DeleteFunc(r.waiting, func(o *turn) bool { return o == t })
	if err == nil {
		r.Say.Line("table %s: reserved throughput %d read, %d write", item.Have.Name, item.Want.Read, item.Want.Write)
	}
	return r.settle(ctx, item, err)
}

// putOff determines when to try again. already means that the change has been applied, as after a lost response.
func (r *runner) putOff(t *turn) (already bool, err error) {
	name := t.item.Have.Name
	now, err := r.Admin.Describe(name)
	if err != nil {
		return false, err
	}
	if now.ReservedRead == t.item.Want.Read && now.ReservedWrite == t.item.Want.Write {
		return true, nil
	}
	if t.refusals >= client.MaxPostponed {
		return false,
			fmt.Errorf(
				"change table %s: %w, refused %d times in a row; stop other changes of it, or raise --throughput-interval",
				name, client.ErrTooFrequent, t.refusals)
	}
	if r.Interval < 0 {
		t.due = r.Clock.Now()
		return false, nil
	}
	t.due, err = r.Admin.Postponed(name, r.Interval, r.Clock.Now(), t.refusals)
	return false, err
}

// maxWait is the longest wait between two messages.
const maxWait = 30 * time.Second

func (r *runner) wait(ctx context.Context, next *turn) error {
	left := next.due.Sub(r.Clock.Now())
	r.Say.Line("waiting %v until the throughput of table %s may be changed (once in %v); %d tables to go",
		left.Round(100*time.Millisecond), next.item.Have.Name, r.Interval, len(r.waiting))
	return r.Clock.Wait(ctx, min(left, maxWait))
}
