package knownfiles

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/reader/input"
)

var (
	nightRounds = flag.Int("night-rounds", 1, "rounds of 30 simulated nights")
	nightSeed   = flag.Uint64("night-seed", 1, "first seed of them")
)

// nights is a place into which files are delivered, and a table that pods load them into. A file is lines of a key and a value.
type nights struct {
	t     *testing.T
	dir   string
	store jobdir.Store
	clock func() time.Duration
	r     *rand.Rand

	mu      sync.Mutex
	table   map[string]string // rows
	times   map[string]int    // how often each content was loaded whole
	acting  int               // pods that send now
	kills   int
	half    map[string]int // the night, from 1, in which a file was half written
	resumed []string       // what the run that did not finish has chosen
}

func (n *nights) intn(below int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.r.IntN(below)
}

// errDied ends a pod.
var errDied = errors.New("the pod was killed")

// pod loads what is new, and is perhaps killed on the way: then it keeps its lease and its run unfinished.
func (n *nights) pod(ctx context.Context, die int) {
	ledgerStore := jobdir.Below(n.store, "known")
	lease, err := jobdir.Acquire(ctx, ledgerStore, jobdir.LeaseOptions{Clock: n.clock, Wait: 10 * time.Minute})
	if err != nil {
		n.t.Error(err)
		return
	}
	step := 0
	err = n.load(ctx, ledgerStore, lease, func() error { // between any two things that a pod does
		if step++; step == die {
			return errDied
		}
		return nil
	})
	if err == errDied {
		lease.Abandon()
		n.mu.Lock()
		n.kills++
		n.mu.Unlock()
	} else if err := errors.Join(err, lease.Release()); err != nil {
		n.t.Error(err)
	}
}

