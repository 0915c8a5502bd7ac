package tablesync

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/progress"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/transfer/verify"
)

// StateFile is the name of the file with the state of a run.
const StateFile = "sync.json"

type phase string

const (
	comparing phase = "comparing" // the files of changes are not complete
	putting   phase = "putting"
	deleting  phase = "deleting"
	finished  phase = "finished"
)

type state struct {
	Identity   string    `json:"identity"` // the same for runs with the same target, table, range and inputs
	Phase      phase     `json:"phase"`
	Started    time.Time `json:"started"`
	ReplacedBy string    `json:"replaced_by,omitempty"`

	// Results of the comparison.
	Compared    time.Time            `json:"compared,omitzero"`
	Made        int64                `json:"table_created,omitempty"` // creation time in microseconds since 1970
	Details     []progress.Fact      `json:"details,omitempty"`
	Found       *verify.Result       `json:"found,omitempty"`
	Examples    []json.RawMessage    `json:"examples,omitempty"`
	Put         []part               `json:"put,omitempty"`
	Delete      []part               `json:"delete,omitempty"`
	Total       totals               `json:"total"`
	Live        bool                 `json:"live,omitempty"`
	Units       int64                `json:"full_units,omitempty"` // write units of a full load
	SourceUnits int64                `json:"source_units,omitempty"`
	ColumnUnits map[string]string    `json:"column_units,omitempty"`
	Unread      []string             `json:"unread,omitempty"`
	Rejects     []string             `json:"rejects_files,omitempty"`
	Reasons     []rundir.ReasonCount `json:"reject_reasons,omitempty"`
}

// stateVersion is the version of the files that this program writes.
const stateVersion = 1

func (s *state) write(dir string) error {
	if err := progress.Write(filepath.Join(dir, StateFile), 0o600, stateVersion, s); err != nil {
		return fmt.Errorf("store the state of the run: %w", err)
	}
	return nil
}

// readState reads the state of the run in a folder. It returns nil if there is none.
func readState(dir string) (*state, error) {
	s := new(state)
	switch err := progress.Read(filepath.Join(dir, StateFile), stateVersion, s, progress.StartOver); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the state of the run: %w", err)
	}
	return s, nil
}

// Unfinished reports whether a folder holds a run of this package, and whether that run can be resumed.
func Unfinished(dir string) (is, unfinished bool) {
	s, err := readState(dir)
	if err != nil {
		return true, false
	}
	return s != nil, s != nil && s.Phase != finished && s.ReplacedBy == ""
}

// unfinishedRuns returns the folders in rundir.Root that hold unfinished runs with an identity.
func unfinishedRuns(identity string) (folders []string, err error) {
	all, err := rundir.Folders(rundir.Root)
	for _, at := range all {
		if s, err := readState(at); err == nil && s != nil && s.Identity == identity && s.Phase != finished &&
			s.ReplacedBy == "" {
			folders = append(folders, at)
		}
	}
	return folders, err
}

// IsPart reports whether a path relative to a sync's run folder, with slashes, is one of the sync's files or folders.
func IsPart(path string) bool {
	parts := strings.Split(path, "/")
	own := slices.Contains([]string{StateFile, changesDir, putDir, deleteDir}, parts[len(parts)-1])
	return own || slices.Contains(parts[:len(parts)-1], changesDir)
}
