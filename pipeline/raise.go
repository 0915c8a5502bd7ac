package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tsimport/internal/atomicfile"
	"tsimport/internal/exitcode"
	"tsimport/internal/jobdir"
	"tsimport/internal/tablestore/client"
	"tsimport/internal/tablestore/reserve"
	"tsimport/pipeline/checkpoint"
	"tsimport/pipeline/plan"
	"tsimport/pipeline/rundir"
	"tsimport/ratelimit"
)

// RaisedWrite is the raised write throughput of the table of a load. What is to be restored is noted, before anything is raised, in a
// register that all loads into the table look at, and in the run folder, where a user looks.
type RaisedWrite struct {
	cfg    *Config
	raise  *reserve.Raise
	locks  raiseLocks
	shared *sharedRaise // with other loads of the job; nil alone
}

// ReportRaise is what a load did to the table's reserved write throughput.
type ReportRaise struct {
	From     int  `json:"from"` // write units
	To       int  `json:"to"`
	Restored bool `json:"restored"`
}

// RaiseNotes is where notes of raised throughput are kept in a state that machines share.
type RaiseNotes struct {
	Store jobdir.Store // of the table alone
	Lease *jobdir.Lease
}

// raiseLocks keep other processes from raising the table's throughput: of the register in this working folder, and of all working folders
// of the user on this machine.
type raiseLocks []*rundir.Lock

func (l raiseLocks) release() (err error) {
	for _, lock := range l {
		err = errors.Join(err, lock.Release())
	}
	return err
}

// sharedRaise is a raised throughput that loads of a job share: the highest that one of them asks for. The last one restores it.
type sharedRaise struct {
	turn   chan struct{} // holds one token
	loads  int
	raise  *reserve.Raise
	raised bool // to raise.Units; else the attempt has failed
	locks  raiseLocks
}

// sharedRaise returns that of a table.
func (l *SharedLimits) sharedRaise(identity string) *sharedRaise {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.raises == nil {
		l.raises = map[string]*sharedRaise{}
	}
	s := l.raises[identity]
	if s == nil {
		s = &sharedRaise{turn: make(chan struct{}, 1)}
		s.turn <- struct{}{}
		l.raises[identity] = s
	}
	return s
}

