package lanes

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/ratelimit"
	"example.com/tsimport/writer"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// optionsOf returns options for lanes without checkpoints.
func optionsOf(c Config) *Options {
	return &Options{Config: &c, Order: plan.LastWins, Timeout: time.Minute,
		Memory: plan.Shares{Lanes: 1 << 30, InFlight: 1 << 20}, Counts: new(ledger.Counted), Learnt: new(writer.Size),
		Tuning: new(Tuning)}
}

// restlessLanes returns lanes that may each send 1000 rows, with pacers that never wait.
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

func (s *Set) fill(now time.Time, lane, rows int) {
	var keys []string
	for i := range rows {
		keys = append(keys, fmt.Sprintf("k%d%03d", 5*lane, i))
	}
	s.Put(lane, blockOf(new(table.Split), keys...), s.Partitions, now)
}

func TestLaneIsChosenForFullBatchOrAfterLinger(t *testing.T) {
	s := restlessLanes(5)
	now := time.Unix(1e9, 0)
	l, next := s.choose(now, true)
	conformance.MustTrue(t, l == nil && next == time.Minute, "lanes without rows: %v, %v", l, next)
	s.fill(now, 1, 3)
	l, next = s.choose(now, true)
	conformance.True(t, l == nil && next == linger, "a part of a batch: %v in %v, want it to linger", l, next)
	l, _ = s.choose(now.Add(linger), true)
	conformance.Equal(t, l, s.all[1], "the part of a batch is not sent after that")
	s.Change()
	l, _ = s.choose(now, false)
	conformance.Equal(t, l, s.all[1], "the part of a batch lingers although the input has ended")
	s.fill(now, 0, 10)
	chosen := map[*lane]int{}
	for range 100 {
		s.Change()
		l, _ := s.choose(now, false)
		chosen[l]++
	}
	conformance.True(t, chosen[s.all[0]] != 0 && chosen[s.all[1]] != 0 && chosen[nil] == 0, "turns: %v", chosen)
}

func TestLaneWithoutAllowanceIsNotChosen(t *testing.T) {
	s := restlessLanes()
	now := time.Unix(1e9, 0)
	s.fill(now, 0, 10)
	s.all[0].allowance.left = 0
	l, _ := s.choose(now, true)
	conformance.True(t, l == nil, "it may send nothing and is chosen")
	s.all[0].allowance.left = 1
	s.Change()
	l, _ = s.choose(now.Add(linger), true)
	conformance.True(t, l != nil, "it may send a row and is not chosen")
}

func TestRecutMovesRowsToNewLanes(t *testing.T) {
	s := restlessLanes()
	now := time.Unix(1e9, 0)
	old := s.Partitions
	s.fill(now, 0, 10)
	conformance.Equal(t, s.name(0), "", "the name of the only lane")
	s.Recut(now, partitioner.NewMap([]table.Value{{Type: table.String, Bytes: []byte("k0005")}}))
	conformance.MustTrue(t, len(s.all) == 2 && s.all[0].queue.Ready() == 5 && s.all[1].queue.Ready() == 5,
		"%d lanes", len(s.all))
	s.Put(0, blockOf(new(table.Split), "k0001", "k0009"), old, now) // divided by the previous map
	s.Begin(now)
	conformance.True(t, s.all[0].queue.Ready() == 6 && s.all[1].queue.Ready() == 6 && !s.all[1].turn.begun.IsZero(),
		"%d and %d rows", s.all[0].queue.Ready(), s.all[1].queue.Ready())
	l, _ := s.choose(now.Add(linger), true)
	conformance.True(t, l == nil, "a new lane sends before a checkpoint knows it")
	conformance.True(t, !s.Empty() && s.name(1) == " of the partition from k0005 to the last key", "named%s", s.name(1))
}

// A lane whose guessed bounds move keeps its measurements. The lanes of a split partition inherit only the rate.
func TestLaneWithMovedBoundsKeepsPacer(t *testing.T) {
	s := restlessLanes()
	now := time.Unix(1e9, 0)
	cut := func(at string) {
		s.Recut(now, partitioner.NewMap([]table.Value{{Type: table.String, Bytes: []byte(at)}}))
	}
	whole := ratelimit.NewPacer(ratelimit.PacerOptions{Rate: 100})
	s.all[0].pacer = whole
	cut("k0005")
	left, right := s.all[0].pacer, s.all[1].pacer
	conformance.True(t, left != Pacer(whole) && right != Pacer(whole) && left != right, "two partitions are paced as one")
	cut("k0006")
	conformance.True(t, s.all[0].pacer == left && s.all[1].pacer == right, "a partition whose bound moves loses its pacer")
}

