package knownfiles

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/reader/input"
)

var errStore = errors.New("the store does not answer")

// faulty is a store in memory whose at-th operation, from 0, fails before or after it takes effect.
type faulty struct {
	jobdir.Store // nil: other methods are not called
	objects      map[string][]byte
	at           int
	after        bool
	failed       string
	err          error // nil means errStore
}

func (f *faulty) fails(op string) error {
	if f.at--; f.at != -1 {
		return nil
	}
	f.failed = op
	return cmp.Or(f.err, errStore)
}

func (f *faulty) String() string { return "memory" }

func (f *faulty) PutAbsent(_ context.Context, name string, body []byte) error {
	err := f.fails("put")
	if f.objects[name] != nil {
		return cmp.Or(err, jobdir.ErrExists)
	}
	if err == nil || f.after {
		f.objects[name] = body
	}
	return err
}

func (f *faulty) Get(_ context.Context, name string) ([]byte, error) {
	body, err := f.objects[name], f.fails("get")
	if body == nil {
		err = cmp.Or(err, fs.ErrNotExist)
	}
	return body, err
}

func (f *faulty) List(context.Context, string) ([]string, error) {
	return slices.Sorted(maps.Keys(f.objects)), f.fails("list")
}

func (f *faulty) Delete(_ context.Context, name string) error {
	err := f.fails("delete")
	if err == nil {
		delete(f.objects, name)
	}
	return err
}

// TestRunAfterAStoreFaultLoadsEachFileOnce makes each operation fail. Only deletions after a merge fail silently.
func TestRunAfterAStoreFaultLoadsEachFileOnce(t *testing.T) {
	for _, after := range []bool{false, true} {
		seen := map[string]int{}
		for at := 0; ; at++ {
			d := newDrop(t)
			f := d.store.(*faulty)
			f.after = after
			d.deliver("a", "one")
			d.want(Options{}, "", "a")
			ledger := d.ledger()
			for range mergeFrom - 3 { // the second event after these merges them
				must(t, ledger.append(t.Context(), &event{Kind: kindForgotten, Table: d.table}))
			}
			d.deliver("b", "two", "c", "three")
			f.at = at
			got, _, err := d.night(Options{}, true)
			f.at = -1
			if f.failed == "" {
				break
			}
			seen[f.failed]++
			conformance.Equal(t, errors.Is(err, errStore), (f.failed != "delete"),
				"operation %d, a %s that fails (after it was done: %v): %v", at, f.failed, after, err)
			if err == nil {
				d.want(Options{}, "3 of 3 inputs are known")
			} else if got, notes, err := d.night(Options{}, true); err != nil ||
				!slices.Equal(got, []string{"b", "c"}) && !(after && strings.Contains(notes, "3 of 3 inputs are known")) {
				t.Errorf("after operation %d, a %s: loads %q, %q, %v", at, f.failed, got, notes, err)
			}
			if ledger = d.ledger(); len(ledger.Files()) != 3 || len(ledger.begun) != 0 || len(got) > 2 {
				t.Errorf("operation %d: %v, %v begun", at, ledger.Files(), ledger.begun)
			}
		}
		conformance.True(t, seen["list"] != 0 && seen["get"] >= mergeFrom-3 && seen["put"] >= 3 && seen["delete"] >= 1,
			"what was to fail did not: %v", seen)
	}
}

