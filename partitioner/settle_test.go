package partitioner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/shuffle"
)

func pour(o Options, keys ...string) (*Cutter, *shuffle.Queue) {
	queues := shuffle.New(1, shuffle.Options{Budget: 1 << 20})
	for _, b := range rowsOf(keys, 10) {
		queues.Push(0, b)
	}
	if o.Final == nil {
		o.Final = func(table.Ref, End, table.Outcome) {}
	}
	o.Backoff = func(int) time.Duration { return time.Millisecond }
	return New(o), queues.Lane(0)
}

func TestUnrepeatableUnknownRowWaitsForSettle(t *testing.T) {
	for _, unavailable := range []bool{false, true} {
		c, q := pour(Options{Settle: settle, SettleFirst: true}, "a", "a")
		now := time.Unix(1000, 0)
		var f Flight
		conformance.MustTrue(t, c.Cut(now, 0, q, &f, 100) && len(f.Rows) == 1 && !f.Repeated[0], "%d rows cut", len(f.Rows))
		f.Outcomes[0] = table.Outcome{Fate: table.Unknown, Unavailable: unavailable}
		c.Done(now, &f)
		f.Reset()
		conformance.MustTrue(t, !c.Cut(now.Add(settle-1), 0, q, &f, 100), "a row is sent while its attempt may be applied")
		c.Wake(now.Add(settle))
		conformance.MustTrue(t, c.Cut(now.Add(settle), 0, q, &f, 100) && f.Repeated[0], "it is not sent, or not as repeated")
		// A throttled row does not wait again, and is still marked as repeated.
		f.Outcomes[0] = table.Outcome{Fate: table.Again, Throttled: true}
		c.Done(now.Add(settle), &f)
		f.Reset()
		conformance.MustTrue(t, c.Cut(now.Add(settle), 0, q, &f, 100) && f.Repeated[0],
			"throttled, it waits, or is not repeated any more")
		f.Outcomes[0] = table.Outcome{Fate: table.Written}
		c.Done(now.Add(settle), &f)
		f.Reset()
		conformance.MustTrue(t, c.Cut(now.Add(settle), 0, q, &f, 100) && !f.Repeated[0], "the next row waits, or is repeated")
	}
}

func TestSuspectRowIsSentOnceEarlierAttemptHasSettled(t *testing.T) {
	now := time.Unix(1000, 0)
	c, q := pour(Options{Settle: settle, SettleFirst: true, SuspectUntil: now.Add(settle)}, "a")
	r, _ := q.Front()
	r.Row().SetSuspect()
	var f Flight
	for _, at := range []time.Time{now, now.Add(settle - 1)} {
		c.Wake(at)
		conformance.MustTrue(t, !c.Cut(at, 0, q, &f, 100), "it is sent %v before", now.Add(settle).Sub(at))
	}
	c.Wake(now.Add(settle))
	conformance.MustTrue(t, c.Cut(now.Add(settle), 0, q, &f, 100) && len(f.Rows) == 1, "it is not sent")
}

// counting makes rising timestamps and accepts all from from on. kept is the timestamp that an earlier process sent;
// passed is that of a final row.
type counting struct{ last, from, kept, passed int64 }

func (c *counting) Next(after int64) int64 { c.last = max(c.last+1, after+1); return c.last }
func (c *counting) Wait(after int64) time.Duration {
	return time.Duration(after-c.last+1) * time.Millisecond
}
func (c *counting) Takes(ms int64) bool          { return ms >= c.from }
func (c *counting) Kept(table.Ref) int64         { return c.kept }
func (c *counting) Passed(_ table.Ref, ms int64) { c.passed = ms }

