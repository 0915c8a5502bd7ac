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

// ChangesFile is the name of the file with the changes to job.json, which is too large to rewrite after every change.
const ChangesFile = "job.changes"

type change struct {
	Of    string `json:"of"`    // Changes of the record
	Load  int    `json:"load"`  // index in the record's Loads
	State State  `json:"state"` // the fields from the job file are not set
}

// keep records the states of changed loads. The first call writes the whole record, which supersedes earlier changes.
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

// keepAll writes the whole record and removes the file of changes.
func (j *running) keepAll() error {
	j.record.Changes = ""
	err := j.record.Write(j.folder)
	if j.changes != nil && err == nil {
		_ = j.changes.Close() // each line is already synced
		err = os.Remove(filepath.Join(j.folder, ChangesFile))
	}
	return err
}

// readChanges applies the changes to a record. It ignores an incomplete last line, which was never recorded.
func (r *Record) readChanges(folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, ChangesFile))
	if r.Changes == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for line := range bytes.Lines(text) {
		var c change
		if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &c) != nil || c.Of != r.Changes || c.Load < 0 ||
			c.Load >= len(r.Loads) {
			break
		}
		c.State.Single = r.Loads[c.Load].Single
		*r.Loads[c.Load] = c.State
	}
	return err
}
