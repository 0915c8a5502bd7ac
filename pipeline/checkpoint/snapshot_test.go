package checkpoint

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/progress"
)

func sample(read Position) *Snapshot {
	return &Snapshot{
		About: About{
			Job: "j", Time: time.Unix(5, 0).UTC(), Attempt: 2, Ordered: true, Settle: time.Second,
			Counters: map[string]int64{"read": int64(read)}, Files: map[string]int64{"rejects.csv": 7},
			Starts: []Start{{Source: 1, Record: 2, Line: 3, Offset: 4, Bytes: 5}}, Chains: []Chain{{Source: 1, Every: 8, Sums: []uint64{1, 2}}},
		},
		State: State{
			Read:   Set{{0, read}, {At(1, 0), At(1, 9)}},
			Pieces: []Piece{{Waiting: Set{{1, 2}, {4, 8}}, Allowance: 3}, {Lower: []byte("key1")}, {Lower: []byte("key2"), Waiting: Set{{At(1, 0), At(1, 1)}}}},
			Out:    Set{{2, 3}},
		},
	}
}

func TestASnapshotSurvivesTheRoundTrip(t *testing.T) {
	for _, s := range []*Snapshot{sample(10), {State: State{Pieces: []Piece{{}}}}, simulated(rand.New(rand.NewPCG(1, 1)), 40, false)} {
		file, err := s.Encode()
		must(t, err)
		back, err := Decode(file)
		must(t, err)
		conformance.Equal(t, cmp.Diff(s, back), "", "(-want +got)")
	}
}

func TestEveryChangedByteOfACheckpointIsNoticed(t *testing.T) {
	file, err := sample(10).Encode()
	must(t, err)
	for i := range file {
		bad := bytes.Clone(file)
		bad[i] ^= 0x40
		if _, err := Decode(bad); err == nil {
			t.Errorf("byte %d changed: decoded", i)
		}
		if _, err := Decode(file[:i]); err == nil {
			t.Errorf("cut at byte %d: decoded", i)
		}
	}
}

func TestTheOneBeforeIsTakenWhenTheNewestIsTorn(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); !errors.Is(err, fs.ErrNotExist) || Exists(dir) {
		t.Errorf("an empty folder: %v, want one that there is none", err)
	}
	for read := Position(1); read <= 3; read++ {
		file, err := sample(read).Encode()
		must(t, err)
		must(t, Write(dir, file))
	}
	want := func(read Position) {
		t.Helper()
		s, err := Read(dir)
		must(t, err)
		conformance.Equal(t, s.Read[0].To, read, "read up to")
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
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), PrevFile) {
		t.Errorf("both gone bad: %v, want an error that names the file", err)
	}
	if err := Remove(dir); err != nil || Exists(dir) {
		t.Errorf("remove: %v", err)
	}
}

// Rows were sent after the newest checkpoint was written, by its allowances, which nobody knows any more.
func TestEveryOpenRecordMayHaveBeenSentWhenTheNewestCheckpointIsTorn(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		s := &Snapshot{About: About{Settled: true, Ordered: true}, State: State{
			Read: Set{{0, 10}}, Pieces: []Piece{{Waiting: Set{{5, 10}}, Allowance: 1}, {Lower: []byte("m"), Waiting: Set{{5, 10}}}},
		}}
		file, err := s.Encode()
		if err == nil {
			err = Write(dir, file)
		}
		must(t, err)
	}
	suspects := func() (n int) {
		s, err := Read(dir)
		must(t, err)
		if s.Older == s.Settled {
			t.Errorf("older %v, settled %v", s.Older, s.Settled)
		}
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

func TestACheckpointThatCannotBeWrittenIsAnError(t *testing.T) {
	if err := Write(filepath.Join(t.TempDir(), "none"), []byte("x")); err == nil {
		t.Error("written into a folder that does not exist")
	}
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, File, "in the way"), 0o755))
	must(t, os.MkdirAll(filepath.Join(dir, PrevFile, "in the way"), 0o755))
	conformance.Refused(t, Write(dir, []byte("x")), "", "written in the place of a folder")
	conformance.Refused(t, Remove(dir), "", "a folder that is not empty was removed")
}

