package pipeline

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"tsimport/internal/exitcode"

	"github.com/google/go-cmp/cmp"

	"tsimport/engine/faults"
	"tsimport/engine/server"
	"tsimport/engine/sim"
	"tsimport/internal/table"
	"tsimport/keyexpr"
	"tsimport/pipeline/checkpoint"
	"tsimport/pipeline/plan"
	"tsimport/pipeline/rundir"
)

var mixSeeds = flag.Int("mix-seeds", 0, "how many seeds the metamorphic tests of the order of reading run with; 0 is a few that together draw everything")

// TestAnyMixOfOrderAndSplitsLeavesTheTableOfASequentialLoad draws, from a seed, an input by how its keys are arranged (sorted,
// descending, sorted by a prefix, sorted files one after the other, shuffled; with repeats, late duplicates, one key for longer
// than a piece, strays everywhere), its files and formats, how the key is made of it, the mode of writing, records that the
// reader or the service rejects, faults, splits of partitions and kills. The table must be that of a plain sequential
// application of the records, each record must be counted once, and exactly the expected ones be rejected. A
// failure is repeated with -seed.
func TestAnyMixOfOrderAndSplitsLeavesTheTableOfASequentialLoad(t *testing.T) {
	if *seedFlag != 0 {
		mixed(t, *seedFlag)
		return
	}
	t.Run("loads", func(t *testing.T) {
		for _, seed := range seeds(*mixSeeds, 2, 5, 8, 12, 13, 15, 26, 30, 35, 44, 45, 55) {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				t.Parallel()
				mixed(t, seed)
			})
		}
	})
	if *mixSeeds == 0 && !testing.Short() || *mixSeeds >= 100 { // a few from 1 on need not draw everything
		mixDrawn.check(t, 1)
	}
	mixHappened.check(t, min(1, *mixSeeds/100)) // what a few loads meet depends on the machine
}

// mixDrawn is what the seeds of that test draw for loads that may be read by a schedule, the same on every machine; mixHappened is what
// loads that were read by one have met.
var mixDrawn, mixHappened drawn

// note counts what a load had.
func (m *mixedLoad) note(r *Report, want *leftBySequence, attempts int) {
	d, o := &mixDrawn, &m.oracle
	rows := m.cfg.sectionRows
	d.count("rows without an order", m.cfg.Write.Order == plan.OrderNone)
	d.count("a schedule", m.scheduled)
	d.count("a switch to it in mid-load", m.scheduled && m.cfg.switchAfter > 0)
	d.count("a key that fills several sections", m.scheduled && m.longestKey() >= 3*rows)
	d.count("strays in every section", m.scheduled && m.mix.strays && rows >= 25)
	d.count("a later row of a key that the service refuses", m.scheduled && want.refusedLater > 0)
	d.count("a computed key", m.scheduled && strings.Contains(strings.Join(m.key.pk, ""), "="))
	d.count("updates", m.scheduled && o.mode == table.Update)
	d.count("deletes", m.scheduled && o.mode == table.Delete)
	d.count("a condition", m.scheduled && o.condition != table.Ignore)
	for _, a := range arrangements {
		d.count(a, m.scheduled && m.mix.arrangement == a)
	}
	d = &mixHappened
	d.count("rows superseded", r.Superseded > 0)
	d.count("rejected records", r.Rejected > 0)
	d.count("a schedule", r.Sections > 0)
	d.count("a switch to it in mid-load", r.Sections > 0 && m.cfg.switchAfter > 0)
	d.count("a later row of a key that the service refuses", r.Sections > 0 && want.refusedLater > 0)
	d.count("statistics that lie", r.Sections > 0 && m.w.lies.Load() > 0)
	d.count("kills", r.Sections > 0 && attempts > 1)
	d.count("splits", r.Sections > 0 && r.Recuts > 0)
}

// longestKey is for how many records one key follows itself.
func (m *mixedLoad) longestKey() (longest int) {
	n := 0
	for i := range m.records {
		if n++; i == 0 || m.records[i].id != m.records[i-1].id {
			n = 1
		}
		longest = max(longest, n)
	}
	return longest
}

