package pipeline

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
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/rundir"
)

// A load with Checkpoint.State keeps its run folder there with every checkpoint, and a checkpoint counts once it is there: what may be
// sent, and what a successor takes for sent, follows it. So a successor needs nothing of this machine, and a local checkpoint that is
// newer is never looked at.

const (
	// stateEvery is how often a checkpoint is kept in the state, unless lanes wait for one.
	stateEvery = 5 * time.Second
	// statePatience bounds the keeping of one.
	statePatience = 30 * time.Second
	// returnedFile is what the file of returned keys is called in the state.
	returnedFile = "@returned-keys"
)

// keepInState keeps the run folder with an encoded checkpoint. What the checkpoint counts on has been synced.
func (c *Config) keepInState(folder string, encoded []byte) error {
	files := []jobdir.MirrorFile{{Name: checkpoint.File, Body: encoded}}
	// Before the folder is listed: what it relies on is written before it.
	job, err := os.ReadFile(filepath.Join(folder, checkpoint.JobFile))
	if err != nil {
		return err
	}
	files = append(files, jobdir.MirrorFile{Name: checkpoint.JobFile, Body: job})
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was removed meanwhile
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
			return fs.SkipDir // of earlier attempts
		case e.IsDir(), !e.Type().IsRegular(), strings.HasSuffix(name, atomicfile.Suffix), name == checkpoint.File, name == checkpoint.PrevFile, name == checkpoint.JobFile,
			strings.HasPrefix(name, rundir.LockFile), name == rundir.SummaryFile, name == rundir.PageFile:
		default:
			files = append(files, jobdir.MirrorFile{Name: name, Path: path, Grows: rundir.Grows(name)})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if keys := c.Write.Marks.ReturnedKeys; keys != "" {
		files = append(files, jobdir.MirrorFile{Name: returnedFile, Path: keys, Grows: true})
	}
	ctx, cancel := context.WithTimeout(context.Background(), statePatience)
	defer cancel()
	return c.Checkpoint.State.Save(ctx, filepath.Base(folder), files)
}

// restore brings the unfinished run of the load back from the state, and returns its folder; "" if there is none.
func (c *Config) restore(ctx context.Context) (path string, err error) {
	root := func(folder string) string {
		if c.RunDir != "" {
			return c.RunDir
		}
		return filepath.Join(rundir.Root, folder)
	}
	folder, err := c.Checkpoint.State.Restore(ctx, func(folder, name string) (string, error) {
		if name == returnedFile {
			return c.Write.Marks.ReturnedKeys, nil
		}
		return filepath.Join(root(folder), filepath.FromSlash(name)), nil
	})
	if err != nil || folder == "" {
		return "", err
	}
	// It may be newer than what was restored.
	if err := os.Remove(filepath.Join(root(folder), checkpoint.PrevFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return root(folder), nil
}

// LongestLate is for how long after a process has lost its lease what it has sent may be applied.
func (c *Config) LongestLate() time.Duration {
	timeout := cmp.Or(c.Target.Client.RequestTimeout, client.DefaultRequestTimeout)
	return client.LongestRequest(timeout) + cmp.Or(c.Write.Settle, timeout)
}

// settleFormer waits for requests of a former holder that did not give the lease back. Nothing is sent before a checkpoint is in the state, so
// without one there is nothing to wait for.
func (o *resumePoint) settleFormer(ctx context.Context, cfg *Config, now time.Time) error {
	if l := cfg.lease(); l != nil && l.Former && cfg.Target.Place == "" { // an embedded store answers no process that is gone
		late := cfg.LongestLate()
		if l.FormerFor > 0 { // the holder has ended by itself, and known
			late = min(late, l.FormerFor)
		}
		until, sent := now.Add(late), true
		if s := cfg.Checkpoint.State; s != nil && o.snapshot == nil {
			var err error
			if sent, err = s.Unfinished(ctx); err != nil {
				return err
			}
		}
		switch {
		case !sent:
		case o.snapshot == nil:
			o.hold = until // who starts over does not know which rows they are
		default:
			o.suspectUntil = later(o.suspectUntil, until)
		}
	}
	if cfg.Checkpoint.Repeats {
		o.late = later(o.hold, o.suspectUntil)
		o.hold, o.suspectUntil = time.Time{}, time.Time{}
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lease is what a process must hold to send rows; nil if it need not hold any.
func (c *Config) lease() *jobdir.Lease {
	if c.Checkpoint.State != nil {
		return c.Checkpoint.State.Lease
	}
	return c.Checkpoint.Lease
}

// mayAct reports whether the load may still write.
func (c *Config) mayAct() error {
	if l := c.lease(); l != nil {
		return l.Check()
	}
	return nil
}

// isLost reports whether an error says that another process works on the load now.
func isLost(err error) bool { return errors.Is(err, jobdir.ErrLost) }
