package pipeline

import (
	"errors"
	"os"
	"path/filepath"

	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/rundir"
)

// files are what a load writes beside rows, all of it below the run folder or where the user says. Those that it does not need
// are nil.
type files struct {
	folder       *rundir.Folder
	stamps       *stamps
	repeatedRows *repeatedRows
	returned     *returnedKeys
	archive      *archive
	blocks       *rundir.Journal // of hashes of inputs that are loaded once
	known        keep.Known
	rejectIndex  *rundir.Journal // of a load that reads its inputs by a schedule, perhaps
}

// blockBytes is the counter of a checkpoint for how long the journal of blocks is.
const blockBytes = "block_bytes"

// indexBytes is the counter of a checkpoint for how much of the index of rejects it counts on.
const indexBytes = "index_bytes"

// openFiles opens the files that rows with these annotations need, as the last checkpoint counts on them.
func (a *attempt) openFiles(x *annotations) (_ *files, err error) {
	f := &files{folder: a.folder}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close(a.counts))
		}
	}()
	if x.Stamps != nil {
		if f.stamps, err = openStamps(filepath.Join(f.folder.Path, rundir.StampsDir), a.from.Counter(stampFiles), x.Stamps); err != nil {
			return nil, err
		}
	}
	if n := x.AutoIncrement; n != nil && n.Mark != "" {
		if f.repeatedRows, err = openRepeatedRows(f.folder.Path, a.from.Counter(doubtBytes), n); err != nil {
			return nil, err
		}
	}
	if path := a.cfg.Write.Marks.ReturnedKeys; x.AutoIncrement != nil && path != "" {
		if f.returned, err = openReturnedKeys(path, a.planned, a.from.Counter(returnedBytes)); err != nil {
			return nil, err
		}
	}
	s := a.scheduling()
	mayFollow := len(s.Kept) > 0 || s.When != intake.Never && a.from.Snapshot == nil
	if mayFollow && a.cfg.keeps() {
		open := func() (_ *rundir.Journal, err error) {
			f.rejectIndex, err = rundir.OpenJournal(filepath.Join(f.folder.Path, rundir.RejectIndexFile), a.from.Counter(indexBytes))
			return f.rejectIndex, err
		}
		if a.from.Snapshot != nil { // what the attempt before has left after its checkpoint is cut off
			if _, err := open(); err != nil {
				return nil, err
			}
		}
		ordinal := map[string]int{}
		for _, s := range a.planned.Sources {
			ordinal[s.Name] = s.Ordinal
		}
		f.folder.Index(f.rejectIndex, open, ordinal)
	}
	f.known = a.cfg.Resume.Known
	if f.blocks, err = a.openBlocks(); err != nil {
		return nil, err
	}
	f.archive, err = newArchive(a.planned, a.folder, a.from.Snapshot, a.cfg.DryRun)
	return f, err
}

// journals are those of the files that only grow, by the counter of a checkpoint that says how far.
func (f *files) journals() map[string]*rundir.Journal {
	all := map[string]*rundir.Journal{}
	if f.repeatedRows != nil {
		all[doubtBytes] = f.repeatedRows.journal
	}
	if f.returned != nil {
		all[returnedBytes] = f.returned.journal
	}
	if f.blocks != nil {
		all[blockBytes] = f.blocks
	}
	if f.rejectIndex != nil {
		all[indexBytes] = f.rejectIndex
	}
	return all
}

// keep enters into a checkpoint how far the files go, which are flushed so far. The archive says so for itself.
func (f *files) keep(s *checkpoint.Snapshot) error {
	err := f.folder.Flush()
	kept := f.folder.Kept()
	s.Files, s.Sums = kept.Lengths, kept.Sums
	if f.stamps != nil {
		s.Counters[stampFiles] = f.stamps.from
	}
	if f.blocks != nil {
		err = errors.Join(err, f.blocks.Append(f.known.Blocks()))
	}
	for name, j := range f.journals() {
		s.Counters[name] = j.Length()
		err = errors.Join(err, j.Flush())
	}
	return err
}

// open are the files that must be synced before a checkpoint says how far they go.
func (f *files) open() []*os.File {
	all := append(f.folder.Files(), f.archive.open()...)
	for _, j := range f.journals() {
		all = append(all, j.File())
	}
	if f.stamps != nil && f.stamps.file != nil {
		all = append(all, f.stamps.file)
	}
	return all
}

// close closes the files but the run folder, and notes their paths.
func (f *files) close(counts *Counted) error {
	err := f.stamps.close()
	for _, j := range f.journals() {
		err = errors.Join(err, j.Close())
	}
	return errors.Join(err, f.archive.close(counts))
}