// mixKey is a way to make the key of a record.
type mixKey struct {
	name     string
	pk       []string                   // as --pk takes it
	row      func(r *mixRecord) string  // its key, as contents writes it
	columns  []string                   // of id and n, those that are attributes
	needsID  bool                       // a record without an id has no key
	perID    int64                      // rows that share an id
	template string                     // tables that rows go to
	cut      func(r *mixRecord) sim.Key // value of the first key column
}

var mixKeys = []mixKey{
	{name: "plain", pk: []string{"id"}, columns: []string{"n"}, needsID: true, perID: 1,
		row: func(r *mixRecord) string { return r.id }, cut: func(r *mixRecord) sim.Key { return sim.Key(r.id) }},
	{name: "two columns", pk: []string{"id", "n:integer"}, needsID: true, perID: fan,
		row: func(r *mixRecord) string { return fmt.Sprint(r.id, "/", r.n) }, cut: func(r *mixRecord) sim.Key { return sim.Key(r.id) }},
	{name: "reversed", pk: []string{"k=reverse(id)"}, columns: []string{"id", "n"}, needsID: true, perID: 1,
		row: func(r *mixRecord) string { return reversed(r.id) }, cut: func(r *mixRecord) sim.Key { return sim.Key(reversed(r.id)) }},
	{name: "padded", pk: []string{"k=pad(n, 6)"}, columns: []string{"id", "n"}, perID: 1,
		row: func(r *mixRecord) string { return fmt.Sprintf("%06d", r.n) }, cut: func(r *mixRecord) sim.Key { return sim.Key(fmt.Sprintf("%06d", r.n)) }},
	{name: "bucketed", pk: []string{"s=bucket(n, 4)", "id"}, columns: []string{"n"}, needsID: true, perID: 1,
		row: func(r *mixRecord) string { return fmt.Sprint(r.n%4, "/", r.id) }, cut: func(r *mixRecord) sim.Key { return sim.Key(fmt.Sprint(r.n % 4)) }},
	{name: "several tables", pk: []string{"id"}, columns: []string{"n"}, needsID: true, perID: 1, template: "t_{bucket(n, 5)}",
		row: func(r *mixRecord) string { return r.id }, cut: func(r *mixRecord) sim.Key { return sim.Key(r.id) }},
}

