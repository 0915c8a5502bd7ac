package pipeline

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader"
)

var (
	drawnSeed  = flag.Uint64("drawn-seed", 1, "seed of the first random load of each mode")
	drawnSeeds = flag.Int("drawn-seeds", 2, "number of random loads of each mode")
)

// drawnMode is what a kind of random loads fixes. The rest is drawn.
type drawnMode struct {
	leaves  leaves
	failing float64                    // maximum share of requests that fail
	world   func(*testing.T) *world    // nil means newWorld
	also    func(*drawnLoad)           // if not nil, changes the load after it is drawn
	run     func(*drawnLoad, contents) // nil means (*drawnLoad).runs
	records int                        // maximum number of records; 0 means a thousand
}

// drawnModes are the kinds of random loads. All draw the same choices as the first one, except those that they fix.
var drawnModes = map[string]drawnMode{
	"any": {failing: 0.6},
	// The rate controller paces lanes whose partitions have a capacity.
	"paced": {failing: 0.1, also: func(m *drawnLoad) {
		m.cfg.Pacer = nil
		m.simulate.PartitionUnits, m.simulate.Burst = 5000, 100*time.Millisecond
	}},
	// The store loses power, with or without the load's process.
	"power": {failing: 0.4, world: newPoweredWorld},
	// The store is in the load's process and acknowledges unsynced rows: rows lost with the process must not be final.
	"own store":          {failing: 0.4, world: newLazyWorld},
	"numbered":           {leaves: numberedRows, failing: 0.15},
	"numbered power":     {leaves: numberedRows, failing: 0.15, world: newPoweredWorld},
	"numbered own store": {leaves: numberedRows, failing: 0.15, world: newLazyWorld},
	"sums":               {leaves: sumsOfRows, failing: 0.15},
	"versions":           {leaves: allVersions, failing: 0.4},
	"when":               {leaves: rowsThatPass, failing: 0.4},
	"changes":            {leaves: rowsOfChanges, failing: 0.4},
	"changes power":      {leaves: rowsOfChanges, failing: 0.4, world: newPoweredWorld},
	// The service may treat cells with equal timestamps, and deletions before a write with an earlier one, in any way.
	"timestamps": {failing: 0.4, also: func(m *drawnLoad) {
		m.simulate.Choices = server.Choices{FirstWriteWins: m.seed&1 == 0, DeletionsHideEarlier: m.seed&2 == 0}
	}},
	"pre-split": {failing: 0.2, also: func(m *drawnLoad) { m.cfg.Target.PreSplit = plan.PreSplit(2 + m.rnd.IntN(9)) }},
	// The load is killed at checkpoint 1, then in another table at checkpoint 2, and so on.
	"every checkpoint": {run: (*drawnLoad).runAtEveryCheckpoint, records: 100},
	"damage":           {failing: 0.2, run: (*drawnLoad).runDamaged},
	// One file is bad, and the others are loaded.
	"bad file":          {failing: 0.3, run: (*drawnLoad).runWithBadFile},
	"numbered bad file": {failing: 0.15, leaves: numberedRows, run: (*drawnLoad).runWithBadFile},
}

// leaves says which rows a load leaves in the table.
type leaves uint8

const (
	lastRows     leaves = iota // the last row of each key
	numberedRows               // each record, numbered in order
	sumsOfRows
	allVersions  // all versions of each cell
	rowsThatPass // rows that meet a condition on their columns
	rowsOfChanges
)

type drawnLoad struct {
	t        *testing.T
	name     string // name of the mode
	mode     drawnMode
	seed     uint64
	w        *world
	rnd      *rand.Rand
	input    drawnInput
	key      *drawnKey
	oracle   sequence
	records  []drawnRecord
	stdin    string
	lies     bool // statistics of a file are wrong
	versions int  // number of versions of a cell that the table keeps
	cfg      trial

	simulate  server.Simulation
	refused   atomic.Int64
	scheduled bool // the input is read by a schedule, where its keys and formats allow that
	killed    kills
}