func (n *nights) load(ctx context.Context, store jobdir.Store, lease *jobdir.Lease, dies func() error) error {
	ledger, err := Open(ctx, store)
	if err != nil {
		return err
	}
	s := NewSelector(ledger, Options{ReloadChanged: true, Settle: 2 * time.Minute, Order: OrderTime, Job: "job"})
	set, err := input.Expand(ctx, []string{n.dir}, input.Options{})
	if err != nil {
		return err
	}
	n.mu.Lock()
	earlier := n.resumed
	n.mu.Unlock()
	chosen, _, err := s.Select(ctx, set.Items, 1, earlier, nil)
	if err != nil {
		return err
	}
	if len(chosen) == 0 {
		return s.NothingNew(ctx, nil)
	}
	if err := dies(); err != nil {
		return err
	}
	if err := s.Begin(ctx, 1, "run"); err != nil {
		return err
	}
	n.mu.Lock()
	n.resumed = []string{} // the checkpoint, by which the next pod resumes
	for _, i := range chosen {
		n.resumed = append(n.resumed, i.Name)
	}
	n.mu.Unlock()
	for _, i := range chosen {
		if err := dies(); err != nil {
			return err
		}
		if err := lease.Check(); err != nil {
			return err
		}
		n.send(ctx, i)
		time.Sleep(time.Duration(n.intn(20)) * time.Second)
	}
	if err := dies(); err != nil {
		return err
	}
	if err := s.Loaded(ctx, nil); err != nil {
		return err
	}
	if err := dies(); err != nil { // the checkpoint is still there: the same load finishes again
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range ledger.Files() {
		if f.SameAs == "" && slices.Contains(n.resumed, f.Name) {
			n.times[f.Hash]++
		}
	}
	n.resumed = nil
	return nil
}

// send writes the rows of an input.
func (n *nights) send(ctx context.Context, i input.Item) {
	r, err := i.Open(ctx)
	if err != nil {
		n.t.Error(err)
		return
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		n.t.Error(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.acting++; n.acting > 1 {
		n.t.Error("two pods send at the same time")
	}
	n.apply(n.table, string(text))
	n.acting--
}

func (n *nights) apply(table map[string]string, text string) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		table[key] = value
	}
}

// write delivers a file as of a time.
func (n *nights) write(name, text string, at time.Time) {
	full := filepath.Join(n.dir, name)
	must(n.t, errors.Join(os.WriteFile(full, []byte(text), 0o600), os.Chtimes(full, at, at)))
}

// TestThirtyNights delivers files late, twice, under other names, changed and half written, to pods that overlap and are killed.
// In the end the table is what one load of the final files, in the order of their times, makes of it.
func TestThirtyNights(t *testing.T) {
	kills := 0
	for round := range *nightRounds {
		seed := *nightSeed + uint64(round)
		synctest.Test(t, func(t *testing.T) {
			store, err := jobdir.Open(t.Context(), t.TempDir(), jobdir.Options{})
			must(t, err)
			start := time.Now()
			n := &nights{t: t, dir: t.TempDir(), store: store, clock: func() time.Duration { return time.Since(start) },
				r: rand.New(rand.NewPCG(seed, 0)), table: map[string]string{}, half: map[string]int{}, times: map[string]int{}}
			text := map[string]string{} // content by name
			for night := range 30 {
				for range 1 + n.intn(3) {
					n.deliver(night, text)
				}
				n.night(t.Context())
			}
			for range 3 { // until nobody is killed any more
				time.Sleep(time.Hour)
				n.pod(t.Context(), 0)
			}
			want := map[string]string{}
			for _, name := range slices.Sorted(maps.Keys(text)) {
				n.apply(want, text[name])
			}
			if !maps.Equal(n.table, want) {
				t.Errorf("seed %d: the table has %d rows, one load makes %d", seed, len(n.table), len(want))
			}
			for hash, times := range n.times {
				if times > 1 {
					t.Errorf("seed %d: content %s was loaded %d times", seed, hash[:8], times)
				}
			}
			kills += n.kills
		})
	}
	t.Logf("%d kills", kills)
	if kills < *nightRounds {
		t.Errorf("%d kills in %d rounds: the test shows nothing", kills, *nightRounds)
	}
}

// deliver does one of the things that happen to deliveries.
func (n *nights) deliver(night int, text map[string]string) {
	now := time.Now()
	names := slices.Sorted(maps.Keys(text))
	name := fmt.Sprintf("n%02d-%d", night, n.intn(1000))
	if _, there := text[name]; there {
		return
	}
	content := fmt.Sprintf("%s-a %d\n%s-b %d\n", name, n.intn(100), name, n.intn(100))
	known := ""
	if len(names) > 0 {
		known = names[n.intn(len(names))]
		if n.half[known] == night+1 {
			known = "" // its writer is not done
		}
	}
	copied := slices.ContainsFunc(names, func(other string) bool { return other != known && text[other] == text[known] })
	switch what := n.intn(6); {
	case known == "" || what == 0: // late: the file is days old
		text[name] = content
		n.write(name, content, now.Add(-72*time.Hour))
	case what == 1: // again, with a new time
		n.write(known, text[known], now)
	case what == 2: // a copy under another name
		n.write("copy-"+name, text[known], now)
		text["copy-"+name] = text[known]
	case what == 3: // half written when the pods of this night look
		n.write(name, content[:len(content)/2], now)
		go func() {
			time.Sleep(5 * time.Hour)
			n.write(name, content, time.Now())
		}()
		text[name] = content
		n.half[name] = night + 1
	case what == 4 && !strings.HasPrefix(known, "copy-") && !copied: // changed
		content = strings.ReplaceAll(text[known], " ", " 1")
		text[known] = content
		n.write(known, content, now.Add(-10*time.Minute))
	default:
		text[name] = content
		n.write(name, content, now)
	}
}

// night runs pods that overlap, some of which are killed.
func (n *nights) night(ctx context.Context) {
	time.Sleep(time.Minute) // what was delivered just now may be half written
	var pods sync.WaitGroup
	for range 1 + n.intn(3) {
		die := 0
		if n.intn(2) == 0 {
			die = 1 + n.intn(6)
		}
		pods.Go(func() { n.pod(ctx, die) })
		time.Sleep(time.Duration(n.intn(60)) * time.Second)
	}
	pods.Wait()
	time.Sleep(24*time.Hour - time.Duration(n.intn(3600))*time.Second)
}
