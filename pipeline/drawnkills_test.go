package pipeline

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/shuffle/readorder"
)

var errKilled = errors.New("killed")

// kills is the state of a test that kills a load repeatedly until it is done.
type kills struct {
	mu     sync.Mutex
	keys   map[checkpoint.Position][]byte // ordering keys of all records; nil for those that cannot become rows
	bySent map[checkpoint.Position]int    // the first attempt that sent a record

	attempts, replayed, checked, unsaid int
}

// moment is the checkpoint or request, counted from 1, at which an attempt ends. The zero moment means never.
type moment struct {
	save, send int
	gently     bool
}

// kills makes a load end at the moment, and returns the context to run it with.
func (at moment) kills(cfg *trial, died func()) (ctx context.Context, done func()) {
	ctx, stop := context.WithCancelCause(context.Background())
	drain, stopGracefully := context.WithCancelCause(ctx)
	cfg.Drain = drain
	var mu sync.Mutex
	saves, sends, dead := 0, 0, false
	end := func() {
		cause := &Interrupted{Signal: "test", ExitCode: exitcode.Interrupted}
		if at.gently {
			stopGracefully(cause)
			return
		}
		if dead = true; died != nil {
			died()
		}
		stop(cause)
	}
	cfg.keeping.OnSave = func(*checkpoint.Snapshot) error {
		mu.Lock()
		defer mu.Unlock()
		if saves++; saves == at.save && !dead {
			end()
		}
		if dead {
			return errKilled // a dead process would not have written this
		}
		return nil
	}
	looks := cfg.onSend
	cfg.onSend = func(rows []table.Ref) {
		if looks != nil {
			looks(rows)
		}
		mu.Lock()
		defer mu.Unlock()
		if sends++; sends == at.send {
			end()
		}
	}
	return ctx, func() { stopGracefully(nil); stop(nil) }
}

// untilDone runs attempts until the load is done, and returns the last report. Half of the loads are killed at random.
func (m *drawnLoad) untilDone() *Report {
	k, left := &m.killed, 0
	if m.rnd.IntN(2) == 0 {
		left = 1 + m.rnd.IntN(5)
	}
	most := m.cfg.Limits.MaxErrors
	for ; ; left-- {
		at := moment{}
		m.cfg.Limits.MaxErrors = most
		if left > 0 {
			at = moment{save: 1 + m.rnd.IntN(12), send: 1 + m.rnd.IntN(60)}
			if at.gently = m.rnd.IntN(4) == 0; at.gently {
				at.save = 0
			}
			if m.rnd.IntN(4) == 0 && !m.cfg.Limits.SetAside {
				m.cfg.Limits.MaxErrors = ledger.MaxErrors{Rows: int64(m.rnd.IntN(30))}
			}
		}
		r := m.attempt(at)
		if r.State == StateFinished || m.t.Failed() {
			conformance.True(m.t, k.unsaid <= 0, "%d rows were sent again, and nothing said that they may have been", k.unsaid)
			return r
		}
		time.Sleep(restart)
	}
}

// restart is the time between processes, which must not begin in one millisecond, the unit of timestamps and marks.
const restart = 20 * time.Millisecond

// attempt runs the load until it is killed before a checkpoint or a request, stopped gently, or done.
func (m *drawnLoad) attempt(at moment) *Report {
	k := &m.killed
	base, err := checkpoint.Read(m.cfg.RunDir)
	conformance.MustTrue(m.t, err == nil || errors.Is(err, fs.ErrNotExist), "%v", err)
	conformance.MustTrue(m.t, base != nil || len(k.bySent) <= 0, "%d rows were sent without a checkpoint", len(k.bySent))
	k.attempts++
	m.w.grid.serve()
	cfg, power := m.cfg, rand.New(rand.NewPCG(m.rnd.Uint64(), 3))
	cfg.Read.Stdin = strings.NewReader(m.stdin)
	looks := cfg.onSend
	cfg.onSend = func(rows []table.Ref) {
		k.mu.Lock()
		m.sent(base, rows)
		k.mu.Unlock()
		if looks != nil {
			looks(rows)
		}
	}
	ctx, done := at.kills(&cfg, func() { m.w.grid.diesWith(power) })
	defer done()
	r, err := cfg.run(ctx)
	conformance.MustTrue(m.t, err == nil, "attempt %d: %v", k.attempts, err)
	conformance.Must(m.t, r.Balance())
	return r
}

// sent checks that rows may be sent, given the checkpoint from which the attempt resumed.
func (m *drawnLoad) sent(base *checkpoint.Snapshot, rows []table.Ref) {
	k := &m.killed
	for _, r := range rows {
		p := keep.PositionOf(r)
		conformance.True(m.t, base == nil || !base.Final(p, r.Key()),
			"attempt %d: record %d of source %d is final and was sent again", k.attempts, p.Record(), p.Source())
		switch first := k.bySent[p]; {
		case first == 0:
			k.bySent[p] = k.attempts
		case first < k.attempts:
			if k.replayed++; !r.Row().Suspect() {
				k.unsaid++
			}
		}
	}
}

// compare checks that the final rows of a checkpoint match the counters at that moment.
func (m *drawnLoad) compare(d *dispatcher, s *checkpoint.Snapshot) {
	if m.killed.checked++; m.killed.checked > 20 && m.killed.checked%10 > 0 {
		return // if there are many checkpoints, only some are compared
	}
	final, read := int64(0), int64(0)
	places := m.places()
	for p, key := range m.killed.keys {
		p, planned := places(p)
		if !planned {
			continue // beyond the limit
		}
		if s.Read.Has(p) {
			read++
		}
		if key == nil && s.Read.Has(p) || key != nil && s.Final(p, key) {
			final++
		}
	}
	r := d.counts
	if counted := r.Written + r.Rejected + r.Superseded + r.ConditionFailed; read != r.Read || final != counted {
		m.t.Errorf("attempt %d: checkpoint %d read, %d final; ledger %d, %d", r.Attempts, read, final, r.Read, counted)
	}
}