func TestAJobSurvivesTheRoundTrip(t *testing.T) {
	dir := t.TempDir()
	j := &Job{Identity: progress.Identify("a", "b"), Details: []progress.Fact{{Name: "mode", Value: "put"}}, Args: []string{"load", "a b.csv"}, Types: []Typed{{Column: "c", Type: "string"}}}
	must(t, j.Write(dir))
	back, err := ReadJob(dir)
	must(t, err)
	conformance.Equal(t, cmp.Diff(j, back), "", "(-want +got)")
	must(t, os.WriteFile(filepath.Join(dir, JobFile), []byte("{"), 0o644))
	if _, err := ReadJob(dir); err == nil || !strings.Contains(err.Error(), JobFile) {
		t.Errorf("a damaged job: %v, want an error that names the file", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []*Snapshot{sample(10), {State: State{Pieces: []Piece{{}}}}} {
		file, err := s.Encode()
		must(f, err)
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		s, err := Decode(file)
		if err != nil {
			return
		}
		again, err := s.Encode()
		must(t, err)
		back, err := Decode(again)
		conformance.MustEqual(t, err, nil, "what was decoded and encoded again")
		conformance.Equal(t, cmp.Diff(s, back), "", "(-want +got)")
	})
}

// FuzzDecodeRaw goes past the checksum.
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

func TestADivisionSurvivesTheRoundTrip(t *testing.T) {
	dir, j := t.TempDir(), new(Job)
	if d, err := j.ReadDivision(dir); d != nil || err != nil {
		t.Errorf("without one: %q, %v", d, err)
	}
	kept := []byte("1-10,10-20")
	must(t, j.KeepDivision(dir, kept))
	if d, err := j.ReadDivision(dir); err != nil || !bytes.Equal(d, kept) {
		t.Errorf("%q, %v", d, err)
	}
	name := filepath.Join(dir, DivisionFile)
	for _, other := range []string{"1-10,10-21", "1-10", ""} {
		must(t, os.WriteFile(name, []byte(other), 0o600))
		if _, err := j.ReadDivision(dir); !errors.Is(err, errDamaged) {
			t.Errorf("%q is mistaken for it: %v", other, err)
		}
	}
	must(t, os.Remove(name))
	if _, err := j.ReadDivision(dir); err == nil {
		t.Error("a division that is missing is mistaken for none")
	}
}

func TestTheOrderOfReadingComesBackOrIsRefused(t *testing.T) {
	dir := t.TempDir()
	j := &Job{Identity: "x", Details: []progress.Fact{{Name: "a", Value: "b"}}}
	if order, err := j.ReadOrder(dir); order != nil || err != nil {
		t.Errorf("a job without an order has %q, error %v", order, err)
	}
	must(t, j.KeepOrder(dir, []byte("some order")))
	kept, err := ReadJob(dir)
	must(t, err)
	if order, err := kept.ReadOrder(dir); string(order) != "some order" || err != nil {
		t.Errorf("order %q, error %v", order, err)
	}
	// More is read out of order: a kill before the job says so leaves the order that counts.
	next := *kept
	must(t, next.KeepOrder(dir, []byte("another order")))
	if order, err := kept.ReadOrder(dir); string(order) != "some order" || err != nil {
		t.Errorf("after a kill: order %q, error %v", order, err)
	}
	if order, err := next.ReadOrder(dir); string(order) != "another order" || err != nil {
		t.Errorf("order %q, error %v", order, err)
	}
	must(t, next.KeepOrder(dir, []byte("a third order")))
	if order, err := next.ReadOrder(dir); string(order) != "a third order" || err != nil {
		t.Errorf("order %q, error %v", order, err)
	}
	must(t, kept.KeepOrder(dir, []byte("some order")))
	details := []progress.Fact{{Name: "a", Value: "b"}}
	if changes, _ := progress.Changes(kept.Details, kept.WithOrder(details)); len(changes) > 0 {
		t.Errorf("changes %q", changes)
	}
	if changes, inputs := progress.Changes(kept.Details, details); len(changes) == 0 || inputs {
		t.Errorf("a version that knows no orders sees the changes %q", changes)
	}
	name := filepath.Join(dir, OrderFile)
	for _, bad := range []string{"", "some Order", "some order "} {
		must(t, os.WriteFile(name, []byte(bad), 0o600))
		_, err := kept.ReadOrder(dir)
		conformance.Refused(t, err, OrderFile, "%q: error", bad)
	}
	must(t, os.Remove(name))
	if _, err := kept.ReadOrder(dir); err == nil {
		t.Error("a missing file is no error")
	}
}
