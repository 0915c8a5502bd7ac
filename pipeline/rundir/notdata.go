package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/tsimport/internal/progress"
)

// IsRoot reports whether a folder is the default folder of runs.
func IsRoot(folder string) bool { return SameFile(Root, folder) }

// Folders returns this user's folders in a root of runs, which need not exist. Folders of others may be malicious.
func Folders(root string) (own []string, err error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if at := filepath.Join(root, e.Name()); e.IsDir() && !strings.HasPrefix(e.Name(), ".") && CheckOwner(at) == nil {
			own = append(own, at)
		}
	}
	return own, err
}

// SameFile reports whether two names refer to one existing file or folder.
func SameFile(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

func ReadSummary(folder string, to any) error {
	if err := progress.Read(filepath.Join(folder, SummaryFile), Version, to, "run the command again"); err != nil {
		return fmt.Errorf("read summary: %w", err)
	}
	return nil
}

// IsRun reports whether a folder holds a run, judging by its summary and other files.
func IsRun(folder string) bool {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			info, err := os.Stat(filepath.Join(folder, name))
			return err == nil && info.Mode().IsRegular()
		})
	}
	if !has(SummaryFile) {
		return has("run.json") && has("checkpoint.bin", "checkpoint.prev", ReasonsFile) // the summary may have been removed
	}
	var summary struct {
		State  string `json:"state"`
		RunDir string `json:"run_dir"`
	}
	text, err := os.ReadFile(filepath.Join(folder, SummaryFile)) // the summary may be of any version
	if err != nil || json.Unmarshal(text, &summary) != nil || summary.State == "" {
		return false
	}
	return summary.RunDir != "" || has("run.json", LockFile, LockFile+holderSuffix, ReasonsFile)
}
