package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
)

var must = conformance.Must

type naive map[Position]bool

func (n naive) set() Set {
	var all []Position
	for p := range n {
		all = append(all, p)
	}
	return OfPositions(all)
}

const universe = 64

func drawSet(t *rapid.T, name string) (naive, Set) {
	n := naive{}
	var s Set
	for range rapid.IntRange(0, 8).Draw(t, name) {
		from := rapid.Uint64Range(0, universe-1).Draw(t, name+" from")
		to := rapid.Uint64Range(from, universe).Draw(t, name+" to")
		for p := from; p < to; p++ {
			n[Position(p)] = true
		}
		s = s.Add(Position(from), Position(to))
	}
	return n, s
}

func TestSetOperationsMatchModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, as := drawSet(t, "a")
		b, bs := drawSet(t, "b")
		conformance.MustEqual(t, cmp.Diff(a.set(), as), "", "added intervals and single positions differ")
		both, either, rest := Intersect(as, bs), Union(as, bs), Subtract(as, bs)
		for p := Position(0); p < universe; p++ {
			conformance.MustTrue(t, as.Has(p) == a[p] && both.Has(p) == (a[p] && b[p]) && either.Has(p) == (a[p] || b[p]) &&
				rest.Has(p) == (a[p] && !b[p]),
				"position %d: a %v, %v; b %v, %v; both %v, either %v, rest %v", p, a[p], as, b[p], bs, both, either, rest)
		}
		for _, s := range []Set{both, either, rest} {
			for i := range s {
				conformance.MustTrue(t, s[i].From < s[i].To && (i == 0 || s[i].From > s[i-1].To), "%v: intervals touch", s)
			}
		}
		from := Position(rapid.Uint64Range(0, universe).Draw(t, "count from"))
		n := int64(0)
		next, any := Position(0), false
		for p := from; p < universe; p++ {
			if a[p] {
				n++
				if !any {
					next, any = p, true
				}
			}
		}
		conformance.MustEqual(t, as.Count(from, universe), n, "positions of %v from %d on", as, from)
		got, ok := as.Next(from)
		conformance.MustTrue(t, ok == any && got == next, "%v from %d: %d, %v; want %d, %v", as, from, got, ok, next, any)
	})
}

func drawRange(t *rapid.T) table.KeyRange {
	bound := func(name string) []byte {
		if v := rapid.IntRange(-1, 9).Draw(t, name); v >= 0 {
			return []byte{byte(v)}
		}
		return nil
	}
	r := table.KeyRange{Lower: bound("lower"), Upper: bound("upper")}
	if r.Upper != nil && bytes.Compare(r.Lower, r.Upper) >= 0 {
		r.Upper = nil
	}
	return r
}

func drawQueued(t *rapid.T, name string, within naive) (all []Queued) {
	for range rapid.IntRange(0, 6).Draw(t, name) {
		from := rapid.Uint64Range(0, universe-1).Draw(t, "from")
		to := rapid.Uint64Range(from+1, universe).Draw(t, "to")
		keys := drawRange(t)
		for _, i := range Intersect(within.set(), Set{{Position(from), Position(to)}}) {
			all = append(all, Queued{keys, i})
		}
	}
	return all
}

func waits(all []Queued, p Position, key byte) bool {
	for _, q := range all {
		if _, in := q.Keys.Within(table.KeyRange{Lower: []byte{key}, Upper: []byte{key, 0}}); in && q.From <= p && p < q.To {
			return true
		}
	}
	return false
}