// TestVanishedFileEndsTheLoad removes a found file. Each method that reads it must fail, and must not make it known.
func TestVanishedFileEndsTheLoad(t *testing.T) {
	const selects, begins, ends = "select", "begin", "end"
	remove := func(name string) error { return os.Remove(name) }
	for what, c := range map[string]struct {
		before string // a known file with the size of the removed one
		begun  bool   // before was only begun
		gone   string
		act    string // method that reads the removed file
		goes   func(name string) error
	}{
		"known, with a new time":  {"long", false, "long", selects, remove},
		"as long as a known one":  {"z", false, "b", selects, remove},
		"alone as long as one":    {"z", false, "long", selects, remove},
		"as long as a chosen one": {"", false, "b", selects, remove},
		"as long as one after it": {"", false, "a", selects, remove},
		"as long as a begun one":  {"z", true, "long", selects, remove},
		"chosen":                  {"", false, "long", begins, remove},
		"chosen, and cut":         {"", false, "long", begins, func(name string) error { return os.Truncate(name, 2) }},
		"begun":                   {"", false, "long", ends, remove},
		"begun, and changed": {"", false, "long", ends,
			func(name string) error { return os.WriteFile(name, []byte("x"), 0o600) }},
	} {
		t.Run(what, func(t *testing.T) {
			d := newDrop(t)
			if c.before != "" {
				d.deliver(c.before, map[bool]string{false: "six", true: "sixsix"}[c.gone == "long"])
				_, _, err := d.night(Options{Job: "other"}, !c.begun)
				must(t, err)
				must(t, os.Remove(filepath.Join(d.dir, c.before)))
			}
			for name, content := range map[string]string{"a": "one", "b": "two", "long": "longer"} {
				d.deliver(name, content)
			}
			s := NewSelector(d.ledger(), Options{Job: "job", ReloadChanged: true})
			found, gone := find(t, d.dir), filepath.Join(d.dir, c.gone)
			for _, act := range []struct {
				name string
				do   func() error
			}{{selects, func() error { _, _, err := s.Select(t.Context(), found, d.table, nil, nil); return err }},
				{begins, func() error { return s.Begin(t.Context(), d.table, "run") }},
				{ends, func() error { return s.Loaded(t.Context(), nil) }}} {
				if act.name != c.act {
					must(t, act.do())
					continue
				}
				must(t, c.goes(gone))
				conformance.Refused(t, act.do(), c.gone, "%s", act.name)
				break
			}
			f := d.ledger().files[gone]
			conformance.True(t, f.Name == "" || c.before == c.gone, "%v is known", f)
		})
	}
}

// TestLeftOutFileDoesNotAffectOthers leaves out one of five files, and all but one, at each position.
func TestLeftOutFileDoesNotAffectOthers(t *testing.T) {
	all := []string{"a", "b", "c", "d", "e"}
	type kind struct {
		name, note string
		o          Options
		odd        func(d *drop, name string)
	}
	for _, k := range []kind{
		{"young", "left out, changed less than 1h0m0s ago", Options{Settle: time.Hour}, func(d *drop, name string) {
			d.now = d.now.Add(24 * time.Hour)
			d.deliver(name, "new")
			d.now = d.now.Add(-24 * time.Hour)
		}},
		{"without its marker", "left out, without their marker", Options{DoneMarker: "{}.done"}, func(d *drop, name string) {
			_ = os.Remove(filepath.Join(d.dir, name+".done"))
		}},
		{"known under another name", "left out, this content was loaded", Options{}, func(d *drop, name string) {
			d.elsewhere("x"+name, "content of "+name)
		}},
		{"changed", "loaded again", Options{ReloadChanged: true}, func(d *drop, name string) {
			for _, other := range all {
				if other != name {
					d.elsewhere(other, "content of "+other)
				}
			}
			d.elsewhere(name, "other content")
		}},
	} {
		for i, name := range all {
			for _, most := range []bool{false, true} { // with most, all files except this one are odd
				d := newDrop(t)
				odd, rest := []string{name}, slices.Delete(slices.Clone(all), i, i+1)
				if most {
					odd, rest = rest, odd
				}
				for _, name := range all {
					d.deliver(name, "content of "+name)
					if k.o.DoneMarker != "" {
						d.deliver(name+".done", "")
					}
				}
				for _, name := range odd {
					k.odd(d, name)
				}
				if k.name == "changed" { // only these are loaded
					if most {
						continue // each odd file makes all others known
					}
					rest = odd
				}
				got, notes, err := d.night(k.o, true)
				lines := strings.Split(notes, "\n")
				conformance.True(t, err == nil && slices.Equal(got, rest) && strings.Contains(lines[0], k.note) &&
					most == strings.Contains(lines[0], " and 1 more: ") && (len(lines) <= 1 || k.name == "changed"),
					"%s: %v: loads %v, want %v; %q, %v", k.name, odd, got, rest, notes, err)
			}
		}
	}
}

