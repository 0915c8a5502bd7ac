package sendwindow

import (
	"container/heap"
	"fmt"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

// way is a link with a service at its end, in virtual time. Requests pass one after the other, at the link's rate.
type way struct {
	rate    func(at time.Duration) float64 // bytes per second
	trip    time.Duration
	service time.Duration // time that the service takes for a request, concurrently with others
	room    int           // maximum requests in flight
	row     int           // bytes of a row; a request has at least one
	most    int           // maximum bytes of a request
	lost    func(at time.Duration) bool
}

const timeout = 30 * time.Second

type landing struct {
	at, sent time.Duration
	mark     Mark
	bytes    int
	lost     bool
}

type landings []landing

func (l landings) Len() int           { return len(l) }
func (l landings) Less(i, j int) bool { return l[i].at < l[j].at }
func (l landings) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *landings) Push(x any)        { *l = append(*l, x.(landing)) }
func (l *landings) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// run sends until end. It returns the bytes that arrived after begin, and the longest time that a request took since.
func (y *way) run(w *Window, begin, end time.Duration) (arrived int, longest time.Duration) {
	start := time.Unix(1_800_000_000, 0)
	var flying landings
	var now, free time.Duration
	for now < end {
		for len(flying) < y.room && w.Open(start.Add(now)) {
			bytes := max(min(w.RequestBytes(y.room), y.most)/y.row, 1) * y.row
			free = max(free, now) + time.Duration(float64(bytes)/y.rate(max(free, now))*float64(time.Second))
			l := landing{at: free + y.trip + y.service, sent: now, bytes: bytes, mark: w.Sent(start.Add(now), bytes)}
			if y.lost != nil && y.lost(now) {
				l.lost, l.at = true, now+timeout
			}
			heap.Push(&flying, l)
		}
		l := heap.Pop(&flying).(landing)
		now = l.at
		w.Landed(start.Add(now), l.mark, !l.lost)
		if now >= begin && !l.lost {
			longest = max(longest, now-l.sent)
			if now < end {
				arrived += l.bytes
			}
		}
	}
	return arrived, longest
}

func steady(rate float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return rate }
}

func TestWindowFillsLinkWithShortRequests(t *testing.T) {
	for _, mbit := range []float64{0.5, 3.2, 10, 100, 1000} {
		for _, trip := range []time.Duration{0, 200 * time.Millisecond, time.Second} {
			for _, room := range []int{1, 4, 32, 256} {
				for _, row := range []int{150, 20_000, 400_000} {
					t.Run(fmt.Sprint(mbit, " Mbit/s, ", trip, ", ", room, " at a time, rows of ", row), func(t *testing.T) {
						t.Parallel()
						y := &way{rate: steady(mbit * 1e6 / 8), trip: trip, service: time.Millisecond, room: room, row: row,
							most: 4 << 20}
						if row == 150 {
							y.most = 200 * row
						}
						w := New(timeout)
						begin, seconds := 30*time.Second, 60.0
						if mbit >= 100 {
							begin, seconds = 5*time.Second, 10
						}
						arrived, longest := y.run(w, begin, begin+time.Duration(seconds)*time.Second)
						// The limit is the link, or consecutive requests that each occupy it for three seconds.
						size := float64(max(min(y.most, int(3*mbit*1e6/8))/row, 1) * row)
						least := 0.85
						if trip == time.Second && room == 1 {
							least = 0.6 // requests of few rows, which take as long to answer as to transfer
						}
						possible := min(mbit*1e6/8, float64(room)*size/((trip+time.Millisecond).Seconds()+size/(mbit*1e6/8)))
						share := float64(arrived) / seconds / possible
						conformance.True(t, share >= least, "%.2f of what is possible", share)
						alone := time.Duration(float64(row)/(mbit*1e6/8)*float64(time.Second)) + trip
						conformance.True(t, longest <= max(timeout/4, 3*alone), "a request took %v", longest)
					})
				}
			}
		}
	}
}

