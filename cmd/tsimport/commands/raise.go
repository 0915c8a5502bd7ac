package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"example.com/tsimport/pipeline/rundir"
)

// raisedWrite is what earlier versions noted when they raised the reserved write throughput of a table for the time of a load.
type raisedWrite struct {
	Table string `json:"table"`
	Was   int    `json:"was"` // write units before
}

// readRaised returns what the run in the folder has raised and not restored; nil is nothing.
func readRaised(folder string) *raisedWrite {
	text, err := os.ReadFile(filepath.Join(folder, rundir.RaisedFile))
	if err != nil {
		return nil
	}
	n := new(raisedWrite)
	if json.Unmarshal(text, n) != nil || n.Table == "" {
		return nil
	}
	return n
}

// toRestore says what a run has raised and not restored; "" is nothing.
func (r *runInfo) toRestore() string {
	if r.Raised == nil {
		return ""
	}
	return fmt.Sprintf("write throughput of table %s to be restored to %s with tsimport table update --reserved-write; then remove %s",
		printable(r.Raised.Table), counted(int64(r.Raised.Was), "unit"), filepath.Join(r.Folder, rundir.RaisedFile))
}