func TestTiledPiecesDescribeQueues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		read, readSet := drawSet(t, "read")
		out, outSet := drawSet(t, "out")
		queued := drawQueued(t, "queued", read)
		lanes := []LaneRange{{Allowance: 1}, {Lower: []byte{3}, Allowance: 2}, {Lower: []byte{6}, Allowance: 3}}
		s := State{Read: readSet, Pieces: Tile(lanes, append([]Queued(nil), queued...)), Out: outSet}
		for p := Position(0); p < universe; p++ {
			for key := range byte(10) {
				want := read[p] && !out[p] && !waits(queued, p, key)
				if got := s.Final(p, []byte{key, 'x'}); got != want {
					t.Fatalf("position %d of key %d: final %v, want %v of %v in %+v", p, key, got, want, queued, s.Pieces)
				}
				if got, want := s.Pieces[s.pieceOf([]byte{key, 'x'})].Allowance, int64(1+key/3); got != min(want, 3) {
					t.Fatalf("key %d has the allowance %d", key, got)
				}
			}
		}
		if open, is := s.FirstOpens()[0]; is {
			for p := range Position(open) {
				for key := range byte(10) {
					conformance.MustTrue(t, !read[p] || s.Final(p, []byte{key}),
						"position %d of key %d is not final, the first such is said to be %d", p, key, open)
				}
			}
		}
	})
}

func TestAttemptContinuesPreviousState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		oldRead, oldSet := drawSet(t, "old read")
		oldQueued := drawQueued(t, "old queued", oldRead)
		base := &State{Read: oldSet, Pieces: Tile([]LaneRange{{Allowance: 5}}, append([]Queued(nil), oldQueued...))}
		again, againSet := drawSet(t, "again")
		queued := drawQueued(t, "queued", again)
		pieces := Continue(base, againSet, Tile([]LaneRange{{Allowance: 3}}, append([]Queued(nil), queued...)))
		s := State{Read: Union(oldSet, againSet), Pieces: pieces}
		for p := Position(0); p < universe; p++ {
			for key := range byte(10) {
				wasFinal := oldRead[p] && !waits(oldQueued, p, key)
				want := wasFinal || again[p] && !waits(queued, p, key)
				got := s.Final(p, []byte{key})
				conformance.MustTrue(t, got == want, "position %d of key %d: final %v, want %v (final before: %v, read again: %v)",
					p, key, got, want, wasFinal, again[p])
			}
		}
	})
}

func TestPiecesWithAllowancesAreNotJoined(t *testing.T) {
	lanes := []LaneRange{{Allowance: 5}, {Lower: []byte{3}, Allowance: 5}, {Lower: []byte{6}}, {Lower: []byte{8}}}
	pieces := Tile(lanes, nil)
	conformance.Equal(t, len(pieces), 3, "pieces, want one for each lane with an allowance and one for the others")
	conformance.Equal(t, len(Continue(&State{Pieces: pieces}, nil, Tile(nil, nil))), 3, "pieces, want the 3 from before")
}

func TestSuspectsAreRowsOutAndFirstOfEachPiece(t *testing.T) {
	s := &State{Read: Set{{0, 10}},
		Pieces: []Piece{{Waiting: Set{{4, 10}}, Allowance: 3}, {Lower: []byte{5}, Allowance: 0}}, Out: Set{{1, 2}}}
	r := NewReplay(s, true)
	var got []string
	for record := range int64(12) {
		for _, key := range []byte{1, 7} {
			if final, suspect := r.Row(0, record, []byte{key}); !final {
				got = append(got, fmt.Sprintf("%d/%d %v", record, key, suspect))
			}
		}
	}
	want := []string{"1/1 true", "1/7 true", "4/1 true", "5/1 true", "6/1 true", "7/1 false", "8/1 false", "9/1 false",
		"10/1 false", "10/7 false", "11/1 false", "11/7 false"}
	conformance.Equal(t, cmp.Diff(want, got), "", "records that are not final, and whether they are suspect (-want +got)")
	conformance.True(t, r.Unknown(0, 10) && !r.Unknown(0, 9), "something is known without an allowance, or nothing before")
	_, suspect := NewReplay(s, false).Row(0, 11, []byte{1})
	conformance.True(t, suspect, "without an order a row that was not known may have been sent, and is not suspect")
}

func TestSourceIsCompleteOnceLaterOneHasBegun(t *testing.T) {
	s := &State{Read: Set{{At(0, 0), At(0, 5)}, {At(1, 0), At(1, 7)}, {At(2, 0), At(2, 3)}},
		Pieces: []Piece{{Waiting: Set{{At(1, 6), At(2, 1)}}}}}
	for source, want := range []bool{true, false, false, false} {
		conformance.Equal(t, s.Complete(source, true), want, "source %d complete", source)
	}
	for source, want := range map[int]int64{1: 6, 2: 0} {
		conformance.Equal(t, s.FirstOpens()[source], want, "first open record of source %d", source)
	}
}

