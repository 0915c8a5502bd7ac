package model

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/tsimport/internal/conformance"
)

var histories = flag.Int("histories", 150, "short concurrent histories that are checked for an order that explains them")

var lone = []KeyColumn{{Name: "k", Type: Integer}}

func loneKey(k int64) Key { return Key{{"k", k}} }

func openConcurrent(t *testing.T, dir string) *engine {
	t.Helper()
	e := &engine{dir: dir, clock: newClock()}
	e.open(t)
	t.Cleanup(func() { e.close(t) })
	conformance.MustEqual(t, e.createTable("t", lone, Options{TTL: -1, MaxVersions: 2, Deviation: 86400}, nil, nil), nil, "refusal")
	return e
}

// TestConcurrentClientsSeeTheirOwnRowsAsTheModelDoes gives each client rows of its own, among those of others.
func TestConcurrentClientsSeeTheirOwnRowsAsTheModelDoes(t *testing.T) {
	e := openConcurrent(t, t.TempDir())
	const clients, steps = 6, 150
	now := e.clock.millis.Load()
	var all sync.WaitGroup
	for client := range int64(clients) {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(client)))
			m := New()
			m.CreateTable("t", lone, Options{TTL: -1, MaxVersions: 2, Deviation: 86400})
			for range steps {
				key := loneKey(client + clients*rng.Int64N(3)) // neighbours belong to others
				c := randomChange(rng, key)
				got, want := e.writeRow(&c), m.WriteRow(c, now)
				if !explains(want, got) {
					t.Errorf("client %d, %+v: got %+v, want %+v", client, c, got, want)
				}
				s := &Selection{MaxVersions: 2}
				if got, want := e.getRow("t", key, s), m.GetRow("t", key, s, now); !explains(want, got) {
					t.Errorf("client %d: got %+v, want %+v", client, got, want)
				}
			}
		})
	}
	all.Wait()
}

func randomChange(rng *rand.Rand, key Key) Change {
	c := Change{Table: "t", Key: key, Expect: Existence(rng.IntN(5) % 3), Kind: RowKind(1 + rng.IntN(3))}
	name := string(rune('a' + rng.IntN(2)))
	switch c.Kind {
	case PutRow:
		c.Ops = []Op{{Name: name, Value: rng.Int64N(100)}}
	case UpdateRow:
		c.Ops = []Op{{Kind: Increment, Name: name, Value: 1 + rng.Int64N(9)}}
		if rng.IntN(3) == 0 {
			c.Ops = []Op{{Kind: DeleteColumn, Name: name}}
		} else {
			c.ReturnColumns = []string{name}
		}
	}
	return c
}

// explains says whether an answer is the model's. The SDK drops the key of what an update returns.
func explains(want, got Outcome) bool {
	if want.Refusal != nil || got.Refusal != nil {
		return want.Refusal != nil && got.Refusal != nil && want.Refusal.Code == got.Refusal.Code
	}
	if want.Row != nil && got.Row != nil && got.Row.Key == nil {
		got.Row.Key = want.Row.Key
	}
	return want.Read == got.Read && want.Write == got.Write && fmt.Sprint(rowText(want.Row)) == fmt.Sprint(rowText(got.Row))
}

func rowText(r *Row) string {
	if r == nil {
		return "none"
	}
	return fmt.Sprint(r.Key, r.Cells)
}

// event is one request of a history with the span of time in which it can have taken effect.
type event struct {
	change   *Change // nil is a read
	got      Outcome
	from, to int64
}

// TestShortHistoriesOfOneRowAreLinear lets three clients work on one row at the same time, and looks for an order of
// their requests, each within the time between its sending and its answer, in which the model gives the same answers.
func TestShortHistoriesOfOneRowAreLinear(t *testing.T) {
	e := openConcurrent(t, "")
	now := e.clock.millis.Load()
	overlapping := 0
	for h := range int64(*histories) {
		history := runHistory(e, loneKey(h), uint64(h), h%2 == 0)
		for i, a := range history {
			for _, b := range history[:i] {
				if a.from < b.to && b.from < a.to {
					overlapping++
				}
			}
		}
		m := New()
		m.CreateTable("t", lone, Options{TTL: -1, MaxVersions: 2, Deviation: 86400})
		if !linear(m.Tables["t"].rows, history, make([]bool, len(history)), loneKey(h), now) {
			for _, ev := range history {
				t.Logf("%d…%d %+v: %+v", ev.from, ev.to, ev.change, ev.got)
			}
			t.Fatalf("history %d has no order that explains it", h)
		}
	}
	if overlapping == 0 {
		t.Error("no two requests overlapped: the test has tried nothing")
	}
}

