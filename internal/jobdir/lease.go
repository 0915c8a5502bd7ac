package jobdir

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"example.com/tsimport/internal/progress"
	"example.com/tsimport/ratelimit"
)

// Durations of leases. All processes that share a directory must use the same ones.
const (
	// Term is how long a lease is valid after its last renewal began, and how long an observer must see no change.
	Term  = 30 * time.Second
	renew = 5 * time.Second
	again = time.Second // the wait after a failed renewal
	look  = 2 * time.Second
	// releaseWithin limits the time for releasing a lease. Soon after that, another process can take it over anyway.
	releaseWithin = 10 * time.Second
)

type LeaseOptions struct {
	Owner string // name of this process in messages
	// Wait limits the wait for a lease that another process may hold. If it is below Term, only Seen lets this process
	// replace a dead holder.
	Wait time.Duration
	// Clock returns the time since the machine's boot, including sleep; nil means Uptime.
	Clock func() time.Duration
	// Seen is Look's earlier view of the lease, or nil. The time since then counts as waiting.
	Seen *Seen
	// OnWait, if not nil, is called once if another process may hold the lease.
	OnWait func(owner string)
}

// HeldError means that another process holds the lease.
type HeldError struct{ Place, Owner string }

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s is held by %s, which works on it; wait for it or stop it", e.Place, e.Owner)
}

// ErrLost is wrapped by the error of Check if another process has, or may have, taken over the lease.
var ErrLost = errors.New("another process has taken over")

// ErrLate is wrapped by the error of Check if the lease was not renewed in time. A later Check may succeed.
var ErrLate = errors.New("the lease could not be renewed in time")

// leaseFile is the content of the object lease.<epoch>. Only the holder of the lease replaces it.
type leaseFile struct {
	Version  int    `json:"version"`
	Owner    string `json:"owner"`
	Nonce    string `json:"nonce"`
	Counter  int64  `json:"counter"`
	Released bool   `json:"released,omitempty"`
	// At is the time of the put by the holder's clock. It is only displayed: clocks are never compared.
	At time.Time `json:"at,omitzero"`
	// Unsettled is Lease.Unsettled; it is set when the lease is released.
	Unsettled    bool          `json:"unsettled,omitempty"`
	UnsettledFor time.Duration `json:"unsettled_for,omitempty"` // after the release; in JSON, nanoseconds
}

const leaseVersion = 1

// Lease is held by at most one process at a time.
type Lease struct {
	Epoch int64
	// Waited means that another process held the lease when this one first looked.
	Waited bool
	// Former means that requests of an earlier holder may still be carried out, for example because it was killed.
	Former bool
	// FormerFor limits how long from now such requests of an earlier holder may be carried out; 0 means unknown.
	FormerFor time.Duration
	// Unsettled means that requests under this lease or an earlier one may still be carried out after its release.
	Unsettled bool
	// UnsettledFor limits the time of such requests after the release; 0 means unknown. It begins as FormerFor.
	UnsettledFor time.Duration

	store   Store
	clock   func() time.Duration
	file    leaseFile
	stop    context.CancelFunc
	stopped chan struct{}

	mu    sync.Mutex
	until time.Duration // time at which the lease expires, by clock
	lost  bool
}

func leaseName(epoch int64) string { return fmt.Sprintf("lease.%09d", epoch) }

// highest returns the newest lease's epoch, or 0 if there is none.
func highest(ctx context.Context, s Store) (int64, error) {
	names, err := s.List(ctx, "lease.")
	var last int64
	for _, name := range names {
		var epoch int64
		if _, err := fmt.Sscanf(name, "lease.%d", &epoch); err == nil {
			last = max(last, epoch)
		}
	}
	return last, err
}

// newest returns the newest lease's epoch and stored bytes, or 0 and nil if there is none.
func newest(ctx context.Context, s Store) (epoch int64, body []byte, err error) {
	if epoch, err = highest(ctx, s); err != nil || epoch == 0 {
		return 0, nil, err
	}
	body, err = s.Get(ctx, leaseName(epoch))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil // a newer lease has replaced it
	}
	return epoch, body, err
}

// Holder returns the holder of a directory's lease and the time, by the holder's clock, of its last renewal. The owner
// is "" if the lease was released or never taken.
func Holder(ctx context.Context, s Store) (owner string, at time.Time, err error) {
	epoch, body, err := newest(ctx, s)
	var file leaseFile
	if err == nil && epoch > 0 {
		err = json.Unmarshal(body, &file)
	}
	if err != nil || file.Released {
		return "", at, err
	}
	return file.Owner, file.At, nil
}

