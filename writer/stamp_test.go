package writer

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/encode"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// clock is the service's, known to within unsure, in milliseconds.
type clock struct{ now, unsure int64 }

func (c *clock) service() (earliest, latest time.Time) {
	return time.UnixMilli(c.now - c.unsure), time.UnixMilli(c.now + c.unsure)
}

func TestTimestampsAreTheLatestThatTheServiceCanShow(t *testing.T) {
	c := &clock{now: 1_000_000, unsure: 20}
	s := NewStamps(c.service, time.Hour)
	next := func(after, want int64) {
		t.Helper()
		if got := s.Next(after); got != want || s.Last() != want {
			t.Errorf("at %d above %d: %d, want %d", c.now, after, got, want)
		}
	}
	next(0, 1_000_020)
	next(1_000_020, 1_000_021)
	next(0, 1_000_021) // never below an earlier one
	c.unsure = 1       // more answers have come
	next(0, 1_000_021)
	c.now += 100
	next(0, 1_000_101)
}

func TestATableThatTakesOneSecondTakesTimestampsOfNow(t *testing.T) {
	for unsure := int64(0); unsure < 500; unsure += 37 {
		c := &clock{unsure: unsure}
		s := NewStamps(c.service, time.Second)
		for c.now = 5_000_000; c.now < 5_010_000; c.now += 13 {
			at := s.Next(0)
			for _, real := range []int64{c.now - unsure, c.now, c.now + unsure} {
				if now := real / 1000; at/1000 >= now+1 || at/1000 < now-1 {
					t.Fatalf("at %d±%d: %d is refused at %d", c.now, unsure, at, real)
				}
			}
		}
	}
}

func TestWhetherARowWasRefusedForItsTimestamp(t *testing.T) {
	c := &clock{now: 1_000_000, unsure: 5}
	s := NewStamps(c.service, 10*time.Second)
	for at, want := range map[int64]bool{999_000: false, 995_100: false, 994_900: true, 1_004_900: false, 1_005_100: true} {
		conformance.Equal(t, s.AtFault(at), want, "%d: at fault: %v", at, !want)
	}
	for at, want := range map[int64]bool{999_000: true, 990_600: true, 990_400: false, 980_000: false, 1_008_000: true, 1_010_000: false} {
		conformance.Equal(t, s.Takes(at), want, "%d: taken: %v", at, !want)
	}
}

// A row waits for time to pass, unless the clock was set back.
func TestTimestampsOfAKeyRiseNoFasterThanTime(t *testing.T) {
	c := &clock{now: 1_000_000}
	s := NewStamps(c.service, time.Hour)
	for after, want := range map[int64]time.Duration{999_999: 0, 1_000_000: time.Millisecond, 1_000_040: time.Millisecond, 1_900_000: 0} {
		conformance.Equal(t, s.Wait(after), want, "after %d", after)
	}
}

func TestEachRowIsSentWithItsTimestamp(t *testing.T) {
	c := &clock{now: 1_006_000}
	var stamps []int64
	refuse := true
	f := &fake{write: func(rows [][]byte) ([]result, error) {
		stamps = stamps[:0]
		for _, r := range rows {
			row, err := plainbuffer.Decode(r)
			if err != nil {
				return nil, err
			}
			stamps = append(stamps, row.Cells[0].Stamp)
		}
		if refuse && len(rows) == 3 {
			return nil, &tablestore.OtsError{Code: "OTSParameterInvalid", HttpStatusCode: 400} // the whole request, which is halved
		}
		results := ok(len(rows))
		for i := range results {
			if refuse {
				results[i] = failed("OTSParameterInvalid")
			}
		}
		return results, nil
	}}
	rows, repeated, outcomes := batch(t, 3, table.Update)
	w := New(f, f, "t", table.Update, table.Ignore).With(Options{Stamps: NewStamps(c.service, 10*time.Second)})
	for range 2 {
		for i, at := range []int64{1_006_000, 1_000_000, 1_005_999} {
			outcomes[i] = table.Outcome{Stamp: at}
		}
		if _, err := w.Write(rows, repeated, outcomes); err != nil {
			t.Fatal(err)
		}
		for i, o := range outcomes {
			want := table.Outcome{Fate: table.Written, Stamp: o.Stamp, WriteCU: 2}
			if refuse {
				want = table.Outcome{Fate: table.Refused, Stale: i == 1, Stamp: o.Stamp, Code: "OTSParameterInvalid", Message: "why"}
			}
			if o != want || !refuse && o.Stamp != stamps[i] {
				t.Errorf("row %d: %+v, sent with %d", i, o, stamps)
			}
		}
		refuse = false
	}
}

// Many small cells: what travels with them is more than the service counts of them.
func TestARequestOfStampedRowsIsNoLongerThanTheServiceTakes(t *testing.T) {
	s := &table.Schema{Table: "t", Key: []table.KeyColumn{{Name: "id", Type: table.Integer}}, Columns: []table.Column{{Name: "id", Type: table.Integer}}}
	for i := range 1000 {
		s.Columns = append(s.Columns, table.Column{Name: fmt.Sprintf("c%03d", i), Type: table.Integer})
	}
	e := encode.New(s, table.Update, false)
	e.StampBytes = 8
	b := new(table.Block)
	for r := range 200 {
		row := []table.Value{num(int64(r))}
		for i := range 1000 {
			row = append(row, num(int64(i)))
		}
		conformance.MustEqual(t, e.Append(b, row, nil, table.Span{}, nil), nil, "reason")
	}
	batch := &table.Batch{Extra: func(r table.Ref) int { return plainbuffer.StampBytes(r.Body()) }}
	for i := 0; i < 200 && batch.Add(table.Ref{Block: b, Index: int32(i)}); i++ {
	}
	sent := 0
	f := postFunc(func(_ string, body func([]byte) []byte) ([]byte, error) { sent = len(body(nil)); return nil, io.EOF })
	now := func() (earliest, latest time.Time) {
		return time.UnixMilli(1700000000000), time.UnixMilli(1700000000000)
	}
	w := New(f, nil, "t", table.Update, table.Ignore).With(Options{Stamps: NewStamps(now, time.Hour)})
	outcomes := make([]table.Outcome, len(batch.Rows))
	for i := range outcomes {
		outcomes[i].Stamp = 1700000000000
	}
	if _, err := w.Write(batch.Rows, make([]bool, len(batch.Rows)), outcomes); err != nil {
		t.Fatal(err)
	}
	if sent > table.MaxBodyBytes || sent < table.MaxBodyBytes*9/10 {
		t.Errorf("%d rows make %d bytes, the service takes %d", len(batch.Rows), sent, table.MaxBodyBytes)
	}
}

type postFunc func(string, func([]byte) []byte) ([]byte, error)

func (f postFunc) Post(op string, body func([]byte) []byte) ([]byte, error) { return f(op, body) }
