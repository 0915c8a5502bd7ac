package options

import (
	"os"
	"path/filepath"

	"example.com/tsimport/pipeline/rundir"
)

// NotData says which folders and files no glob and no folder makes inputs of: what loads have written. Their rejects are older than
// the files beside them, and would win over those. Store is the folder of an embedded store.
func NotData(r *Request, store string) func(name string, folder bool) string {
	outputs := map[string]string{"run-dir": r.RunDir, "returned-keys": r.ReturnedKeys, "store": store}
	return func(name string, folder bool) string {
		for option, output := range outputs {
			if Same(name, output) {
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

// LocksDir is where loads of the user are locked on this machine, from any working folder; "" if there is no place.
func LocksDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "tsimport", "locks")
}
