package lanes

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/ratelimit"
	"example.com/tsimport/writer"
)

// optionsOf are options of lanes that keep nothing.
func optionsOf(c Config) *Options {
	return &Options{
		Config: &c, Order: plan.LastWins, Timeout: time.Minute, Memory: plan.Shares{Lanes: 1 << 30, InFlight: 1 << 20}, Counts: new(ledger.Counted),
		Learnt: new(writer.Size), Tuning: new(Tuning),
	}
}

// restlessLanes are lanes that may each send 1000 rows, with pacers that never wait.
func restlessLanes(bounds ...int64) *Set {
	var values []table.Value
	for _, b := range bounds {
		values = append(values, table.Value{Type: table.String, Bytes: []byte("k" + strconv.FormatInt(b, 10))})
	}
	o := optionsOf(Config{Concurrency: 4, BatchRows: 10})
	o.Checkpointer = &keep.Checkpointer{ReadProgress: keep.NewReadProgress(new(plan.Plan), true, nil)}
	o.Memory.Lanes, o.Tuning.Pacer = 1<<20, func() Pacer { return restless{} }
	s := New(partitioner.NewMap(values), o)
	s.CutBy(partitioner.Options{}, nil)
	for _, l := range s.all {
		l.allowance.left = 1000
	}
	return s
}

// fill puts rows into a lane.
func (s *Set) fill(now time.Time, lane, rows int) {
	var keys []string
	for i := range rows {
		keys = append(keys, fmt.Sprintf("k%d%03d", 5*lane, i))
	}
	s.Put(lane, blockOf(new(table.Split), keys...), s.Partitions, now)
}

func TestALaneIsChosenWhenItHasABatchOrHasLingered(t *testing.T) {
	s := restlessLanes(5)
	now := time.Unix(1e9, 0)
	if l, next := s.choose(now, true); l != nil || next != time.Minute {
		t.Fatalf("lanes without rows: %v, %v", l, next)
	}
	s.fill(now, 1, 3)
	if l, next := s.choose(now, true); l != nil || next != linger {
		t.Errorf("a part of a batch: %v in %v, want it to linger", l, next)
	}
	if l, _ := s.choose(now.Add(linger), true); l != s.all[1] {
		t.Error("the part of a batch is not sent after that")
	}
	s.Change()
	if l, _ := s.choose(now, false); l != s.all[1] {
		t.Error("the part of a batch lingers although the input has ended")
	}
	s.fill(now, 0, 10)
	chosen := map[*lane]int{}
	for range 100 {
		s.Change()
		l, _ := s.choose(now, false)
		chosen[l]++
	}
	if chosen[s.all[0]] == 0 || chosen[s.all[1]] == 0 || chosen[nil] != 0 {
		t.Errorf("turns: %v", chosen)
	}
}

func TestALaneWithoutAllowanceIsNotChosen(t *testing.T) {
	s := restlessLanes()
	now := time.Unix(1e9, 0)
	s.fill(now, 0, 10)
	s.all[0].allowance.left = 0
	if l, _ := s.choose(now, true); l != nil {
		t.Error("it may send nothing and is chosen")
	}
	s.all[0].allowance.left = 1
	s.Change()
	if l, _ := s.choose(now.Add(linger), true); l == nil {
		t.Error("it may send a row and is not chosen")
	}
}

func TestLanesAreCutAgainWithTheirRows(t *testing.T) {
	s := restlessLanes()
	now := time.Unix(1e9, 0)
	old := s.Partitions
	s.fill(now, 0, 10)
	conformance.Equal(t, s.name(0), "", "the name of the only lane")
	s.Recut(now, partitioner.NewMap([]table.Value{{Type: table.String, Bytes: []byte("k0005")}}))
	if len(s.all) != 2 || s.all[0].queue.Ready() != 5 || s.all[1].queue.Ready() != 5 {
		t.Fatalf("%d lanes", len(s.all))
	}
	s.Put(0, blockOf(new(table.Split), "k0001", "k0009"), old, now) // divided under the map before
	s.Begin(now)
	if s.all[0].queue.Ready() != 6 || s.all[1].queue.Ready() != 6 || s.all[1].turn.begun.IsZero() {
		t.Errorf("%d and %d rows", s.all[0].queue.Ready(), s.all[1].queue.Ready())
	}
	if l, _ := s.choose(now.Add(linger), true); l != nil {
		t.Error("a new lane sends before a checkpoint knows it")
	}
	if s.Empty() || s.name(1) != " of the partition from k0005 to the last key" {
		t.Errorf("named%s", s.name(1))
	}
}