// elsewhere makes another load take a content under a name in the drop.
func (d *drop) elsewhere(name, content string) {
	d.t.Helper()
	place := &drop{t: d.t, dir: d.t.TempDir(), store: d.store, now: d.now, table: d.table}
	place.deliver("f", content)
	item := find(d.t, place.dir)[0]
	hash, err := hashOf(d.t.Context(), &item)
	f := File{Name: filepath.Join(d.dir, name), Size: item.Size, Hash: hash, Run: "elsewhere"}
	must(d.t, errors.Join(err, d.ledger().append(d.t.Context(), &event{Kind: kindLoaded, Table: d.table,
		Files: []File{f}})))
}

func TestForgettingOneFileKeepsTheOthers(t *testing.T) {
	for _, name := range []string{"a", "b", "c"} {
		d := newDrop(t)
		d.deliver("a", "content of a", "b", "content of b", "c", "content of c")
		d.want(Options{}, "", "a", "b", "c")
		d.deliver("begun1", "begun1 is long", "begun2", "begun2 is long")
		got, _, err := d.night(Options{Job: "other"}, false)
		conformance.MustTrue(t, err == nil && len(got) == 2, "%v %v", got, err)
		ledger := d.ledger()
		must(t, ledger.Forget(t.Context(), []string{filepath.Join(d.dir, name), filepath.Join(d.dir, "begun1")}, d.now))
		for range 2 { // immediately, and after the ledger has been reread
			for _, other := range []string{"a", "b", "c", "begun1", "begun2"} {
				if forgotten := other == name || other == "begun1"; ledger.Knows(filepath.Join(d.dir, other)) == forgotten {
					t.Errorf("%s: knows %s: %v", name, other, !forgotten)
				}
			}
			_, bySize := ledger.otherJobs("job")
			conformance.True(t, len(ledger.contents) == 2 && len(bySize) == 1 && len(bySize[14]) == 1 && bySize[14][0].Sum != "",
				"contents %v, begun %v", ledger.contents, bySize)
			ledger = d.ledger()
		}
		d.refused(Options{}, "begun2", "an unfinished load")
		must(t, errors.Join(os.Remove(filepath.Join(d.dir, "begun2")), os.Remove(filepath.Join(d.dir, "begun1"))))
		d.deliver("other", "content of "+name)
		d.want(Options{}, "other (as ", name) // its content is known, even under its own name
	}
}

func TestLedgerMergedDuringAReadIsReadAgain(t *testing.T) {
	d := newDrop(t)
	d.deliver("a", "one")
	d.want(Options{}, "", "a")
	f := d.store.(*faulty)
	f.at, f.err = 1, fs.ErrNotExist
	l, err := Open(t.Context(), f)
	conformance.True(t, err == nil && len(l.Files()) == 1 && f.failed == "get", "%v, %q failed", err, f.failed)
}

func TestUnfinishedLoadsOfOtherJobsAreSeen(t *testing.T) {
	for range 20 { // map order varies
		l := &Ledger{begun: map[string]*begun{}}
		for i := range 5 {
			l.begun[fmt.Sprint("job", i)] = &begun{Names: []string{fmt.Sprint("f", i)}, Heads: []head{{int64(i), "sum"}}}
		}
		byName, bySize := l.otherJobs("job2")
		conformance.MustTrue(t, len(byName) == 4 && len(bySize) == 4 && byName["f2"].Name == "", "%v, %v", byName, bySize)
	}
}

