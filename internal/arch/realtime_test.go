package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

// realTime are the test files outside e2e that wait for the machine's clock, each with the reason against a bubble.
var realTime = map[string]string{
	"cmd/tsbench/main_test.go":                "another process makes a folder",
	"bench/write/run_test.go":                 "the system closes connections when it has the time",
	"engine/contract/assumptions_test.go":     "a real instance, whose clock is its own",
	"engine/contract/service_test.go":         "a real instance takes ten table operations a second",
	"internal/tablestore/client/slow_test.go": "a link of this machine whose buffers are full",
	"pipeline/drawnkills_test.go":             "in the bubble of drawn_test.go",
	"reader/postgres/pooler_test.go":          "a real PostgreSQL replicates, or has no session left",
}

// bubbles are the names by which a test file runs in virtual time.
var bubbles = []string{"synctest", "virtually", "virtual", "inBubble", "eachSeed"}

// waits are the functions of package time by which a test waits. Others only limit a wait.
var waits = []string{"Sleep", "Tick", "NewTicker"}

func TestOnlyTheFilesOfTheListWaitInRealTime(t *testing.T) {
	found := map[string]bool{}
	others := func(folder string) bool {
		return slices.Contains([]string{"e2e", "packaging/k8s", "packaging/oci"}, folder)
	}
	eachFile(t, others, func(name, rel string) {
		if strings.HasSuffix(name, "_test.go") && waitsInRealTime(t, name) {
			found[rel] = true
		}
	})
	got, want := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(realTime))
	conformance.Same(t, got, want, "files that wait in real time")
}

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

var (
	files  = map[string]*ast.File{}
	places = token.NewFileSet()
)

func parsed(t *testing.T, name string) (*ast.File, *token.FileSet) {
	t.Helper()
	if files[name] == nil {
		file := conformance.Try(parser.ParseFile(places, name, nil, parser.ParseComments|parser.SkipObjectResolution)).Must(t)
		files[name] = file
	}
	return files[name], places
}
