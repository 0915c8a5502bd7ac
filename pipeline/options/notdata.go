package options

import (
	"os"
	"path/filepath"

	"tsimport/pipeline/rundir"
)

// outputs name files and folders that a load writes.
var outputs = []string{"run-dir", "returned-keys", "store"}

// NotData says which folders and files no glob and no folder makes inputs of: what loads have written. Their rejects are older than
// the files beside them, and would win over those.
func NotData(g Given) func(name string, folder bool) string {
	return func(name string, folder bool) string {
		for _, option := range outputs {
			if Same(name, g.String(option)) {
				return "what --" + option + " names,"
			}
		}
		switch {
		case !folder:
			return ""
		case rundir.IsRoot(name):
			return "folder of earlier runs"
		case rundir.IsRun(name):
			return "run folder"
		}
		return ""
	}
}

// Same reports whether two names are one file or folder.
func Same(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	at, err1 := os.Stat(a)
	bt, err2 := os.Stat(b)
	if err1 == nil && err2 == nil {
		return os.SameFile(at, bt)
	}
	return filepath.Clean(a) == filepath.Clean(b)
}
