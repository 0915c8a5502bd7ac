package pipeline

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"tsimport/internal/exitcode"

	"tsimport/internal/table"
	"tsimport/pipeline/checkpoint"
	"tsimport/pipeline/plan"
	"tsimport/pipeline/readorder"
	"tsimport/pipeline/rundir"
)

var crashSeeds = flag.Int("crash-seeds", 3, "how many seeds the test of crashed loads runs with")

// errKilled is what a checkpoint meets that is about to be written by a process that is killed.
var errKilled = errors.New("killed")

// crashes is a load that is killed again and again until it is done.
type crashes struct {
	t       *testing.T
	w       *world
	rnd     *rand.Rand
	cfg     trial
	records map[checkpoint.Position][]byte // ordering keys of all records; nil for those that can be no row
	bySent  map[checkpoint.Position]int    // the first attempt that has sent a record
	stdin   string
	mu      sync.Mutex

	attempts, replayed, checked, fresh int
}

// TestAKilledLoadResumesAsIfItHadNotBeenKilled kills loads that are drawn from a seed, as the metamorphic test draws them, at
// moments that are drawn too: what was sent since the last checkpoint is applied, or not, or late. In every case the
// table must be that of a sequential load, every record must be counted once over all attempts and every reject be kept
// once, every checkpoint must know exactly which rows are final, and no final row must be sent again.
func TestAKilledLoadResumesAsIfItHadNotBeenKilled(t *testing.T) {
	if *seedFlag != 0 {
		killed(t, *seedFlag, newWorld)
		return
	}
	for seed := range uint64(few(*crashSeeds)) {
		t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
			t.Parallel()
			killed(t, seed+1, newWorld)
		})
	}
}

func killed(t *testing.T, seed uint64, start func(*testing.T) *world) {
	rnd := rand.New(rand.NewPCG(seed, 11))
	w := start(t)
	keys := 1 + rnd.IntN(300)
	m := model{mode: table.Mode(rnd.IntN(3)), condition: table.Existence(rnd.IntN(3))}
	if m.mode == table.Delete && m.condition == table.ExpectExist {
		m.condition = table.Ignore // as in the metamorphic test
	}
	m.deleteNull = m.mode == table.Update && rnd.IntN(2) == 0
	order, records := plan.Order(rnd.IntN(2)), 500+rnd.IntN(2500)
	text := randomCSV(rnd, records, keys, m.condition == table.ExpectNotExist)
	if order == plan.OrderNone {
		keys = records
		text = uniqueKeys(rnd, text)
	}
	before := contents{}
	if m.mode == table.Delete || m.condition == table.ExpectExist {
		first := earlier(randomCSV(rnd, 200, keys, false))
		before, _ = model{}.apply(t, before, first)
		w.load(w.config(w.file("before.csv", first)))
	}
	scheduled := rnd.IntN(2) == 0 // without an order: in sections, by turns
	if scheduled {
		text = partlySorted(rnd, text)
	}
	limit := int64(0)
	if rnd.IntN(5) == 0 {
		limit = int64(1 + rnd.IntN(records))
		records = int(limit)
	}
	want, rejected := m.apply(t, before, strings.Join(strings.SplitAfter(text, "\n")[:records+1], ""))

	c := &crashes{t: t, w: w, rnd: rnd, records: map[checkpoint.Position][]byte{}, bySent: map[checkpoint.Position]int{}}
	c.cfg = w.config(c.sources(text, m)...)
	cfg := &c.cfg
	cfg.RunDir = filepath.Join(w.dir, "killed")
	cfg.Write.Mode, cfg.Write.Condition, cfg.Write.DeleteNull, cfg.Write.Order = m.mode, m.condition, m.deleteNull, order
	cfg.Write.Concurrency, cfg.Write.BatchRows = 1+rnd.IntN(16), 1+rnd.IntN(table.MaxBatchRows)
	cfg.Read.SplitBytes, cfg.Read.Parsers = 64+rnd.IntN(8<<10), 1+rnd.IntN(4)
	cfg.Limits.Memory, cfg.Limits.TempDir = int64(1+rnd.IntN(1<<20)), w.dir
	cfg.surveyEvery, cfg.Checkpoint.Every, cfg.allowance = 2*time.Millisecond, time.Duration(1+rnd.IntN(10))*time.Millisecond, int64(1+rnd.IntN(300))
	cfg.pacer = func() pacer { return restless{} }
	cfg.Resume.Look, cfg.Limits.Records = true, limit
	if scheduled {
		cfg.order, cfg.sectionRows = orderAlways, 1+rnd.IntN(40)
		if rnd.IntN(2) == 0 {
			cfg.switchAfter = 1 + rnd.IntN(8)
		}
		cfg.Limits.Memory *= 16 // for the sections
	}
	cfg.onSnapshot = c.compare
	w.plan.Decide = w.splitting(rnd, keys, randomFaults(rnd))
	w.grid.endanger(rnd, cfg)
	r := c.run()
	w.grid.end()
	w.plan.Change(w.plan.Only, nil)

	w.wantRows(want)
	if r.Read != int64(records) || r.Rejected != rejected || r.State != StateFinished {
		t.Errorf("%s: %d read, %d rejected; want %d and %d", r.State, r.Read, r.Rejected, records, rejected)
	}
	c.checkRejects(rejected)
	if checkpoint.Exists(cfg.RunDir) {
		t.Error("a finished run has a checkpoint")
	}
	t.Logf("%v %v %v of %q: %d attempts, %d rows sent again of %d, %d recuts, %d checkpoints compared, power lost %d times, %d sections", order, m.mode, m.condition, cfg.Inputs, c.attempts, c.replayed, records, r.Recuts, c.checked, w.grid.lost(), r.Sections)
	if c.fresh > 0 {
		t.Errorf("%d rows that had been sent were sent again and nothing said that they may have been", c.fresh)
	}
	if t.Failed() {
		t.Logf("%+v, %d keys, split %d, memory %d: repeat with -run %s -seed %d", m, keys, cfg.Read.SplitBytes, cfg.Limits.Memory, strings.SplitN(t.Name(), "/", 2)[0], seed)
	}
}