// take waits for the turn of a load.
func (s *sharedRaise) take(ctx context.Context) error {
	select {
	case <-s.turn:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// RaiseWrite raises the write throughput of the table as Write.Rates.RaiseWrite says, for a run in a folder; with 0 it looks only whether an
// earlier run has left something to be restored. Restore is to be called in any case.
func RaiseWrite(ctx context.Context, cfg *Config, runDir string) (*RaisedWrite, error) {
	return raiseWrite(ctx, cfg, runDir, reserve.Clock{})
}

func raiseWrite(ctx context.Context, cfg *Config, runDir string, clock reserve.Clock) (w *RaisedWrite, err error) {
	w = &RaisedWrite{cfg: cfg}
	if cfg.DryRun || cfg.Target.Absent || cfg.Checkpoint.None && cfg.Write.Rates.RaiseWrite == 0 {
		return w, nil
	}
	if plan.IsTemplate(cfg.Target.Table) {
		if cfg.Write.Rates.RaiseWrite > 0 {
			return w, &plan.UsageError{Message: fmt.Sprintf("--raise-write and --table %s: rows go to several tables; raise their throughput with tsimport table update, or load each by itself", cfg.Target.Table)}
		}
		return w, nil
	}
	identity := cfg.tableIdentity()
	if w.shared = cfg.Shared.sharedRaise(identity); w.shared != nil {
		if err := w.shared.take(ctx); err != nil {
			w.shared = nil
			return w, err
		}
		defer func() { w.shared.turn <- struct{}{} }()
		w.shared.loads++
		if w.shared.raise != nil {
			w.raise = w.shared.raise
			return w, w.raiseFurther(ctx)
		}
	}
	if err := w.open(ctx, identity, runDir, clock); err != nil || w.raise == nil {
		return w, errors.Join(err, w.unused())
	}
	if w.shared != nil {
		w.shared.raise, w.shared.locks = w.raise, w.locks
	}
	return w, w.begin(ctx)
}

// unused gives back the locks if nothing is to be raised.
func (w *RaisedWrite) unused() error {
	if w.raise != nil {
		return nil
	}
	locks := w.locks
	w.locks = nil
	return locks.release()
}

// begin raises the throughput.
func (w *RaisedWrite) begin(ctx context.Context) (err error) {
	if w.raise.Admin, err = w.admin(ctx, min(w.cfg.Write.RetryFor, client.Patience)); err != nil {
		return err
	}
	err = w.raise.Begin(ctx)
	if w.shared != nil {
		w.shared.raised = err == nil
	}
	return err
}

// raiseFurther raises what another load of the job has raised if this one wants more, or if the other one could not.
func (w *RaisedWrite) raiseFurther(ctx context.Context) error {
	units, before := w.cfg.Write.Rates.RaiseWrite, w.raise.Units
	switch {
	case units == 0, units == before && w.shared.raised:
		return nil
	case units < before && w.shared.raised:
		if w.cfg.Watch.OnRaise != nil {
			w.cfg.Watch.OnRaise(fmt.Sprintf("table %s: another load of the job has raised its reserved write throughput to %d units, so --raise-write %d raises nothing", w.cfg.Target.Table, before, units))
		}
		return nil
	}
	w.raise.Units = units
	if w.shared.raised {
		w.raise.Units = max(units, before)
	}
	w.raise.Say = w.cfg.Watch.OnRaise
	return w.begin(ctx)
}

// tableIdentity is the same for all loads into the table.
func (c *Config) tableIdentity() string {
	return checkpoint.Identify(cmp.Or(c.Target.Place, c.Target.Name), c.Target.Table)
}

// open opens the register, under its lock. Raise stays nil if there is nothing to do.
func (w *RaisedWrite) open(ctx context.Context, identity, runDir string, clock reserve.Clock) (err error) {
	cfg := w.cfg
	register := &raiseRegister{runDir: runDir}
	var may func() error
	if notes := cfg.Checkpoint.Raised; notes != nil {
		register.store, may = notes.Store, notes.Lease.Check
	} else {
		store, err := jobdir.Open(ctx, rundir.Root, jobdir.Options{})
		if err != nil {
			return err
		}
		register.store = jobdir.Below(store, ".raised/"+identity)
		if cfg.Write.Rates.RaiseWrite == 0 {
			if n, err := register.Read(ctx); n == nil && err == nil {
				return nil
			}
		}
		err = w.lock(identity)
		if held := new(rundir.HeldError); errors.As(err, &held) {
			if cfg.Write.Rates.RaiseWrite == 0 {
				return nil // a load that runs, and restores it
			}
			err = fmt.Errorf("--raise-write: one load at a time raises the throughput of table %s: %w", cfg.Target.Table, err)
		}
		if err != nil {
			return err
		}
	}
	if runDir != "" {
		if runDir, err = filepath.Abs(runDir); err != nil {
			return err
		}
	}
	w.raise = &reserve.Raise{Table: cfg.Target.Table, Units: cfg.Write.Rates.RaiseWrite, Register: register, Run: runDir, Say: cfg.Watch.OnRaise, May: may, Clock: clock}
	return nil
}

// lock takes the locks of processes of this machine.
func (w *RaisedWrite) lock(identity string) error {
	l, err := rundir.TakeClaim(filepath.Join(rundir.Root, locksFolder), "raised-"+identity)
	if err != nil {
		return err
	}
	w.locks = append(w.locks, l)
	if w.cfg.Resume.LocksDir == "" {
		return nil
	}
	l, err = rundir.TakeClaim(w.cfg.Resume.LocksDir, "raised-"+identity)
	if err == nil {
		w.locks = append(w.locks, l)
	}
	if errors.As(err, new(*rundir.HeldError)) {
		return err
	}
	return nil // a home that cannot be written to keeps nobody from loading
}

// admin connects to the service, until ctx ends.
func (w *RaisedWrite) admin(ctx context.Context, patience time.Duration) (*client.Admin, error) {
	cfg := *w.cfg
	s, err := connect(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	a := cfg.admin(ctx, s.sdk)
	a.Connection, a.RetryFor, a.ReachFor = s.connection, patience, patience
	if w.raise.Clock.Now == nil {
		w.raise.Clock = reserve.Clock{Now: func() time.Time { return s.clock().Now() }, Wait: ratelimit.Wait}
	}
	return a, nil
}

// hastyPatience is how long a load that was interrupted tries to restore what it has raised.
const hastyPatience = 10 * time.Second

// Restore restores what was raised, unless another load of the job still needs it. It waits for the service until the load's Drain ends.
// The error is a *reserve.NotRestored if the table still has what was set here.
func (w *RaisedWrite) Restore(ctx context.Context) (report *ReportRaise, err error) {
	if w == nil || w.raise == nil && w.shared == nil {
		return nil, nil
	}
	if s := w.shared; s != nil {
		if err := s.take(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
		defer func() { s.turn <- struct{}{} }()
		if s.loads--; s.loads > 0 || s.raise == nil {
			return nil, nil
		}
		w.raise, w.locks = s.raise, s.locks
		s.raise, s.locks, s.raised = nil, nil, false
	}
	defer func() { err = errors.Join(err, w.locks.release()) }()
	n := w.raise.Pending()
	if n == nil {
		return nil, nil
	}
	report = &ReportRaise{From: n.Was, To: n.Set[len(n.Set)-1]}
	drain, patience := w.cfg.Drain, client.Patience
	if drain == nil {
		drain = context.Background()
	}
	if drain.Err() != nil {
		patience = hastyPatience
	}
	if w.raise.Admin, err = w.admin(ctx, min(cmp.Or(w.cfg.Write.RetryFor, client.Patience), patience)); err != nil {
		return report, err
	}
	err = w.raise.End(ctx, drain)
	report.Restored = err == nil
	return report, err
}

// RestoreWrite restores what an earlier run in the folder has raised and left.
func RestoreWrite(ctx context.Context, cfg Config, runDir string) error {
	cfg.setDefaults()
	cfg.Write.Rates.RaiseWrite = 0
	w, err := RaiseWrite(ctx, &cfg, runDir)
	_, endErr := w.Restore(ctx)
	if err == nil && endErr == nil {
		err = removeNote(runDir)
	}
	return errors.Join(err, endErr)
}

// restoreLeft restores what an earlier run has raised and left, for a run that has nothing to load.
func (a *attempt) restoreLeft(ctx context.Context) error {
	cfg := *a.cfg
	cfg.Write.Rates.RaiseWrite = 0
	w, err := raiseWrite(ctx, &cfg, cfg.RunDir, a.hooks.raiseClock)
	_, endErr := w.Restore(ctx)
	return errors.Join(err, endErr)
}

// raiseRegister keeps the note of a table in a store, and a copy in the run folder.
type raiseRegister struct {
	store  jobdir.Store
	runDir string
}

const noteName = "note"

func (g *raiseRegister) Read(ctx context.Context) (*reserve.Note, error) {
	text, err := g.store.Get(ctx, noteName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", g.store, err)
	}
	n, err := reserve.ReadNote(text)
	if err != nil {
		return nil, &jobdir.UnfitError{Cause: fmt.Errorf("%s: %w", g.store, err)}
	}
	return n, nil
}

func (g *raiseRegister) Write(ctx context.Context, n *reserve.Note) error {
	text, err := json.MarshalIndent(n, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	before, err := g.Read(ctx)
	if err != nil {
		return err
	}
	if err := g.store.Put(ctx, noteName, text); err != nil {
		return err
	}
	if before != nil && before.Run != "" && before.Run != n.Run {
		if err := removeNote(before.Run); err != nil { // of a run that is gone, and whose work this one does
			return err
		}
	}
	if g.runDir == "" {
		return nil
	}
	return atomicfile.WriteBytes(filepath.Join(g.runDir, rundir.RaisedFile), atomicfile.Options{Perm: 0o600}, text)
}

func (g *raiseRegister) Remove(ctx context.Context, n *reserve.Note) error {
	for _, dir := range []string{n.Run, g.runDir} {
		if dir == "" {
			continue
		}
		if err := removeNote(dir); err != nil {
			return err
		}
	}
	return g.store.Delete(ctx, noteName)
}

func removeNote(runDir string) error {
	if err := os.Remove(filepath.Join(runDir, rundir.RaisedFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ReadRaised returns what the run in the folder has raised and not restored; nil is nothing.
func ReadRaised(runDir string) *reserve.Note {
	text, err := os.ReadFile(filepath.Join(runDir, rundir.RaisedFile))
	if err != nil {
		return nil
	}
	n, err := reserve.ReadNote(text)
	if err != nil {
		return nil
	}
	return n
}

// restore restores the table's throughput after a load that has ended with err, and enters into its report how that went.
func (a *attempt) restore(ctx context.Context, report *Report, err error) error {
	raised, restoreErr := a.raised.Restore(ctx)
	if report == nil || raised == nil && restoreErr == nil {
		return errors.Join(err, restoreErr)
	}
	report.RaisedWrite = raised
	if restoreErr != nil {
		report.ExitCode = exitcode.First(report.ExitCode, exitcode.Of(restoreErr))
		if report.Error == "" {
			report.Error = client.OneLine(restoreErr.Error())
		}
	}
	return errors.Join(err, restoreErr, a.folder.WriteSummary(report))
}