func TestRequestsAreSentWhileWorkersAndMemoryAreFree(t *testing.T) {
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
	conformance.MustTrue(t, f.open() && !f.waitsMore(), "the first request does not leave")
	full("a", "b")
	conformance.True(t, f.flying() == 1 && !f.open() && f.waitsMore() && !f.waitsMore(),
		"%d requests of %d bytes are in flight; that the next waits is said once", f.flying(), f.bytes)
	f.free(<-f.out)
	conformance.True(t, f.flying() == 0 && f.bytes == 0 && f.open(), "%d requests of %d bytes remain", f.flying(), f.bytes)
	f.budget = 1 << 20
	full("a")
	conformance.Equal(t, f.open(), true, "the second worker idles")
	f.room = func() int { return 1 }
	conformance.Equal(t, f.open(), false, "more requests than the connection has room for")
}

func TestLaneEndsOnceWithLastRow(t *testing.T) {
	s := restlessLanes(5)
	s.fill(time.Unix(1e9, 0), 1, 3)
	conformance.True(t, !s.ends(restlessLanes(5, 7).all[2]), "a lane of another map ends")
	conformance.Equal(t, s.ends(s.all[1]), false, "a lane with rows ends")
	conformance.True(t, s.ends(s.all[0]) && !s.ends(s.all[0]), "a lane without rows does not end once")
}

// While the input continues, a row waits for others to fill its batch, except during a flush request.
func TestFlushRequestSendsPartialBatches(t *testing.T) {
	s := restlessLanes()
	h, now := NewFlushRequest(), time.Unix(1e9, 0)
	s.options.FlushRequest = h
	s.fill(now, 0, 3)
	l, next := s.choose(now, true)
	conformance.True(t, l == nil && next == linger, "a part of a batch: %v in %v, want it to linger", l, next)
	h.Begin()
	<-h.Begins()
	s.Change()
	l, _ = s.choose(now, true)
	conformance.True(t, l != nil, "a part of a batch lingers, though somebody waits for it")
	h.End()
	s.Change()
	l, _ = s.choose(now, true)
	conformance.True(t, l == nil, "a part of a batch is sent at once, though nobody waits any more")
}

func TestSlowestPartitionIsNamedOnlyIfItStandsOut(t *testing.T) {
	waited := func(seconds ...float64) *ledger.ReportSlowest {
		s := new(Set)
		var bounds []table.Value
		for i, waited := range seconds {
			bounds = append(bounds, table.Value{Type: table.Integer, Int: int64(i)})
			s.all = append(s.all, &lane{index: i, turn: turn{begun: time.Now()},
				backlog: backlog{waiting: time.Duration(waited * float64(time.Second))}})
		}
		s.Partitions = partitioner.NewMap(bounds[1:])
		return s.slowest(100 * time.Second)
	}
	for name, s := range map[string]*ledger.ReportSlowest{
		"one partition":            waited(90),
		"all of them":              waited(90, 80, 85, 88),
		"half of them":             waited(90, 80, 1, 60, 70),
		"a small part of the load": waited(20, 1, 1, 1),
		"none":                     waited(0, 0, 0),
	} {
		conformance.Equal(t, s, nil, "%s", name)
	}
	for want, s := range []*ledger.ReportSlowest{waited(90, 1), waited(1, 90, 30), waited(1, 2, 60, 3)} {
		conformance.True(t, s != nil && s.Partition == want, "partition %d is to be named: %+v", want, s)
	}
}

func TestGapSendsNothing(t *testing.T) {
	s := restlessLanes(5)
	s.all[1].gap = true
	s.options.Checkpointer.Ordered, s.options.Tuning.Allowance = true, 7
	got := s.Ranges(true)
	conformance.True(t, len(got) == 2 && len(got[0].Lower) == 0 && got[0].Allowance == 7 &&
		bytes.Equal(got[1].Lower, s.Partitions.Lower(1)) && got[1].Allowance == 0, "%+v", got)
}

