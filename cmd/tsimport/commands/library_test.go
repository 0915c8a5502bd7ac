package commands

import (
	"testing"

	"example.com/tsimport/pipeline/options"
)

// Of the options of a load, the fields of a request are all that change rows or where they go: a program can ask for what the command
// can.
func TestEveryOptionOfALoadIsAFieldOrOfTheCommandAlone(t *testing.T) {
	alone := map[string]bool{}
	for _, name := range []string{
		"profile", "store", "sync", "json", "quiet", "status", "cpu-profile", "allocations-profile", "metrics-file", "timeout",
		"job-dir", "workers",
	} {
		alone[name] = true
	}
	for _, o := range options.Of(options.Load | options.Ending) {
		if has := o.InRequest(); has == alone[o.Name] {
			t.Errorf("%s is a field of a request: %v", o.Name, has)
		}
	}
}