// A lane whose bounds are guessed again keeps measuring its partition; one that is split begins with the rate alone.
func TestALaneWhoseBoundsMoveKeepsItsPacer(t *testing.T) {
	s := restlessLanes()
	now := time.Unix(1e9, 0)
	cut := func(at string) {
		s.Recut(now, partitioner.NewMap([]table.Value{{Type: table.String, Bytes: []byte(at)}}))
	}
	whole := ratelimit.NewPacer(ratelimit.PacerOptions{Rate: 100})
	s.all[0].pacer = whole
	cut("k0005")
	left, right := s.all[0].pacer, s.all[1].pacer
	if left == Pacer(whole) || right == Pacer(whole) || left == right {
		t.Error("two partitions are paced as the one that they came out of")
	}
	cut("k0006")
	if s.all[0].pacer != left || s.all[1].pacer != right {
		t.Error("what was known of a partition is lost when its bound moves")
	}
}

func TestRequestsLeaveWhileWorkersAndMemoryLast(t *testing.T) {
	f := newFlights(2, 25, time.Minute)
	full := func(rows ...string) {
		n := f.next()
		n.MaxRows, n.MaxBytes = 100, 1<<20
		for i := range rows {
			n.Add(table.Ref{Block: blockOf(new(table.Split), rows...), Index: int32(i)})
		}
		f.leave(time.Now())
		f.out <- n
	}
	if !f.open() || f.waitsMore() {
		t.Fatal("the first request does not leave")
	}
	full("a", "b")
	if f.flying() != 1 || f.open() || !f.waitsMore() || f.waitsMore() {
		t.Errorf("%d requests of %d bytes are in flight; that the next waits is said once", f.flying(), f.bytes)
	}
	f.free(<-f.out)
	if f.flying() != 0 || f.bytes != 0 || !f.open() {
		t.Errorf("%d requests of %d bytes after the answer", f.flying(), f.bytes)
	}
	f.budget = 1 << 20
	full("a")
	if !f.open() {
		t.Error("the second worker idles")
	}
	f.room = func() int { return 1 }
	if f.open() {
		t.Error("more requests than the connection has room for")
	}
}

func TestBatchesStayUnderTheCeilings(t *testing.T) {
	none := newCeilings(optionsOf(Config{}))
	begun := time.Now()
	if n := none.batchBytes(); n >= table.MaxBatchBytes {
		t.Errorf("%d bytes before anything is known of the link", n)
	}
	none.window.Landed(begun.Add(time.Millisecond), none.window.Sent(begun, 1<<20), true)
	if none.batchRows() != table.MaxBatchRows || none.batchBytes() != table.MaxBatchBytes || none.batchUnits("", 500) != 500 || none.wanted("", 20, 2) != 10 {
		t.Errorf("without ceilings: %d rows", none.batchRows())
	}
	low := newCeilings(optionsOf(Config{BatchRows: 50, BatchBytes: 1000, Rates: Rates{MaxRows: 1000, MaxWCU: 100, MaxBytes: 20_000}}))
	if low.batchRows() != 20 || low.batchBytes() != 400 || low.batchUnits("", 500) != 2 || low.wanted("", 500, 1) != 2 {
		t.Errorf("%d rows, %d bytes, %v units", low.batchRows(), low.batchBytes(), low.batchUnits("", 500))
	}
	now := time.Now()
	if none.sent(now, "", 1000, 1000, 1e9); none.wait(now) != 0 {
		t.Error("it waits without a ceiling")
	}
	if low.sent(now, "", 20, 200, 0); low.wait(now) < time.Second {
		t.Errorf("200 units at 100 a second wait for %v", low.wait(now))
	}
}

func TestALaneEndsOnceWithItsLastRow(t *testing.T) {
	s := restlessLanes(5)
	s.fill(time.Unix(1e9, 0), 1, 3)
	if former := restlessLanes(5, 7).all[2]; s.ends(former) {
		t.Error("a lane of another map ends")
	}
	if s.ends(s.all[1]) {
		t.Error("a lane with rows ends")
	}
	if !s.ends(s.all[0]) || s.ends(s.all[0]) {
		t.Error("a lane without rows does not end once")
	}
}