// places returns a function that maps input places to places in reading order, and reports whether the record is read.
func (m *drawnLoad) places() func(checkpoint.Position) (checkpoint.Position, bool) {
	job := conformance.Try(checkpoint.ReadJob(m.cfg.RunDir)).Must(m.t)
	file := conformance.Try(job.ReadOrder(m.cfg.RunDir)).Must(m.t)
	if file == nil {
		return func(p checkpoint.Position) (checkpoint.Position, bool) { return p, true }
	}
	order := conformance.Try(readorder.Decode(file)).Must(m.t)
	places := readorder.NewPlaces(order)
	return func(p checkpoint.Position) (checkpoint.Position, bool) {
		source, record, comes := places.Find(p.Source(), p.Record())
		return checkpoint.At(source, record), comes
	}
}

// runAtEveryCheckpoint kills the load at checkpoint 1, then in another table at checkpoint 2, and so on.
func (m *drawnLoad) runAtEveryCheckpoint(before contents) {
	for at := 1; ; at += 1 + at/6 { // if there are many checkpoints, at some of them
		want := m.oracle.apply(before, m.records)
		m.cfg.Checkpoint.Every = time.Millisecond
		r := m.attempt(moment{save: at})
		killed := r.State != StateFinished
		if killed {
			time.Sleep(restart)
			r = m.attempt(moment{})
		}
		m.judge(r, want)
		if m.t.Failed() || !killed {
			m.t.Logf("%v: %d checkpoints; %d sections, a switch after %d splits", m, at, r.Sections, m.cfg.switchAfter)
			return
		}
		had.count("kills of loads in their order", r.Sections == 0)
		had.count("kills of loads by a schedule", r.Sections > 0 && m.cfg.switchAfter == 0)
		had.count("kills of loads that switch to one", r.Sections > 0 && m.cfg.switchAfter > 0)
		before = m.draw() // the same load again
	}
}

// runDamaged damages a file. The load must fail, and leave each row as the first few records of its key make it.
func (m *drawnLoad) runDamaged(before contents) {
	t := m.t
	early := m.damage()
	want := m.oracle.apply(before, m.records)
	end := m.trouble()
	r, err := m.cfg.run(context.Background())
	end()
	conformance.Equal(t, r.Balance(), nil, "error")
	whole := r.State == StateFinished && err == nil                             // the file was read before it was damaged
	parquet := strings.HasSuffix(m.cfg.Inputs[len(m.cfg.Inputs)-1], ".parquet") // CSV is changed while it is read
	code := map[bool]int{false: exitcode.Failed, true: exitcode.Usage}[parquet]
	conformance.True(t, (!whole || !early) && (whole || r.ExitCode == code && r.Read <= int64(len(m.records))),
		"%s, exit code %d, %d read of %d: %v", r.State, r.ExitCode, r.Read, len(m.records), err)
	had.count("damage that the first pass found", early && m.scheduled)
	had.count("damage that was found later", !early && !whole)
	had.count("a schedule when damage was found", !whole && r.Sections > 0)
	had.count("a switch to a schedule before", !whole && r.Sections > 0 && m.cfg.switchAfter > 0)
	rows := m.w.rows()
	if whole {
		conformance.Equal(t, m.differs(want, rows), "", "the table differs from a sequential load (-want +got)")
	}
	conformance.Equal(t, neverHad(before, want, rows), "", "never had")
	for name, broken := range m.spoiled(rows) {
		why := neverHad(before, want, broken)
		conformance.True(t, why != "" || name == "a row less" || strings.HasPrefix(name, "no "), "%s passes", name)
	}
	t.Logf("%v: %d read, %d written: %v", m, r.Read, r.Written, err)
}

func neverHad(before contents, want leftBySequence, rows contents) string {
	for key, past := range want.past {
		cells, exists := rows[key]
		if got := drawnRow(cells, exists); !slices.Contains(past, got) {
			return "key " + key + " holds " + got + ", which it never had: " + strings.Join(past, ", ")
		}
	}
	for key, cells := range rows {
		if old, exists := before[key]; len(want.past[key]) == 0 && drawnRow(cells, true) != drawnRow(old, exists) {
			return "key " + key + " holds " + drawnRow(cells, true) + ", had " + drawnRow(old, exists) + ", and no record has it"
		}
	}
	return ""
}

// damage damages a file after the load has inspected its inputs, before its first row (early) or while it runs.
func (m *drawnLoad) damage() (early bool) {
	m.t.Helper()
	more := m.input
	more.records, more.unique, more.spoiled = 400, false, false
	if m.input.unique { // use keys that the load does not have, as none may be repeated
		more = drawnInput{arrangement: m.input.arrangement, records: 400, unique: true, perID: m.key.perID}
	}
	records := more.draw(m.rnd, "last")
	for i := range records {
		if m.input.unique {
			records[i].id, records[i].n = "later"+records[i].id, records[i].n+int64(fan)*1000
		}
	}
	kind, harm := "parquet", damageParquet
	if m.rnd.IntN(3) == 0 {
		kind, harm = "csv", cutShort
	}
	name := m.write("damaged", records, []string{kind}, 1)[0]
	for i := range records {
		records[i].file = len(m.cfg.Inputs)
	}
	m.cfg.Inputs = append(m.cfg.Inputs, name)
	m.records = append(m.records, records...)
	m.killed.keys = m.orderingKeys()
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
