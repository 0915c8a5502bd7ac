package checkpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
)

// Job is which load a run is, as kept in its folder. Its many fields are those of a file of JSON.
type Job struct {
	Identity string `json:"identity"` // which run is meant: the same for the same target, table and inputs
	// Run is what the marks of the run's rows name it by; empty in runs of versions whose marks did not.
	Run     string          `json:"run,omitempty"`
	Details []progress.Fact `json:"details"`
	Args    []string        `json:"args,omitempty"` // after the program's name
	// Request is the command as it was asked for, without secrets; runs of earlier versions have Args alone.
	Request json.RawMessage `json:"request,omitempty"`
	Command string          `json:"command,omitempty"`
	Dir     string          `json:"dir"` // in which the command was given
	Target  string          `json:"target"`
	Table   string          `json:"table"`
	Started time.Time       `json:"started"`
	Types   []Typed         `json:"types,omitempty"` // of columns: a later attempt, or a load of the rejects, must not infer others
	Zeros   []string        `json:"zeros,omitempty"` // of those, doubles that may have zeros at the end
	// Separator is what splice(auto, …) joins with.
	Separator string `json:"separator,omitempty"`
	// Division is the SHA-256 of DivisionFile, empty if the run has none.
	Division string `json:"division,omitempty"`
	// Order is the SHA-256 of OrderFile, empty if the inputs are read in their own order.
	Order string `json:"order,omitempty"`
	// Chosen are the inputs that the first attempt has chosen of those that its arguments mean; nil takes all.
	Chosen []string `json:"chosen,omitempty"`
	// Indexes are those that the table gets that the run makes, after its rows; in runs of earlier versions maybe before them.
	Indexes      []table.Index `json:"indexes,omitempty"`
	IndexesFirst bool          `json:"indexes_first,omitempty"`
	// PolicyNow is the time that the ages of tables are counted from, by a policy for them.
	PolicyNow time.Time `json:"policy_now,omitzero"`
	// ReplacedBy is the run that has started this one over; it is not resumed then.
	ReplacedBy string   `json:"replaced_by,omitempty"`
	Retried    []string `json:"retried,omitempty"` // runs that have loaded the rejects of this one
}

// Typed is the type of an input column.
type Typed struct {
	Column string `json:"column"`
	Type   string `json:"type"`
	Own    string `json:"own,omitempty"` // as in table.Column, if it is not Type
	// Asked says that the type is as one that the user gives: that of a column of a database.
	Asked bool `json:"asked,omitempty"`
}

// JobFile is the name of the job's file in a run folder.
const JobFile = "run.json"

// Write keeps the job in its run folder.
func (j *Job) Write(dir string) error {
	if err := progress.Write(filepath.Join(dir, JobFile), 0o600, j); err != nil {
		return fmt.Errorf("keep job: %w", err)
	}
	return nil
}

// ReadJob reads the job of a run folder.
func ReadJob(dir string) (*Job, error) { return readJob(dir, "") }

// ReadJobOf is ReadJob where the job's identity is the one, of a run folder among many; nil without an error where it is another.
func ReadJobOf(dir, identity string) (*Job, error) {
	j, err := readJob(dir, identity)
	if err != nil || j == nil || j.Identity != identity {
		return nil, err
	}
	return j, nil
}

// readJob does not look further into a file that does not hold the text.
func readJob(dir, holds string) (*Job, error) {
	name := filepath.Join(dir, JobFile)
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read job: %w; "+progress.StartOver, err)
	}
	if !bytes.Contains(text, []byte(holds)) {
		return nil, nil
	}
	j := new(Job)
	if err := progress.Decode(name, text, 0, j, progress.StartOver); err != nil {
		return nil, fmt.Errorf("read job: %w", err)
	}
	return j, nil
}
