package partitioner

import (
	"testing"
	"time"

	"tsimport/shuffle"
	"tsimport/table"
)

// pour makes a cutter and a lane of one row for each of the keys.
func pour(o Options, keys ...string) (*Cutter, *shuffle.Lane) {
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

func TestWhereRepeatingDoesHarmARowOfUnknownOutcomeWaitsForSettle(t *testing.T) {
	for _, unavailable := range []bool{false, true} {
		c, q := pour(Options{Settle: settle, SettleFirst: true}, "a", "a")
		now := time.Unix(1000, 0)
		var f Flight
		if !c.Cut(now, 0, q, &f, 100) || len(f.Rows) != 1 || f.Repeated[0] {
			t.Fatalf("%d rows cut", len(f.Rows))
		}
		f.Outcomes[0] = table.Outcome{Fate: table.Unknown, Unavailable: unavailable}
		c.Done(now, &f)
		f.Reset()
		if c.Cut(now.Add(settle-1), 0, q, &f, 100) {
			t.Fatal("a row is sent while its first attempt may be applied")
		}
		c.Wake(now.Add(settle))
		if !c.Cut(now.Add(settle), 0, q, &f, 100) || !f.Repeated[0] {
			t.Fatal("it is not sent again, or not as repeated")
		}
		// Refused for capacity it need not wait again, and is repeated still.
		f.Outcomes[0] = table.Outcome{Fate: table.Again, Throttled: true}
		c.Done(now.Add(settle), &f)
		f.Reset()
		if !c.Cut(now.Add(settle), 0, q, &f, 100) || !f.Repeated[0] {
			t.Fatal("throttled, it waits, or is not repeated any more")
		}
		f.Outcomes[0] = table.Outcome{Fate: table.Written}
		c.Done(now.Add(settle), &f)
		f.Reset()
		if !c.Cut(now.Add(settle), 0, q, &f, 100) || f.Repeated[0] {
			t.Fatal("the next row of the key waits, or is taken for repeated")
		}
	}
}

func TestARowIsRestampedIfItsFirstAttemptHadAnotherTimestamp(t *testing.T) {
	for _, tt := range []struct {
		first, second int64
		from          Options
		want          bool
	}{
		{first: 5, second: 5},
		{first: 5, second: 6, want: true},
		{second: 5, from: Options{Repeated: true, Stamp: 5}},
		{second: 6, from: Options{Repeated: true, Stamp: 5}, want: true},
	} {
		var got table.Outcome
		tt.from.Final = func(_ table.Ref, _ End, o table.Outcome) { got = o }
		c, q := pour(tt.from, "a")
		now := time.Unix(1000, 0)
		var f Flight
		c.Cut(now, 0, q, &f, 100)
		if tt.first > 0 {
			f.Outcomes[0] = table.Outcome{Fate: table.Unknown, Stamp: tt.first}
			c.Done(now, &f)
			f.Reset()
			now = now.Add(time.Second)
			c.Wake(now)
			c.Cut(now, 0, q, &f, 100)
		}
		f.Outcomes[0] = table.Outcome{Fate: table.Written, Stamp: tt.second}
		c.Done(now, &f)
		if !got.Repeated || got.Restamped != tt.want {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}
