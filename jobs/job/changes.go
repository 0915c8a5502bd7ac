package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"example.com/tsimport/pipeline/rundir"
)

// ChangesFile is the name of the file in a job's folder that says what has changed since job.json was written, while the job runs. Writing that whole at
// each change would cost a job of many loads more than its loads.
const ChangesFile = "job.changes"

// change is a line of the file.
type change struct {
	Of    string `json:"of"`    // the record
	Load  int    `json:"load"`  // its place there
	State State  `json:"state"` // without what the file of the job says of it
}

// changes keeps what changes while a job runs.
type changes struct {
	record *Record
	file   *rundir.Journal
}

// begin keeps the whole record. Changes of an earlier one do not count from then on.
func (c *changes) begin(folder string) (err error) {
	c.record.Changes = time.Now().UTC().Format(time.RFC3339Nano)
	if err = c.record.Write(folder); err != nil {
		return err
	}
	if c.file, err = rundir.OpenJournal(filepath.Join(folder, ChangesFile), 0); err != nil {
		return fmt.Errorf("keep job: %w", err)
	}
	return nil
}

// note keeps how loads are now.
func (c *changes) note(states []*State) error {
	var lines bytes.Buffer
	to := json.NewEncoder(&lines)
	for i, s := range c.record.Loads {
		if slices.Contains(states, s) {
			now := change{c.record.Changes, i, *s}
			now.State.Single = Single{}
			if err := to.Encode(now); err != nil {
				return fmt.Errorf("keep job: %w", err)
			}
		}
	}
	err := c.file.Append(lines.Bytes())
	if err == nil {
		err = c.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("keep job: %w", err)
	}
	return nil
}

// end keeps the whole record, in place of the changes.
func (c *changes) end(folder string) error {
	c.record.Changes = ""
	err := c.record.Write(folder)
	if c.file != nil {
		_ = c.file.Close() // each line was synced
		if err == nil {
			err = os.Remove(filepath.Join(folder, ChangesFile))
		}
	}
	return err
}

// readChanges enters into a record what has changed since it was written. A last line of which the end is missing was not kept.
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
