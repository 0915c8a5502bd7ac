package knownfiles

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tsimport/internal/conformance"
	"tsimport/internal/jobdir"
	"tsimport/reader/input"
)

// must ends the test with an error that it does not expect.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) { conformance.Main(m) }

func TestATreeOfAnyReadsIsThatOfTheWholeFile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const block = 64 << 10
	small := func(size int) *tree {
		tree := newTree(int64(size))
		tree.block = block
		return tree
	}
	for _, size := range []int{0, 1, block - 1, block, block + 1, 3*block + 5} {
		name := filepath.Join(t.TempDir(), "in")
		text := make([]byte, size)
		for i := range text {
			text[i] = byte(i*7 + i>>13)
		}
		must(t, os.WriteFile(name, text, 0o600))
		item := find(t, name)[0]
		want, err := small(size).complete(t.Context(), &item)
		must(t, err)
		for round := range 4 {
			first := small(size)
			watched := item.Observed(first.observe)
			at, err := watched.OpenAt(t.Context())
			must(t, err)
			var all sync.WaitGroup
			for range round { // pieces from all over, some twice, at the same time
				seed := r.Uint64()
				all.Go(func() {
					r := rand.New(rand.NewPCG(seed, 0))
					for range 20 {
						off := r.IntN(size + 1)
						_, _ = at.ReadAt(make([]byte, r.IntN(block)), int64(off))
					}
					for off := 0; off < size; off += 10_000 {
						_, _ = at.ReadAt(make([]byte, 10_000), int64(off))
					}
				})
			}
			all.Wait()
			at.Close()
			if round > 0 && len(first.missing()) > 0 {
				t.Errorf("%d bytes: blocks %v were read in order and are not hashed", size, first.missing())
			}
			// What is kept of it serves another attempt.
			blocks, sums := first.drain()
			again := small(size)
			must(t, decodeBlocks(encodeBlocks(nil, 0, blocks, sums), []*tree{again}))
			for _, one := range []*tree{first, again} {
				if got, err := one.complete(t.Context(), &item); err != nil || got != want {
					t.Errorf("%d bytes, round %d: %s, %v, want %s", size, round, got, err, want)
				}
			}
		}
	}
}

func TestHashesOfOtherInputsAreRefused(t *testing.T) {
	one := encodeBlocks(nil, 0, []int64{1}, []blockSum{sha256.Sum256(nil)})
	for _, records := range [][]byte{one, one[:len(one)-1], encodeBlocks(nil, 1, []int64{0}, []blockSum{{}})} {
		if decodeBlocks(records, []*tree{newTree(5)}) == nil {
			t.Errorf("%x is taken", records)
		}
	}
}

// find expands arguments.
func find(t *testing.T, args ...string) []input.Item {
	t.Helper()
	set, err := input.Expand(t.Context(), args, input.Options{})
	must(t, err)
	return set.Items
}

// drop is a folder into which files are delivered.
type drop struct {
	t     *testing.T
	dir   string
	store jobdir.Store
	now   time.Time
	table int64
}

func newDrop(t *testing.T) *drop {
	t.Helper()
	return &drop{t: t, dir: t.TempDir(), store: &faulty{objects: map[string][]byte{}, at: -1}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), table: 1}
}

// deliver writes a file as of now.
func (d *drop) deliver(name, content string) {
	d.t.Helper()
	full := filepath.Join(d.dir, name)
	err := errors.Join(os.WriteFile(full, []byte(content), 0o600), os.Chtimes(full, d.now, d.now))
	must(d.t, err)
}

// night lets a load choose, and perhaps finish. It returns the names of what it loads, and the notes.
func (d *drop) night(o Options, finish bool) (loaded []string, notes string, err error) {
	d.t.Helper()
	d.now = d.now.Add(24 * time.Hour)
	ledger, err := Open(d.t.Context(), d.store)
	if err != nil {
		return nil, "", err
	}
	o.Now = func() time.Time { return d.now }
	if o.Job == "" {
		o.Job = "job"
	}
	o.Exists = func(_ context.Context, name string) (bool, error) {
		_, err := os.Stat(name)
		return err == nil, nil
	}
	s := NewSelector(ledger, o)
	chosen, said, err := s.Select(d.t.Context(), find(d.t, d.dir), d.table, nil)
	if err != nil {
		return nil, "", err
	}
	for _, i := range chosen {
		loaded = append(loaded, filepath.Base(i.Name))
	}
	if len(chosen) == 0 {
		return nil, strings.Join(said, "\n"), s.NothingNew(d.t.Context())
	}
	if err := s.Begin(d.t.Context(), d.table, "run"); err != nil {
		return nil, "", err
	}
	if finish {
		err = s.Loaded(d.t.Context())
	}
	return loaded, strings.Join(said, "\n"), err
}

