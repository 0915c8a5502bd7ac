package rundir

import (
	"os"
	"path/filepath"
	"slices"
)

// lastRuns is the maximum number of a folder's runs that are searched.
const lastRuns = 1000

// LastColumns returns the types and units that the last run into a table gave its columns, by their names in the table.
// It searches the folders in order until it finds such a run. Runs that wrote nothing do not count.
func LastColumns(folders []string, tableName, target string) (types, units map[string]string) {
	for _, runs := range folders {
		entries, err := os.ReadDir(runs) // sorted by name, and so by time
		if err != nil {
			continue
		}
		slices.Reverse(entries)
		for _, e := range entries[:min(len(entries), lastRuns)] {
			var s struct {
				Table, Target string
				Written       int64
				DryRun        bool `json:"dry_run"`
				Schema        []struct{ Name, Type string }
				Units         map[string]string
			}
			if ReadSummary(filepath.Join(runs, e.Name()), &s) != nil ||
				s.Table != tableName || s.Target != target || s.Written == 0 || s.DryRun {
				continue
			}
			types = map[string]string{}
			for _, c := range s.Schema {
				types[c.Name] = c.Type
			}
			return types, s.Units
		}
	}
	return nil, nil
}
