package runfolder

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Rejected is which records a run has rejected: their numbers, from 1 and increasing, by input.
type Rejected map[string][]int64

// Has reports whether the record was rejected.
func (r Rejected) Has(file string, record int64) bool {
	_, found := slices.BinarySearch(r[file], record)
	return found
}

// ReadRejected reads which records the run in a folder has rejected; a run without rejects has no file of them.
func ReadRejected(path string) (Rejected, error) {
	var r Rejected
	if err := eachReason(path, func(line *Reason) {
		if r == nil {
			r = Rejected{}
		}
		r[line.File] = append(r[line.File], line.Record)
	}); err != nil {
		return nil, err
	}
	for file := range r {
		slices.Sort(r[file])
	}
	return r, nil
}

// Run is what the folder of a run says of it.
type Run struct {
	Arguments []string // of the command line, the command's name first
	Directory string   // in which it was started
	Started   time.Time
	Rejected  Rejected
	PolicyNow time.Time // that ages of tables were counted from; zero without a policy
}

// ReadRun reads the folder of a run.
func ReadRun(path string) (*Run, error) {
	name := filepath.Join(path, SummaryFile)
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read run: %w", err)
	}
	var r struct {
		Arguments []string  `json:"arguments"`
		Directory string    `json:"directory"`
		Started   time.Time `json:"started"`
		First     time.Time `json:"first_started"` // of a run of several attempts
		PolicyNow time.Time `json:"policy_now"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	rejected, err := ReadRejected(path)
	if err != nil {
		return nil, err
	}
	if !r.First.IsZero() {
		r.Started = r.First
	}
	return &Run{Arguments: r.Arguments, Directory: r.Directory, Started: r.Started, Rejected: rejected}, nil
}
