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

// Terms of leases. They must be the same in all processes that share a directory.
const (
	// Term is how long a lease holds after its holder began to renew it, and how long an observer must see no change.
	Term  = 30 * time.Second
	renew = 5 * time.Second
	again = time.Second // after a renewal that failed
	look  = 2 * time.Second
	// releaseWithin limits the time to release a lease: soon after that another process takes it over anyway.
	releaseWithin = 10 * time.Second
)

type LeaseOptions struct {
	Owner string // for messages
	// Wait is how long to wait for a lease that another process may hold; below Term, a dead one's is never taken.
	Wait time.Duration
	// Clock counts from the machine's boot, including sleep; nil is that clock.
	Clock func() time.Duration
	// Seen is Look's earlier view of the lease, or nil. The time since then counts.
	Seen *Seen
	// OnWait is called once if another process may hold the lease. May be nil.
	OnWait func(owner string)
}

// HeldError says that another process holds the lease.
type HeldError struct{ Place, Owner string }

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s is held by %s, which works on it; wait for it or stop it", e.Place, e.Owner)
}

// ErrLost is in the chain of Check's error if the lease was, or may have been, taken over.
var ErrLost = errors.New("another process has taken over")

// ErrLate is Check's error while the lease could not be renewed for too long. It may come back.
var ErrLate = errors.New("the lease could not be renewed in time")

// leaseFile is an object lease.<epoch>. Only its holder replaces it.
type leaseFile struct {
	Version  int    `json:"version"`
	Owner    string `json:"owner"`
	Nonce    string `json:"nonce"`
	Counter  int64  `json:"counter"`
	Released bool   `json:"released,omitempty"`
	// At is when it was put, by the clock of the holder's machine: for users, as clocks are not compared.
	At time.Time `json:"at,omitzero"`
	// Unsettled is as in Lease, for a released one.
	Unsettled    bool          `json:"unsettled,omitempty"`
	UnsettledFor time.Duration `json:"unsettled_for,omitempty"` // nanoseconds from when it was given back
}

const leaseVersion = 1

// Lease is held by at most one process at a time.
type Lease struct {
	Epoch int64
	// Former means that an earlier holder may not have released the lease: its requests may still be carried out.
	Former bool
	// FormerFor is for how long from now; 0 is unknown.
	FormerFor time.Duration
	// Unsettled means that requests under this lease or an earlier one may still be carried out after its release.
	Unsettled bool
	// UnsettledFor is for how long after the holder's last request; 0 is unknown. It begins as FormerFor.
	UnsettledFor time.Duration

	store   Store
	clock   func() time.Duration
	file    leaseFile
	stop    context.CancelFunc
	stopped chan struct{}

	mu    sync.Mutex
	until time.Duration // by clock
	lost  bool
}

func leaseName(epoch int64) string { return fmt.Sprintf("lease.%09d", epoch) }

// highest returns the newest epoch, 0 if there is none.
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

// newest returns the newest epoch and its stored lease; 0 if there is none.
func newest(ctx context.Context, s Store) (epoch int64, body []byte, err error) {
	if epoch, err = highest(ctx, s); err != nil || epoch == 0 {
		return 0, nil, err
	}
	body, err = s.Get(ctx, leaseName(epoch))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil // a newer one has come
	}
	return epoch, body, err
}

// Holder returns the holder of a directory's lease, or the killed one, and its last sign of life by its own clock.
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

// Seen is a directory's lease at a moment.
type Seen struct {
	epoch int64
	body  []byte
	at    time.Duration // by the clock of this machine
}

// Over reports whether the lease was unchanged for Term: Acquire takes it unless renewed. clock is as in LeaseOptions.
func (s *Seen) Over(clock func() time.Duration) bool {
	if clock == nil {
		clock = Uptime
	}
	return clock()-s.at >= Term
}

// Look looks at a directory's lease, for a later Acquire of this process: waits for several dead holders overlap.
func Look(ctx context.Context, s Store) (*Seen, error) { return lookBy(ctx, s, Uptime) }

