package keep

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/rundir"
)

// A load with Checkpoint.State stores its run folder there with every checkpoint, which is not valid before that. So a
// successor needs nothing from this machine, and never reads a newer local checkpoint.

const (
	// stateEvery is the interval between checkpoints in the state, unless lanes wait for one.
	stateEvery = 5 * time.Second
	// statePatience limits the time to write one.
	statePatience = 30 * time.Second
	// returnedFile is the name of the file of returned keys in the state.
	returnedFile = "@returned-keys"
)

// keepInState stores the run folder with an encoded checkpoint. The files that this relies on have been synced.
func (l *Load) keepInState(folder string, encoded []byte) error {
	files := []jobdir.MirrorFile{{Name: checkpoint.File, Body: encoded}}
	// Read the job before listing the folder: the files that a job relies on are written before it.
	job, err := os.ReadFile(filepath.Join(folder, checkpoint.JobFile))
	if err != nil {
		return err
	}
	files = append(files, jobdir.MirrorFile{Name: checkpoint.JobFile, Body: job})
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the folder was removed meanwhile
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case name == ".":
		case e.IsDir() && !strings.Contains(name, "=") && name != rundir.StampsDir:
			return fs.SkipDir // no files of this attempt
		case e.IsDir(), !e.Type().IsRegular(), strings.HasSuffix(name, atomicfile.Suffix), name == checkpoint.File,
			name == checkpoint.PrevFile, name == checkpoint.JobFile,
			strings.HasPrefix(name, rundir.LockFile), name == rundir.SummaryFile, name == rundir.PageFile:
		default:
			files = append(files, jobdir.MirrorFile{Name: name, Path: path, Grows: rundir.Grows(name)})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if keys := l.ReturnedKeys; keys != "" {
		files = append(files, jobdir.MirrorFile{Name: returnedFile, Path: keys, Grows: true})
	}
	ctx, cancel := context.WithTimeout(context.Background(), statePatience)
	defer cancel()
	return l.Checkpoint.State.Save(ctx, filepath.Base(folder), files)
}

// FinishState removes a finished load from the state.
func FinishState(state *jobdir.Mirror) error {
	ctx, cancel := context.WithTimeout(context.Background(), statePatience)
	defer cancel()
	return state.Finish(ctx)
}

// restore restores the load's unfinished run from the state. It returns the run's folder, or "" if there is none.
func (l *Load) restore(ctx context.Context) (path string, err error) {
	root := func(folder string) string { return cmp.Or(l.RunDir, filepath.Join(rundir.Root, folder)) }
	folder, err := l.Checkpoint.State.Restore(ctx, func(folder, name string) (string, error) {
		if name == returnedFile {
			return l.ReturnedKeys, nil
		}
		return filepath.Join(root(folder), filepath.FromSlash(name)), nil
	})
	if err != nil || folder == "" {
		return "", err
	}
	// The local checkpoint may be newer than the restored one.
	if err := os.Remove(filepath.Join(root(folder), checkpoint.PrevFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return root(folder), nil
}

// SettleFormer allows for requests of a former process that has not returned its lease.
func (o *Point) SettleFormer(ctx context.Context, now time.Time) error {
	if l := o.Load.Checkpoint.Held(); l != nil && l.Former && o.Load.Place == "" {
		late := o.Load.LongestLate()
		if l.FormerFor > 0 { // the former process ended normally and left this time
			late = min(late, l.FormerFor)
		}
		until, sent := now.Add(late), true
		if s := o.Load.Checkpoint.State; s != nil && o.Snapshot == nil {
			var err error
			if sent, err = s.Unfinished(ctx); err != nil {
				return err
			}
		}
		switch {
		case !sent:
		case o.Snapshot == nil:
			o.Hold = until // a load that starts over does not know which rows were sent
		default:
			o.SuspectUntil = Later(o.SuspectUntil, until)
		}
	}
	if o.Load.Checkpoint.Repeats {
		o.Late = Later(o.Hold, o.SuspectUntil)
		o.Hold, o.SuspectUntil = time.Time{}, time.Time{}
	}
	o.Hold = Later(o.Hold, o.Load.Resume.Hold)
	return nil
}

func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// IsLost reports whether an error means that another process has taken over the load.
func IsLost(err error) bool { return errors.Is(err, jobdir.ErrLost) }