func TestWindowFollowsChangingLinkSpeed(t *testing.T) {
	rate := func(at time.Duration) float64 {
		if at > 60*time.Second && at < 180*time.Second {
			return 50e3
		}
		return 1e6
	}
	y := &way{rate: rate, trip: 50 * time.Millisecond, room: 32, row: 20_000, most: 4 << 20}
	arrived, _ := y.run(New(timeout), 30*time.Second, 60*time.Second)
	conformance.True(t, arrived >= 27e6, "%d bytes arrived in 30 seconds of the fast link", arrived)
	y = &way{rate: rate, trip: 50 * time.Millisecond, room: 32, row: 20_000, most: 4 << 20}
	_, longest := y.run(New(timeout), 150*time.Second, 180*time.Second)
	conformance.True(t, longest <= timeout/3, "on the slow link a request took %v", longest)
	arrived, _ = y.run(New(timeout), 190*time.Second, 220*time.Second)
	conformance.True(t, arrived >= 27e6, "%d bytes arrived in 30 seconds after it", arrived)
}

func TestWindowOpensAtOnceAfterOutage(t *testing.T) {
	y := &way{rate: steady(10e6), trip: 5 * time.Millisecond, room: 32, row: 20_000, most: 4 << 20,
		lost: func(at time.Duration) bool { return at > 30*time.Second && at < 90*time.Second }}
	arrived, _ := y.run(New(timeout), 122*time.Second, 132*time.Second)
	conformance.True(t, arrived >= 95e6, "%d bytes in ten seconds after an outage", arrived)
}

// A service that is slow to answer is not a slow link, and would not become faster with fewer requests.
func TestWindowStaysOpenForSlowService(t *testing.T) {
	y := &way{rate: steady(1e9), service: 9 * time.Second, room: 32, row: 20_000, most: 1 << 20}
	arrived, _ := y.run(New(timeout), 300*time.Second, 600*time.Second)
	possible := 32 * 300 / 9 * (1 << 20)
	conformance.True(t, arrived >= possible*6/10, "%d of %d bytes", arrived, possible)
}

func TestWindowReportsWhetherLinkLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		way  way
		want bool
	}{
		"slow":      {way{rate: steady(400e3), room: 32, row: 20_000, most: 4 << 20}, true},
		"few bytes": {way{rate: steady(400e3), room: 32, row: 150, most: 30_000}, true},
		"long":      {way{rate: steady(1e9), trip: 200 * time.Millisecond, room: 32, row: 150, most: 30_000}, false},
		"fast":      {way{rate: steady(1e9), trip: time.Millisecond, room: 32, row: 20_000, most: 1 << 20}, false},
	} {
		w := New(timeout)
		tt.way.run(w, 0, time.Minute)
		conformance.Equal(t, w.Bound(time.Unix(1_800_000_000, 0).Add(time.Minute)), tt.want, "%s", name)
	}
}

func TestWindowReportsLateAnswers(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	w := New(timeout)
	answer := func(took time.Duration) {
		for range 40 {
			now = now.Add(took)
			w.Landed(now, w.Sent(now.Add(-took), 1000), true)
		}
	}
	for _, c := range []struct {
		took time.Duration
		want bool
	}{{200 * time.Millisecond, false}, {230 * time.Millisecond, false}, {400 * time.Millisecond, true},
		{200 * time.Millisecond, false}} {
		if answer(c.took); w.Late() != c.want {
			t.Errorf("late %v of answers that take %v on a way of 200 ms", w.Late(), c.took)
		}
	}
	conformance.Equal(t, New(timeout).Late(), false, "there was no answer")
}

func TestWindowReportsBusyTime(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	w := New(timeout)
	conformance.Equal(t, w.Way(), 0, "way")
	conformance.Equal(t, w.Takes(), 0, "takes")
	w.Landed(now.Add(time.Second), w.Sent(now, 100_000), true)
	w.Landed(now.Add(1200*time.Millisecond), w.Sent(now.Add(time.Second), 2_000), true)
	w.Sent(now, 300_000)
	w.Sent(now, 100_000)
	conformance.Equal(t, w.Way(), 200*time.Millisecond, "way")
	conformance.Equal(t, w.Takes(), 4*time.Second, "takes")
}