func key(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// simulated returns a snapshot of a load of 100,000,000 rows by 256 workers. Every tenth lane is slow and spilled.
func simulated(rnd *rand.Rand, lanes int, ordered bool) *Snapshot {
	const rows = 100_000_000
	s := &Snapshot{About: About{Job: "0123456789abcdef", Time: time.Unix(1e9, 0), Counters: map[string]int64{"read": rows},
		Ordered: ordered}}
	s.Read = Set{{0, rows}}
	if !ordered {
		s.Read = nil
		for from := Position(0); from < rows; from += 48_000 {
			if rnd.IntN(4) > 0 {
				s.Read = s.Read.Add(from, from+24_000) // splits that were read, in any order
			}
		}
	}
	var cut []LaneRange
	var queued []Queued
	for l := range lanes {
		keys := table.KeyRange{Lower: key(l * 1_000_003), Upper: key((l + 1) * 1_000_003)}
		cut = append(cut, LaneRange{Lower: keys.Lower, Allowance: 2000 + rnd.Int64N(4000)})
		if l == 0 {
			keys.Lower, cut[0].Lower = nil, nil
		}
		behind := Position(rnd.IntN(4000 * lanes))
		if l%10 == 0 {
			behind = rows / 2
		}
		if ordered {
			queued = append(queued, Queued{keys, Interval{rows - behind, rows}})
			continue
		}
		// If rows are unordered, all later splits wait, and so does the rest of the current ones.
		for n, i := range s.Read {
			if i.From > rows-behind || n%16 == l%16 {
				from := i.From
				if n%16 == l%16 {
					from += Position(rnd.IntN(20_000))
				}
				queued = append(queued, Queued{keys, Interval{from, i.To}})
			}
		}
	}
	s.Pieces = Tile(cut, queued)
	var out []Position
	for range 256 {
		at := Position(rnd.IntN(rows - 1_000_000))
		for range 400 { // the approximate distance between rows of a lane
			out = append(out, at)
			at += Position(1 + rnd.IntN(2*lanes))
		}
	}
	s.Out = OfPositions(out)
	return s
}

func TestCheckpointOf100MillionRowsIsSmall(t *testing.T) {
	for _, lanes := range []int{1, 32, 256, 1024} {
		for _, ordered := range []bool{true, false} {
			file := conformance.Try(simulated(rand.New(rand.NewPCG(1, uint64(lanes))), lanes, ordered).Encode()).Must(t)
			t.Logf("%d lanes, ordered %v: %d bytes", lanes, ordered, len(file))
			conformance.True(t, len(file) < 1<<20, "%d lanes, ordered %v: %d bytes, want < 1 MiB", lanes, ordered, len(file))
		}
	}
}

func sample(read Position) *Snapshot {
	return &Snapshot{
		About: About{Job: "j", Time: time.Unix(5, 0).UTC(), Attempt: 2, Ordered: true, Settle: time.Second,
			Counters: map[string]int64{"read": int64(read)}, Files: map[string]int64{"rejects.csv": 7},
			Starts: []Start{{Source: 1, Record: 2, Line: 3, Offset: 4, Bytes: 5}},
			Chains: []Chain{{Source: 1, Every: 8, Sums: []uint64{1, 2}}}},
		State: State{Read: Set{{0, read}, {At(1, 0), At(1, 9)}},
			Pieces: []Piece{{Waiting: Set{{1, 2}, {4, 8}}, Allowance: 3}, {Lower: []byte("key1")},
				{Lower: []byte("key2"), Waiting: Set{{At(1, 0), At(1, 1)}}}},
			Out: Set{{2, 3}}},
	}
}

func TestSnapshotRoundTrip(t *testing.T) {
	for _, s := range []*Snapshot{sample(10), {State: State{Pieces: []Piece{{}}}}, simulated(rand.New(rand.NewPCG(1, 1)),
		40, false)} {
		file := conformance.Try(s.Encode()).Must(t)
		conformance.Equal(t, cmp.Diff(s, conformance.Try(Decode(file)).Must(t)), "", "(-want +got)")
	}
}

func TestDamagedCheckpointIsDetected(t *testing.T) {
	file := conformance.Try(sample(10).Encode()).Must(t)
	for i := range file {
		bad := bytes.Clone(file)
		bad[i] ^= 0x40
		conformance.Refused(t, conformance.ErrorOf(Decode(bad)), "", "byte %d changed: decoded", i)
		conformance.Refused(t, conformance.ErrorOf(Decode(file[:i])), "", "cut at byte %d: decoded", i)
	}
}

func TestPreviousCheckpointReplacesTornOne(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) || Exists(dir) {
		t.Errorf("an empty folder: %v, want one that there is none", err)
	}
	for read := Position(1); read <= 3; read++ {
		must(t, Write(dir, conformance.Try(sample(read).Encode()).Must(t)))
	}
	want := func(read Position) {
		t.Helper()
		conformance.Equal(t, conformance.Try(Read(dir)).Must(t).Read[0].To, read, "read up to")
	}
	want(3)
	newest := filepath.Join(dir, File)
	text, err := os.ReadFile(newest)
	must(t, err)
	must(t, os.WriteFile(newest, text[:len(text)/2], 0o644))
	want(2)
	if err := os.Remove(newest); err != nil { // a crash between the two renames
		t.Fatal(err)
	}
	want(2)
	must(t, os.WriteFile(filepath.Join(dir, PrevFile), nil, 0o644))
	conformance.Refused(t, conformance.ErrorOf(Read(dir)), PrevFile, "both gone bad")
	err = Remove(dir)
	conformance.True(t, err == nil && !Exists(dir), "remove: %v", err)
}