// Seen is the state of a directory's lease when Look read it.
type Seen struct {
	epoch int64
	body  []byte
	at    time.Duration // time of Look, by the machine's clock since boot
}

// Over reports whether Term has passed since Look read the lease. clock is as in LeaseOptions.
func (s *Seen) Over(clock func() time.Duration) bool {
	if clock == nil {
		clock = Uptime
	}
	return clock()-s.at >= Term
}

// Look reads a directory's lease for a later Acquire, so that the waits for several dead holders overlap. It returns
// nil if there is no lease.
func Look(ctx context.Context, s Store) (*Seen, error) { return Watch(ctx, s, nil, nil) }

// Watch is like Look, but returns former if the lease has not changed since. clock is as in LeaseOptions.
func Watch(ctx context.Context, s Store, former *Seen, clock func() time.Duration) (*Seen, error) {
	if clock == nil {
		clock = Uptime
	}
	epoch, body, err := newest(ctx, s)
	switch {
	case err != nil:
		return nil, refusal(s, err)
	case epoch == 0:
		return nil, nil
	case former != nil && epoch == former.epoch && bytes.Equal(body, former.body):
		return former, nil
	}
	return &Seen{epoch, body, clock()}, nil
}

// Acquire takes a directory's only lease. If another process still holds it after o.Wait, the error is a *HeldError.
// The lease is renewed until Release or Abandon is called or ctx ends.
//
// Two processes never act at once. A holder acts only until Term after it began its last renewal, and a renewal counts
// only if no later epoch existed when it ended. An observer puts the next epoch after it has seen the same object for
// Term. Then it reads that object once more: a renewal that counts ended before the next epoch was put, so the observer
// sees it and waits for Term again. Each put has new content and is never repeated, so a late put cannot restore
// content that an observer has seen before. The newest epoch is never deleted, so a slow process finds it.
func Acquire(ctx context.Context, s Store, o LeaseOptions) (*Lease, error) {
	if o.Clock == nil {
		o.Clock = Uptime
	}
	var seen []byte
	var since time.Duration
	var epoch int64
	first, waiting := o.Clock(), false
	if o.Seen != nil {
		seen, since, epoch = o.Seen.body, o.Seen.at, o.Seen.epoch
	}
	for {
		last, err := highest(ctx, s)
		if err != nil {
			return nil, refusal(s, err)
		}
		if last == 0 {
			l, err := take(ctx, s, o, 1, nil)
			if l != nil || err != nil {
				return l, err
			}
			continue
		}
		asked := o.Clock()
		body, err := s.Get(ctx, leaseName(last))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, refusal(s, err)
		}
		var file leaseFile
		if err := progress.Decode(leaseName(last), body, leaseVersion, &file, "use another place"); err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
		if last != epoch || !bytes.Equal(body, seen) {
			epoch, seen, since = last, body, o.Clock()
		}
		if file.Released || asked-since >= Term {
			l, err := take(ctx, s, o, last+1, body)
			if l != nil {
				l.Waited = waiting
			}
			if l != nil || err != nil {
				return l, err
			}
			continue
		}
		if !waiting && o.OnWait != nil {
			o.OnWait(file.Owner)
		}
		waiting = true
		if o.Clock()-first >= o.Wait {
			return nil, &HeldError{s.String(), file.Owner}
		}
		if err := ratelimit.Wait(ctx, look); err != nil {
			return nil, err
		}
	}
}

// ThisProcess names this process in messages.
func ThisProcess() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}

