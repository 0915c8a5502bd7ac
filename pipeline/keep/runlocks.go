package keep

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/tsimport/internal/progress"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/source"
)

// locksFolder holds the locks of running loads, below rundir.Root.
const locksFolder = ".locks"

// claim takes the locks under which a run is looked for and created. One is that of the named run folder or else of the
// load in this working folder; the other is that of the load in all working folders. Loads of two streams into their
// own run folders do not exclude each other.
func (o *Point) claim() (err error) {
	l := o.Load
	streams := slices.ContainsFunc(l.Inputs, IsStream)
	switch {
	case l.RunDir != "":
		o.lock, err = rundir.TakePassing(l.RunDir)
	case l.Resume.Look || !streams:
		var lock *rundir.Lock
		if lock, err = rundir.TakeClaim(filepath.Join(rundir.Root, locksFolder), o.Job.Identity); err == nil {
			o.claims = append(o.claims, lock)
			err = o.noteBegun()
		}
	}
	if err != nil && !errors.As(err, new(*rundir.HeldError)) {
		err = fmt.Errorf("begin the load: %w", err)
	}
	if err != nil || streams || l.Resume.LocksDir == "" {
		return err
	}
	of := append([]string{cmp.Or(l.Place, l.Target), l.Table}, absolute(l.Inputs)...)
	lock, err := rundir.TakeClaim(l.Resume.LocksDir, progress.Identify(of...))
	if err == nil {
		o.claims = append(o.claims, lock)
	}
	if errors.As(err, new(*rundir.HeldError)) {
		return err
	}
	return nil // a home folder that cannot be written to does not prevent loading
}

func (o *Point) Release() {
	o.forgetBegun()
	for _, l := range append([]*rundir.Lock{o.lock}, o.claims...) {
		_ = l.Release() // the end of the process also releases it
	}
}

// begunFolder returns the folder that a load uses until it has a run folder.
func begunFolder(identity string) string {
	return filepath.Join(rundir.Root, locksFolder, begunPrefix+identity)
}

const begunPrefix = "begun-"

// noteBegun stores the command, so that it can be repeated if the process is killed before the load has a run folder.
func (o *Point) noteBegun() error {
	if len(o.Job.Args) == 0 && o.Job.Request == nil {
		return nil
	}
	o.begun = begunFolder(o.Job.Identity)
	if err := os.MkdirAll(o.begun, 0o700); err != nil {
		return err
	}
	return o.Job.Write(o.begun)
}

func (o *Point) forgetBegun() {
	if o.begun != "" {
		_ = os.RemoveAll(o.begun) // if it remains, Begun checks whether a process holds the lock
		o.begun = ""
	}
}

// Begun returns the job of the last load that was killed before it had a run folder, or nil.
func Begun() (last *checkpoint.Job) {
	folders, _ := filepath.Glob(begunFolder("*"))
	for _, folder := range folders {
		identity := strings.TrimPrefix(filepath.Base(folder), begunPrefix)
		held, err := rundir.HeldClaims(filepath.Dir(folder), identity)
		j, readErr := checkpoint.ReadJob(folder)
		if err == nil && readErr == nil && len(held) == 0 && (last == nil || j.Started.After(last.Started)) {
			last = j
		}
	}
	return last
}

// IsStream reports whether an input argument can be read only once, and so does not identify its content.
func IsStream(input string) bool {
	if input == "-" {
		return true
	}
	info, err := os.Stat(input)
	return err == nil && !info.IsDir() && !info.Mode().IsRegular()
}

// absolute returns input arguments in a form that is valid in any working folder.
func absolute(inputs []string) []string {
	all := slices.Clone(inputs)
	for i, in := range all {
		name, list := strings.CutPrefix(in, "@")
		if strings.Contains(name, "://") {
			continue
		}
		if abs, err := filepath.Abs(name); err == nil {
			all[i] = abs
			if list {
				all[i] = "@" + abs
			}
		}
	}
	return all
}

// Unfinished returns the folder of the run to resume, or "" if there is none. It is the load's only run that has a
// checkpoint and was not started over. Start times do not matter, because clocks may be set back.
func Unfinished(identity string) (path string, err error) { return unfinished(runsOf(identity)) }

func unfinished(runs []foundRun, err error) (string, error) {
	if err != nil {
		return "", fmt.Errorf("find an unfinished run of this load: %w", err)
	}
	var found []string
	for _, r := range runs {
		switch {
		case r.unfit != nil:
			return "", fmt.Errorf("this load has an unfinished run that cannot be resumed: %w", r.unfit)
		case r.job.ReplacedBy != "":
		case checkpoint.Exists(r.path):
			found = append(found, r.path)
		default:
			// The run has finished, or sent nothing yet. Two concurrent loads of the same inputs would not keep rows in order.
			lock, err := rundir.TakeLock(r.path)
			if errors.As(err, new(*rundir.HeldError)) {
				return "", err
			}
			_ = lock.Release()
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", &plan.UsageError{Message: fmt.Sprintf("%d runs of this load are unfinished: %s; resume one with tsimport "+
		"resume FOLDER, or "+source.StartOver, len(found), strings.Join(found, ", "))}
}

// foundRun is a run folder, and its job or why that cannot be read.
type foundRun struct {
	path  string
	job   *checkpoint.Job
	unfit *progress.UnfitError
}

func runsOf(identity string) (runs []foundRun, err error) {
	folders, err := rundir.Folders(rundir.Root)
	for _, at := range folders {
		switch j, err := checkpoint.ReadJobOf(at, identity); {
		case err == nil && j != nil:
			runs = append(runs, foundRun{path: at, job: j})
		case err != nil && checkpoint.Exists(at): // unfinished
			if unfit, ok := errors.AsType[*progress.UnfitError](err); ok {
				runs = append(runs, foundRun{path: at, unfit: unfit})
			}
		}
	}
	return runs, err
}

// TakeIndexes takes over the indexes to add to a table from the unfinished run that created it.
func (o *Point) TakeIndexes() {
	runs, err := o.runs()
	if err != nil {
		return // the table then has no indexes, and the command says which are missing
	}
	for _, r := range runs {
		if r.unfit == nil && r.job.Indexes != nil && r.job.ReplacedBy == "" && stateOf(r.path) != "finished" {
			o.Job.Indexes, o.Job.IndexesFirst = r.job.Indexes, r.job.IndexesFirst
		}
	}
}

// replaceOthers notes in the load's other unfinished runs that this one replaces them, so that they are not resumed.
func (o *Point) replaceOthers() error {
	if len(o.claims) == 0 || o.Snapshot != nil {
		return nil
	}
	runs, err := o.runs()
	if err != nil {
		return fmt.Errorf("find other runs of this load: %w", err)
	}
	for _, r := range runs {
		if r.unfit != nil || r.job.ReplacedBy != "" || rundir.SameFile(r.path, o.Load.RunDir) || !checkpoint.Exists(r.path) &&
			stateOf(r.path) != "running" {
			continue
		}
		lock, err := rundir.TakeLock(r.path)
		if err != nil {
			return err
		}
		r.job.ReplacedBy = o.Load.RunDir
		if err := errors.Join(r.job.Write(r.path), lock.Release()); err != nil {
			return fmt.Errorf("record that run %s was started over: %w", r.path, err)
		}
	}
	return nil
}

// stateOf returns the state of a run from its summary, or "" if it has none.
func stateOf(run string) string {
	var s struct{ State string }
	if rundir.ReadSummary(run, &s) != nil {
		return ""
	}
	return s.State
}
