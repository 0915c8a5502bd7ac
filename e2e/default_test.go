package e2e

import (
	"example.com/tsimport/internal/conformance"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// byDefault lists the files whose tests go test ./... runs, and what in each only a built binary can show. All other
// files begin with //go:build e2e, and make e2e runs them.
var byDefault = map[string]string{
	"default_test.go":      "what is run by default",
	"load_test.go":         "load and serve are killed, and stopped by signals; two processes want one job",
	"moved_test.go":        "load, export, copy, sync, run and age are killed; age is stopped by a signal",
	"script_test.go":       "a happy path of each command, exit codes, and what the binary was built from",
	"signals_unix_test.go": "pipes that nobody opens, a scheduler that stops a load, and a signal that shows its state",
}

var (
	tagged   = regexp.MustCompile(`(?m)^//go:build e2e\b`)
	declares = regexp.MustCompile(`(?m)^func (?:Test[^M]|TestM[^a]|Benchmark|Fuzz|Example)`)
)

// TestDefaultTestFilesMatchList finds files without the build tag, which would make every run of all tests longer.
func TestDefaultTestFilesMatchList(t *testing.T) {
	t.Parallel()
	names := conformance.Try(filepath.Glob("*_test.go")).Must(t)
	var found []string
	for _, name := range names {
		text := conformance.Try(os.ReadFile(name)).Must(t)
		if declares.Match(text) && !tagged.Match(text) {
			found = append(found, name)
		}
	}
	conformance.Equal(t, differs(slices.Sorted(maps.Keys(byDefault)), found), "",
		"begin the file with //go:build e2e, or list it in byDefault with what only a built binary shows (-listed +found)")
}
