package rundir

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// IsRoot reports whether a folder is that of the runs that name none.
func IsRoot(folder string) bool {
	root, err1 := os.Stat(Root)
	at, err2 := os.Stat(folder)
	return err1 == nil && err2 == nil && os.SameFile(root, at)
}

// IsRun reports whether a folder is that of a run, or of an earlier attempt below one. It has a summary, which says a state,
// and another file of a run: a folder with somebody else's summary.json is not taken for one.
func IsRun(folder string) bool {
	has := func(names ...string) bool {
		for _, name := range names {
			if info, err := os.Stat(filepath.Join(folder, name)); err == nil && info.Mode().IsRegular() {
				return true
			}
		}
		return false
	}
	if !has(SummaryFile) {
		return has("run.json") && has("checkpoint.bin", "checkpoint.prev", ReasonsFile) // its summary was removed
	}
	text, err := os.ReadFile(filepath.Join(folder, SummaryFile))
	if err != nil {
		return false
	}
	var summary struct {
		State  string `json:"state"`
		RunDir string `json:"run_dir"`
	}
	if json.Unmarshal(text, &summary) != nil || summary.State == "" {
		return false
	}
	return summary.RunDir != "" || has("run.json", LockFile, LockFile+holderSuffix, ReasonsFile)
}