// want compares what a night loads.
func (d *drop) want(o Options, note string, names ...string) {
	d.t.Helper()
	got, notes, err := d.night(o, true)
	if err != nil || !slices.Equal(got, names) || !strings.Contains(notes, note) {
		d.t.Errorf("loads %q, wants %q; notes %q want %q; %v", got, names, notes, note, err)
	}
}

func (d *drop) refused(o Options, parts ...string) {
	d.t.Helper()
	_, _, err := d.night(o, true)
	var refused *Refused
	if !errors.As(err, &refused) {
		d.t.Errorf("%v", err)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			d.t.Errorf("%q does not say %q", err, p)
		}
	}
}

func TestContentsAreLoadedOnce(t *testing.T) {
	d := newDrop(t)
	d.deliver("a", "one")
	d.deliver("b", "two")
	d.want(Options{}, "", "a", "b")
	d.want(Options{}, "2 of 2 inputs are known")
	d.deliver("a", "one") // a new time
	d.want(Options{}, "2 of 2 inputs are known")
	d.deliver("c", "two")
	d.deliver("d", "four")
	d.deliver("e", "four")
	d.want(Options{}, "under another name", "d")
	d.want(Options{}, "5 of 5 inputs are known")
	d.deliver("f", "one")
	d.want(Options{ByName: true}, "", "f")
	d.deliver("b", "too")
	d.deliver("g", "new")
	d.refused(Options{}, "b changed", "--reload-changed")
	d.deliver("a", "longer")
	d.refused(Options{}, "a changed", "1 more")
	d.want(Options{ReloadChanged: true}, "loaded again", "a", "b", "g")
	d.deliver("h", "two") // what b was
	d.want(Options{}, "h (as ")
	ledger, err := Open(t.Context(), d.store)
	must(t, err)
	ledger.bind(d.table)
	must(t, ledger.Forget(t.Context(), []string{filepath.Join(d.dir, "d"), filepath.Join(d.dir, "e")}, d.now))
	d.want(Options{}, "e (as", "d")
	d.table = 2 // it was dropped and made again
	d.want(Options{ByName: true}, "", "a", "b", "c", "d", "e", "f", "g", "h")
}

func TestOfAnUnfinishedLoadNothingIsKnown(t *testing.T) {
	d := newDrop(t)
	d.deliver("a", "one")
	if got, _, err := d.night(Options{Command: "load x"}, false); err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	d.refused(Options{Job: "other"}, "an unfinished load has begun to load", "load x")
	// Its content under another name is not loaded beside it, for both would be loaded in the end.
	move := func(from, to string) {
		must(t, os.Rename(filepath.Join(d.dir, from), filepath.Join(d.dir, to)))
	}
	move("a", "moved")
	d.refused(Options{Job: "other"}, "moved begins like ", "a and is as long", "load x", "files forget")
	d.deliver("moved", "two") // as long, and another content
	d.want(Options{Job: "third"}, "", "moved")
	move("moved", "b")
	d.deliver("a", "one")
	d.want(Options{}, "b (as ", "a") // the same load, started over
	d.want(Options{Job: "other"}, "2 of 2 inputs are known")
}

func TestAResumedLoadTakesWhatItTookBefore(t *testing.T) {
	d := newDrop(t)
	d.deliver("a", "one")
	ledger, _ := Open(t.Context(), d.store)
	s := NewSelector(ledger, Options{Job: "job"})
	found := find(t, d.dir)
	_, _, err := s.Select(t.Context(), found, 1, nil)
	must(t, err)
	d.deliver("0", "new")
	for _, c := range []struct {
		earlier []string
		want    string
	}{{[]string{found[0].Name}, ""}, {[]string{found[0].Name, "gone"}, "gone is missing"}} {
		got, _, err := NewSelector(ledger, Options{}).Select(t.Context(), find(t, d.dir), 1, c.earlier)
		if c.want == "" && (err != nil || len(got) != 1 || got[0].Name != found[0].Name) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v, %v", c.earlier, got, err)
		}
	}
}