func reversed(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// into sets the columns of a load's key.
func (k *mixKey) into(t *testing.T, cfg *trial) {
	cfg.Target.Key = nil
	for _, text := range k.pk {
		col, err := keyexpr.ParseColumn(text)
		if err != nil {
			t.Fatal(err)
		}
		if col.Expr != "" {
			cfg.Columns.Keys = append(cfg.Columns.Keys, col)
		} else if col.Type == table.Null {
			col.Type = table.String
		}
		cfg.Target.Key = append(cfg.Target.Key, table.KeyColumn{Name: col.Name, Type: col.Type})
	}
}

// sequence is the oracle: what a load of the records one after the other leaves.
type sequence struct {
	model
	key     *mixKey
	refuses bool // the service refuses records with refusedWord
}

// leftBySequence is what that load leaves: the table, and which records it has rejected, as file/number.
type leftBySequence struct {
	rows     contents
	rejected []string
	// unsent are those of the rejected that the service refuses and that a later record of their key may supersede before
	// they are sent; open is which of them each key has.
	unsent map[string]bool
	open   map[string][]string
	// past are all rows that each key has ever had, "" for no row: a load that was stopped leaves one of them.
	past map[string][]string
	// refusedLater are records that the service refuses of keys that an earlier record has written.
	refusedLater int
}

func (s *sequence) apply(before contents, records []mixRecord) leftBySequence {
	left := leftBySequence{rows: contents{}, past: map[string][]string{}, unsent: map[string]bool{}, open: map[string][]string{}}
	for k, cells := range before {
		left.rows[k] = cells
	}
	for i := range records {
		r := &records[i]
		name := fmt.Sprint(r.file, "/", r.number)
		_, written := left.rows[s.key.row(r)]
		switch good := s.one(&left, r); {
		case !good && s.makesRow(r) && written && s.refused(r):
			left.refusedLater++
			fallthrough
		case !good && s.supersedes() && s.makesRow(r):
			left.open[s.key.row(r)] = append(left.open[s.key.row(r)], name)
			fallthrough
		case !good:
			left.rejected = append(left.rejected, name)
		default:
			for _, earlier := range left.open[s.key.row(r)] {
				left.unsent[earlier] = true
			}
		}
	}
	return left
}

// supersedes reports whether a record that waits gives way to a later one of its key.
func (s *sequence) supersedes() bool { return s.mode == table.Put && s.condition == table.Ignore }

// makesRow reports whether a record is a row that the service is asked to write.
func (s *sequence) makesRow(r *mixRecord) bool { return !r.ragged && !(s.key.needsID && r.id == "") }

// refused reports whether the service refuses a record that is a row.
func (s *sequence) refused(r *mixRecord) bool {
	return s.refuses && s.mode != table.Delete && strings.HasPrefix(r.b, refusedWord)
}

// one applies a record, or reports that it is rejected.
func (s *sequence) one(left *leftBySequence, r *mixRecord) bool {
	if !s.makesRow(r) || s.refused(r) {
		return false
	}
	key := s.key.row(r)
	old, exists := left.rows[key]
	if s.condition == table.ExpectExist && !exists || s.condition == table.ExpectNotExist && exists {
		return false
	}
	if len(left.past[key]) == 0 {
		left.past[key] = append(left.past[key], mixRow(old, exists))
	}
	if s.mode == table.Delete {
		delete(left.rows, key)
		left.past[key] = append(left.past[key], "")
		return true
	}
	cells := map[string]string{}
	if s.mode == table.Update {
		for name, v := range old {
			cells[name] = v
		}
	}
	given := map[string]string{"a": r.a, "b": r.b, "c": r.c}
	for _, name := range s.key.columns {
		given[name] = r.id
		if name == "n" {
			given[name] = strconv.FormatInt(r.n, 10)
		}
	}
	for name, v := range given {
		if v != "" {
			cells[name] = v
		} else if s.deleteNull {
			delete(cells, name)
		}
	}
	left.rows[key] = cells
	left.past[key] = append(left.past[key], mixRow(cells, true))
	return true
}

// mixRow is a row as text, "" if it does not exist.
func mixRow(cells map[string]string, exists bool) string {
	if !exists {
		return ""
	}
	text, err := json.Marshal(cells) // sorted by name
	if err != nil {
		panic(err)
	}
	return string(text)
}

// mixedLoad is one drawn load.
type mixedLoad struct {
	t       *testing.T
	w       *world
	rnd     *rand.Rand
	mix     mix
	key     *mixKey
	oracle  sequence
	records []mixRecord
	cfg     trial
	whole   bool // no limit of records is drawn
	refused atomic.Int64

	scheduled bool // the input is read by a schedule, where its keys and formats allow that
}

// trouble begins the faults and the splits of a load, and returns what ends them: a reading of the partition map may outlive the load.
func (m *mixedLoad) trouble() (end func()) {
	var over atomic.Bool
	decide := m.splitting(m.faults())
	m.w.plan.Decide = func(r faults.Request) faults.Fault {
		if over.Load() {
			return faults.Fault{}
		}
		return decide(r)
	}
	return func() { over.Store(true) }
}

func mixed(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 23))
	m := &mixedLoad{t: t, w: newWorld(t), rnd: rnd, key: &mixKeys[rnd.IntN(len(mixKeys))]}
	before := m.draw()
	want := m.oracle.apply(before, m.records)
	kill := rnd.IntN(2) == 0
	end := m.trouble()
	r, attempts := m.run(kill)
	end()

	if diff := cmp.Diff(want.rows, m.w.rows()); diff != "" {
		t.Errorf("the table differs from a sequential load (-want +got):\n%s", diff)
	}
	rejected := m.checkRejected(want)
	if r.State != StateFinished || r.Read != int64(len(m.records)) || r.Rejected != int64(rejected) || r.Written+r.Superseded != r.Read-r.Rejected {
		t.Errorf("%s: %d read, %d written, %d superseded, %d rejected; want %d read, %d rejected",
			r.State, r.Read, r.Written, r.Superseded, r.Rejected, len(m.records), rejected)
	}
	if !kill {
		m.cfg.Target.Client.Transport = m.w.transport()
		m.w.verifies(m.cfg, r)
	}
	m.note(r, &want, attempts)
	t.Logf("%s, key %s, %v %v %v: %d records in %v; %d attempts, %d sections, %d recuts, %d superseded, %d rejected, %d requests refused",
		m.mix.arrangement, m.key.name, m.cfg.Write.Order, m.oracle.mode, m.oracle.condition, len(m.records), fileKinds(m.cfg.Inputs),
		attempts, r.Sections, r.Recuts, r.Superseded, r.Rejected, m.refused.Load())
	if t.Failed() {
		t.Logf("%+v, %+v, split %d, memory %d: repeat with -run %s -seed %d",
			m.mix, m.oracle.model, m.cfg.Read.SplitBytes, m.cfg.Limits.Memory, strings.SplitN(t.Name(), "/", 2)[0], seed)
	}
}

