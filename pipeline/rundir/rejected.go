package rundir

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
	if err := EachReason(path, func(line *Reason) {
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
	// Request is the command as it was asked for; nil in runs of earlier versions.
	Request   json.RawMessage
	Directory string // in which it was started
	Started   time.Time
	Rejected  Rejected
	Inputs    []string
	Retried   []string // runs that have loaded its rejects
	// RejectsEncoding and RejectsFlags say how the files of rejects are to be read, as in the summary.
	RejectsEncoding string
	RejectsFlags    []string
	PolicyNow       time.Time // that ages of tables were counted from; zero without a policy
	// Division and Snapshots are the ranges of a database that it read, and from which snapshots, as in the summary; nil if it read none.
	Division  []byte
	Snapshots json.RawMessage
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
		Inputs    []string  `json:"inputs"`
		Encoding  string    `json:"rejects_encoding"`
		Flags     []string  `json:"rejects_flags"`
		Division  []byte    `json:"division"`
		Snapshots json.RawMessage
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
	run := &Run{
		Arguments: r.Arguments, Directory: r.Directory, Started: r.Started, Rejected: rejected, PolicyNow: r.PolicyNow,
		Inputs: r.Inputs, RejectsEncoding: r.Encoding, RejectsFlags: r.Flags, Division: r.Division, Snapshots: r.Snapshots,
	}
	var job struct {
		Retried []string        `json:"retried"`
		Request json.RawMessage `json:"request"`
	}
	// A load that was ended before it began has no such file.
	if text, err := os.ReadFile(filepath.Join(path, "run.json")); err == nil {
		if err := json.Unmarshal(text, &job); err != nil {
			return nil, fmt.Errorf("read %s: %w", filepath.Join(path, "run.json"), err)
		}
		run.Retried, run.Request = job.Retried, job.Request
	}
	return run, nil
}