func TestMonitorShowsEveryLane(t *testing.T) {
	s, now := restlessLanes(5), time.Unix(1e9, 0)
	s.fill(now, 1, 2)
	s.all[0].trouble.stuck, s.all[0].trouble.lastError, s.all[1].trouble.lastError = true, "busy", "is over"
	got := s.States()
	conformance.True(t, len(got) == 2 && got[0].Partition == 0 && got[0].From == "" && got[0].Queued == 0 &&
		got[0].Trouble == "busy" && got[1].Partition == 1 && got[1].From == "k5" && got[1].Queued == 2 &&
		got[1].Trouble == "", "%+v", got)
}

// A load is resumed in the middle of a split, whose first half is already final, while rows of the second half wait.
func TestFinalRowsStayFinalWhileLaterRowsWait(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		base := new(checkpoint.Snapshot)
		base.State = checkpoint.State{Read: checkpoint.Set{{From: checkpoint.At(0, 0), To: checkpoint.At(0, 2)}},
			Pieces: []checkpoint.Piece{{}}}
		k := keep.NewReadProgress(new(plan.Plan), ordered, base)
		s, now := restlessLanes(), time.Unix(1e9, 0)
		b := blockOf(new(table.Split), "k0", "k1", "k2", "k3")
		keys := [][]byte{}
		for i := range b.Rows {
			keys = append(keys, table.Ref{Block: b, Index: int32(i)}.Key())
		}
		b.Keep(func(i int32) bool { return i >= 2 })
		k.Counted(&intake.Parsed{Split: b.Split, Records: 4, Inside: true, Blocks: []intake.LaneBlock{{Block: b}}}, 0)
		s.Put(0, b, s.Partitions, now)
		for left := range 3 {
			for at := range 3 {
				got := new(checkpoint.Snapshot)
				s.options.Checkpointer.Ordered, s.options.Tuning.Allowance = ordered, 1
				k.DescribeRows(got, s.Out(), s.Ranges(ordered), s.Waiting(ordered, k.ReadTo()), true)
				for i, key := range keys {
					conformance.Equal(t, got.Final(checkpoint.At(0, int64(i)), key), (i < 2+left),
						"ordered %v, %d rows were written, checkpoint %d: record %d is final", ordered, left, at+1, i)
				}
			}
			if left < 2 {
				s.Queues.Lane(0).Advance()
			}
		}
		conformance.True(t, !k.Resumes(),
			"ordered %v: all rows are written, and the checkpoint of the attempt before is still needed", ordered)
	}
}

func TestLaneStaysWithinAllowance(t *testing.T) {
	a := new(allowance)
	a.described(a.following(1))
	conformance.MustEqual(t, a.left, 0, "rows that may leave before the first checkpoint is written")
	a.saved()
	conformance.MustEqual(t, a.left, fewAllowance, "rows that may leave after the first")
	low := 0
	for a.left > 0 {
		if a.spend() {
			low++
		}
	}
	conformance.True(t, low != 0 && low <= fewAllowance/4, "the last %d rows ask for a checkpoint", low)
	a.described(a.following(100)) // no row may leave before it is written
	a.saved()
	conformance.True(t, a.left == 2*fewAllowance+leastAllowance, "%d rows may leave next", a.left)
	a.spend()
	before := a.left
	a.saved()
	conformance.Equal(t, a.left, before, "a checkpoint that was not made allows rows")
}

func TestSplitLaneInheritsShareOfAllowance(t *testing.T) {
	from := []*lane{{allowance: allowance{taken: 900}}, {allowance: allowance{taken: 50}}}
	a := new(allowance)
	a.inherit(from, []int{3, 1}, true)
	conformance.True(t, a.taken == 350 && a.left == 0, "%+v", a)
	a.inherit(nil, nil, false)
	conformance.Equal(t, a.left, math.MaxInt64, "without an order a new lane waits for a checkpoint")
}

// refusingSender answers every request with an error and keeps the bodies.
type refusingSender struct {
	bodies [][]byte
	err    error
}

func (s *refusingSender) Post(_ string, appendBody func([]byte) []byte) ([]byte, error) {
	s.bodies = append(s.bodies, appendBody(nil))
	return nil, s.err
}