func TestLedgerDescribesKnownFiles(t *testing.T) {
	d := newDrop(t)
	d.deliver("a", "one", "b", "one")
	d.want(Options{}, "b (as ", "a")
	later := d.now.Add(time.Hour)
	d.now = later
	d.deliver("b", "one")
	d.want(Options{}, "2 of 2 inputs are known") // records the new time of b
	// Foreign objects are skipped, whether they sort first or last.
	must(t, errors.Join(d.store.PutAbsent(t.Context(), eventPrefix+"!", []byte{}),
		d.store.PutAbsent(t.Context(), eventPrefix+"a", []byte{})))
	a, b := filepath.Join(d.dir, "a"), filepath.Join(d.dir, "b")
	t.Chdir(d.dir)
	conformance.Equal(t, NameOf(&find(t, "a")[0]), a, "the name from another working directory")
	got := map[string]string{}
	for _, f := range d.ledger().Files() {
		got[f.Name] = f.SameAs + " " + f.Run + fmt.Sprint(f.Modified.Equal(later), f.Loaded.IsZero())
	}
	want := map[string]string{a: " runfalse false", b: a + " runtrue false"}
	conformance.True(t, maps.Equal(got, want), "got %v, want %v", got, want)
	// Nothing is known for another table of the same name, even after its own ledger was read again.
	d.table++
	must(t, errors.Join(os.Remove(a), os.Remove(b)))
	d.deliver("3", "", "c", "three")
	d.want(Options{}, "left out because empty", "c")
	d.deliver("d", "one")
	d.want(Options{}, "1 of 2 inputs are known", "d")
}

func TestSelectorWithoutLedgerLeavesOutIncompleteInputs(t *testing.T) {
	d := newDrop(t)
	d.deliver("a", "one", "b", "two", "b.done", "")
	s := NewSelector(nil, Options{DoneMarker: "{}.done", Exists: func(context.Context, string) (is bool, err error) {
		return
	}})
	chosen, notes, err := s.Select(t.Context(), find(t, d.dir), d.table, nil, nil)
	conformance.True(t, err == nil && len(chosen) == 1 && len(notes) == 1 && !s.Once() && s.Units() == nil &&
		len(s.Blocks()) == 0, "%v, %q, %v", chosen, notes, err)
	must(t, errors.Join(s.Begin(t.Context(), 0, "run"), s.Loaded(t.Context(), nil), s.NothingNew(t.Context(), nil)))
	// The check for a marker may fail.
	s = NewSelector(nil, Options{DoneMarker: "{}.ok", Exists: func(context.Context, string) (bool, error) {
		return false, errStore
	}})
	_, _, err = s.Select(t.Context(), find(t, d.dir), d.table, nil, nil)
	conformance.Is(t, err, errStore, "got")
	// The time of the last change may be unknown, too.
	found := find(t, d.dir)
	found[1].Modified = time.Time{}
	_, _, err = NewSelector(nil, Options{Settle: time.Minute}).Select(t.Context(), found, d.table, nil, nil)
	conformance.Refused(t, err, "b was last changed", "without a time")
}

func TestHashesOfAnEarlierAttemptAreReused(t *testing.T) {
	d := newDrop(t)
	d.deliver("a", "one")
	item := find(t, d.dir)[0]
	item.Size = 4
	conformance.Refused(t, conformance.ErrorOf(headOf(t.Context(), &item)), "", "what ends early has a beginning")
	first, second := d.selector(d.table), d.selector(d.table)
	first.trees[0].observe(0, []byte("one"))
	blocks := first.Blocks()
	must(t, second.Restore(blocks))
	conformance.Equal(t, len(second.trees[0].missing())+len(first.Blocks()), 0, "missing blocks")
	d.now = d.now.Add(time.Hour)
	d.deliver("a", "two") // changed after the file was read completely
	conformance.Refused(t, second.Loaded(t.Context(), nil), "", "what was changed while it was loaded is known")
	conformance.Refused(t, d.selector(d.table).Restore(blocks[1:]), "", "damaged hashes are taken")
}

func TestOnlyShortUnfinishedInputsAreKnownWhole(t *testing.T) {
	d := newDrop(t)
	d.deliver("a", "one", "b", strings.Repeat("x", headBytes+1))
	s := d.selector(d.table)
	must(t, s.Begin(t.Context(), d.table, "run"))
	for name, want := range map[string]bool{"a": true, "b": false} {
		same, err := s.Same(t.Context(), filepath.Join(d.dir, name))
		conformance.True(t, err == nil && same == want, "%s: %v, %v", name, same, err)
	}
}

