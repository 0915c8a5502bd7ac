package pipeline

import (
	"testing"
	"time"

	"tsimport/internal/table"
	"tsimport/partitioner"
	"tsimport/ratelimit"
)

func boundsAt(keys ...string) *partitioner.Map {
	var bounds []table.Value
	for _, k := range keys {
		bounds = append(bounds, table.Value{Type: table.String, Bytes: []byte(k)})
	}
	return partitioner.NewMap(bounds)
}

// The bounds of partitions that are guessed move a little each time they are looked at.
func TestALaneWhoseBoundsMoveKeepsItsRate(t *testing.T) {
	lanes := []*lane{{tally: tally{written: 10}}, {tally: tally{written: 30}}, {tally: tally{written: 20}}}
	for _, tt := range []struct {
		to   []string
		want []int
	}{
		{[]string{"h", "p"}, []int{0, 1, 2}}, // two bounds have moved
		{[]string{"g", "r"}, []int{0, 1, 2}}, // one has moved
		{[]string{"g", "k", "p"}, []int{0, 1, 1, 2}},
		{[]string{"c"}, []int{0, 2}},
		{nil, []int{0}},
	} {
		old, m := boundsAt("g", "q"), boundsAt(tt.to...)
		over := overlaps(old, m)
		for n, want := range tt.want {
			var from []int
			for i, news := range over {
				for _, j := range news {
					if j == n {
						from = append(from, i)
					}
				}
			}
			if got := heirOf(old, m, n, from, lanes); got != lanes[want] {
				t.Errorf("%q: lane %d is the heir of %+v of %d", tt.to, n, got, from)
			}
		}
	}
	if heirOf(boundsAt(), boundsAt("g"), 0, []int{0}, []*lane{{gap: true}}) != nil {
		t.Error("a gap has an heir")
	}
}

func TestPatienceRunsOutAlthoughBoundsMove(t *testing.T) {
	now := time.Unix(1e9, 0)
	lanes := []*lane{{}, {}}
	for _, l := range lanes {
		l.pacer, l.patience = restless{}, ratelimit.Patience{For: 15 * time.Minute}
	}
	rounds, over := 0, false
	for ; !over; rounds++ {
		if rounds > 30 {
			t.Fatal("a load whose map changes each minute never gives up")
		}
		for _, l := range lanes {
			l.landed(now, now, answer{rows: 1, failed: 1, code: "OTSTimeout"}, ratelimit.Backoff{Base: 1, Max: 1})
		}
		now = now.Add(time.Minute)
		for _, l := range lanes {
			over = over || l.hopeless(now)
		}
		next := []*lane{lanes[0].child(now, 0, nil), lanes[1].child(now, 1, nil)}
		for _, l := range next {
			l.takeOver(lanes)
		}
		lanes = next
	}
	if rounds < 15 {
		t.Errorf("given up after %d minutes", rounds)
	}
	taken := &lane{trouble: trouble{patience: ratelimit.Patience{For: time.Minute}}}
	heir := &lane{}
	if heir.takeOver([]*lane{lanes[0], taken}); heir.stuck {
		t.Error("a lane that took rows does not count")
	}
}
