package ledger

import (
	"bufio"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/writer"
)

// repeatedRows are the rows numbered by the service that were sent more than once, in a file of the run folder: a sweeper looks up
// whether each is in the table once. A nil one is that of a load to which repeated rows do no harm, or that repeats them
// blindly.
type repeatedRows struct {
	journal *rundir.Journal
	numbers *writer.AutoIncrement
	line    []byte
}

// DoubtBytes is the counter of a checkpoint for how much of the file it counts on.
const DoubtBytes = "doubt_bytes"

// OpenRepeatedRows opens the file in a run folder, cut to what the last checkpoint counts on.
func OpenRepeatedRows(folder string, keep int64, numbers *writer.AutoIncrement) (*repeatedRows, error) {
	j, err := rundir.OpenJournal(filepath.Join(folder, rundir.DoubtsFile), keep)
	return &repeatedRows{journal: j, numbers: numbers}, err
}

// add takes a row that is written.
func (d *repeatedRows) add(r table.Ref, o table.Outcome) error {
	if d == nil || !o.Repeated {
		return nil
	}
	doubt, err := d.numbers.Doubt(r, o)
	if err != nil {
		return err
	}
	d.line = doubt.Append(d.line[:0])
	return d.journal.Append(d.line)
}

// Empty reports whether there is none.
func (d *repeatedRows) Empty() bool { return d == nil || d.journal.Length() == 0 }

// Each calls do with up to so many of them at a time, those of one ordering key together.
func (d *repeatedRows) Each(most int, do func(byKey [][]writer.Doubt) error) error {
	return d.journal.Read(func(r *bufio.Reader) error {
		for more := true; more; {
			byKey := map[string][]writer.Doubt{}
			for range most {
				doubt, err := writer.ReadDoubt(r)
				if err == io.EOF {
					more = false
					break
				}
				if err != nil {
					return err
				}
				byKey[string(doubt.Ordering)] = append(byKey[string(doubt.Ordering)], doubt)
			}
			if err := do(slices.Collect(maps.Values(byKey))); err != nil {
				return err
			}
		}
		return nil
	})
}
