package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"time"

	"tsimport/internal/table"
	"tsimport/pipeline/checkpoint"
	"tsimport/pipeline/intake"
	"tsimport/pipeline/plan"
	"tsimport/pipeline/rundir"
	"tsimport/ratelimit"
	"tsimport/reader/source"
)

// How often what is final is kept, and what depends on it.
const (
	keepEvery  = time.Second
	keepSoon   = 100 * time.Millisecond // when a lane has sent nearly all that it may
	keepAtMost = 5 * time.Second        // however long it takes to describe a load
	// keepCost is how many times as long as describing the load took goes by before it is described again.
	keepCost = 200
	// keptFor is for how long requests may be sent since the moment that the last checkpoint describes.
	keptFor = 10 * time.Second
	// keepPatience is how long no checkpoint may be written before the load fails.
	keepPatience = time.Minute
	// leastAllowance is how many rows a lane may send, beyond twice what it sent since the last checkpoint, until the next
	// one is written: an attempt that goes on from it cannot know which of them were sent. A few lanes share fewAllowance.
	leastAllowance = 2000
	fewAllowance   = 16_000
)

// saving is a checkpoint on its way to the disk.
type saving struct {
	snapshot *checkpoint.Snapshot
	files    []*os.File // to be synced before
	failed   error      // why it must not be written
}

// saved says that it is there, or why not.
type saved struct {
	of  time.Time
	err error
}

// keeper knows what is final and keeps it. It belongs to the dispatcher; only save runs elsewhere.
type keeper struct {
	cfg     *Config
	hooks   *hooks
	folder  *rundir.Folder
	sources []*plan.Source
	about   checkpoint.About
	ordered bool

	jobs chan *saving
	done chan saved
	busy bool
	soon bool // a lane waits, or soon will
	now  bool // lanes wait that no checkpoint knows

	built  time.Time     // when the load was described last
	cost   time.Duration // of that
	last   time.Time     // the moment that the newest checkpoint describes
	onDisk atomic.Pointer[time.Time]
	failed error // why the last one could not be written
	// patience is how long no checkpoint may be written.
	patience ratelimit.Patience

	base   *checkpoint.Snapshot             // what the attempt goes on from, nil if nothing of it is left
	out    map[checkpoint.Position]struct{} // of its rows out, those that have not left their queue again
	replay *checkpoint.Replay               // what the intake is told of base
	queued int64                            // suspect rows that are in the lanes
	passed bool                             // all suspect rows have come
	left   int64                            // records of base that are not final and were not read again
	read   checkpoint.Set                   // of all attempts
	again  checkpoint.Set                   // of this one: what was handed over, whatever became of it before
	starts map[int][]checkpoint.Start       // of splits of sources that are read in order
	first  int                              // source of which there may be starts
}

func newKeeper(cfg *Config, h *hooks, folder *rundir.Folder, planned *plan.Plan, from *origin, now time.Time) *keeper {
	k := &keeper{
		cfg: cfg, hooks: h, folder: folder, sources: planned.Sources, ordered: cfg.Write.Order == plan.LastWins,
		patience: ratelimit.Patience{For: cmp.Or(h.keepPatience, keepPatience)},
		jobs:     make(chan *saving, 1), done: make(chan saved, 1),
		out: map[checkpoint.Position]struct{}{}, starts: map[int][]checkpoint.Start{},
		about: checkpoint.About{Job: from.job.Identity, Attempt: 1, Begun: now.UTC(), Ordered: cfg.Write.Order == plan.LastWins, Settle: cfg.Write.Settle},
	}
	if b := from.snapshot; b != nil {
		k.base, k.replay = b, checkpoint.NewReplay(&b.State, k.ordered)
		k.about.Attempt, k.about.Begun = b.Attempt+1, b.Begun
		k.read = append(k.read, b.Read...)
		k.left = b.Counters["read"] - b.Counters["written"] - b.Counters["rejected"] - b.Counters["superseded"] - b.Counters["archived"]
		for _, i := range b.Out {
			for p := i.From; p < i.To; p++ {
				k.out[p] = struct{}{}
			}
		}
		for _, s := range b.Starts {
			k.starts[s.Source] = append(k.starts[s.Source], s)
		}
	}
	return k
}

// save writes checkpoints until there are no more.
func (k *keeper) save() error {
	for j := range k.jobs {
		err := k.write(j)
		if err == nil {
			k.onDisk.Store(&j.snapshot.Time)
		}
		k.done <- saved{j.snapshot.Time, err} // has room for every one
	}
	return nil
}

