package rundir

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// lastRuns is the maximum number of a folder's runs that are searched.
const lastRuns = 1000

type lastRun struct {
	Table, Target string
	Written       int64
	Started       time.Time
	DryRun        bool `json:"dry_run"`
	Schema        []struct{ Name, Type string }
	Units         map[string]string
}

// LastColumns returns the types and units that the last run into a table gave its columns, by their names in the table.
// It searches the folders in order, with the loads of jobs in them, until it finds such a run. Runs that wrote nothing
// do not count.
func LastColumns(folders []string, tableName, target string) (types, units map[string]string) {
	for _, runs := range folders {
		entries, _ := os.ReadDir(runs) // sorted by name, and so by time
		slices.Reverse(entries)
		for left := lastRuns; left > 0 && len(entries) > 0; entries = entries[1:] {
			at := filepath.Join(runs, entries[0].Name())
			all := []string{at}
			if _, err := os.Stat(filepath.Join(at, SummaryFile)); errors.Is(err, fs.ErrNotExist) {
				all, _ = Folders(at) // a job's loads
			}
			if last := lastOf(all[:min(len(all), left)], tableName, target); last != nil {
				types = map[string]string{}
				for _, c := range last.Schema {
					types[c.Name] = c.Type
				}
				return types, last.Units
			}
			left -= max(len(all), 1)
		}
	}
	return nil, nil
}

// lastOf returns the latest of the runs that wrote to the table, or nil.
func lastOf(folders []string, tableName, target string) (last *lastRun) {
	for _, folder := range folders {
		// Most loads of a large job write to other tables, and decoding their summaries would double a night's work.
		if text, _ := os.ReadFile(filepath.Join(folder, SummaryFile)); !bytes.Contains(text, []byte(`"`+tableName+`"`)) {
			continue
		}
		s := new(lastRun)
		if ReadSummary(folder, s) == nil && s.Table == tableName && s.Target == target && s.Written > 0 && !s.DryRun &&
			(last == nil || s.Started.After(last.Started)) {
			last = s
		}
	}
	return last
}
