package main

import (
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"tsimport/engine/server"
	"tsimport/pipeline/rundir"
)

// outputFlags name files and folders that a load writes.
var outputFlags = []string{"run-dir", "returned-keys", "store"}

// notData says which folders and files no glob and no folder makes inputs of: what loads have written. Their rejects
// are older than the files beside them, and would win over those.
func notData(c *cli.Context) func(name string, folder bool) string {
	return func(name string, folder bool) string {
		for _, flag := range outputFlags {
			if same(name, c.String(flag)) {
				return "what --" + flag + " names,"
			}
		}
		switch {
		case !folder:
			return ""
		case rundir.IsRoot(name):
			return "folder of earlier runs"
		case rundir.IsRun(name):
			return "run folder"
		case same(name, defaultStore), server.IsStore(name):
			return "embedded store"
		}
		return ""
	}
}

// same reports whether two names are one file or folder.
func same(a, b string) bool {
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
