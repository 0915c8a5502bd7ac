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

// repeatedRows keeps rows that are numbered by the service and were sent more than once, in a file of the run folder. A
// sweeper checks that each is in the table only once. It is nil if that does not matter or --at-least-once allows it.
type repeatedRows struct {
	journal *rundir.Journal
	numbers *writer.AutoIncrement
	line    []byte
}

// DoubtBytes names the checkpoint counter for the length of the file of repeated rows.
const DoubtBytes = "doubt_bytes"

// OpenRepeatedRows opens the file in a run folder and truncates it to keep bytes, as of the last checkpoint.
func OpenRepeatedRows(folder string, keep int64, numbers *writer.AutoIncrement) (*repeatedRows, error) {
	j, err := rundir.OpenJournal(filepath.Join(folder, rundir.DoubtsFile), keep)
	return &repeatedRows{journal: j, numbers: numbers}, err
}

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

func (d *repeatedRows) Empty() bool { return d == nil || d.journal.Length() == 0 }

// Each calls do with all rows, at most most in each call, grouped by ordering key.
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
