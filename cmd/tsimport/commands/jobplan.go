package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/input"
)

// Limits of a plan: the files opened per load, and the retry time for a service that does not respond.
const (
	planFilesOpened = 128
	planPatience    = 5 * time.Second
)

type jobPlanner struct {
	jobRunner
	plan     *jobPlan
	made     map[string]*loadPlan // loads that create tables, by place
	measured measuredRates
	down     map[string]error // services that did not respond, by endpoint; later loads do not wait for them
}

// planJob prints a job's plan. It has no effects: it creates no folder and takes no lock.
func planJob(c *call, r *job.Record) (err error) {
	common, err := job.ResolveSettings(r.File, r.Common, os.LookupEnv)
	if err != nil {
		return jobError(err)
	}
	p := &jobPlanner{made: map[string]*loadPlan{}, down: map[string]error{}, plan: &jobPlan{Version: 1, Job: r.File,
		Parallel: min(r.Parallel, len(r.Loads)), Loads: []*loadPlan{}}}
	folder, err := p.findFolder(c, r)
	if err != nil {
		return jobError(err)
	}
	s, err := newSession(common, p.plan.Parallel)
	if err != nil {
		return err
	}
	s.readOnly = true
	defer func() { err = errors.Join(err, s.close()) }()
	limitMemory(s.memory, false)
	p.jobRunner = jobRunner{c: c, session: s, folder: folder, record: r}
	p.measured = measureRuns(rundir.Root)
	for _, s := range inOrder(r.Loads) {
		if c.interrupts.drain.Err() != nil {
			return context.Cause(c.interrupts.drain)
		}
		p.load(s)
	}
	slices.SortStableFunc(p.plan.Loads,
		func(a, b *loadPlan) int { return placeOfLoad(r, a.Name) - placeOfLoad(r, b.Name) })
	p.readTogether()
	p.plan.Notes = append(p.plan.Notes, p.plannedMoments()...)
	p.total()
	err = printed(c, p.plan, func(w io.Writer) error { return writeLines(w, p.plan.lines()) })
	if err == nil && p.plan.ExitCode != exitcode.OK {
		i := slices.IndexFunc(p.plan.Loads, func(l *loadPlan) bool { return l.ExitCode == p.plan.ExitCode })
		l := p.plan.Loads[max(0, i)]
		err = endsWith(c, p.plan.ExitCode, nil, fmt.Sprintf("load %s would end with exit code %d: %s", l.Name, l.ExitCode,
			cmp.Or(l.Error, l.State)))
	}
	return err
}

// findFolder finds the folder that the job would use, and the record of an earlier start.
func (p *jobPlanner) findFolder(c *call, r *job.Record) (folder string, err error) {
	var before *job.Record
	if folder = c.String("run-dir"); folder == "" {
		folder, before, err = job.Find(rundir.Root, r.Identity)
	} else if before, err = job.ReadRecord(folder); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return "", err
	}
	fresh := cmp.Or(c.String("run-dir"), rundir.DefaultPath(time.Now(), jobName(r.File)))
	if before == nil {
		return fresh, nil
	}
	if by, held := rundir.HolderOf(folder); held {
		p.plan.RunBy = &by
		who := "another process"
		if by.PID != 0 {
			who = fmt.Sprintf("process %d on %s", by.PID, by.Host)
		}
		p.plan.Notes = append(p.plan.Notes, fmt.Sprintf("the job is running now, as %s: what it loads meanwhile is not "+
			"part of this plan", who))
	}
	if c.Bool("fresh") && c.String("run-dir") == "" {
		p.plan.Notes = append(p.plan.Notes, fmt.Sprintf("--fresh: the unfinished job %s would be abandoned, and every "+
			"load would begin with its first record", folder))
		return fresh, nil
	}
	if err := continues(c, r, before, folder); err != nil {
		return "", err
	}
	p.plan.Folder = folder
	err = r.Continue(before)
	r.BeginAgain(before.State == job.Failed)
	return folder, err
}

// inOrder returns the loads in the order in which a job with parallelism 1 runs them.
func inOrder(loads []*job.State) (ordered []*job.State) {
	placed := map[string]bool{}
	for len(ordered) < len(loads) {
		next := slices.IndexFunc(loads, func(s *job.State) bool {
			return !placed[s.Name] && !slices.ContainsFunc(s.After, func(name string) bool { return !placed[name] })
		})
		ordered = append(ordered, loads[next]) // there is one, because the job has no cycles
		placed[loads[next].Name] = true
	}
	return ordered
}

func placeOfLoad(r *job.Record, name string) int {
	return slices.IndexFunc(r.Loads, func(s *job.State) bool { return s.Name == name })
}

// comesAfter reports whether a load of the job runs after another one that was already planned.
func (p *jobPlanner) comesAfter(name, before string) bool {
	return p.plan.Parallel == 1 || p.record.ComesAfter(name, before)
}

func (p *jobPlanner) load(s *job.State) {
	l := &loadPlan{Name: s.Name, Command: s.Command, Table: s.Table(), After: s.After, State: planPlanned, Bytes: -1,
		Rows: -1, RowsAre: rowsUnknown, WriteUnits: -1, Seconds: -1, Columns: []planColumn{}, plans: p}
	p.plan.Loads = append(p.plan.Loads, l)
	dir := s.Folder(p.folder)
	if s.State == job.Done {
		l.State, l.ExitCode, l.Rows, l.RowsAre = planDone, s.ExitCode, s.Read, rowsExact
		return
	}
	in := &invocation{goOn: true, folder: dir, within: within{plan: l}}
	if p.plan.Folder != "" {
		l.findBegun(dir, in)
	}
	show := newDisplay(io.Discard)
	show.say = l.hear
	interrupts, stop := p.c.interrupts.ofLoad()
	defer stop()
	err := p.command(interrupts.hard, s, in, show, interrupts)
	switch nothing, exit := new(plan.NothingNew), new(exitError); {
	case err == nil || l.State == planLater:
		return
	case errors.As(err, &nothing):
		l.State = planNothing
		l.note(nothing.Notes...)
		l.Files = &planFiles{Found: nothing.Found, Names: []string{}}
		l.Rows, l.RowsAre, l.Bytes, l.WriteUnits, l.Seconds = 0, rowsExact, 0, 0, 0
		if s.Value("fail-if-nothing-new") == "true" && (p.record.Later || s.Again == s.Told && finished(dir) == nil) {
			l.ExitCode = exitcode.NoInput
		}
		return
	case errors.As(err, &exit) && exit.err != nil:
		l.ExitCode, err = exit.code, exit.err
	default:
		l.ExitCode = exitcode.Of(err)
	}
	l.State, l.Error = planRefused, input.RedactText(client.OneLine(err.Error()))
	if l.ExitCode == exitcode.Failed {
		l.State = planFailed
		if l.endpoint != "" && p.down[l.endpoint] == nil {
			p.down[l.endpoint] = err
		}
	}
}

// writers names the loads that write to a table before a load reads it.
func (p *jobPlanner) writers(place, reader string) (names []string) {
	for _, l := range p.plan.Loads {
		if l.Command != job.Export && l.State == planPlanned && l.Target+"\x00"+l.Table == place && l.Name != reader &&
			p.comesAfter(reader, l.Name) {
			names = append(names, l.Name)
		}
	}
	return names
}