var must = conformance.Must

func TestMain(m *testing.M) { conformance.Main(m) }

func TestTreeHashDoesNotDependOnReadOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const block = 64 << 10
	small := func(size int) *tree {
		tree := newTree(int64(size))
		tree.block = block
		return tree
	}
	for _, size := range []int{0, 1, block - 1, block, block + 1, 3*block + 5} {
		name := filepath.Join(t.TempDir(), "in")
		text := []byte(strings.Repeat("seven b", size/7+1)[:size])
		must(t, os.WriteFile(name, text, 0o600))
		item := find(t, name)[0]
		want := conformance.Try(small(size).complete(t.Context(), &item)).Must(t)
		for round := range 4 {
			first := small(size)
			watched := item.Observed(first.observe)
			at := conformance.Try(watched.OpenAt(t.Context())).Must(t)
			var all sync.WaitGroup
			for range round { // reads pieces concurrently in any order, some of them twice
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
			conformance.True(t, round == 0 || len(first.missing()) == 0,
				"%d bytes: blocks %v were read in order and are not hashed", size, first.missing())
			// Another attempt reuses the saved hashes.
			blocks, sums := first.drain()
			again := small(size)
			must(t, decodeBlocks(encodeBlocks(nil, 0, blocks, sums), []*tree{again}))
			for _, one := range []*tree{first, again} {
				got, err := one.complete(t.Context(), &item)
				conformance.True(t, err == nil && got == want, "%d bytes, round %d: %s, %v, want %s", size, round, got, err, want)
			}
		}
	}
}

func TestHashesOfOtherInputsAreRefused(t *testing.T) {
	one := encodeBlocks(nil, 0, []int64{1}, []blockSum{sha256.Sum256(nil)})
	for _, records := range [][]byte{one, one[:len(one)-1], encodeBlocks(nil, 1, []int64{0}, []blockSum{{}})} {
		conformance.True(t, decodeBlocks(records, []*tree{newTree(5)}) != nil, "%x is taken", records)
	}
}

func find(t *testing.T, args ...string) []input.Item {
	t.Helper()
	set := conformance.Try(input.Expand(t.Context(), args, input.Options{})).Must(t)
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
	return &drop{t: t, dir: t.TempDir(), store: &faulty{objects: map[string][]byte{}, at: -1},
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), table: 1}
}

func (d *drop) ledger() *Ledger {
	d.t.Helper()
	return conformance.Try(Open(d.t.Context(), d.store)).Must(d.t)
}

// selector returns a Selector that has selected the inputs of a load.
func (d *drop) selector(table int64) *Selector {
	d.t.Helper()
	s := NewSelector(d.ledger(), Options{Job: "job"})
	_, _, err := s.Select(d.t.Context(), find(d.t, d.dir), table, nil, nil)
	must(d.t, err)
	return s
}

// deliver writes files, given as names that are each followed by a content.
func (d *drop) deliver(files ...string) {
	d.t.Helper()
	for file := range slices.Chunk(files, 2) {
		full := filepath.Join(d.dir, file[0])
		must(d.t, errors.Join(os.WriteFile(full, []byte(file[1]), 0o600), os.Chtimes(full, d.now, d.now)))
	}
}

// night runs a load, to its end if finish is set, and returns the names of the selected inputs and the notes.
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
	chosen, said, err := s.Select(d.t.Context(), find(d.t, d.dir), d.table, nil, nil)
	if err != nil {
		return nil, "", err
	}
	for _, i := range chosen {
		loaded = append(loaded, filepath.Base(i.Name))
	}
	if len(chosen) == 0 {
		return nil, strings.Join(said, "\n"), s.NothingNew(d.t.Context(), s.Bad())
	}
	if err := s.Begin(d.t.Context(), d.table, "run"); err != nil {
		return nil, "", err
	}
	if finish {
		err = s.Loaded(d.t.Context(), s.Bad())
	}
	return loaded, strings.Join(said, "\n"), err
}