// TestAnyLoadMatchesSequentialApplication draws inputs, keys, modes, conditions, memory, faults, splits and kills. The
// table must equal a sequential application of the records, each record must be counted once, and exactly the expected
// records must be rejected. Every checkpoint must know which rows are final, and no final row may be sent again.
func TestAnyLoadMatchesSequentialApplication(t *testing.T) {
	t.Run("loads", func(t *testing.T) {
		for name, mode := range drawnModes {
			for seed := *drawnSeed; seed < *drawnSeed+uint64(few(*drawnSeeds)); seed++ {
				t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { drawLoad(t, name, mode, seed) })
				})
			}
		}
	})
	least := min(1, *drawnSeeds/50) // the choices of a few loads depend on their seeds
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		least = 0 // the choices then also depend on the modes
	}
	had.check(t, least)
}

// few returns how many of n seeds to run: only one with -short, which the race detector uses.
func few(n int) int {
	if testing.Short() {
		return min(n, 1)
	}
	return n
}

func drawLoad(t *testing.T, name string, mode drawnMode, seed uint64) {
	m := &drawnLoad{t: t, name: name, mode: mode, seed: seed}
	defer func() {
		if t.Failed() {
			t.Logf("%v\nagain: go test ./pipeline -run 'TestAnyLoad/loads/%s$' -drawn-seed %d -drawn-seeds 1", m,
				strings.ReplaceAll(name, " ", "_")+"/"+fmt.Sprint(seed), seed)
		}
	}()
	run := mode.run
	if run == nil {
		run = (*drawnLoad).runs
	}
	run(m, m.draw())
}

func (m *drawnLoad) draw() (before contents) {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(m.name)) // different loads for each mode
	rnd := rand.New(rand.NewPCG(m.seed, hash.Sum64()))
	m.rnd, m.killed = rnd, kills{bySent: map[checkpoint.Position]int{}}
	m.key, m.stdin = &drawnKeys[rnd.IntN(len(drawnKeys))], ""
	newOne := newWorld
	if m.mode.world != nil {
		newOne = m.mode.world
	}
	m.w = newOne(m.t)
	flip := func() bool { return rnd.IntN(2) == 0 }
	m.input = drawnInput{arrangement: arrangements[rnd.IntN(len(arrangements))], records: 100 + rnd.IntN(600),
		unique: rnd.IntN(4) == 0, repeats: flip(), hot: rnd.IntN(3) == 0, late: flip(), strays: rnd.IntN(3) == 0,
		spoiled: flip(), refused: rnd.IntN(3) == 0}
	m.oracle = sequence{leaves: m.mode.leaves, mode: table.Mode(rnd.IntN(5) % 3),
		condition: table.Existence(rnd.IntN(5) % 3)}
	m.versions = 1
	m.settle(flip)
	if m.mode.records > 0 {
		m.input.records = min(m.input.records, m.mode.records)
	}
	m.input.perID, m.input.keys = m.key.perID, 1+rnd.IntN(m.input.records)
	m.oracle.key, m.oracle.refuses, m.w.template = m.key, m.input.refused, m.key.template

	m.simulate.Config = sim.Config{Latency: time.Duration(1+rnd.IntN(5)) * time.Millisecond, Jitter: 0.9, Seed: m.seed}
	before = contents{}
	if o := &m.oracle; o.mode == table.Delete || o.condition == table.ExpectExist || o.leaves == sumsOfRows ||
		o.leaves == rowsThatPass || o.leaves == lastRows && rnd.IntN(4) == 0 {
		earlier := drawnInput{arrangement: "shuffled", keys: m.input.keys, records: min(300, m.input.records),
			perID: m.key.perID, amounts: m.input.amounts}
		first := earlier.draw(rnd, "before")
		cfg := m.w.config(m.write("before", first, []string{"csv"}, 1)...)
		plain := sequence{key: m.key}
		if o.leaves == sumsOfRows {
			m.adds(&cfg)
			plain = sequence{key: m.key, leaves: sumsOfRows, mode: table.Increment}
		}
		m.key.into(m.t, &cfg)
		cfg.Target.Define.MaxVersions = m.versions
		before = plain.apply(before, first).rows
		m.w.load(cfg)
		time.Sleep(restart)
	}
	m.records = m.input.draw(rnd, "")
	m.oracle.ops = map[string]table.Mode{}
	for i := range m.records {
		m.oracle.ops[m.records[i].c] = table.Mode(rnd.IntN(3))
	}
	m.configure(m.write("in", m.records, m.formats(), 1+rnd.IntN(4)))
	return before
}