// Watch is Look for a process that looks repeatedly: it returns former if nothing changed. clock is as in LeaseOptions.
func Watch(ctx context.Context, s Store, former *Seen, clock func() time.Duration) (*Seen, error) {
	if clock == nil {
		clock = Uptime
	}
	now, err := lookBy(ctx, s, clock)
	if err == nil && now != nil && former != nil && now.epoch == former.epoch && bytes.Equal(now.body, former.body) {
		return former, nil
	}
	return now, err
}

func lookBy(ctx context.Context, s Store, clock func() time.Duration) (*Seen, error) {
	epoch, body, err := newest(ctx, s)
	if err != nil {
		return nil, refusal(s, err)
	}
	if epoch == 0 {
		return nil, nil
	}
	return &Seen{epoch, body, clock()}, nil
}

// Acquire takes a directory's only lease. It waits as in the options while another process holds it, and returns a
// *HeldError then. The lease is renewed until Release, or until ctx ends.
//
// Why two never act at a time. A holder acts only until Term after it began its last renewal, and a renewal counts only
// if no later epoch was there once it was done. An observer puts the next epoch when it has seen the same object for
// Term. Then it reads that object once more: a renewal that counts was done before the next epoch was put, so it is
// seen now, and the observer waits for Term again. Each put has its own content, and none is repeated: a late put
// cannot bring back what an observer has seen before. The newest epoch is never deleted, so a slow process finds it.
func Acquire(ctx context.Context, s Store, o LeaseOptions) (*Lease, error) {
	if o.Clock == nil {
		o.Clock = Uptime
	}
	var (
		seen    []byte
		since   time.Duration
		epoch   int64
		first   = o.Clock()
		waiting bool
	)
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
		if err := progress.Decode(leaseName(last), body, leaseVersion, &file, "take another place"); err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
		if last != epoch || !bytes.Equal(body, seen) {
			epoch, seen, since = last, body, o.Clock()
		}
		if file.Released || asked-since >= Term {
			l, err := take(ctx, s, o, last+1, body)
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

// take puts the lease of an epoch, after former's. It returns nil if another process was faster.
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
	// A slow process may have put an epoch that was over and deleted.
	if last, err := highest(ctx, s); err != nil {
		return nil, refusal(s, err)
	} else if last < epoch {
		if _, err := s.Get(ctx, leaseName(epoch)); errors.Is(err, fs.ErrNotExist) {
			return nil, nil // deleted when it had ended
		} else if err != nil {
			return nil, refusal(s, err)
		}
		return nil, progress.Unfitf("%s does not list %s at once, which was put there: two processes could work on the "+
			"same; take a place that lists what it has", s, leaseName(epoch))
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

// wait waits until the holder of the epoch before no longer acts.
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

// forget deletes leases of epochs that are long over. Leftovers do no harm.
func (l *Lease) forget(ctx context.Context) {
	const keep = 5
	for epoch := l.Epoch - keep; epoch > max(0, l.Epoch-2*keep); epoch-- {
		_ = l.store.Delete(ctx, leaseName(epoch))
	}
}

// Check returns nil if the process may act now. Call it before every act; an error with ErrLost in its chain is final.
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

// renewOnce renews the lease, and reports whether it did and whether the lease is lost.
func (l *Lease) renewOnce(ctx context.Context) (done, lost bool) {
	began := l.clock()
	ctx, cancel := context.WithTimeout(ctx, longestCall)
	defer cancel()
	if l.put(ctx) != nil {
		return false, false // the last renewal still counts, for a while
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

// put puts the lease once, with a new content.
func (l *Lease) put(ctx context.Context) error {
	l.file.Counter++
	l.file.At = time.Now().UTC()
	body, err := json.Marshal(l.file)
	if err != nil {
		return err
	}
	return once(l.store).Put(ctx, leaseName(l.Epoch), body)
}

// Release releases the lease: all requests under it are done, so the next process need not wait.
func (l *Lease) Release() error { return l.end(true) }

// Abandon stops renewing without releasing the lease: requests under it may still be carried out.
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
			return fmt.Errorf("give back the lease of %s: %w", l.store, err)
		}
	}
}