func TestTimestampIsKeptOnlyIfMaybeApplied(t *testing.T) {
	for _, tt := range []struct {
		fate             table.Fate // fate of the first attempt
		stale, suspect   bool
		kept, from, want int64
		restamped        bool
	}{{fate: table.Unknown, want: 1}, {fate: table.Again, want: 2}, {fate: table.Refused, stale: true, want: 2},
		{fate: table.Unknown, from: 9, want: 2, restamped: true}, {fate: table.Unknown, suspect: true, kept: 7, want: 7},
		{fate: table.Again, suspect: true, kept: 7, want: 7},
		{fate: table.Unknown, suspect: true, kept: 7, from: 9, want: 2, restamped: true},
		{fate: table.Unknown, suspect: true, want: 1}} {
		var got table.Outcome
		c, q := pour(Options{Stamps: &counting{kept: tt.kept, from: tt.from},
			Final: func(_ table.Ref, _ End, o table.Outcome) { got = o }}, "a")
		if r, _ := q.Front(); tt.suspect {
			r.Row().SetSuspect()
		}
		now := time.Unix(1000, 0)
		var f Flight
		c.Cut(now, 0, q, &f, 100)
		f.Outcomes[0].Fate, f.Outcomes[0].Stale = tt.fate, tt.stale
		c.Done(now, &f)
		f.Reset()
		now = now.Add(time.Second)
		c.Wake(now)
		if !c.Cut(now, 0, q, &f, 100) || f.Outcomes[0].Stamp != tt.want {
			t.Errorf("%+v: sent with %+v", tt, f.Outcomes)
			continue
		}
		f.Outcomes[0].Fate = table.Written
		c.Done(now, &f)
		conformance.True(t, got.Stamp == tt.want && got.Restamped == tt.restamped, "%+v: %+v", tt, got)
	}
}

// A later row of the key, now or in a resumed run, gets a timestamp above all cells that a suspect deletion may hide.
func TestSuspectDeletionReportsTimestampsItMayHide(t *testing.T) {
	stamps := &counting{kept: 7}
	c, q := pour(Options{Stamps: stamps, Deletes: true}, "a")
	r, _ := q.Front()
	r.Row().SetSuspect()
	now := time.Unix(1000, 0)
	var f Flight
	c.Cut(now, 0, q, &f, 100)
	f.Outcomes[0].Fate = table.Written
	c.Done(now, &f)
	conformance.Equal(t, stamps.passed, 7, "it passed")
}

func TestRestampedRowIsRejectedAfterMaxRestamps(t *testing.T) {
	var end End
	c, q := pour(Options{Stamps: &counting{}, Final: func(_ table.Ref, e End, _ table.Outcome) { end = e }}, "a")
	now, attempts := time.Unix(1000, 0), 0
	for ; c.Remaining() > 0 || q.Ready() > 0; attempts++ {
		conformance.MustTrue(t, attempts < 100, "it is sent again and again")
		var f Flight
		now = now.Add(time.Minute)
		c.Wake(now)
		c.Cut(now, 0, q, &f, 100)
		f.Outcomes[0].Fate, f.Outcomes[0].Stale = table.Refused, true
		c.Done(now, &f)
	}
	conformance.True(t, end == Rejected && attempts == 1+maxRestamps, "end %v after %d attempts", end, attempts)
}

// ticking makes timestamps from a clock.
type ticking struct{ counting }

func (c *ticking) Next(after int64) int64 { return max(c.last, after+1) }

// Rows of one key sent within the same millisecond still get increasing timestamps.
func TestTimestampsOfKeyRise(t *testing.T) {
	clock := &ticking{counting{last: 1}}
	c, q := pour(Options{Stamps: clock}, "a", "a", "a")
	now := time.Unix(1000, 0)
	var f Flight
	for ; clock.last <= 3; clock.last++ {
		conformance.MustTrue(t, c.Cut(now, 0, q, &f, 100) && len(f.Rows) == 1 && f.Outcomes[0].Stamp == clock.last,
			"at %d: %d rows, %+v", clock.last, len(f.Rows), f.Outcomes)
		f.Outcomes[0].Fate = table.Written
		c.Done(now, &f)
		f.Reset()
		c.Wake(now)
		conformance.MustTrue(t, !c.Cut(now, 0, q, &f, 100), "the next row is sent in the same millisecond")
		now = now.Add(time.Millisecond)
		if clock.last < 3 {
			clock.last++
			c.Wake(now)
			clock.last--
		}
	}
}

