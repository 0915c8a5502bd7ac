package arch

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// realTime are the files of tests outside e2e that wait by the clock of the machine, each with what no bubble of testing/synctest can show.
var realTime = map[string]string{
	"cmd/tsbench/main_test.go":                "another process makes a folder",
	"bench/write/run_test.go":                 "the system closes connections when it has the time",
	"engine/contract/assumptions_test.go":     "a real instance, whose clock is its own",
	"engine/contract/service_test.go":         "a real instance takes ten table operations a second",
	"internal/tablestore/client/slow_test.go": "a link of this machine whose buffers are full",
	"pipeline/drawnkills_test.go":             "in the bubble of drawn_test.go",
	"reader/postgres/lag_test.go":             "a real PostgreSQL replicates",
	"reader/postgres/pooler_test.go":          "a real PostgreSQL has no session left",
}

// bubbles are the names by which a file of tests runs in virtual time.
var bubbles = []string{"synctest", "virtually", "virtual", "inBubble", "eachSeed"}

// waits are the functions of package time by which a test waits; others bound what it waits for.
var waits = []string{"Sleep", "Tick", "NewTicker"}

func TestOnlyTheFilesOfTheListWaitInRealTime(t *testing.T) {
	found := map[string]bool{}
	others := func(folder string) bool { return slices.Contains([]string{"e2e", "beam", "packaging/k8s"}, folder) }
	eachFile(t, others, func(name, rel string) {
		if strings.HasSuffix(name, "_test.go") && waitsInRealTime(t, name) {
			found[rel] = true
		}
	})
	if got, want := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(realTime)); !slices.Equal(got, want) {
		t.Errorf("files that wait in real time: %q, and the list has %q: what waits belongs into a bubble of testing/synctest", got, want)
	}
}

// waitsInRealTime reports whether a file waits and has no bubble.
func waitsInRealTime(t *testing.T, name string) bool {
	file, _ := parsed(t, name)
	waiting, bubble := false, false
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			waiting = waiting || ok && x.Name == "time" && slices.Contains(waits, n.Sel.Name)
		case *ast.Ident:
			bubble = bubble || slices.Contains(bubbles, n.Name)
		}
		return !bubble
	})
	return waiting && !bubble
}