// write makes what a checkpoint calls final safe from a crash, then the checkpoint.
func (k *keeper) write(j *saving) error {
	if j.failed != nil {
		return j.failed
	}
	for _, f := range j.files {
		if err := f.Sync(); err != nil {
			return fmt.Errorf("sync rejected rows: %w", err)
		}
	}
	if k.cfg.Checkpoint.Sync != nil {
		if err := k.cfg.Checkpoint.Sync(); err != nil {
			return fmt.Errorf("sync the store: %w", err)
		}
	}
	encoded, err := j.snapshot.Encode()
	if err != nil {
		return err
	}
	if hook := k.hooks.onSave; hook != nil {
		if err := hook(j.snapshot); err != nil {
			return err
		}
	}
	return checkpoint.Write(k.folder.Path, encoded)
}

// mayWait returns how long sending has to wait for a checkpoint: a row that is sent must not be unknown to it for long.
func (k *keeper) mayWait(now time.Time) time.Duration {
	if k == nil || !k.last.IsZero() && elapsed(k.last, now) < k.hooks.mayKeepFor() {
		return 0
	}
	return keepSoon
}

// sendUntil returns until when a request that is cut now may be sent; zero is for ever. A process can be stopped between the
// two for hours, and the attempt that resumes relies on it that nothing was sent so late.
func (k *keeper) sendUntil() time.Time {
	if k == nil || k.last.IsZero() {
		return time.Time{}
	}
	return k.last.Add(k.hooks.mayKeepFor())
}

// tooLate reports whether the flight must not be sent any more, and says so of its rows.
func (f *flight) tooLate(now time.Time) bool {
	if f.until.IsZero() || elapsed(f.until, now) <= 0 {
		return false
	}
	for i := range f.Outcomes {
		f.Outcomes[i] = table.Outcome{Fate: table.Again, Message: "not sent: the process was stopped in between"}
	}
	return true
}

// elapsed returns how much time has passed by this machine's clocks, the one that says most: the monotonic one stands still
// while a machine sleeps, the other one can be set.
func elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// due returns the time until the load is to be described.
func (k *keeper) due(now time.Time) time.Duration {
	if k == nil || k.busy {
		return math.MaxInt64
	}
	wait := k.cfg.Checkpoint.Every // who gives it means it
	if wait == 0 {
		wait = min(max(keepEvery, keepCost*k.cost), keepAtMost)
	}
	if k.soon || k.last.IsZero() {
		wait = min(wait, cmp.Or(k.cfg.Checkpoint.Every, keepSoon))
	}
	if k.built.IsZero() || k.now {
		return 0
	}
	return max(0, wait-now.Sub(k.built))
}

// keep describes the load and hands that to be written, if it is time.
func (d *dispatcher) keep(now time.Time) {
	k := d.keeper
	if k == nil {
		return
	}
	if d.stop == nil && k.patience.Over(now) {
		d.halt(fmt.Errorf("no checkpoint could be written for %v: %w", k.patience.For, cmp.Or(k.failed, errSlow)))
		return
	}
	if k.due(now) > 0 {
		return
	}
	s, err := d.snapshot(now)
	if err != nil {
		d.halt(err)
		return
	}
	for _, l := range d.lanes {
		l.next, l.taken, l.pending = d.allowance(l), 0, true
		l.left = min(l.left, l.next) // the checkpoint may be on the disk before that is known here
	}
	k.busy, k.soon, k.now = true, false, false
	k.jobs <- &saving{s, d.keptFiles(), d.archive.failure()} // has room for every one
}

var errSlow = errors.New("the last one is still being written")

// allowance is how many rows the lane may send from now until the next checkpoint.
func (d *dispatcher) allowance(l *lane) int64 {
	if !d.keeper.ordered {
		return math.MaxInt64
	}
	if d.hooks.allowance > 0 {
		return d.hooks.allowance
	}
	return 2*l.taken + max(leastAllowance, fewAllowance/int64(len(d.lanes)))
}

// kept notes that a checkpoint was written, or not.
func (d *dispatcher) kept(s saved) {
	k := d.keeper
	k.busy = false
	if k.failed = s.err; s.err != nil {
		d.report.CheckpointError = s.err.Error()
		return // the one before still holds, and so does what it lets lanes send
	}
	if err := d.extras.stamps.kept(); err != nil {
		d.report.CheckpointError = err.Error() // files are left behind
		return
	}
	d.report.CheckpointError = ""
	d.report.Checkpoints++
	k.last = s.of
	k.patience.Progress(time.Now())
	for _, l := range d.lanes {
		if l.pending {
			l.left, l.pending = max(0, l.next-l.taken), false
		}
		l.stale = true
	}
}

// maxStarts bounds the places that are remembered of a source: of more, every other one is forgotten.
const maxStarts = 1024

