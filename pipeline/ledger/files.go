package ledger

import (
	"errors"
	"os"

	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/rundir"
)

// Files holds the files that a load writes, in the run folder or where the user says. Unneeded files are nil.
type Files struct {
	Folder       *rundir.Folder
	Stamps       *stamps
	RepeatedRows *repeatedRows
	Returned     *returnedKeys
	Archive      *Archive
	Blocks       *rundir.Journal // hashes of inputs, if each is loaded only once
	Known        keep.Known
	RejectIndex  *rundir.Journal // index of rejects, if inputs may be read by a schedule
}

// BlockBytes names the checkpoint counter for the length of the journal of blocks.
const BlockBytes = "block_bytes"

// IndexBytes names the checkpoint counter for the length of the index of rejects.
const IndexBytes = "index_bytes"

// journals returns the append-only files, by the name of the checkpoint counter for their length.
func (f *Files) journals() map[string]*rundir.Journal {
	all := map[string]*rundir.Journal{}
	if f.RepeatedRows != nil {
		all[DoubtBytes] = f.RepeatedRows.journal
	}
	if f.Returned != nil {
		all[ReturnedBytes] = f.Returned.journal
	}
	if f.Blocks != nil {
		all[BlockBytes] = f.Blocks
	}
	if f.RejectIndex != nil {
		all[IndexBytes] = f.RejectIndex
	}
	return all
}

// Keep adds the flushed lengths of the files to a checkpoint. The archive adds its own.
func (f *Files) Keep(s *checkpoint.Snapshot) error {
	err := f.Folder.Flush()
	kept := f.Folder.Kept()
	s.Files, s.Sums = kept.Lengths, kept.Sums
	if f.Stamps != nil {
		s.Counters[StampFiles] = f.Stamps.from
	}
	if f.Blocks != nil {
		err = errors.Join(err, f.Blocks.Append(f.Known.Blocks()))
	}
	for name, j := range f.journals() {
		s.Counters[name] = j.Length()
		err = errors.Join(err, j.Flush())
	}
	return err
}

// Open returns the files to sync before a checkpoint relies on their lengths.
func (f *Files) Open() []*os.File {
	all := append(f.Folder.Files(), f.Archive.open()...)
	for _, j := range f.journals() {
		all = append(all, j.File())
	}
	if f.Stamps != nil && f.Stamps.file != nil {
		all = append(all, f.Stamps.file)
	}
	return all
}

// Close closes all files except the run folder, and sets the paths of archive files in the counts.
func (f *Files) Close(counts *Counted) error {
	err := f.Stamps.Close()
	for _, j := range f.journals() {
		err = errors.Join(err, j.Close())
	}
	return errors.Join(err, f.Archive.close(counts))
}
