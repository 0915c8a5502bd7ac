package runfolder

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	f, err := os.Open(filepath.Join(path, ReasonsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read rejects: %w", err)
	}
	defer f.Close()
	r := Rejected{}
	for d, n := json.NewDecoder(bufio.NewReader(f)), 1; ; n++ {
		var line reason
		if err := d.Decode(&line); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read rejects: line %d of %s: %w", n, f.Name(), err)
		}
		r[line.File] = append(r[line.File], line.Record)
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