func fileKinds(inputs []string) (kinds []string) {
	for _, name := range inputs {
		_, kind, _ := strings.Cut(filepath.Base(name), ".")
		kinds = append(kinds, kind)
	}
	return kinds
}

// draw draws the input, writes it, fills the table as far as the load counts on it, and returns what it then holds.
func (m *mixedLoad) draw() contents {
	rnd := m.rnd
	flip := func() bool { return rnd.IntN(2) == 0 }
	m.oracle = sequence{key: m.key, model: model{mode: table.Mode(rnd.IntN(5) % 3), condition: table.Existence(rnd.IntN(5) % 3)}}
	if m.oracle.mode == table.Delete && m.oracle.condition == table.ExpectExist {
		m.oracle.condition = table.Ignore // as in the metamorphic test
	}
	m.oracle.deleteNull = m.oracle.mode == table.Update && flip()
	m.mix = mix{
		arrangement: arrangements[rnd.IntN(len(arrangements))], perID: m.key.perID,
		records: 200 + rnd.IntN(800), unique: rnd.IntN(4) == 0,
		repeats: flip(), hot: rnd.IntN(3) == 0, late: flip(), strays: rnd.IntN(3) == 0, spoiled: flip(),
	}
	m.mix.keys = 1 + rnd.IntN(m.mix.records)
	m.mix.refused = m.oracle.mode != table.Delete && rnd.IntN(3) == 0
	m.oracle.refuses = m.mix.refused
	m.w.template = m.key.template
	before := contents{}
	if m.oracle.mode == table.Delete || m.oracle.condition == table.ExpectExist || rnd.IntN(4) == 0 {
		earlier := mix{arrangement: "shuffled", keys: m.mix.keys, records: 300, perID: m.key.perID}
		first := earlier.draw(rnd, "before")
		cfg := m.w.config(m.w.writeMix(rnd, "before", first, []string{"csv"}, 1)...)
		m.key.into(m.t, &cfg)
		before = (&sequence{key: m.key}).apply(before, first).rows
		m.w.load(cfg)
	}
	m.records = m.mix.draw(rnd, "")
	files := m.w.writeMix(rnd, "in", m.records, mixFormats, 1+rnd.IntN(4))
	m.configure(files)
	return before
}

