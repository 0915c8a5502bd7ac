package rundir

import (
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
		entries, err := os.ReadDir(runs) // sorted by name, and so by time
		if err != nil {
			continue
		}
		slices.Reverse(entries)
		left := lastRuns
		for _, e := range entries {
			at := filepath.Join(runs, e.Name())
			all := []string{at}
			if _, err := os.Stat(filepath.Join(at, SummaryFile)); errors.Is(err, fs.ErrNotExist) {
				all, _ = Folders(at) // a job's loads
			}
			var last *lastRun
			for _, folder := range all[:min(len(all), left)] {
				s := new(lastRun)
				if ReadSummary(folder, s) == nil && s.Table == tableName && s.Target == target && s.Written > 0 &&
					!s.DryRun && (last == nil || s.Started.After(last.Started)) {
					last = s
				}
			}
			if left -= len(all); last != nil {
				types = map[string]string{}
				for _, c := range last.Schema {
					types[c.Name] = c.Type
				}
				return types, last.Units
			}
			if left <= 0 {
				break
			}
		}
	}
	return nil, nil
}
