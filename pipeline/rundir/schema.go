package rundir

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
)

// lastRuns bounds how many folders are looked at for a run.
const lastRuns = 1000

// LastColumn is what the last run has written of a column.
type LastColumn struct{ Name, Type, Unit string }

// LastColumns returns what the last run into a table gave its columns, by their names in the table; nil if there
// is none in the folder of runs. Runs that wrote nothing do not count.
func LastColumns(runs, tableName, target string) map[string]LastColumn {
	entries, err := os.ReadDir(runs) // by name, which begins with the time
	if err != nil {
		return nil
	}
	slices.Reverse(entries)
	for _, e := range entries[:min(len(entries), lastRuns)] {
		text, err := os.ReadFile(filepath.Join(runs, e.Name(), SummaryFile))
		if err != nil {
			continue
		}
		var s struct {
			Table, Target string
			Written       int64
			DryRun        bool `json:"dry_run"`
			Schema        []LastColumn
		}
		if json.Unmarshal(text, &s) != nil || s.Table != tableName || s.Target != target || s.Written == 0 || s.DryRun {
			continue
		}
		last := map[string]LastColumn{}
		for _, c := range s.Schema {
			last[c.Name] = c
		}
		return last
	}
	return nil
}
