package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"example.com/tsimport/pipeline/rundir"
)

// ChangesFile is the name of the file in a job's folder that says what has changed since job.json was written, while
// the job runs. Writing that whole at each change would cost a job of many loads more than its loads.
const ChangesFile = "job.changes"

// change is a line of the file.
type change struct {
	Of    string `json:"of"`    // the record
	Load  int    `json:"load"`  // its place there
	State State  `json:"state"` // without what the file of the job says of it
}

// keep keeps how loads are now; where it is the first, the whole record. Changes of an earlier one do not count from
// then on.
func (j *running) keep(changed []*State) (err error) {
	r := j.record
	if j.changes == nil {
		r.Changes = time.Now().UTC().Format(time.RFC3339Nano)
		if err = r.Write(j.folder); err == nil {
			j.changes, err = rundir.OpenJournal(filepath.Join(j.folder, ChangesFile), 0)
		}
		return err
	}
	for i, s := range r.Loads {
		if slices.Contains(changed, s) {
			now := change{r.Changes, i, *s}
			now.State.Single = Single{}
			line, err := json.Marshal(now)
			if err == nil {
				err = j.changes.Append(append(line, '\n'))
			}
			if err != nil {
				return err
			}
		}
	}
	return j.changes.Sync()
}

// keepAll keeps the whole record, in place of the changes.
func (j *running) keepAll() error {
	j.record.Changes = ""
	err := j.record.Write(j.folder)
	if j.changes != nil && err == nil {
		_ = j.changes.Close() // each line was synced
		err = os.Remove(filepath.Join(j.folder, ChangesFile))
	}
	return err
}

// readChanges enters into a record what has changed since it was written. A last line of which the end is missing was
// not kept.
func (r *Record) readChanges(folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, ChangesFile))
	if r.Changes == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for line := range bytes.Lines(text) {
		var c change
		if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &c) != nil || c.Of != r.Changes || c.Load < 0 || c.Load >= len(r.Loads) {
			break
		}
		c.State.Single = r.Loads[c.Load].Single
		*r.Loads[c.Load] = c.State
	}
	return err
}