// The newest checkpoint allowed rows to be sent after it. If it is torn, nothing is known about these rows.
func TestOpenRecordsAreSuspectAfterTornCheckpoint(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		s := &Snapshot{About: About{Settled: true, Ordered: true}, State: State{Read: Set{{0, 10}},
			Pieces: []Piece{{Waiting: Set{{5, 10}}, Allowance: 1}, {Lower: []byte("m"), Waiting: Set{{5, 10}}}}}}
		file, err := s.Encode()
		if err == nil {
			err = Write(dir, file)
		}
		must(t, err)
	}
	suspects := func() (n int) {
		s := conformance.Try(Read(dir)).Must(t)
		conformance.True(t, s.Older != s.Settled, "older %v, settled %v", s.Older, s.Settled)
		r := NewReplay(&s.State, true)
		for i := range int64(40) {
			if _, suspect := r.Row(0, i, []byte{"am"[i%2]}); suspect {
				n++
			}
		}
		return n
	}
	conformance.Equal(t, suspects(), 1, "records that may have been sent, of which one is allowed")
	must(t, os.WriteFile(filepath.Join(dir, File), []byte("torn"), 0o644))
	conformance.Equal(t, suspects(), 35, "records that may have been sent, with the newest torn")
}

func TestUnwritableCheckpointIsAnError(t *testing.T) {
	conformance.Refused(t, Write(filepath.Join(t.TempDir(), "none"), []byte("x")), "", "written into a missing folder")
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, File, "in the way"), 0o755))
	must(t, os.MkdirAll(filepath.Join(dir, PrevFile, "in the way"), 0o755))
	conformance.Refused(t, Write(dir, []byte("x")), "", "written in the place of a folder")
	conformance.Refused(t, Remove(dir), "", "a folder that is not empty was removed")
}

func TestJobRoundTrip(t *testing.T) {
	dir := t.TempDir()
	j := &Job{Identity: progress.Identify("a", "b"), Details: []progress.Fact{{Name: "mode", Value: "put"}},
		Args: []string{"load", "a b.csv"}, Types: []Typed{{Column: "c", Type: "string"}}}
	must(t, j.Write(dir))
	conformance.Equal(t, cmp.Diff(j, conformance.Try(ReadJob(dir)).Must(t)), "", "(-want +got)")
	must(t, os.WriteFile(filepath.Join(dir, JobFile), []byte("{"), 0o644))
	conformance.Refused(t, conformance.ErrorOf(ReadJob(dir)), JobFile, "a damaged job")
}