func (d *drop) want(o Options, note string, names ...string) {
	d.t.Helper()
	got, notes, err := d.night(o, true)
	conformance.True(d.t, err == nil && slices.Equal(got, names) && strings.Contains(notes, note),
		"loads %q, wants %q; notes %q want %q; %v", got, names, notes, note, err)
}

func (d *drop) refused(o Options, parts ...string) {
	d.t.Helper()
	_, _, err := d.night(o, true)
	if !errors.As(err, new(*Refused)) {
		d.t.Errorf("%v", err)
		return
	}
	for _, p := range parts {
		conformance.Contains(d.t, err.Error(), p, "%q does not say", err)
	}
}

func TestContentsAreLoadedOnce(t *testing.T) {
	d := newDrop(t)
	d.deliver("a", "one", "b", "two")
	d.want(Options{}, "", "a", "b")
	d.want(Options{}, "2 of 2 inputs are known")
	d.deliver("a", "one") // a new time
	d.want(Options{}, "2 of 2 inputs are known")
	d.deliver("c", "two", "d", "four", "e", "four")
	d.want(Options{}, "under another name", "d")
	d.want(Options{}, "5 of 5 inputs are known")
	d.deliver("f", "one")
	d.want(Options{ByName: true}, "", "f")
	d.deliver("b", "too", "g", "new")
	d.refused(Options{}, "b has changed", "--reload-changed")
	d.deliver("a", "longer")
	d.refused(Options{}, "a has changed", "1 more")
	d.want(Options{ReloadChanged: true}, "loaded again", "a", "b", "g")
	d.deliver("h", "two") // the former content of b
	d.want(Options{}, "h (as ")
	ledger := d.ledger()
	ledger.bind(d.table)
	must(t, ledger.Forget(t.Context(), []string{filepath.Join(d.dir, "d"), filepath.Join(d.dir, "e")}, d.now))
	d.want(Options{}, "e (as", "d")
	d.table = 2 // it was dropped and created again
	d.want(Options{ByName: true}, "", "a", "b", "c", "d", "e", "f", "g", "h")
}

func TestFilesOfAnUnfinishedLoadAreNotKnown(t *testing.T) {
	d := newDrop(t)
	d.deliver("a", "one")
	got, _, err := d.night(Options{Command: "load x"}, false)
	conformance.MustTrue(t, err == nil && len(got) == 1, "%v %v", got, err)
	d.refused(Options{Job: "other"}, "an unfinished load has begun to load", "load x")
	// The content is not loaded under another name, either, because it would be loaded twice.
	move := func(from, to string) { must(t, os.Rename(filepath.Join(d.dir, from), filepath.Join(d.dir, to))) }
	move("a", "moved")
	d.refused(Options{Job: "other"}, "moved has the size and the beginning of ", "a, which an ", "load x", "files forget")
	d.deliver("moved", "two") // other content of the same size
	d.want(Options{Job: "third"}, "", "moved")
	move("moved", "b")
	d.deliver("a", "one")
	d.want(Options{}, "b (as ", "a") // the same load, started over
	d.want(Options{Job: "other"}, "2 of 2 inputs are known")
}

func TestResumedLoadSelectsTheSameInputs(t *testing.T) {
	d := newDrop(t)
	d.deliver("a", "one")
	found := find(t, d.dir)
	d.deliver("0", "new")
	for _, c := range []struct {
		earlier []string
		want    string
	}{{[]string{found[0].Name}, ""}, {[]string{found[0].Name, "gone"}, "gone, which the unfinished run"}} {
		got, notes, err := NewSelector(d.ledger(), Options{}).Select(t.Context(), find(t, d.dir), 1, c.earlier, nil)
		conformance.True(t, (err == nil) == (c.want == "") && strings.Contains(fmt.Sprint(err), c.want) &&
			(err != nil || len(got) == 1 && got[0].Name == found[0].Name), "%v: %v, %v", c.earlier, got, err)
		conformance.True(t, err != nil || len(notes) == 1 && strings.Contains(notes[0], "0: left to the next load"),
			"a later input: %q", notes)
	}
}

