package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// drawn counts what loads of a random test have drawn and done: a test of everything says nothing of what it never draws.
type drawn struct {
	mu    sync.Mutex
	loads map[string]int
}

func (d *drawn) count(what string, is bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.loads == nil {
		d.loads = map[string]int{}
	}
	if d.loads[what] += 0; is {
		d.loads[what]++
	}
}

// check prints the counts, and fails for what fewer loads than least had.
func (d *drawn) check(t *testing.T, least int) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for what, n := range d.loads {
		all = append(all, fmt.Sprintf("%s: %d", what, n))
		if n < least {
			t.Errorf("%d loads had: %s", n, what)
		}
	}
	slices.Sort(all)
	t.Logf("loads that had\n  %s", strings.Join(all, "\n  "))
}

// seeds are those that a flag asks for, from 1 on, or those given, which together draw everything.
func seeds(n int, these ...uint64) []uint64 {
	if n == 0 {
		return these[:few(len(these))]
	}
	var all []uint64
	for seed := range uint64(n) {
		all = append(all, seed+1)
	}
	return all
}

// few is how many of n seeds are run: one with -short, which is for the race detector.
func few(n int) int {
	if testing.Short() {
		return min(n, 1)
	}
	return n
}
