package pipeline

import (
	"errors"
	"path/filepath"

	"example.com/tsimport/internal/spill"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/rundir"
)

// openFiles opens the files that rows with these annotations need, in the state that the last checkpoint expects.
func (a *attempt) openFiles(x *annotations) (_ *ledger.Files, err error) {
	f := &ledger.Files{Folder: a.folder}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(a.counts))
		}
	}()
	if x.Stamps != nil {
		if f.Stamps, err = ledger.OpenStamps(filepath.Join(f.Folder.Path, rundir.StampsDir),
			a.from.Counter(ledger.StampFiles), x.Stamps); err != nil {
			return nil, err
		}
	}
	if n := x.AutoIncrement; n != nil && n.Mark != "" {
		if f.RepeatedRows, err = ledger.OpenRepeatedRows(f.Folder.Path, a.from.Counter(ledger.DoubtBytes), n); err != nil {
			return nil, err
		}
	}
	if path := a.cfg.Write.Marks.ReturnedKeys; x.AutoIncrement != nil && path != "" {
		if f.Returned, err = ledger.OpenReturnedKeys(path, a.planned, a.from.Counter(ledger.ReturnedBytes)); err != nil {
			return nil, err
		}
	}
	s := a.scheduling()
	mayFollow := len(s.Kept) > 0 || s.When != intake.Never && a.from.Snapshot == nil
	if mayFollow && a.cfg.keeps() {
		open := func() (_ *rundir.Journal, err error) {
			f.RejectIndex, err = rundir.OpenJournal(filepath.Join(f.Folder.Path, rundir.RejectIndexFile),
				a.from.Counter(ledger.IndexBytes))
			return f.RejectIndex, err
		}
		if a.from.Snapshot != nil { // the previous attempt's data is truncated to its checkpoint
			if _, err := open(); err != nil {
				return nil, err
			}
		}
		ordinal := map[string]int{}
		for _, s := range a.planned.Sources {
			ordinal[s.Name] = s.Ordinal
		}
		f.Folder.Index(f.RejectIndex, open, ordinal)
	}
	f.Known = a.cfg.Resume.Known
	if f.Blocks, err = a.openBlocks(); err != nil {
		return nil, err
	}
	f.Archive, err = ledger.NewArchive(a.planned, a.folder, a.from.Snapshot, a.cfg.DryRun)
	return f, err
}

// openDisk opens the folder for spilled rows. It returns nil if rows must not spill or the default folder is unusable.
func (a *attempt) openDisk() (*spill.Store, error) {
	if a.cfg.Limits.NoSpill {
		return nil, nil
	}
	store, err := spill.Open(spill.Options{Dir: a.cfg.Limits.TempDir, MaxBytes: a.cfg.Limits.TempMax})
	if err != nil && a.cfg.Limits.TempDir == "" {
		a.counts.SpillError = err.Error()
		return nil, nil
	}
	return store, err
}
