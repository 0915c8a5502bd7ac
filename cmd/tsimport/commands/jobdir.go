package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/jobs/scaleout"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/fromdatabase"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/reader/open"
)

// ofAllLoads lists the keys that limit all loads of a job together. Many processes cannot keep such limits.
var ofAllLoads = []string{"max-wcu", "max-rows-per-second", "max-bytes-per-second", "max-rcu"}

// mostSessions limits the sessions that all workers of a job have with one database.
const mostSessions = 16

// refuseRunOptions refuses options about the folder of a run, which loads of a job directory do not have.
func refuseRunOptions(isSet func(option string) bool) error {
	for _, name := range []string{"fresh", "accept-changed-input", "run-dir", "parallel"} {
		if isSet(name) {
			return usagef("--%s is for loads and jobs that this process runs; leave it out with --job-dir", name)
		}
	}
	return nil
}

// planJobDirs plans a job's loads for many machines, each in its folder of the job directory, then writes the job.
func planJobDirs(c *call, r *job.Record, place string, workers int) error {
	if err := refuseRunOptions(c.IsSet); err != nil {
		return err
	}
	if workers < 1 || workers > 4096 {
		return usagef("--workers %d: want 1 to 4096", workers)
	}
	store, err := openJobDir(c, place)
	if err != nil {
		return err
	}
	common, err := job.ResolveSettings(r.File, r.Common, os.LookupEnv)
	if err != nil {
		return jobError(err)
	}
	for _, s := range common {
		if slices.Contains(ofAllLoads, s.Key) {
			return usagef("--job-dir: many processes cannot enforce %s for all loads together; give it to each load", s.Key)
		}
	}
	l := &scaleout.Loads{Program: program(), Identity: r.Identity, File: r.File, Workers: workers}
	ordered := inOrder(r.Loads)
	for _, s := range ordered {
		l.Loads = append(l.Loads, scaleout.OneLoad{Name: s.Name, After: s.After})
	}
	if _, err := scaleout.CheckLoads(c.Context, store, l); err != nil {
		return err
	}
	o := &jobRunner{c: c, record: r}
	c.interrupts.drains()
	for i, s := range ordered {
		if err := o.planInDir(s, place, workers, &l.Loads[i]); err != nil {
			return ofLoad(s.Name, err)
		}
	}
	if l, err = scaleout.KeepLoads(c.Context, store, l); err != nil {
		return err
	}
	several, err := scaleout.OpenSeveral(store, l, scaleout.Options{Program: program()})
	if err == nil {
		err = several.Reopen(c.Context)
	}
	if err != nil {
		return err
	}
	sources := slices.ContainsFunc(l.Loads, func(l scaleout.OneLoad) bool { return l.Source != "" })
	if sources {
		c.say.Note("tables of a database are not read in one snapshot: each worker has its own; all workers together "+
			"have at most %d sessions with a database", mostSessions)
	}
	c.say.Line("planned in %s: %s; start on each machine, as often as you like: %s work --job-dir %s", store,
		counted(int64(len(l.Loads)), "load"), commandName(), suggest.Arg(place))
	if c.of.JSON {
		return printJSON(c, map[string]any{"job_dir": store.String(), "plan": l.ID, "loads": l.Loads})
	}
	return nil
}

// planInDir plans one load, and records in one the database that it reads.
func (o *jobRunner) planInDir(s *job.State, place string, workers int, one *scaleout.OneLoad) error {
	if s.Command != job.Load && s.Command != job.Copy {
		return usagef("--job-dir does not apply to %s, which one process runs; leave it out", s.Command)
	}
	resolved, of, err := o.asked(s)
	if err != nil {
		return err
	}
	own := *of
	if err := takeEnvironment(of); err != nil {
		return err
	}
	if one.Source, one.Most, err = sourceOf(of); err != nil {
		return err
	}
	of.JobDir, of.Workers = loadPlace(place, s.Name), workers
	own.JobDir, own.Workers = of.JobDir, of.Workers
	interrupts, stop := o.c.interrupts.ofLoad()
	defer stop()
	in := &invocation{args: resolved.Arguments(), own: &own}
	return perform(in.again(interrupts.hard, of, io.Discard, interrupts, o.c.show.of(s.Name)))
}

// sourceOf returns the database that a load reads and its worker limit, or "" and 0 for other sources.
func sourceOf(of *options.Command) (database string, workers int, err error) {
	if !slices.ContainsFunc(of.From, open.IsDatabase) {
		return "", 0, nil
	}
	cfg, err := fromdatabase.Config(of)
	if err != nil {
		return "", 0, err
	}
	address, err := url.Parse(of.From[0])
	if err != nil {
		return "", 0, usagef("%v", err)
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(address.Path, "/"), "/")
	return progress.Identify(address.Scheme, address.Host, address.Opaque, name), max(1, mostSessions/cfg.Sessions), nil
}

// ofLoad adds the load's name to an error and keeps its exit code.
func ofLoad(load string, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: exitcode.Of(err), err: fmt.Errorf("load %s: %w", load, err)}
}

