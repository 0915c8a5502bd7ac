package ledger

import (
	"cmp"
	"os"
	"strings"

	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
)

// Archive keeps rows that are too old for a table, in files. A nil Archive keeps none.
type Archive struct {
	tables *plan.Tables
	files  *rundir.Archive // nil in a dry run
	// failed is why the files lack a record counted as archived. If it is not nil, no checkpoint may be written.
	failed error
}

// NewArchive opens files as of the last checkpoint, or none in a dry run. Without an archive, it returns nil.
func NewArchive(planned *plan.Plan, folder *rundir.Folder, from *checkpoint.Snapshot, dry bool) (*Archive, error) {
	if !planned.Tables.Archives() {
		return nil, nil
	}
	a := &Archive{tables: planned.Tables}
	if dry {
		return a, nil
	}
	lengths := map[string]int64{}
	if from != nil {
		for name, n := range from.Files {
			if path, ok := strings.CutPrefix(name, archivePrefix); ok {
				lengths[path] = n
			}
		}
	}
	var err error
	a.files, err = rundir.OpenArchive(folder.Path, planned.Headers, lengths)
	return a, err
}

// archivePrefix distinguishes, in a checkpoint, files of the archive from files of the run folder.
const archivePrefix = "archive:"

// Keep adds the flushed lengths of the files to a checkpoint.
func (a *Archive) Keep(lengths map[string]int64) error {
	if a == nil || a.files == nil {
		return nil
	}
	for path, n := range a.files.Lengths() {
		lengths[archivePrefix+path] = n
	}
	a.failed = cmp.Or(a.failed, a.files.Flush())
	return a.failed
}

// Failure returns why no checkpoint may be written.
func (a *Archive) Failure() error {
	if a == nil {
		return nil
	}
	return a.failed
}

func (a *Archive) close(counts *Counted) error {
	if a == nil || a.files == nil {
		return nil
	}
	counts.ArchiveFiles = a.files.Paths()
	return a.files.Close()
}

// Add writes a record, unless writing an earlier one failed.
func (a *Archive) Add(header int, r *intake.Archived) {
	if a.files != nil && a.failed == nil {
		a.failed = a.files.Add(a.tables.Archive(r.Table), r.Table, header, r.Raw)
	}
}

func (a *Archive) open() []*os.File {
	if a == nil || a.files == nil {
		return nil
	}
	return a.files.Open()
}