// settle replaces incompatible choices.
func (m *drawnLoad) settle(flip func() bool) {
	o := &m.oracle
	switch m.mode.leaves {
	case numberedRows:
		o.mode, o.condition, m.key, m.input.unique = table.Put, table.Ignore, &drawnKeys[0], false
		m.input.records = min(m.input.records, 200)
	case sumsOfRows:
		o.mode, o.condition, m.key, m.input.amounts, m.input.refused = table.Increment, table.Ignore, &drawnKeys[0],
			true, false
	case allVersions:
		o.mode, o.condition, m.versions, m.w.newest = table.Update, table.Ignore, 10_000, 10_000
	case rowsThatPass:
		o.mode, o.condition, m.key, m.input.amounts, m.input.refused = table.Mode(m.rnd.IntN(2)), table.Ignore, &drawnKeys[0],
			true, false
		o.when = []string{"stored.n < new.n", "stored.n <= new.n", "new.n < stored.n",
			"not (stored.n >= new.n)"}[m.rnd.IntN(4)]
	case rowsOfChanges:
		o.mode, o.condition = table.Changes, table.Ignore
		if m.key.template != "" {
			m.key = &drawnKeys[0]
		}
	default:
		o.deleteNull = o.mode == table.Update && flip()
	}
	if m.name == "timestamps" {
		o.mode, o.deleteNull, m.versions = table.Update, true, 10
	}
	if m.name == "pre-split" { // only one table can be pre-split
		m.key = &drawnKeys[m.rnd.IntN(len(drawnKeys)-1)]
		o.mode, o.condition, o.deleteNull = table.Put, table.Ignore, false
	}
	if o.mode == table.Delete && o.condition == table.ExpectExist {
		// A repeated delete does not tell whether the row was there, so the number of rejects would be unknown.
		o.condition = table.Ignore
	}
	if m.hasBadFile() { // a record's outcome is visible only if no other record has its key
		o.mode, o.condition, o.deleteNull, m.input.unique, m.input.refused, m.input.spoiled = table.Put, table.Ignore, false,
			true, false, false
	}
	m.input.refused = m.input.refused && o.mode != table.Delete
}

func (m *drawnLoad) formats() []string {
	switch {
	case m.input.amounts: // in Parquet and JSON, integers in strings remain strings
		return []string{"csv", "csv.gz"}
	case m.mode.leaves == lastRows && m.name != "damage" && !m.hasBadFile() && m.rnd.IntN(4) == 0:
		return append(slices.Clone(drawnFormats), standardInput, standardInput, standardInput)
	}
	return drawnFormats
}

func (m *drawnLoad) adds(cfg *trial) {
	cfg.Write.Mode, cfg.Columns.Exclude = table.Increment, []string{"c"}
	for _, name := range []string{"n", "a", "b"} {
		cfg.Columns.Types[name] = plan.Type{Type: table.Integer}
	}
}