func (m *mixedLoad) configure(files []string) {
	rnd := m.rnd
	m.cfg = m.w.config(files...)
	cfg := &m.cfg
	m.key.into(m.t, cfg)
	cfg.RunDir = filepath.Join(m.w.dir, "mixed")
	cfg.Columns.Types["n"] = plan.Type{Type: table.Integer} // JSON lines beside CSV would make it a column of any type
	cfg.Write.Mode, cfg.Write.Condition, cfg.Write.DeleteNull = m.oracle.mode, m.oracle.condition, m.oracle.deleteNull
	if m.mix.unique {
		cfg.Write.Order = plan.Order(rnd.IntN(2))
	}
	cfg.Write.Concurrency, cfg.Write.BatchRows = 1+rnd.IntN(16), 5+rnd.IntN(table.MaxBatchRows-4)
	cfg.Read.SplitBytes, cfg.Read.Parsers = 64+rnd.IntN(8<<10), 1+rnd.IntN(4)
	cfg.Limits.Memory, cfg.Limits.TempDir = int64(1+rnd.IntN(1<<20)), m.w.dir
	if !m.whole && rnd.IntN(5) == 0 {
		cfg.Limits.Records = int64(1 + rnd.IntN(len(m.records)))
		m.records = m.records[:cfg.Limits.Records]
	}
	cfg.surveyEvery, cfg.Checkpoint.Every, cfg.allowance = 2*time.Millisecond, time.Duration(1+rnd.IntN(10))*time.Millisecond, int64(1+rnd.IntN(300))
	cfg.pacer = func() pacer { return restless{} }
	cfg.Resume.Look = true
	if m.scheduled = rnd.IntN(5) > 0; m.scheduled {
		cfg.order, cfg.sectionRows = orderAlways, 1+rnd.IntN(40)
		cfg.Limits.Memory += 64 << 20 // else the sections have no room
		if rnd.IntN(2) == 0 {
			cfg.switchAfter = 1 + rnd.IntN(8)
		}
	}
	if m.mix.refused {
		cfg.Target.Client.Transport = refusing{base: m.w.transport(), word: []byte(refusedWord), count: &m.refused}
	}
}

// faults are those of some loads only: with many of them a load is slow, and reading seldom far ahead. A key of many records
// would wait for settle after each lost answer.
func (m *mixedLoad) faults() func(faults.Request) faults.Fault {
	if often := m.mix.hot || len(m.records) > 8*m.mix.keys; often || m.rnd.IntN(3) > 0 {
		return func(faults.Request) faults.Fault { return faults.Fault{} }
	}
	return randomFaults(m.rnd)
}

// splitting cuts a table at the keys of records every now and then, while requests fail as decide says.
func (m *mixedLoad) splitting(decide func(faults.Request) faults.Fault) func(faults.Request) faults.Fault {
	every := 3 + m.rnd.IntN(20)
	source := rand.New(rand.NewPCG(m.rnd.Uint64(), 2))
	var mu sync.Mutex
	return func(r faults.Request) faults.Fault {
		mu.Lock()
		defer mu.Unlock()
		if r.N%every == 0 && r.N/every < 10 {
			name := "t"
			if m.key.template != "" {
				name = fmt.Sprintf("t_%d", source.IntN(5))
			}
			at := m.key.cut(&m.records[source.IntN(len(m.records))])
			if at != "" {
				// A table may not be there yet, and a bound may be one already.
				_ = m.w.engine().Sim().Split(context.Background(), name, server.Cut{Keys: []sim.Key{at}, Unavailable: time.Duration(source.IntN(10)) * time.Millisecond})
			}
		}
		return decide(r)
	}
}

// run loads, and kills the load at checkpoints that are drawn until it may end.
func (m *mixedLoad) run(kill bool) (r *Report, attempts int) {
	kills := 0
	if kill {
		kills = 1 + m.rnd.IntN(5)
	}
	for attempts = 1; ; attempts++ {
		r = m.attempt(kills > 0, m.rnd.IntN(6))
		if kills--; r.State == StateFinished || m.t.Failed() {
			return r, attempts
		}
	}
}

// attempt runs a load; with kill, until the checkpoint of the given number is about to be written.
func (m *mixedLoad) attempt(kill bool, at int) *Report {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	cfg := m.cfg
	saves, dead := 0, false
	var mu sync.Mutex
	cfg.onSave = func(*checkpoint.Snapshot) error {
		mu.Lock()
		defer mu.Unlock()
		if saves++; kill && saves > at {
			dead = true
			stop(&Interrupted{Signal: "test", ExitCode: exitcode.Interrupted})
		}
		if dead {
			return errKilled
		}
		return nil
	}
	r, err := cfg.run(ctx)
	if err != nil {
		m.t.Fatalf("load: %v", err)
	}
	if err := r.balance(); err != nil {
		m.t.Error(err)
	}
	return r
}