func FuzzDecode(f *testing.F) {
	for _, s := range []*Snapshot{sample(10), {State: State{Pieces: []Piece{{}}}}} {
		file := conformance.Try(s.Encode()).Must(f)
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		s, err := Decode(file)
		if err != nil {
			return
		}
		back, err := Decode(conformance.Try(s.Encode()).Must(t))
		conformance.MustEqual(t, err, nil, "what was decoded and encoded again")
		conformance.Equal(t, cmp.Diff(s, back), "", "(-want +got)")
	})
}

func FuzzDecodeRaw(f *testing.F) {
	f.Add([]byte("\x02{}\x01\x00\x05\x00\x01\x00\x00\x00\x01\x01\x02"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := decodeRaw(raw)
		if err != nil {
			return
		}
		for p := range Position(16) {
			s.Final(p, []byte{byte(p)})
		}
	})
}

func TestDivisionIsRestoredOrRefused(t *testing.T) {
	dir, j := t.TempDir(), new(Job)
	d, err := j.ReadDivision(dir)
	conformance.True(t, d == nil && err == nil, "without one: %q, %v", d, err)
	kept := []byte("1-10,10-20")
	must(t, j.KeepDivision(dir, kept))
	d, err = j.ReadDivision(dir)
	conformance.True(t, err == nil && bytes.Equal(d, kept), "%q, %v", d, err)
	name := filepath.Join(dir, DivisionFile)
	for _, other := range []string{"1-10,10-21", "1-10", ""} {
		must(t, os.WriteFile(name, []byte(other), 0o600))
		conformance.Is(t, conformance.ErrorOf(j.ReadDivision(dir)), errDamaged, "%q is mistaken for", other)
	}
	must(t, os.Remove(name))
	conformance.Refused(t, conformance.ErrorOf(j.ReadDivision(dir)), "", "a division that is missing is mistaken for none")
}

func TestReadingOrderIsRestoredOrRefused(t *testing.T) {
	dir := t.TempDir()
	j := &Job{Identity: "x", Details: []progress.Fact{{Name: "a", Value: "b"}}}
	order, err := j.ReadOrder(dir)
	conformance.True(t, order == nil && err == nil, "a job without an order has %q, error %v", order, err)
	must(t, j.KeepOrder(dir, []byte("some order")))
	kept := conformance.Try(ReadJob(dir)).Must(t)
	order, err = kept.ReadOrder(dir)
	conformance.True(t, string(order) == "some order" && err == nil, "order %q, error %v", order, err)
	// If the process is killed after it has written a longer order, but not yet the job, the valid order is intact.
	next := *kept
	must(t, next.KeepOrder(dir, []byte("another order")))
	order, err = kept.ReadOrder(dir)
	conformance.True(t, string(order) == "some order" && err == nil, "after a kill: order %q, error %v", order, err)
	order, err = next.ReadOrder(dir)
	conformance.True(t, string(order) == "another order" && err == nil, "order %q, error %v", order, err)
	must(t, next.KeepOrder(dir, []byte("a third order")))
	order, err = next.ReadOrder(dir)
	conformance.True(t, string(order) == "a third order" && err == nil, "order %q, error %v", order, err)
	must(t, kept.KeepOrder(dir, []byte("some order")))
	details := []progress.Fact{{Name: "a", Value: "b"}}
	changes, _ := progress.Changes(kept.Details, kept.WithOrder(details))
	conformance.True(t, len(changes) == 0, "changes %q", changes)
	changes, inputs := progress.Changes(kept.Details, details)
	conformance.True(t, len(changes) != 0 && !inputs, "a version that knows no orders sees the changes %q", changes)
	name := filepath.Join(dir, OrderFile)
	for _, bad := range []string{"", "some Order", "some order "} {
		must(t, os.WriteFile(name, []byte(bad), 0o600))
		conformance.Refused(t, conformance.ErrorOf(kept.ReadOrder(dir)), OrderFile, "%q: error", bad)
	}
	must(t, os.Remove(name))
	conformance.Refused(t, conformance.ErrorOf(kept.ReadOrder(dir)), "", "a missing file is no error")
}