func TestFilesThatMayBeHalfWrittenAreLeftOut(t *testing.T) {
	d := newDrop(t)
	d.deliver("a", "one")
	d.now = d.now.Add(30 * time.Hour)
	d.deliver("b", "two") // from a clock that is ahead
	d.now = d.now.Add(-30 * time.Hour)
	d.want(Options{Settle: 2 * time.Minute}, "b: left out, changed less than", "a")
	d.now = d.now.Add(48 * time.Hour)
	d.want(Options{Settle: 2 * time.Minute}, "", "b")

	d = newDrop(t)
	d.deliver("a", "one")
	d.deliver("a.done", "")
	d.deliver("b", "two")
	d.want(Options{DoneMarker: "{}.done"}, "b: left out, without their marker", "a")
	must(t, os.Mkdir(filepath.Join(d.dir, "_ok"), 0o700))
	d.deliver("b.done", "")
	d.want(Options{DoneMarker: "{}.done"}, "", "b")
}

func TestInputsComeInTheOrderThatIsAskedFor(t *testing.T) {
	d := newDrop(t)
	for i, name := range []string{"b", "a", "c"} {
		d.now = d.now.Add(time.Duration(-i) * time.Hour)
		d.deliver(name, name)
	}
	d.want(Options{Order: OrderTime}, "", "c", "a", "b")
	d.table++
	d.want(Options{Order: OrderName}, "", "a", "b", "c")
}

func TestALedgerIsMergedAndStaysWhatItIs(t *testing.T) {
	d := newDrop(t)
	for i := range 3 * mergeFrom {
		d.deliver(fmt.Sprintf("f%03d", i%(2*mergeFrom)), fmt.Sprintf("content %d", i))
		_, _, err := d.night(Options{ReloadChanged: true}, true)
		must(t, err)
	}
	names, err := d.store.List(t.Context(), "")
	if err != nil || len(names) > 2*mergeFrom {
		t.Errorf("%d objects, %v", len(names), err)
	}
	ledger, err := Open(t.Context(), d.store)
	if err != nil || len(ledger.Files()) != 2*mergeFrom || len(ledger.contents) != 3*mergeFrom {
		t.Errorf("%d files, %d contents, %v", len(ledger.Files()), len(ledger.contents), err)
	}
}

func TestALedgerOfANewerVersionOrADamagedOneIsRefused(t *testing.T) {
	for body, want := range map[string]string{`{"version":2}`: "newer version", `{"vers`: "damaged"} {
		d := newDrop(t)
		d.deliver("a", "one")
		must(t, d.store.PutAbsent(t.Context(), eventPrefix+"000000000", []byte(body)))
		if _, _, err := d.night(Options{}, true); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestStreamsAreRefused(t *testing.T) {
	d := newDrop(t)
	ledger, err := Open(t.Context(), d.store)
	must(t, err)
	if _, _, err := NewSelector(ledger, Options{}).Select(t.Context(), find(t, "-"), 1, nil); err == nil || !strings.Contains(err.Error(), "stream") {
		t.Errorf("%v", err)
	}
}

func TestATableWithoutATimeIsRefused(t *testing.T) {
	d := newDrop(t)
	d.deliver("a", "one")
	d.table = 0
	d.refused(Options{}, "does not say when the table was made")
}

func TestUnitsAreKeptForTheNextLoadOfTheTable(t *testing.T) {
	d := newDrop(t)
	must(t, os.WriteFile(filepath.Join(d.dir, "a.csv"), []byte("id,v\n"), 0o644))
	open := func(table int64) *Selector {
		ledger, err := Open(t.Context(), d.store)
		must(t, err)
		s := NewSelector(ledger, Options{Job: "job"})
		_, _, err = s.Select(t.Context(), find(t, d.dir), table, nil)
		must(t, err)
		return s
	}
	for i := range mergeFrom + 2 { // also when the ledger is written again as one
		s := open(1)
		s.KeepUnits(map[string]string{"v": "duration, s", fmt.Sprintf("c%d", i): "date, days"})
		must(t, s.Begin(t.Context(), 1, "run"))
	}
	if units := open(1).Units(); units["v"] != "duration, s" || units["c0"] != "date, days" {
		t.Errorf("%v", units)
	}
	if units := open(2).Units(); len(units) != 0 {
		t.Errorf("of another table of the name: %v", units)
	}
}