func TestAHistoryThatHasNoOrderIsNoticed(t *testing.T) {
	key := loneKey(1)
	put := func(v int64) *Change {
		return &Change{Table: "t", Kind: PutRow, Key: key, Ops: []Op{{Name: "a", Value: v}}}
	}
	read := func(v int64) Outcome { return Outcome{Read: 1, Row: &Row{key, []Cell{{"a", v, 5}}}} }
	wrote := Outcome{Write: 1}
	for name, h := range map[string]struct {
		history []event
		want    bool
	}{
		"one after the other":       {[]event{{put(1), wrote, 1, 2}, {nil, read(1), 3, 4}}, true},
		"a read before its write":   {[]event{{nil, read(1), 1, 2}, {put(1), wrote, 3, 4}}, false},
		"a read during its write":   {[]event{{nil, read(1), 1, 3}, {put(1), wrote, 2, 4}}, true},
		"a read of what is past":    {[]event{{put(1), wrote, 1, 2}, {put(2), wrote, 3, 4}, {nil, read(1), 5, 6}}, false},
		"two reads in wrong orders": {[]event{{put(1), wrote, 1, 2}, {put(2), wrote, 3, 10}, {nil, read(2), 4, 5}, {nil, read(1), 6, 7}}, false},
	} {
		conformance.Equal(t, linear(nil, h.history, make([]bool, len(h.history)), key, 5), h.want, "%s", name)
	}
}

// runHistory lets the clients send their requests as fast as they can, or together: each waits until all have begun one.
// With one processor, requests overlap only by chance if nobody waits.
func runHistory(e *engine, key Key, seed uint64, together bool) []event {
	const clients, each = 3, 3
	var begun [each]sync.WaitGroup
	for i := range begun {
		begun[i].Add(clients)
	}
	history := make([]event, clients*each)
	var tick atomic.Int64
	var all sync.WaitGroup
	start := make(chan struct{})
	for client := range clients {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(client)))
			<-start
			for i := range each {
				ev := &history[client*each+i]
				if rng.IntN(3) > 0 {
					c := randomChange(rng, key)
					ev.change = &c
				}
				ev.from = tick.Add(1)
				begun[i].Done()
				if together {
					begun[i].Wait()
				}
				if ev.change == nil {
					ev.got = e.getRow("t", key, &Selection{MaxVersions: 2})
				} else {
					ev.got = e.writeRow(ev.change)
				}
				ev.to = tick.Add(1)
			}
		})
	}
	close(start)
	all.Wait()
	return history
}

// linear tries every order that respects time: next may come anything that began before the first end of those left.
func linear(rows []*row, history []event, done []bool, key Key, now int64) bool {
	firstEnd := int64(-1)
	for i, ev := range history {
		if !done[i] && (firstEnd < 0 || ev.to < firstEnd) {
			firstEnd = ev.to
		}
	}
	if firstEnd < 0 {
		return true
	}
	for i := range history {
		ev := &history[i]
		if done[i] || ev.from > firstEnd {
			continue
		}
		m := New()
		m.Tables["t"] = &Table{Key: lone, Options: Options{TTL: -1, MaxVersions: 2, Deviation: 86400}, rows: copyRows(rows)}
		var want Outcome
		if ev.change == nil {
			want = m.GetRow("t", key, &Selection{MaxVersions: 2}, now)
		} else {
			want = m.WriteRow(*ev.change, now)
		}
		if !explains(want, ev.got) {
			continue
		}
		done[i] = true
		if linear(m.Tables["t"].rows, history, done, key, now) {
			return true
		}
		done[i] = false
	}
	return false
}