// sources writes the records into one file or several, and notes their keys.
func (c *crashes) sources(text string, m model) (names []string) {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	header, lines := lines[0], lines[1:]
	for source := 0; len(lines) > 0; source++ {
		n := len(lines)
		if source < 2 {
			n = 1 + c.rnd.IntN(n)
		}
		part := header + strings.Join(lines[:n], "")
		names = append(names, c.write(source, part))
		all, err := csv.NewReader(strings.NewReader(part)).ReadAll()
		if err != nil {
			c.t.Fatal(err)
		}
		for i, rec := range all[1:] {
			var key []byte
			if rec[0] != "" {
				key = table.AppendKey(nil, table.Value{Type: table.String, Bytes: []byte(rec[0])})
			}
			if m.mode == table.Update && strings.Join(rec[1:], "") == "" && !m.deleteNull {
				key = nil
			}
			c.records[checkpoint.At(source, int64(i))] = key
		}
		lines = lines[n:]
	}
	return names
}

// write makes a source of a text: a file, a compressed one or, once, standard input.
func (c *crashes) write(source int, text string) string {
	switch kind := c.rnd.IntN(4); {
	case kind == 0:
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write([]byte(text)); err != nil {
			c.t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			c.t.Fatal(err)
		}
		return c.w.file(fmt.Sprintf("in%d.csv.gz", source), packed.String())
	case kind == 1 && c.stdin == "":
		c.stdin = text
		return "-"
	}
	return c.w.file(fmt.Sprintf("in%d.csv", source), text)
}

// compare compares what a checkpoint calls final with the counters of that moment.
func (c *crashes) compare(d *dispatcher, s *checkpoint.Snapshot) {
	final, read := int64(0), int64(0)
	places := c.places()
	for p, key := range c.records {
		p, planned := places(p)
		if !planned {
			continue // over the limit
		}
		if s.Read.Has(p) {
			read++
		}
		switch {
		case key == nil && s.Read.Has(p), key != nil && s.Final(p, key):
			final++
		}
	}
	r := d.report
	if counted := r.Written + r.Rejected + r.Superseded; read != r.Read || final != counted {
		c.t.Errorf("attempt %d: the checkpoint has %d records read and %d final, the ledger %d and %d", r.Attempts, read, final, r.Read, counted)
	}
	c.checked++
}