// A request of the previous process may be applied after this process has ended, even in an unordered load.
func TestEndWaitsForEarlierProcess(t *testing.T) {
	for _, unordered := range []bool{false, true} {
		now := time.Unix(1000, 0)
		until := now.Add(settle)
		c, q := pour(Options{Unordered: unordered, SuspectUntil: until}, "a")
		r, _ := q.Front()
		r.Row().SetSuspect()
		var f Flight
		conformance.MustTrue(t, c.Cut(now, 0, q, &f, 100), "the row waits")
		f.Outcomes[0] = table.Outcome{Fate: table.Written}
		c.Done(now, &f)
		if at, unsettled := c.Unsettled(now); !unsettled || !at.Equal(until) {
			t.Errorf("unordered %v: unsettled %v until %v, want until %v", unordered, unsettled, at, until)
		}
		_, unsettled := c.Unsettled(until)
		conformance.True(t, !unsettled, "unordered %v: unsettled after that", unordered)
	}
}

// The lanes may be recut while an unordered row is in flight: its former lane may now belong to another table.
func TestUnorderedRowReturnsToNewLane(t *testing.T) {
	for _, o := range []table.Outcome{{Fate: table.Unknown}, {Fate: table.Again}, {Fate: table.Refused, Stale: true}} {
		c, q := pour(Options{Unordered: true, Stamps: &counting{}}, "a")
		now := time.Unix(1000, 0)
		var f Flight
		c.Cut(now, 0, q, &f, 100)
		c.Recut(2, func([]byte) int { return 1 })
		stamp := f.Outcomes[0].Stamp
		f.Outcomes[0] = o
		f.Outcomes[0].Stamp = stamp
		c.Done(now, &f)
		c.Wake(now.Add(time.Second))
		conformance.True(t, c.Ready(0) == 0 && c.Ready(1) == 1, "%+v: %d rows in lane 0, %d in 1", o, c.Ready(0), c.Ready(1))
	}
}

func TestTimedOutAttemptSettlesSooner(t *testing.T) {
	const rest = settle / 6
	for name, c := range map[string]struct {
		first, second table.Outcome
		until         time.Duration // time after the second outcome
	}{
		"timed out":    {table.Outcome{Fate: table.Unknown, TimedOut: true}, table.Outcome{Fate: table.Written}, rest},
		"cut off":      {table.Outcome{Fate: table.Unknown}, table.Outcome{Fate: table.Written}, settle},
		"lands second": {table.Outcome{Fate: table.Unknown}, table.Outcome{Fate: table.Unknown, TimedOut: true}, settle},
	} {
		t.Run(name, func(t *testing.T) {
			cutter, q := pour(Options{Settle: settle, SettleTimedOut: rest}, "a", "a")
			now := time.Unix(1000, 0)
			var f Flight
			for _, o := range []table.Outcome{c.first, c.second} {
				f.Reset()
				conformance.MustTrue(t, cutter.Cut(now, 0, q, &f, 100), "the row is not sent")
				f.Outcomes[0] = o
				cutter.Done(now, &f)
				cutter.Wake(now.Add(time.Millisecond))
			}
			until, any := cutter.Unsettled(now)
			conformance.True(t, any && until.Sub(now) == c.until, "waits for %v, want %v", until.Sub(now), c.until)
		})
	}
}