// checkRejected checks that exactly the expected records are kept as rejected, each once, and returns how many they are.
func (m *mixedLoad) checkRejected(left leftBySequence) int {
	m.t.Helper()
	got := []string{}
	for _, line := range lines(m.t, filepath.Join(m.cfg.RunDir, rundir.ReasonsFile)) {
		var reason struct {
			File   string
			Record int64
		}
		if err := json.Unmarshal([]byte(line), &reason); err != nil {
			m.t.Fatalf("%s: %v", line, err)
		}
		got = append(got, fmt.Sprint(slices.Index(m.cfg.Inputs, reason.File), "/", reason.Record))
	}
	want := slices.DeleteFunc(append([]string{}, left.rejected...), func(name string) bool { return left.unsent[name] && !slices.Contains(got, name) })
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		m.t.Errorf("rejected records, as file/record (-want +got):\n%s", diff)
	}
	return len(want)
}

// TestALoadKilledAtAnyCheckpointResumesToTheTableOfASequentialLoad kills a drawn load at its checkpoint 0, then in another table
// at checkpoint 1, …, until it has no such checkpoint any more.
func TestALoadKilledAtAnyCheckpointResumesToTheTableOfASequentialLoad(t *testing.T) {
	t.Run("loads", func(t *testing.T) {
		for _, seed := range seeds(*mixSeeds/5, 1, 9, 10) {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				t.Parallel()
				killedAtAny(t, seed)
			})
		}
	})
	killDrawn.check(t, min(1, *mixSeeds/500)) // which checkpoints a few loads have depends on the machine
}

// killDrawn are the checkpoints at which loads of that test were killed.
var killDrawn drawn

func killedAtAny(t *testing.T, seed uint64) {
	for at := 0; ; at += 1 + at/20 { // of many, some
		rnd := rand.New(rand.NewPCG(seed, 41)) // the same load each time
		m := &mixedLoad{t: t, w: newWorld(t), rnd: rnd, key: &mixKeys[rnd.IntN(len(mixKeys))]}
		before := m.draw()
		want := m.oracle.apply(before, m.records)
		m.cfg.Checkpoint.Every = time.Millisecond
		r := m.attempt(true, at)
		killed := r.State != StateFinished
		if killed {
			r = m.attempt(false, 0)
		}
		if diff := cmp.Diff(want.rows, m.w.rows()); diff != "" {
			t.Errorf("the table differs from a sequential load (-want +got):\n%s", diff)
		}
		if rejected := m.checkRejected(want); r.State != StateFinished || r.Read != int64(len(m.records)) || r.Rejected != int64(rejected) {
			t.Errorf("%s: %d read, %d rejected; want %d and %d", r.State, r.Read, r.Rejected, len(m.records), rejected)
		}
		if t.Failed() {
			t.Fatalf("seed %d, killed at checkpoint %d: %s, key %s, %+v", seed, at, m.mix.arrangement, m.key.name, m.oracle.model)
		}
		killDrawn.count("kills of loads in their order", killed && r.Sections == 0)
		killDrawn.count("kills of loads by a schedule", killed && r.Sections > 0 && m.cfg.switchAfter == 0)
		killDrawn.count("kills of loads that switch to one", killed && r.Sections > 0 && m.cfg.switchAfter > 0)
		if !killed {
			t.Logf("%s, key %s: %d records, killed at %d checkpoints; %d sections, a switch after %d splits", m.mix.arrangement, m.key.name, len(m.records), at, r.Sections, m.cfg.switchAfter)
			break
		}
	}
}