func (m *drawnLoad) configure(files []string) {
	rnd, w := m.rnd, m.w
	m.cfg = w.config(files...)
	cfg := &m.cfg
	m.key.into(m.t, cfg)
	cfg.RunDir, cfg.Target.Define.MaxVersions = filepath.Join(w.dir, "drawn"), m.versions
	cfg.Columns.Types["n"] = plan.Type{Type: table.Integer} // with JSON lines beside CSV, it would be a column of any type
	cfg.Write.Mode, cfg.Write.Condition, cfg.Write.DeleteNull = m.oracle.mode, m.oracle.condition, m.oracle.deleteNull
	if m.input.unique {
		cfg.Write.Order = plan.Order(rnd.IntN(2))
	}
	cfg.Lanes.Concurrency, cfg.Lanes.BatchRows = 1+rnd.IntN(16), 5+rnd.IntN(table.MaxBatchRows-4)
	cfg.Read.SplitBytes, cfg.Read.Parsers, cfg.Read.ChainBytes = 64+rnd.IntN(8<<10), 1+rnd.IntN(4), 1000
	cfg.Limits.Memory, cfg.Limits.TempDir, cfg.Limits.TempMax = int64(1+rnd.IntN(1<<20)), w.dir, int64(rnd.IntN(3))*50_000
	cfg.surveyEvery, cfg.Checkpoint.Every, cfg.Allowance = 50*time.Millisecond,
		time.Duration(2+rnd.IntN(60))*time.Millisecond, int64(1+rnd.IntN(300))
	cfg.Pacer = func() lanes.Pacer { return restless{} }
	cfg.Resume.Look = true
	if m.scheduled = rnd.IntN(3) > 0; m.scheduled {
		cfg.order, cfg.sectionRows = orderAlways, 1+rnd.IntN(40)
		cfg.Limits.Memory += 64 << 20 // to make room for sections
		if rnd.IntN(2) == 0 {
			cfg.switchAfter = 1 + rnd.IntN(8)
		}
	}
	switch m.mode.leaves {
	case numberedRows:
		cfg.Target.Key = []table.KeyColumn{{Name: "id", Type: table.String}, {Name: "seq", Type: table.Integer, Auto: true}}
		cfg.Write.Order, cfg.Write.Marks.ReturnedKeys = plan.LastWins, filepath.Join(w.dir, "keys.csv")
	case sumsOfRows:
		m.adds(cfg)
		cfg.Write.Order = plan.LastWins
		w.plan.Within = 0 // an attempt may be applied arbitrarily late
	case rowsOfChanges:
		cfg.Write.Order, cfg.Columns.Exclude = plan.LastWins, []string{"c"}
		cfg.Read.Changes = &reader.Changes{Column: "c", Values: m.oracle.ops}
	case rowsThatPass:
		cfg.Write.When = mustWhen(m.t, m.oracle.when)
	}
	if m.input.refused {
		cfg.Target.Client.Transport = refusing{base: w.transport(), word: []byte(refusedWord), count: &m.refused}
	}
	if m.mode.also != nil {
		m.mode.also(m)
	}
	m.killed.keys = m.orderingKeys()
	if m.mode.leaves == lastRows && m.name != "damage" && !m.hasBadFile() && rnd.IntN(5) == 0 {
		cfg.Limits.Records = int64(1 + rnd.IntN(len(m.records)))
		m.records = m.records[:cfg.Limits.Records]
	}
	if m.key.template == "" { // with several tables, keys begin with the name of the table
		cfg.onSnapshot = m.compare
	}
	w.simulate(m.t, m.simulate)
}

// trouble begins faults and splits. The returned function ends them: a reading of partitions may outlive the load.
func (m *drawnLoad) trouble() (end func()) {
	every, share := 3+m.rnd.IntN(20), m.rnd.Float64()*m.mode.failing
	source := rand.New(rand.NewPCG(m.rnd.Uint64(), 2))
	var over atomic.Bool
	var mu sync.Mutex
	fails := []string{"BatchWriteRow", "GetRange", "BatchGetRow", "DeleteRow"}
	m.w.plan.Change(func(op string) bool { return slices.Contains(fails, op) }, func(r faults.Request) faults.Fault {
		mu.Lock()
		defer mu.Unlock()
		if over.Load() {
			return faults.Fault{}
		}
		if r.N%every == 0 && r.N/every < 10 {
			m.split(source)
		}
		if source.Float64() >= share {
			return faults.Fault{}
		}
		f := passingFaults[source.IntN(len(passingFaults))]
		if r.Operation != "BatchWriteRow" && f.Action == faults.RefuseRows {
			return faults.Fault{Action: faults.Refuse, Code: "OTSServerBusy"}
		}
		return f
	})
	m.w.grid.endanger(m.rnd, &m.cfg)
	return func() {
		over.Store(true)
		m.w.grid.end()
	}
}

// split splits a table at the key of a record. For a moment, the partition is then not served.
func (m *drawnLoad) split(source *rand.Rand) {
	name := "t"
	if m.key.template != "" {
		name = fmt.Sprintf("t_%d", source.IntN(5))
	}
	if at := m.key.cut(&m.records[source.IntN(len(m.records))]); at != "" {
		// A table may not exist yet, and a bound may already be one.
		cut := server.Cut{Keys: []sim.Key{at}, Unavailable: time.Duration(source.IntN(10)) * time.Millisecond}
		_ = m.w.engine().Sim().Split(m.t.Context(), name, cut)
	}
}