func loadPlace(place, load string) string {
	return strings.TrimSuffix(place, "/") + "/" + scaleout.FolderOf(load)
}

func workOnSeveral(c *call, place string, store jobdir.Store, l *scaleout.Loads, t *workTask) error {
	c.interrupts.drains()
	s, err := scaleout.OpenSeveral(store, l, scaleout.Options{Program: program(), Drain: c.interrupts.drain, Say: c.say})
	if err != nil {
		return err
	}
	ctx := c.interrupts.hard
	if t.resume {
		if err := s.Continue(ctx); err != nil {
			return err
		}
	}
	here := workingDirectory()
	done, err := s.Work(ctx, func(_ context.Context, load string) error {
		c.say.Line("working on load %s", load)
		err := workOn(c, loadPlace(place, load), &workTask{whole: store})
		*endingOf(c) = ending{runDir: store.String()}
		return errors.Join(ofLoad(load, err), os.Chdir(here)) // workOn has changed the working folder
	})
	if err != nil {
		return err
	}
	e := endingOf(c)
	e.load = jobName(l.File)
	var n job.Counts
	for _, d := range done.Loads {
		n.Read, n.Written, n.Rejected, n.Superseded = n.Read+d.Read, n.Written+d.Written, n.Rejected+d.Rejected,
			n.Superseded+d.Superseded
		c.say.Line("%s: %s, exit code %d", d.Name, d.State, d.ExitCode)
	}
	e.rows = countsOfRows(&n)
	said := fmt.Sprintf("job done: %s, %s read, %s written, %s rejected", counted(int64(len(done.Loads)), "load"),
		words.Grouped(n.Read), words.Grouped(n.Written), words.Grouped(n.Rejected))
	c.say.Line("%s", said)
	return endsAs(c, t, "job", done.ExitCode, done.Here, said)
}

func severalStatus(c *call, store jobdir.Store, l *scaleout.Loads) error {
	s, err := scaleout.OpenSeveral(store, l, scaleout.Options{Program: program()})
	if err != nil {
		return err
	}
	all, err := s.Status(c.Context)
	if err != nil {
		return err
	}
	lines := []string{fmt.Sprintf("%s of %s", counted(int64(len(all)), "load"), l.File)}
	for _, d := range all {
		text := fmt.Sprintf("%s: %s", d.Name, d.State)
		switch d.State {
		case scaleout.LoadOpen:
			w, err := scaleout.NewWatcher(c.Context, jobdir.Below(store, scaleout.FolderOf(d.Name)))
			if err != nil {
				return err
			}
			of, err := w.Status(c.Context)
			if err != nil {
				return err
			}
			d.SummaryCounts, d.Rejected = scaleout.SummaryCounts{Read: of.Read, Written: of.Written, Superseded: of.Superseded},
				of.Rejected
		case scaleout.LoadFinished:
			text += fmt.Sprintf(" (exit code %d)", d.ExitCode)
		default:
			text += fmt.Sprintf(" (exit code %d): %s", d.ExitCode, d.Why)
		}
		lines = append(lines, fmt.Sprintf("%s; %s read, %s written, %s rejected, %s superseded, in tasks that are done", text,
			words.Grouped(d.Read), words.Grouped(d.Written), words.Grouped(d.Rejected), words.Grouped(d.Superseded)))
	}
	return printed(c, map[string]any{"file": l.File, "workers": l.Workers, "loads": all},
		func(w io.Writer) error { return writeLines(w, lines) })
}

// planOfSeveral returns the plan for the manifest of several loads, with their worker count, and the largest disk.
func planOfSeveral(c *call, store jobdir.Store, l *scaleout.Loads) (p *scaleout.Plan, disk int64, err error) {
	for _, one := range l.Loads {
		of, err := scaleout.ReadPlan(c.Context, jobdir.Below(store, scaleout.FolderOf(one.Name)))
		if err != nil {
			return nil, 0, err
		}
		if p == nil {
			p = &scaleout.Plan{ID: l.ID, Workers: l.Workers, Endpoint: of.Endpoint, Instance: of.Instance,
				Job: &checkpoint.Job{Table: jobName(l.File)}}
		}
		disk = max(disk, of.DiskBytes())
	}
	return p, disk, nil
}

// endsAs ends a worker with the job's exit code, or --rejects-exit for rejects, if the worker ended the job, or else
// with 0. A resumed job always ends with its exit code, and a load that is part of a job with 0.
func endsAs(c *call, t *workTask, what string, code int, here bool, said string) error {
	ends := code
	switch {
	case t.resume:
	case t.whole != nil, !here:
		ends = exitcode.OK
	case code == exitcode.Rejects:
		ends = t.rejectsExit
	}
	if ends != exitcode.OK {
		return endsWith(c, ends, nil, said)
	}
	if code != exitcode.OK && t.whole == nil {
		c.say.Line("the %s's exit code is %d (summary.json); this worker's is 0", what, code)
	}
	return nil
}
