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

// DefaultInterval is how long the service wants a table's reserved throughput to stay as it was changed.
const DefaultInterval = client.ThroughputInterval

// Clock is the time that changes are paced by.
type Clock struct {
	Now func() time.Time
	// Wait returns after a time, or earlier with the cause why the context has ended.
	Wait func(context.Context, time.Duration) error
}

// SystemClock is the clock on the wall.
var SystemClock = Clock{Now: time.Now, Wait: ratelimit.Wait}

// Pace says how a plan is carried out.
type Pace struct {
	Interval time.Duration // between two changes of a table's throughput; 0 is DefaultInterval, less is none
	Clock    Clock         // the zero Clock is SystemClock
	Say      words.Say     // is told what happens as it happens; nil is nobody
	RetryFor time.Duration // of a page of a table that is read; 0 is client.Patience
}

// Run carries a plan out and notes in its items what happened to them. A table that cannot be changed does not keep the
// others from it. The error is the cause why the context has ended, or an error after which nothing would succeed; what
// is not done then is Planned still, and is found again by the next Look.
//
// Options of tables come first: they may change at any time. Then throughput, table by table as each is due; and while
// none is, expired tables are exported and dropped.
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

// runner is a plan that is being carried out.
type runner struct {
	*Plan
	Pace
	waiting []*turn
	expired []*Item
	lock    func() error // of the archive, once
}

// turn is a table whose throughput is to change.
type turn struct {
	item     *Item
	due      time.Time
	refusals int
}

// begin changes options and finds out when each throughput is due.
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

// settle notes the end of an item. It returns an error only if the others would meet it too.
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

// hopeless reports whether no table can be changed: there is nobody to ask, or the key is not accepted. A permission may
// be one for some tables.
func hopeless(err error) bool {
	var ots *tablestore.OtsError
	var dial *net.OpError
	return errors.As(err, &ots) && ots.Code == "OTSAuthFailed" || errors.As(err, &dial) && dial.Op == "dial"
}

// dueOf is when a table's throughput may be changed.
func (r *runner) dueOf(item *Item) (time.Time, error) {
	if r.Interval < 0 {
		return time.Time{}, nil
	}
	return r.Admin.Changeable(item.Have.Name, r.Interval, r.Clock.Now())
}

// next is the table that is due first, the older period first; nil without any.
func (r *runner) next() *turn {
	if len(r.waiting) == 0 {
		return nil
	}
	return slices.MinFunc(r.waiting, func(a, b *turn) int { return a.due.Compare(b.due) })
}

// reserve changes a table's throughput, or puts it off if the service says that it is too soon.
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

// putOff finds out when to try again. A change that was applied although its answer was lost is refused when it is tried
// again; then the table has what it should already.
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
		return false, fmt.Errorf("change table %s: %w, refused %d times in a row; see who else changes it, or give a longer --throughput-interval",
			name, client.ErrTooFrequent, t.refusals)
	}
	if r.Interval < 0 {
		t.due = r.Clock.Now()
		return false, nil
	}
	t.due, err = r.Admin.Postponed(name, r.Interval, r.Clock.Now(), t.refusals)
	return false, err
}

// maxWait is how long a wait continues without a line about it.
const maxWait = 30 * time.Second

func (r *runner) wait(ctx context.Context, next *turn) error {
	left := next.due.Sub(r.Clock.Now())
	r.Say.Line("waiting %v until the throughput of table %s may be changed (once in %v); %d tables to go",
		left.Round(100*time.Millisecond), next.item.Have.Name, r.Interval, len(r.waiting))
	return r.Clock.Wait(ctx, min(left, maxWait))
}