func TestReplacedBadFileIsTriedDuringAnUnfinishedLoad(t *testing.T) {
	d := newDrop(t)
	d.deliver("a", "one")
	chosen := []string{find(t, d.dir)[0].Name}
	d.deliver("bad", "more than it was")
	s := NewSelector(d.ledger(), Options{Job: "job"})
	_, _, err := s.Select(t.Context(), find(t, d.dir), 1, chosen, nil)
	must(t, errors.Join(err, s.Begin(t.Context(), 1, "run")))
	must(t, s.Loaded(t.Context(), []checkpoint.BadInput{{Name: filepath.Join(d.dir, "bad"), Reason: "as it was",
		Held: true, Source: -1}}))
	d.want(Options{}, "1 of 2 inputs are known", "bad")
}

// A bad file is renamed, goes and comes back, after another load of the table that does not read it.
func TestBadFileIsLeftOutUnderAnyName(t *testing.T) {
	for _, sent := range []bool{false, true} {
		d := newDrop(t)
		d.deliver("a", "two", "bad", "one")
		s, last, other := d.selector(1), filepath.Join(d.dir, "bad"), *d
		must(t, errors.Join(s.Begin(t.Context(), 1, "run"), s.Loaded(t.Context(),
			[]checkpoint.BadInput{{Name: last, Held: true, Sent: sent}})))
		other.dir = t.TempDir()
		other.deliver("b", "three")
		other.want(Options{Job: "other"}, "", "b")
		for i, name := range []string{"bad", "new", "../new", "new"} {
			name = filepath.Join(d.dir, name)
			must(t, os.Rename(last, name))
			last = name
			d.want(Options{}, "", map[bool][]string{true: {"new"}}[!sent && i == 3]...)
			bad := d.ledger().Bad()
			conformance.True(t, sent && len(bad) == 1 && bad[0].Sent || !sent && (len(bad) == 1) == (i < 2), "%d: %v", i, bad)
		}
	}
}

func TestFileIsLoadedWhenItsMarkerExists(t *testing.T) {
	d := newDrop(t)
	d.deliver("a", "one", "a.done", "", "b", "two")
	d.want(Options{DoneMarker: "{}.done"}, "b: left out, without their marker", "a")
	d.deliver("b.done", "")
	d.want(Options{DoneMarker: "{}.done"}, "", "b")
}

func TestInputsHaveTheRequestedOrder(t *testing.T) {
	d := newDrop(t)
	for i, name := range []string{"b", "a", "c"} {
		d.now = d.now.Add(time.Duration(-i) * time.Hour)
		d.deliver(name, name)
	}
	d.deliver("d", "of the time of c")
	d.want(Options{Order: OrderTime}, "", "c", "d", "a", "b")
	d.table++
	d.want(Options{Order: OrderName}, "", "a", "b", "c", "d")
}

// TestInputsOfChangesAreLoadedInOrder delivers inputs late, unfinished, changed and twice.
func TestInputsOfChangesAreLoadedInOrder(t *testing.T) {
	for _, order := range []string{OrderName, OrderTime} {
		d := newDrop(t)
		o := Options{Order: order, Changes: true, ByName: true, DoneMarker: "{}.done", Settle: time.Hour}
		deliver := func(names ...string) {
			for _, name := range names {
				d.now = d.now.Add(time.Second)
				d.deliver(name, "the same changes", name+".done", "")
			}
		}
		d.deliver("z", "rows, which another load has taken")
		d.want(Options{Order: order, ByName: true}, "", "z")
		must(t, os.Remove(filepath.Join(d.dir, "z")))
		deliver("b", "c", "d")
		must(t, os.Remove(filepath.Join(d.dir, "c.done")))
		d.want(o, "c: left out, without their marker {}.done (--done-marker)\n"+filepath.Join(d.dir, "d")+
			": left out: changes wait for the earlier inputs", "b")
		d.deliver("c.done", "")
		d.want(o, "1 of 3 inputs", "c", "d")
		remove := func(name string) {
			must(t, errors.Join(os.Remove(filepath.Join(d.dir, name)), os.Remove(filepath.Join(d.dir, name+".done"))))
		}
		remove("c") // inputs may be removed once they are loaded
		remove("d")
		late := "bb"
		if order == OrderTime {
			d.now = d.now.Add(-100 * time.Hour)
			late = "e"
		}
		deliver(late)
		d.now = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
		d.refused(o, late+" comes before "+filepath.Join(d.dir, "d")+", which was already loaded", "tsimport files forget")
		remove(late)
		deliver("e")
		d.want(o, "", "e")
		d.deliver("e", "the same changes")
		d.want(o, "") // known under a later time
		if order == OrderName {
			deliver("dd")
			d.refused(o, "dd comes before "+filepath.Join(d.dir, "e"))
			remove("dd")
		}
		d.deliver("e", "one more of the changes")
		d.refused(o, "e has changed since its changes were loaded", "tsimport files forget")
		deliver("e")
		other := o
		other.Job = "another"
		deliver("g")
		_, _, err := d.night(other, false)
		must(t, err)
		remove("g")
		deliver("h")
		d.refused(o, "an unfinished load has begun to load "+filepath.Join(d.dir, "g"))
	}
}

