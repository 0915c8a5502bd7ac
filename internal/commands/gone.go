package commands

import (
	"slices"
	"strings"
)

// goneFlag is a flag with a value that earlier versions had.
type goneFlag struct{ name, instead string }

// goneFlags are answered with what takes their place. A run that such a version has begun is resumed without them.
var goneFlags = []goneFlag{
	{name: "raise-write", instead: "change the table's throughput before and after with tsimport table update --reserved-write (docs/how-to/slow-loads.md)"},
	{name: "request", instead: "rows are sent by BatchWriteRow, which is as fast"},
}

func findGone(name string) *goneFlag {
	if i := slices.IndexFunc(goneFlags, func(g goneFlag) bool { return g.name == name }); i >= 0 {
		return &goneFlags[i]
	}
	return nil
}

// withoutGone are arguments of a run without flags that are gone.
func withoutGone(args []string) (kept []string) {
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(kept, args[i:]...)
		}
		name, _, valued := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		g := findGone(name)
		if g == nil || !strings.HasPrefix(args[i], "-") {
			kept = append(kept, args[i])
		} else if !valued {
			i++
		}
	}
	return kept
}