// TestDamageLeavesWhatEachKeyHadOnce loads files of which one is damaged in the middle. The load must fail, and the table must
// hold, of each key, what it had after some of its records in their order: no later record without the earlier ones, as rows
// are updated, and nothing that the key never had.
func TestDamageLeavesWhatEachKeyHadOnce(t *testing.T) {
	t.Run("loads", func(t *testing.T) {
		for _, seed := range seeds(*mixSeeds/2, 1, 2, 3, 4) {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				t.Parallel()
				damaged(t, seed)
			})
		}
	})
	damageDrawn.check(t, min(1, *mixSeeds/500)) // when damage is met depends on the machine
}

// damageDrawn are the loads of that test.
var damageDrawn drawn

func damaged(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 29))
	m := &mixedLoad{t: t, w: newWorld(t), rnd: rnd, key: &mixKeys[rnd.IntN(len(mixKeys))], whole: true}
	before := m.draw()
	early := m.damage()
	want := m.oracle.apply(before, m.records)
	end := m.trouble()
	r, err := m.cfg.run(context.Background())
	end()
	if balance := r.balance(); balance != nil {
		t.Error(balance)
	}
	whole := r.State == StateFinished && err == nil // it was read before it was damaged
	if whole && early || !whole && (r.ExitCode != exitcode.Failed || r.Read > int64(len(m.records))) {
		t.Errorf("%s, exit code %d, %d read of %d: %v", r.State, r.ExitCode, r.Read, len(m.records), err)
	}
	damageDrawn.count("damage that the first pass found", early && m.scheduled)
	damageDrawn.count("damage that was found later", !early && !whole)
	damageDrawn.count("a schedule when damage was found", !whole && r.Sections > 0)
	damageDrawn.count("a switch to a schedule before", !whole && r.Sections > 0 && m.cfg.switchAfter > 0)
	if whole {
		m.w.wantRows(want.rows)
	}
	rows := m.w.rows()
	for key, past := range want.past {
		cells, exists := rows[key]
		if got := mixRow(cells, exists); !slices.Contains(past, got) {
			t.Errorf("key %s holds %q, which it never had: %q", key, got, past)
		}
	}
	for key, cells := range rows {
		if old, exists := before[key]; len(want.past[key]) == 0 && mixRow(cells, true) != mixRow(old, exists) {
			t.Errorf("key %s holds %v, had %v, and no record is of it", key, cells, old)
		}
	}
	t.Logf("%s, key %s, %v %v %v: %d records in %v; %d read, %d written: %s", m.mix.arrangement, m.key.name,
		m.cfg.Write.Order, m.oracle.mode, m.oracle.condition, len(m.records), fileKinds(m.cfg.Inputs), r.Read, r.Written, err)
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

// damage adds a file, of records that are drawn as the others are, that is damaged in its middle after the load has looked at
// its inputs: before its first row (early), or while it runs.
func (m *mixedLoad) damage() (early bool) {
	m.t.Helper()
	more := m.mix
	more.records, more.unique, more.spoiled = 400, false, false
	if m.mix.unique { // other keys than those of the load, as none may come twice
		more = mix{arrangement: m.mix.arrangement, records: 400, unique: true, perID: m.key.perID}
	}
	records := more.draw(m.rnd, "last")
	for i := range records {
		if m.mix.unique {
			records[i].id, records[i].n = "later"+records[i].id, records[i].n+int64(fan)*1000
		}
	}
	kind, harm := "parquet", damageParquet
	if m.rnd.IntN(3) == 0 {
		kind, harm = "csv", cutShort
	}
	name := m.w.writeMix(m.rnd, "damaged", records, []string{kind}, 1)[0]
	for i := range records {
		records[i].file = len(m.cfg.Inputs)
	}
	m.cfg.Inputs = append(m.cfg.Inputs, name)
	m.records = append(m.records, records...)
	hurt := sync.OnceFunc(func() { harm(m.t, name) })
	at, sends := m.rnd.IntN(4)-1, atomic.Int64{}
	if at < 1 {
		m.cfg.Watch.OnPlan = func(*plan.Plan) { hurt() }
		return true
	}
	m.cfg.onSend = func([]table.Ref) {
		if sends.Add(1) == int64(at) {
			hurt()
		}
	}
	return false
}