func TestMergedLedgerIsUnchanged(t *testing.T) {
	d := newDrop(t)
	for i := range 3 * mergeFrom {
		d.deliver(fmt.Sprintf("f%03d", i%(2*mergeFrom)), fmt.Sprintf("content %d", i))
		_, _, err := d.night(Options{ReloadChanged: true}, true)
		must(t, err)
	}
	names, err := d.store.List(t.Context(), "")
	conformance.True(t, err == nil && len(names) <= 2*mergeFrom, "%d objects, %v", len(names), err)
	conformance.Equal(t, len(d.ledger().Files()), 2*mergeFrom, "files")
	conformance.Equal(t, len(d.ledger().contents), 3*mergeFrom, "contents")
}

func TestNewerOrDamagedLedgerIsRefused(t *testing.T) {
	for body, want := range map[string]string{`{"version":2}`: "newer version", `{"vers`: "damaged"} {
		d := newDrop(t)
		d.deliver("a", "one")
		must(t, d.store.PutAbsent(t.Context(), eventPrefix+"000000000", []byte(body)))
		_, _, err := d.night(Options{}, true)
		conformance.True(t, err != nil && strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "\n"),
			"%q: %v", body, err)
	}
}

func TestUnrecognizableInputsAreRefused(t *testing.T) {
	d := newDrop(t)
	_, _, err := NewSelector(d.ledger(), Options{}).Select(t.Context(), find(t, "-"), 1, nil, nil)
	conformance.True(t, err != nil && strings.Contains(err.Error(), "stream"), "%v", err)
	d.deliver("a", "one")
	d.table = 0
	d.refused(Options{}, "does not say when the table was made")
}

// A bad input is tried again if its table was replaced by a new one, but not if the load itself created the table.
func TestNewTableForgetsBadInputs(t *testing.T) {
	l := newDrop(t).ledger()
	for _, made := range []struct{ created, bad int }{{0, 1}, {5, 1}, {5, 1}, {0, 1}, {6, 1}, {7, 0}} {
		l.bad["x"] = Bad{Name: "x"}
		l.bind(int64(made.created))
		conformance.Equal(t, len(l.bad), made.bad, "bad inputs after a table made at %d", made.created)
	}
}

func TestUnitsAreStoredForTheNextLoad(t *testing.T) {
	d := newDrop(t)
	d.deliver("a.csv", "id,v\n")
	for i := range mergeFrom + 2 { // with a merge of the ledger
		s := d.selector(1)
		s.KeepUnits(map[string]string{"v": "duration, s", fmt.Sprintf("c%d", i): "date, days"})
		must(t, s.Begin(t.Context(), 1, "run"))
	}
	units := d.selector(1).Units()
	conformance.True(t, units["v"] == "duration, s" && units["c0"] == "date, days", "%v", units)
	conformance.Equal(t, len(d.selector(2).Units()), 0, "of another table of the name")
}