// places returns what says where records come in the order of reading, by their source and number, and whether they do.
func (c *crashes) places() func(checkpoint.Position) (checkpoint.Position, bool) {
	job, err := checkpoint.ReadJob(c.cfg.RunDir)
	if err != nil {
		c.t.Fatal(err)
	}
	file, err := job.ReadOrder(c.cfg.RunDir)
	if err != nil {
		c.t.Fatal(err)
	}
	if file == nil {
		return func(p checkpoint.Position) (checkpoint.Position, bool) { return p, true }
	}
	order, err := readorder.Decode(file)
	if err != nil {
		c.t.Fatal(err)
	}
	places := readorder.NewPlaces(order)
	return func(p checkpoint.Position) (checkpoint.Position, bool) {
		source, record, comes := places.Find(p.Source(), p.Record())
		return checkpoint.At(source, record), comes
	}
}

// run runs attempts, each but the last killed, and returns the last one's report.
func (c *crashes) run() *Report {
	kills := 1 + c.rnd.IntN(5)
	for {
		base, err := checkpoint.Read(c.cfg.RunDir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.t.Fatal(err)
		}
		if base == nil && len(c.bySent) > 0 {
			c.t.Fatalf("%d rows were sent without a checkpoint", len(c.bySent))
		}
		r := c.attempt(base, kills > 0)
		if kills--; r.State == StateFinished || c.t.Failed() {
			return r
		}
	}
}

// attempt runs until it is killed, before a checkpoint or a request that is drawn, or stopped in order, or done.
func (c *crashes) attempt(base *checkpoint.Snapshot, kill bool) *Report {
	c.attempts++
	c.w.grid.serve()
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	drain, stopGently := context.WithCancelCause(ctx)
	defer stopGently(nil)
	cfg := c.cfg
	cfg.Drain = drain
	cfg.Read.Stdin, cfg.Read.ChainBytes = strings.NewReader(c.stdin), 1000
	saves, sends, gently := 0, 0, c.rnd.IntN(4) == 0
	lastSave, lastSend := c.rnd.IntN(12), 1+c.rnd.IntN(60)
	if kill && c.rnd.IntN(4) == 0 {
		cfg.Limits.MaxErrors = MaxErrors{Rows: int64(c.rnd.IntN(30))}
	}
	dead := false
	end := func() {
		if gently {
			stopGently(&Interrupted{Signal: "test", ExitCode: exitcode.Interrupted})
			return
		}
		dead = true
		c.w.grid.diesWith(c.rnd)
		stop(&Interrupted{Signal: "test", ExitCode: exitcode.Interrupted})
	}
	cfg.onSave = func(*checkpoint.Snapshot) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if dead {
			return errKilled // what a dead process would have written
		}
		if saves++; kill && saves > lastSave && !gently {
			end()
			return errKilled
		}
		return nil
	}
	cfg.onSend = func(rows []table.Ref) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sent(base, rows)
		if sends++; kill && sends == lastSend {
			end()
		}
	}
	r, err := cfg.run(ctx)
	if err != nil {
		c.t.Fatalf("attempt %d: %v", c.attempts, err)
	}
	if err := r.balance(); err != nil {
		c.t.Error(err)
	}
	return r
}

// sent checks rows that are sent against what the attempt resumes from.
func (c *crashes) sent(base *checkpoint.Snapshot, rows []table.Ref) {
	for _, r := range rows {
		p := position(r)
		if base != nil && base.Final(p, r.Key()) {
			c.t.Errorf("attempt %d: record %d of source %d is final and was sent again", c.attempts, p.Record(), p.Source())
		}
		switch first := c.bySent[p]; {
		case first == 0:
			c.bySent[p] = c.attempts
		case first < c.attempts:
			c.replayed++
			if !r.Row().Suspect() {
				c.fresh++
			}
		}
	}
}

// checkRejects checks that every rejected record is kept once, with its reason.
func (c *crashes) checkRejects(rejected int64) {
	seen := map[string]bool{}
	for _, line := range lines(c.t, filepath.Join(c.cfg.RunDir, rundir.ReasonsFile)) {
		var reason struct {
			File   string
			Record int64
		}
		if err := json.Unmarshal([]byte(line), &reason); err != nil {
			c.t.Fatalf("%s: %v", line, err)
		}
		at := fmt.Sprint(reason.File, " ", reason.Record)
		if seen[at] {
			c.t.Errorf("record %s is rejected twice", at)
		}
		seen[at] = true
	}
	kept := max(0, len(lines(c.t, filepath.Join(c.cfg.RunDir, "rejects.csv")))-1)
	if int64(len(seen)) != rejected || int64(kept) != rejected {
		c.t.Errorf("%d reasons and %d records are kept, want %d", len(seen), kept, rejected)
	}
}
