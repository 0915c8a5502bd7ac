package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/rundir"
)

// Job identifies the load of a run in its folder. Its many fields form the JSON.
type Job struct {
	Identity string          `json:"identity"`      // the same for all runs with the same target, table and inputs
	Run      string          `json:"run,omitempty"` // name of the run in the marks of its rows
	Details  []progress.Fact `json:"details"`
	Args     []string        `json:"args,omitempty"` // arguments after the program's name
	// Request is the original command, without secrets.
	Request json.RawMessage `json:"request,omitempty"`
	Command string          `json:"command,omitempty"`
	Dir     string          `json:"dir"` // working folder of the command
	Target  string          `json:"target"`
	Table   string          `json:"table"`
	Started time.Time       `json:"started"`
	Types   []Typed         `json:"types,omitempty"` // types of columns, which later attempts and loads of rejects keep
	Zeros   []string        `json:"zeros,omitempty"` // double columns whose values may have trailing zeros
	// Separator joins the parts of splice(auto, …).
	Separator string `json:"separator,omitempty"`
	// Division is the SHA-256 of DivisionFile; "" if the run has none.
	Division string `json:"division,omitempty"`
	// Order is the SHA-256 of OrderFile; "" if the inputs are read in their own order.
	Order string `json:"order,omitempty"`
	// Chosen holds the inputs that the first attempt chose among the matches of its arguments; nil means all.
	Chosen []string `json:"chosen,omitempty"`
	// Indexes are added to a table that the run creates, after the rows are written.
	Indexes      []table.Index `json:"indexes,omitempty"`
	IndexesFirst bool          `json:"indexes_first,omitempty"`
	// PolicyNow is the time from which a policy counts the ages of tables.
	PolicyNow time.Time `json:"policy_now,omitzero"`
	// ReplacedBy is the run that has started this one over, so that this one is not resumed.
	ReplacedBy string   `json:"replaced_by,omitempty"`
	Retried    []string `json:"retried,omitempty"` // runs that have loaded the rejects of this one
}

// Typed is the type of an input column.
type Typed struct {
	Column string `json:"column"`
	Type   string `json:"type"`
	Own    string `json:"own,omitempty"` // as in table.Column, if different from Type
	// Asked means that the type counts as given by the user, because the column comes from a database.
	Asked bool `json:"asked,omitempty"`
}

// JobFile is the name of the job's file in a run folder.
const JobFile = "run.json"

// Write writes the job to its run folder.
func (j *Job) Write(dir string) error {
	if err := progress.Write(filepath.Join(dir, JobFile), 0o600, rundir.Version, j); err != nil {
		return fmt.Errorf("store job: %w", err)
	}
	return nil
}

func ReadJob(dir string) (*Job, error) { return readJob(dir, "") }

// ReadJobOf is like ReadJob, but returns nil without an error if the job has another identity.
func ReadJobOf(dir, identity string) (*Job, error) {
	j, err := readJob(dir, identity)
	if err != nil || j == nil || j.Identity != identity {
		return nil, err
	}
	return j, nil
}

// readJob reads a job. It returns nil without an error if the file does not contain the text holds.
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
	if err := progress.Decode(name, text, rundir.Version, j, progress.StartOver); err != nil {
		return nil, fmt.Errorf("read job: %w", err)
	}
	return j, nil
}

// DivisionFile is the file of a run folder that has the division of the input into parts, encoded by its source.Origin.
const DivisionFile = "division.bin"

// KeepDivision writes a division, if not nil, to the run folder, and sets Division in the job, which the caller writes.
func (j *Job) KeepDivision(dir string, division []byte) error {
	if division == nil {
		j.Division = ""
		return nil
	}
	if err := atomicfile.WriteBytes(filepath.Join(dir, DivisionFile), atomicfile.Options{Perm: 0o600},
		division); err != nil {
		return fmt.Errorf("store the division of the input: %w", err)
	}
	j.Division = sumOf(division)
	return nil
}

// ReadDivision reads the division of a run. It returns nil if there is none, and fails if the file has changed.
func (j *Job) ReadDivision(dir string) ([]byte, error) {
	if j.Division == "" {
		return nil, nil
	}
	return readKept("the division of the input", filepath.Join(dir, DivisionFile), j.Division)
}

func readKept(what, name, sum string) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err == nil && sumOf(text) != sum {
		err = fmt.Errorf("%s: %w", name, errDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return text, nil
}

func sumOf(file []byte) string { return fmt.Sprintf("%x", sha256.Sum256(file)) }

// OrderFile is the file of a run folder with the order in which sections of the inputs are read. If more of them are
// read out of order, a file with the other name replaces it. The job has the valid file's sum, so a kill does no harm.
const (
	OrderFile      = "order.bin"
	otherOrderFile = "order.other.bin"
)

// orderDetail keeps versions of tsimport that do not know the file from resuming the run in another order.
var orderDetail = progress.Fact{Name: "the order of reading", Value: "by a schedule"}

// KeepOrder writes the reading order to the run folder, then the job with its sum.
func (j *Job) KeepOrder(dir string, order []byte) error {
	name := OrderFile
	if j.isOrder(dir, name) {
		name = otherOrderFile
	}
	if err := atomicfile.WriteBytes(filepath.Join(dir, name), atomicfile.Options{Perm: 0o600}, order); err != nil {
		return fmt.Errorf("store the reading order: %w", err)
	}
	j.Order = sumOf(order)
	j.Details = j.WithOrder(j.Details)
	return j.Write(dir)
}

// WithOrder adds the reading order to the details, if the job has one.
func (j *Job) WithOrder(details []progress.Fact) []progress.Fact {
	if j.Order == "" {
		return details
	}
	return append(details[:len(details):len(details)], orderDetail)
}

// ReadOrder reads the reading order of a run. It returns nil if there is none, and fails if the file has changed.
func (j *Job) ReadOrder(dir string) ([]byte, error) {
	if j.Order == "" {
		return nil, nil
	}
	if order, err := os.ReadFile(filepath.Join(dir, otherOrderFile)); err == nil && sumOf(order) == j.Order {
		return order, nil
	}
	return readKept("the reading order", filepath.Join(dir, OrderFile), j.Order)
}

func (j *Job) isOrder(dir, name string) bool {
	order, err := os.ReadFile(filepath.Join(dir, name))
	return err == nil && j.Order != "" && sumOf(order) == j.Order
}