// counted enters a split that was handed over, and returns which of its records no attempt has counted before.
func (k *keeper) counted(p *intake.Parsed, bytesBefore int64) {
	sp := p.Split
	from, to := checkpoint.At(sp.Ordinal, sp.FirstRecord), checkpoint.At(sp.Ordinal, sp.FirstRecord+int64(p.Records))
	k.read, k.again = k.read.Add(from, to), k.again.Add(from, to)
	k.passed = k.passed || p.New
	if k.base != nil {
		k.meet(p)
	}
	if !k.ordered && k.sources[sp.Ordinal].Anywhere() {
		return
	}
	starts := k.starts[sp.Ordinal]
	if n := len(starts); n > 0 && starts[n-1].Record >= sp.FirstRecord {
		return // it is read again
	}
	starts = append(starts, checkpoint.Start{
		Source: sp.Ordinal, Record: sp.FirstRecord, Line: sp.FirstLine, Offset: sp.Offset, Bytes: bytesBefore,
	})
	if len(starts) > maxStarts {
		kept := starts[:0]
		for i := range starts {
			if i%2 == 0 || i == len(starts)-1 {
				kept = append(kept, starts[i])
			}
		}
		starts = kept
	}
	k.starts[sp.Ordinal] = starts
}

// meet counts the rows of a split that are known of the attempt before.
func (k *keeper) meet(p *intake.Parsed) {
	for _, b := range p.Blocks {
		for i := range b.Block.Rows {
			r := table.Ref{Block: b.Block, Index: int32(i)}
			if r.Row().Suspect() {
				k.queued++
			}
			if k.base.Read.Has(position(r)) {
				k.left--
			}
		}
	}
}

// fresh returns how many of n records of a split from one on no attempt has counted before.
func (k *keeper) fresh(sp *table.Split, from, n int64) int64 {
	if k == nil || n <= 0 {
		return max(n, 0)
	}
	at := checkpoint.At(sp.Ordinal, sp.FirstRecord+from)
	return n - k.read.Count(at, at+checkpoint.Position(n))
}

// reached reports whether a split comes to the end of what earlier attempts have read in order.
func (k *keeper) reached(p *intake.Parsed) bool {
	return k == nil || checkpoint.At(p.Split.Ordinal, p.Split.FirstRecord+int64(p.Records)) >= k.read.End()
}

// gate is a lane's queue, of which no more rows leave than the lane may send until the next checkpoint.
type gate struct {
	*dispatcher
	lane *lane
}

func (g gate) Front() (table.Ref, bool) {
	if g.lane.left <= 0 {
		return table.Ref{}, false
	}
	return g.lane.queue.Front()
}

func (g gate) Advance() {
	if k := g.keeper; k.base != nil {
		if r, ok := g.lane.queue.Front(); ok && r.Row().Suspect() {
			at := position(r)
			delete(k.out, at)
			k.queued--
			if k.ordered || k.base.Read.Has(at) {
				g.report.Replayed++
			}
		}
	}
	g.lane.queue.Advance()
	g.lane.left--
	g.lane.taken++
	if g.lane.left < g.lane.taken/4 {
		g.keeper.soon = true
	}
}

// final keeps what is final when an attempt ends that did not finish.
func (k *keeper) final(d *dispatcher) error {
	now := time.Now()
	d.ended = true
	_, unsettled := d.cutter.Unsettled(now)
	s, err := d.snapshot(now)
	if err != nil {
		return err
	}
	s.Settled = !unsettled && !now.Before(d.suspectUntil)
	return k.write(&saving{s, d.keptFiles(), d.archive.failure()})
}

// past is what the attempt before has left to the intake.
func (k *keeper) past() *intake.Resumed {
	b := k.base
	if b == nil {
		return nil
	}
	chains := map[int]source.Chain{}
	for _, c := range b.Chains {
		chains[c.Source] = source.Chain{Every: c.Every, Sums: c.Sums}
	}
	starts := map[int]checkpoint.Start{}
	for _, s := range b.Starts {
		starts[s.Source] = s
	}
	return &intake.Resumed{
		Records: k.replay,
		Begin: func(ordinal int) (source.Place, source.Chain, bool) {
			s := starts[ordinal]
			return source.Place{Record: s.Record, Line: s.Line, Offset: s.Offset}, chains[ordinal], k.ordered && b.Complete(ordinal)
		},
	}
}

// saves is where written checkpoints come back.
func (d *dispatcher) saves() <-chan saved {
	if d.keeper == nil {
		return nil
	}
	return d.keeper.done
}

// stopSaving ends the writing of checkpoints.
func (d *dispatcher) stopSaving() {
	if d.keeper != nil {
		close(d.keeper.jobs)
	}
}