// runs runs the load, with any number of kills, and judges the result.
func (m *drawnLoad) runs(before contents) {
	want := m.oracle.apply(before, m.records)
	end := m.trouble()
	r := m.untilDone()
	end()
	m.judge(r, want)
	if m.killed.attempts == 1 && m.mode.leaves == lastRows && m.stdin == "" {
		m.cfg.Target.Client.Transport = m.w.transport()
		m.w.verifies(m.cfg, r)
	}
	m.note(r, want)
	m.t.Logf("%v: %d attempts, %d rows sent again, %d sections, %d recuts, %d superseded, %d rejected, %d spilled, %d "+
		"found, power lost %d times, %.1f s",
		m, m.killed.attempts, m.killed.replayed, r.Sections, r.Recuts, r.Superseded, r.Rejected, r.SpilledRows, r.Found,
		m.w.grid.lost(), r.Seconds)
}

func (m *drawnLoad) String() string {
	var kinds []string
	for _, name := range m.cfg.Inputs {
		_, kind, _ := strings.Cut(filepath.Base(name), ".")
		kinds = append(kinds, kind)
	}
	return fmt.Sprintf("%s, seed %d: %s, key %s, %v %v %v: %d records in %q", m.name, m.seed, m.input.arrangement,
		m.key.name, m.cfg.Write.Order, m.oracle.mode, m.oracle.condition, len(m.records), kinds)
}

// had counts the choices and events of random loads, as a random test proves nothing about choices that it never makes.
var had drawn

type drawn struct {
	mu    sync.Mutex
	loads map[string]int
}

func (d *drawn) count(what string, is bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.loads == nil {
		d.loads = map[string]int{}
	}
	if d.loads[what] += 0; is {
		d.loads[what]++
	}
}

// check prints the counts, and fails the test if fewer than least loads had one of the choices.
func (d *drawn) check(t *testing.T, least int) {
	var all []string
	for what, n := range d.loads {
		all = append(all, fmt.Sprintf("%s: %d", what, n))
		conformance.True(t, n >= least, "%d loads had: %s", n, what)
	}
	slices.Sort(all)
	t.Logf("loads that had\n  %s", strings.Join(all, "\n  "))
}

func (m *drawnLoad) note(r *Report, want leftBySequence) {
	d, o := &had, &m.oracle
	bySchedule := r.Sections > 0
	d.count("rows without an order", m.cfg.Write.Order == plan.OrderNone)
	d.count("rows superseded", r.Superseded > 0)
	d.count("rows on disk", r.SpilledRows > 0)
	d.count("rejected records", r.Rejected > 0)
	d.count("standard input", m.stdin != "")
	d.count("a loss of power", m.w.grid.lost() > 0)
	d.count("a schedule", bySchedule)
	d.count("a switch to it in mid-load", bySchedule && m.cfg.switchAfter > 0)
	d.count("a key that fills several sections", bySchedule && m.longestKey() >= 3*m.cfg.sectionRows)
	d.count("strays in every section", bySchedule && m.input.strays && m.cfg.sectionRows >= 25)
	d.count("a later row of a key that the service refuses", bySchedule && want.refusedLater > 0)
	d.count("a computed key", bySchedule && strings.Contains(strings.Join(m.key.pk, ""), "="))
	d.count("updates", bySchedule && o.mode == table.Update)
	d.count("deletes", bySchedule && o.mode == table.Delete)
	d.count("a condition", bySchedule && o.condition != table.Ignore)
	d.count("statistics that lie", bySchedule && m.lies)
	d.count("kills", bySchedule && m.killed.attempts > 1)
	d.count("kills of numbered loads", bySchedule && m.killed.attempts > 1 && o.leaves == numberedRows)
	d.count("splits", bySchedule && r.Recuts > 0)
	for _, a := range arrangements {
		d.count(a, bySchedule && m.input.arrangement == a)
	}
}

// longestKey returns the length of the longest run of records with one key.
func (m *drawnLoad) longestKey() (longest int) {
	n := 0
	for i := range m.records {
		if n++; i == 0 || m.records[i].id != m.records[i-1].id {
			n = 1
		}
		longest = max(longest, n)
	}
	return longest
}