func flightOf(keys ...string) *flight {
	f := new(flight)
	b := blockOf(new(table.Split), keys...)
	for i := range b.Rows {
		f.Rows = append(f.Rows, table.Ref{Block: b, Index: int32(i)})
		f.Repeated = append(f.Repeated, false)
		f.Outcomes = append(f.Outcomes, table.Outcome{})
	}
	return f
}

func newWorker(err error) (*Worker, *refusingSender) {
	s := &refusingSender{err: err}
	return &Worker{Writer: writer.New(s, nil, "first", table.Put, table.Ignore), Table: "first", Ids: keep.NewTableIDs()},
		s
}

var noTable = &tablestore.OtsError{Code: "OTSObjectNotExist", Message: "Requested table does not exist.",
	HttpStatusCode: 404}

func fates(f *flight) (all []table.Fate) {
	for i := range f.Outcomes {
		all = append(all, f.Outcomes[i].Fate)
	}
	return all
}

func TestWorkerSendsFlightToItsTable(t *testing.T) {
	w, sent := newWorker(client.NotSent(errors.New("no connection")))
	var seen int
	w.OnSend = func(rows []table.Ref) { seen += len(rows) }
	for i, name := range []string{"", "second"} {
		f := flightOf("a", "b")
		f.table = name
		r := w.send(f)
		conformance.True(t, r.err == nil && r.flight == f && r.stats.Requests == 1 && !r.done.Before(r.sent) &&
			slices.Equal(fates(f), []table.Fate{table.Again, table.Again}), "flight %d: %+v, %v", i, r, fates(f))
	}
	conformance.True(t, len(sent.bodies) == 2 && bytes.Contains(sent.bodies[0], []byte("first")) &&
		bytes.Contains(sent.bodies[1], []byte("second")) && seen == 4, "bodies %q, %d rows seen", sent.bodies, seen)
}

func TestWorkerDoesNotSendLateFlight(t *testing.T) {
	w, sent := newWorker(nil)
	f := flightOf("a", "b")
	f.until = time.Now().Add(-time.Minute)
	r := w.send(f)
	conformance.True(t, len(sent.bodies) == 0 && r.err == nil && r.stats.Requests == 0 && r.done.Equal(r.sent) &&
		slices.Equal(fates(f), []table.Fate{table.Again, table.Again}), "%d requests, %+v, %v", len(sent.bodies), r, fates(f))
}

// For a while, the service may report that a new table does not exist.
func TestNewTableCountsAsUnavailableNotAbsent(t *testing.T) {
	for name, tt := range map[string]struct {
		made, to string
		opening  bool
	}{
		"the load's own":           {"first", "", true},
		"one of several":           {"second", "second", true},
		"another one was made":     {"first", "second", false},
		"the table was not made":   {"", "", false},
		"made before this attempt": {"second", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := newWorker(noTable)
			if tt.made != "" {
				w.Ids.NoteMade(tt.made)
			}
			f := flightOf("a")
			f.table = tt.to
			r := w.send(f)
			conformance.True(t, (r.err == nil) == tt.opening && f.Outcomes[0].Unavailable == tt.opening &&
				f.Outcomes[0].Fate == table.Again, "%v, %+v", r.err, f.Outcomes[0])
		})
	}
}

func TestWorkerReturnsEachFlightAndEnds(t *testing.T) {
	w, sent := newWorker(client.NotSent(errors.New("no connection")))
	f := newFlights(2, 1<<20, time.Minute)
	want := []*flight{flightOf("a"), flightOf("b")}
	for _, n := range want {
		f.out <- n
	}
	close(f.out)
	err := w.Work(&Set{flights: f})
	conformance.True(t, err == nil && len(sent.bodies) == 2, "%v after %d requests", err, len(sent.bodies))
	for _, n := range want {
		conformance.Equal(t, (<-f.back).flight, n, "another flight came back")
	}
}

type restless = conformance.Restless

func blockOf(s *table.Split, keys ...string) *table.Block {
	b := &table.Block{Split: s}
	for i, k := range keys {
		start := len(b.Data)
		b.Data = table.AppendKey(b.Data, table.Value{Type: table.String, Bytes: []byte(k)})
		body := len(b.Data)
		b.Data = append(b.Data, "row"...)
		b.Append(start, body, 10, table.Span{Record: uint32(i)}, []byte(k+"\n"))
	}
	return b
}