// Rows that always fail are given up once only they are left and GiveUp has reduced the patience.
func TestOnlyHopelessRowIsGivenUp(t *testing.T) {
	away := table.Outcome{Fate: table.Again, Unavailable: true, Code: "OTSServerUnavailable"}
	internal := table.Outcome{Fate: table.Unknown, Code: "OTSInternalServerError"}
	for name, tt := range map[string]struct {
		rows     int
		fails    func(n, attempt int) bool
		how      table.Outcome
		patience int    // rounds in which nothing is written, until GiveUp is called
		want     string // the rejected rows
		gaveUp   bool   // whether that took GiveUp
	}{
		"the first of many":           {500, only(0), internal, 1000, "[0]", false},
		"one in the middle":           {500, only(250), internal, 1000, "[250]", false},
		"the last, patience is short": {500, only(499), internal, 2 * giveUpLastAfter, "[499]", true},
		"patience is too short":       {500, only(499), internal, 1, "[499]", true},
		"two of four":                 {4, func(n, _ int) bool { return n < 2 }, internal, 1000, "[0 1]", false},
		"two of four, in a hurry":     {4, func(n, _ int) bool { return n < 2 }, internal, 40, "[0 1]", true},
		"alone from the start":        {1, only(0), internal, 100, "[]", false},
		"every row":                   {40, func(int, int) bool { return true }, internal, 100, "[]", false},
		"it is throttled": {500, only(3), table.Outcome{Fate: table.Again, Throttled: true,
			Code: "OTSNotEnoughCapacityUnit"}, 100, "[]", false},
		"nobody answers": {40, func(_, attempt int) bool { return attempt < 60 },
			table.Outcome{Fate: table.Unknown}, 10, "[]", false},
		"the service is not there": {40, func(n, attempt int) bool { return attempt < 60 }, away, 10, "[]", false},
		"it works after a while": {500, func(n, attempt int) bool { return n == 7 && attempt < giveUpAfter }, internal,
			1e3, "[]", false},
	} {
		run := func(t *testing.T, inFlight bool) { // inFlight: GiveUp is called while rows are in flight
			var rejected []int
			attempts, gaveUp, written, idle := map[int]int{}, false, 0, 0
			keys := make([]string, tt.rows)
			for i := range keys {
				keys[i] = fmt.Sprint(i)
			}
			c, q := pour(Options{Final: func(r table.Ref, end End, _ table.Outcome) {
				if written++; end == Rejected {
					rejected = append(rejected, number(r))
					written--
				}
			}}, keys...)
			now := time.Unix(1, 0)
			for round := 0; round < 1000 && (q.Ready() > 0 || c.Remaining() > 0); round++ {
				f := new(Flight)
				f.MaxRows = 10
				c.Wake(now)
				if !c.Cut(now, 0, q, f, 200) {
					wait, _ := c.Wait(now)
					now = now.Add(max(wait, time.Millisecond))
					continue
				}
				for i, r := range f.Rows {
					n := number(r)
					f.Outcomes[i] = table.Outcome{Fate: table.Written}
					if tt.fails(n, attempts[n]) {
						f.Outcomes[i] = tt.how
					}
					attempts[n]++
				}
				asks := func(at bool) bool { return at == inFlight && idle >= tt.patience && q.Ready() == 0 && c.GiveUp(0) }
				before, gives := written, asks(true)
				if c.Done(now, f); written > before {
					idle = 0
				} else if idle++; gives || asks(false) {
					gaveUp, idle = true, 0
				}
			}
			slices.Sort(rejected)
			conformance.True(t, fmt.Sprint(rejected) == tt.want && gaveUp == tt.gaveUp,
				"rejected %v, want %s; gave up %v, want %v", rejected, tt.want, gaveUp, tt.gaveUp)
			left := c.Remaining()
			conformance.True(t, left+len(rejected)+written == tt.rows, "%d written, %d left of %d", written, left, tt.rows)
		}
		t.Run(name, func(t *testing.T) { run(t, false) })
		t.Run(name+" in flight", func(t *testing.T) { run(t, true) })
	}
}

// A row refused only for lack of capacity will be written: the load waits for it.
func TestPatienceLastsWhileAnotherRowMayBeWritten(t *testing.T) {
	c, q := pour(Options{}, "0", "1", "2")
	now := time.Unix(1, 0)
	outcomes := []table.Outcome{{Fate: table.Unknown, Code: "OTSInternalServerError"}, {Fate: table.Written},
		{Fate: table.Again, Throttled: true, Code: "OTSNotEnoughCapacityUnit"}}
	for i := range 8 * giveUpLastAfter {
		var f Flight
		c.Wake(now)
		if c.Cut(now, 0, q, &f, float64(1+i%2*100)) {
			conformance.MustTrue(t, !c.GiveUp(0), "it gives up a row while another is in flight")
			for i, r := range f.Rows {
				f.Outcomes[i] = outcomes[number(r)]
			}
			c.Done(now, &f)
		}
		now = now.Add(time.Minute)
		conformance.MustTrue(t, !c.GiveUp(0), "it gives up a row while another is throttled")
	}
	conformance.True(t, slices.ContainsFunc(c.retry, (*key).expendable), "no row fails alone")
}

func only(bad int) func(n, attempt int) bool { return func(n, _ int) bool { return n == bad } }
