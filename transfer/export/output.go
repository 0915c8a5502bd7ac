package export

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/archivefile"
)

// Files beside the output while it is written. The sidecar is removed last.
const (
	partSuffix    = ".part"            // the unfinished file
	rowsSuffix    = ".part-rows"       // rows whose columns are not all known yet
	sidecarSuffix = ".tsimport-export" // the progress of the export
)

// stateVersion is the version of sidecars. An export with another version cannot be continued.
const stateVersion = 3

// state is the progress of an export. It is the content of the sidecar.
type state struct {
	Target  string            `json:"target"`
	Table   string            `json:"table"`
	Created int64             `json:"created"` // creation time of the table; 0 if unknown
	Key     string            `json:"key"`
	Format  string            `json:"format"`
	Holds   archive.Selection `json:"holds"`
	Limit   int64             `json:"limit"`

	Rows  int64  `json:"rows"`     // rows written
	Bytes int64  `json:"bytes"`    // size of the output, including the header
	Last  []byte `json:"last_key"` // ordering key of the last row

	Columns []Column `json:"columns"` // columns of the rows written
	Cells   int64    `json:"cells"`
	Older   int64    `json:"older_versions"` // number of versions left out

	Growth scan.Growth `json:"growth"` // state of CSV whose columns are not all known yet

	// Replaced means that the table was dropped while it was being read, so the export cannot be continued.
	Replaced bool `json:"replaced,omitempty"`
}

// facts returns the facts that must not change before the export continues. created is the table's creation time.
func (s *state) facts(created int64) []progress.Fact {
	return append([]progress.Fact{
		{Name: "the target", Value: s.Target}, {Name: "the table", Value: s.Table},
		{Name: "the table's primary key", Value: s.Key}, progress.Made(s.Created, created),
		{Name: "--format", Value: s.Format}, {Name: "--limit", Value: strconv.FormatInt(s.Limit, 10)},
	}, s.Holds.Facts()...)
}

// changes lists the differences between the requested export and the interrupted one.
func (s *state) changes(want *state) []string {
	if s.Replaced {
		return []string{"the table was dropped while it was read"}
	}
	changes, _ := progress.Changes(s.facts(want.Created), want.facts(s.Created))
	return changes
}

// output is a file that is being written, or its spooled rows.
type output struct {
	path string // path of the file
	file *os.File
	at   state
}

// openOutput continues the output of an earlier export, truncated to its recorded length, or begins a new output.
func openOutput(path, suffix string, want state, fresh bool) (o *output, resumed bool, err error) {
	o = &output{path: path, at: want}
	rows, sidecar := atomicfile.Beside(path, suffix), atomicfile.Beside(path, sidecarSuffix)
	if fresh {
		if err := o.remove(); err != nil {
			return nil, false, err
		}
	}
	var left state
	switch err := progress.Read(sidecar, stateVersion, &left, progress.StartOver); {
	case errors.Is(err, fs.ErrNotExist):
		if o.file, err = atomicfile.New(rows, 0o666); err != nil {
			return nil, false, fmt.Errorf("create output: %w", err)
		}
		return o, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("continue output: %w", err)
	}
	if changes := left.changes(&want); len(changes) > 0 {
		return nil, false, &archive.ChangedError{Place: path, Changes: changes}
	}
	if info, err := os.Lstat(rows); err == nil && !info.Mode().IsRegular() {
		return nil, false, fmt.Errorf("continue output: %s is not a file; "+progress.StartOver, rows)
	}
	if o.file, err = os.OpenFile(rows, os.O_RDWR, 0); err != nil {
		return nil, false, fmt.Errorf("continue output: %w; "+progress.StartOver, err)
	}
	o.at = left
	size, err := o.file.Seek(0, io.SeekEnd)
	if err == nil && size < left.Bytes {
		err = fmt.Errorf("%s has %d bytes, but %d were written; "+progress.StartOver, rows, size, left.Bytes)
	}
	if err == nil {
		err = o.file.Truncate(left.Bytes)
	}
	if err == nil {
		_, err = o.file.Seek(left.Bytes, io.SeekStart)
	}
	if err != nil {
		return nil, false, errors.Join(fmt.Errorf("continue output: %w", err), o.file.Close())
	}
	return o, true, nil
}

// mark syncs the output so far, then records its length. Unrecorded output is not kept.
func (o *output) mark(at state) error {
	size, err := o.file.Seek(0, io.SeekCurrent)
	if err == nil {
		err = o.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	at.Bytes = size
	if err := progress.Write(atomicfile.Beside(o.path, sidecarSuffix), 0o666, stateVersion, at); err != nil {
		return fmt.Errorf("write sidecar: %w", err)
	}
	o.at = at
	return nil
}

// finish gives the file its final name and removes the files beside it.
func (o *output) finish() error {
	if err := atomicfile.Commit(o.file, o.path); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return o.remove()
}

func (o *output) remove() error {
	for _, suffix := range []string{rowsSuffix, partSuffix, sidecarSuffix} {
		if err := os.Remove(atomicfile.Beside(o.path, suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove temporary files of an export: %w", err)
		}
	}
	return nil
}

const lockSuffix = ".tsimport-export.lock" // exists while a process writes

// BusyError means that another process exports to a file. Stale names the lock file if the file system has no locks.
type BusyError struct{ Path, Stale string }

func (e *BusyError) Error() string {
	text := fmt.Sprintf("another process is exporting to %s; wait for it to end, or name another file", e.Path)
	if e.Stale != "" {
		text += "; if it has ended, delete " + e.Stale
	}
	return text
}

func lockOutput(path string) (*rundir.Lock, error) {
	lock, err := rundir.TakeBeside(path, lockSuffix)
	return lock, notLocked(path, err)
}

func notLocked(path string, err error) error {
	if held := new(rundir.HeldError); errors.As(err, &held) {
		return &BusyError{path, held.Stale}
	}
	if err != nil {
		return fmt.Errorf("create output: %w", err)
	}
	return nil
}
