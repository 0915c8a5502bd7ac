package writer

import (
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/plainbuffer"
	"tsimport/table"
)

// clock is a table that takes timestamps up to a deviation from now.
type clock struct{ now, deviation int64 }

func (c *clock) window() (from, to int64) { return c.now - c.deviation, c.now + c.deviation }

func TestTheRunsTimestampStaysUntilTheTableTakesItNoMore(t *testing.T) {
	c := &clock{now: 1_000_000, deviation: 10_000}
	s := NewStamp(c.now, c.window)
	for ; c.now <= 1_009_000; c.now += 100 {
		if s.Now() != 1_000_000 || s.Moves() != 0 {
			t.Fatalf("at %d it is %d", c.now, s.Now())
		}
	}
	c.now = 1_009_100
	if s.Now() != 1_009_100 || s.At() != 1_009_100 || s.Moves() != 1 {
		t.Errorf("it is %d", s.At())
	}
	if NewStamp(5, c.window).Now() != c.now {
		t.Error("a timestamp of long ago is used")
	}
}

func TestARowRefusedForAnOldTimestampGetsAnotherOnce(t *testing.T) {
	c := &clock{now: 1_006_000, deviation: 10_000}
	s := NewStamp(1_000_000, c.window)
	var stamps []int64
	refuse := true
	f := &fake{write: func(rows [][]byte) ([]result, error) {
		row, err := plainbuffer.Decode(rows[0])
		if err != nil {
			return nil, err
		}
		stamps = append(stamps, row.Cells[0].Stamp)
		if refuse {
			return []result{failed("OTSParameterInvalid")}, nil
		}
		return ok(1), nil
	}}
	rows, repeated, outcomes := batch(t, 1, table.Update)
	w := New(f, f, "t", table.Update, table.Ignore).With(Extras{Stamp: s})
	want := []table.Fate{table.Again, table.Refused, table.Written}
	for i, fate := range want {
		refuse = i < 2
		if _, err := w.Write(rows, repeated, outcomes); err != nil || outcomes[0].Fate != fate {
			t.Errorf("attempt %d: %+v, %v", i+1, outcomes[0], err)
		}
		if outcomes[0].Stamp != stamps[i] {
			t.Errorf("attempt %d went with %d, and says %d", i+1, stamps[i], outcomes[0].Stamp)
		}
	}
	if stamps[0] != 1_000_000 || stamps[1] != 1_006_000 || s.Moves() != 1 {
		t.Errorf("timestamps %d", stamps)
	}
}

func TestTheWholeRequestMayBeRefusedForAnOldTimestamp(t *testing.T) {
	c := &clock{now: 1_006_000, deviation: 10_000}
	f := &fake{write: func([][]byte) ([]result, error) {
		return nil, &tablestore.OtsError{Code: "OTSParameterInvalid", HttpStatusCode: 400}
	}}
	rows, repeated, outcomes := batch(t, 2, table.Update)
	w := New(f, f, "t", table.Update, table.Ignore).With(Extras{Stamp: NewStamp(1_000_000, c.window)})
	if _, err := w.Write(rows, repeated, outcomes); err != nil || outcomes[0].Fate != table.Again {
		t.Errorf("%+v, %v", outcomes, err)
	}
}
