package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"example.com/tsimport/internal/progress"
)

// Rejected holds the numbers of a run's rejected records by input, in ascending order. Numbers begin at 1.
type Rejected map[string][]int64

func (r Rejected) Has(file string, record int64) bool {
	_, found := slices.BinarySearch(r[file], record)
	return found
}

// ReadRejected reads the rejected records of the run in a folder. A run without rejects has no file of reasons.
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

// Run describes a run, judging by its folder.
type Run struct {
	Arguments []string `json:"arguments"` // arguments of the command line, the command's name first
	// Request is the original command; nil if the library ran the load.
	Request   json.RawMessage `json:"-"`
	Directory string          `json:"directory"` // working folder of the command
	Started   time.Time       `json:"started"`   // when the first attempt began
	Rejected  Rejected        `json:"-"`
	Inputs    []string        `json:"inputs"`
	Retried   []string        `json:"-"` // runs that have loaded this run's rejects
	// RejectsEncoding and RejectsFlags tell how to read the reject files, as in the summary.
	RejectsEncoding string    `json:"rejects_encoding"`
	RejectsFlags    []string  `json:"rejects_flags"`
	PolicyNow       time.Time `json:"policy_now"` // time from which ages were counted; zero if there is no policy
	// Division and Snapshots are the ranges read from a database and their snapshots, as in the summary, or nil.
	Division  []byte          `json:"division"`
	Snapshots json.RawMessage `json:"snapshots"`
}

func ReadRun(path string) (*Run, error) {
	var r struct {
		Run
		First time.Time `json:"first_started"` // set if the run has several attempts
	}
	err := ReadSummary(path, &r)
	if err != nil {
		return nil, err
	}
	run := &r.Run
	if run.Rejected, err = ReadRejected(path); err != nil {
		return nil, err
	}
	if !r.First.IsZero() {
		run.Started = r.First
	}
	var job struct {
		Retried []string        `json:"retried"`
		Request json.RawMessage `json:"request"`
	}
	// A load that failed before it began has no run.json.
	if err := progress.Read(filepath.Join(path, "run.json"), Version, &job, "name another run"); err != nil &&
		!errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read run: %w", err)
	}
	run.Retried, run.Request = job.Retried, job.Request
	return run, nil
}