// take puts the lease of an epoch, given the previous one's content. It returns nil if another process was faster.
func take(ctx context.Context, s Store, o LeaseOptions, epoch int64, former []byte) (*Lease, error) {
	l := &Lease{Epoch: epoch, store: s, clock: o.Clock, stopped: make(chan struct{})}
	l.file.Owner, l.file.Version, l.file.Nonce = cmp.Or(o.Owner, ThisProcess()), leaseVersion, Nonce()
	l.file.At = time.Now().UTC()
	began := l.clock()
	body, err := json.Marshal(l.file)
	if err != nil {
		return nil, err
	}
	if err := s.PutAbsent(ctx, leaseName(epoch), body); errors.Is(err, ErrExists) {
		return nil, nil
	} else if err != nil {
		return nil, refusal(s, err)
	}
	// If this process was slow, the epoch that it put may have ended and been deleted before.
	if last, err := highest(ctx, s); err != nil {
		return nil, refusal(s, err)
	} else if last < epoch {
		if _, err := s.Get(ctx, leaseName(epoch)); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		} else if err != nil {
			return nil, refusal(s, err)
		}
		return nil, progress.Unfitf("%s does not list %s right after it was written, so two processes could do the "+
			"same work; use a place with consistent listings", s, leaseName(epoch))
	} else if last > epoch {
		return nil, nil
	}
	l.until = began + Term
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go l.renewing(renewing)
	if epoch > 1 {
		if err := l.wait(ctx, former); err != nil {
			return nil, errors.Join(err, l.Release())
		}
	}
	return l, nil
}

// wait waits until the holder of the previous epoch can no longer act.
func (l *Lease) wait(ctx context.Context, former []byte) error {
	now, err := l.store.Get(ctx, leaseName(l.Epoch-1))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return refusal(l.store, err)
	}
	var file leaseFile
	released := json.Unmarshal(now, &file) == nil && file.Released
	l.Former = !released || file.Unsettled
	if released {
		l.FormerFor = max(0, file.UnsettledFor)
	}
	l.Unsettled, l.UnsettledFor = l.Former, l.FormerFor
	if released || bytes.Equal(now, former) {
		l.forget(ctx)
		return nil
	}
	return ratelimit.Wait(ctx, Term)
}

// forget deletes leases of epochs that ended long ago. An object that it fails to delete does no harm.
func (l *Lease) forget(ctx context.Context) {
	const keep = 5
	for epoch := l.Epoch - keep; epoch > max(0, l.Epoch-2*keep); epoch-- {
		_ = l.store.Delete(ctx, leaseName(epoch))
	}
}

// Check returns nil if the process may act now. Call it before every action. An error that wraps ErrLost is final.
func (l *Lease) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.lost:
		return fmt.Errorf("%s: %w", l.store, ErrLost)
	case l.clock() >= l.until:
		return fmt.Errorf("%s: %w", l.store, ErrLate)
	}
	return nil
}

func (l *Lease) renewing(ctx context.Context) {
	defer close(l.stopped)
	for pause := renew; ratelimit.Wait(ctx, pause) == nil; {
		done, lost := l.renewOnce(ctx)
		if lost {
			return
		}
		if pause = renew; !done {
			pause = again
		}
	}
}

// renewOnce tries to renew the lease once. It reports whether it succeeded, and whether the lease is lost.
func (l *Lease) renewOnce(ctx context.Context) (done, lost bool) {
	began := l.clock()
	ctx, cancel := context.WithTimeout(ctx, longestCall)
	defer cancel()
	if l.put(ctx) != nil {
		return false, false // the last renewal is still valid for a while
	}
	last, err := highest(ctx, l.store)
	if err != nil {
		return false, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if last > l.Epoch {
		l.lost = true
		return false, true
	}
	l.until = max(l.until, began+Term)
	return true, false
}

// put writes the lease with new content, without retries.
func (l *Lease) put(ctx context.Context) error {
	l.file.Counter++
	l.file.At = time.Now().UTC()
	body, err := json.Marshal(l.file)
	if err != nil {
		return err
	}
	return once(l.store).Put(ctx, leaseName(l.Epoch), body)
}

// Release releases the lease, so that the next process need not wait. Unless Unsettled, all requests must be done.
func (l *Lease) Release() error { return l.end(true) }

// Abandon stops renewing the lease without releasing it, because requests under it may still be carried out.
func (l *Lease) Abandon() { _ = l.end(false) }

func (l *Lease) end(release bool) error {
	if l == nil {
		return nil
	}
	l.stop()
	<-l.stopped
	l.mu.Lock()
	over := l.lost || l.until == 0
	l.until = 0
	l.mu.Unlock()
	if over || !release {
		return nil
	}
	l.file.Released, l.file.Unsettled, l.file.UnsettledFor = true, l.Unsettled, l.UnsettledFor
	ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
	defer cancel()
	for {
		err := l.put(ctx)
		if err == nil {
			return nil
		}
		if !passing(err) || ratelimit.Wait(ctx, again) != nil {
			return fmt.Errorf("release the lease of %s: %w", l.store, err)
		}
	}
}