// TestANumberedLoadOfAnyArrangementHasEachRecordOnce loads a drawn input into a table whose rows the service numbers, with
// faults, splits and kills: each record is one row, and the numbers of a user rise in the order of the records.
func TestANumberedLoadOfAnyArrangementHasEachRecordOnce(t *testing.T) {
	t.Run("loads", func(t *testing.T) {
		for _, seed := range seeds(*mixSeeds/2, 1, 2, 4, 10) {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				t.Parallel()
				numberedMix(t, seed)
			})
		}
	})
	numberedDrawn.check(t, min(1, *mixSeeds/200)) // what a few loads meet depends on the machine
}

// numberedDrawn are the loads of that test.
var numberedDrawn drawn

func numberedMix(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 31))
	m := &mixedLoad{t: t, w: newWorld(t), rnd: rnd, key: &mixKeys[0]}
	m.mix = mix{arrangement: arrangements[rnd.IntN(len(arrangements))], perID: 1, records: 50 + rnd.IntN(250),
		repeats: true, hot: rnd.IntN(2) == 0, late: rnd.IntN(2) == 0, strays: rnd.IntN(3) == 0, spoiled: rnd.IntN(2) == 0}
	m.mix.keys = 1 + rnd.IntN(m.mix.records)
	m.records = m.mix.draw(rnd, "")
	m.configure(m.w.writeMix(rnd, "in", m.records, mixFormats, 1+rnd.IntN(3)))
	m.cfg.Target.Key = []table.KeyColumn{{Name: "id", Type: table.String}, {Name: "seq", Type: table.Integer, Auto: true}}
	m.cfg.Write.Order = plan.LastWins
	over := m.w.failNumbered(rnd, m.mix.keys)
	if rnd.IntN(2) == 0 {
		over.Store(true)
	}
	r, attempts := m.run(rnd.IntN(2) == 0)
	over.Store(true)
	rejected := m.checkNumbered()
	if r.State != StateFinished || r.Read != int64(len(m.records)) || r.Rejected != rejected || r.Written != r.Read-rejected {
		t.Errorf("%s: %d read, %d written, %d rejected; want %d read, %d rejected", r.State, r.Read, r.Written, r.Rejected, len(m.records), rejected)
	}
	numberedDrawn.count("a schedule", r.Sections > 0)
	numberedDrawn.count("a switch to it in mid-load", r.Sections > 0 && m.cfg.switchAfter > 0)
	numberedDrawn.count("kills", attempts > 1)
	numberedDrawn.count("kills of loads by a schedule", r.Sections > 0 && attempts > 1)
	t.Logf("%s: %d records in %v, %d attempts", m.mix.arrangement, len(m.records), fileKinds(m.cfg.Inputs), attempts)
	if t.Failed() {
		t.Logf("seed %d", seed)
	}
}

// checkNumbered compares the rows of a table that numbers them with the records, and returns how many of these are rejected.
func (m *mixedLoad) checkNumbered() (rejected int64) {
	m.t.Helper()
	type numberedRow struct {
		key    string
		number int64
	}
	byRecord := map[string]numberedRow{} // by column c, which no two records share
	rows := m.w.rows()
	for key, cells := range rows {
		id, number, _ := strings.Cut(key, "/")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			m.t.Fatal(err)
		}
		if other, twice := byRecord[cells["c"]]; twice {
			m.t.Errorf("record %s is there twice, as %s and as %s/%d", cells["c"], key, other.key, other.number)
		}
		byRecord[cells["c"]] = numberedRow{id, n}
	}
	last := map[string]int64{}
	for i := range m.records {
		r := &m.records[i]
		if r.ragged || r.id == "" {
			rejected++
			continue
		}
		row, there := byRecord[r.c]
		if !there || row.key != r.id || row.number <= last[r.id] {
			m.t.Errorf("record %s of %s is row %+v (there: %v), the record before it is number %d", r.c, r.id, row, there, last[r.id])
		}
		last[r.id] = row.number
	}
	if int64(len(rows)) != int64(len(m.records))-rejected {
		m.t.Errorf("%d rows of %d records, %d of them rejected", len(rows), len(m.records), rejected)
	}
	return rejected
}
