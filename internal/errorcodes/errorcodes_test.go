package errorcodes

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
)

var update = flag.Bool("update", false, "write docs/errors.md")

// TestAllCodesHaveEntries finds the codes in the files that define them, so a new code cannot be forgotten.
func TestAllCodesHaveEntries(t *testing.T) {
	root := filepath.Join("..", "..")
	found := map[Kind]int{}
	for _, at := range []struct {
		kind        Kind
		file, begin string
	}{
		{Reject, "internal/table/reject.go", "Code"},
		{Reject, "internal/keyexpr/evaluate.go", "Code"},
		{Reject, "reader/jsonl/parser.go", "Code"},
		{Service, "engine/wire/errors.go", "Code"},
		{Exit, "internal/exitcode/exitcode.go", ""},
	} {
		for name, code := range constants(t, filepath.Join(root, at.file)) {
			if !strings.HasPrefix(name, at.begin) {
				continue
			}
			found[at.kind]++
			e, has := Find(code)
			conformance.True(t, has && e.Kind == at.kind, "%s of %s: %q has no entry as %s", name, at.file, code, at.kind)
		}
	}
	conformance.True(t, found[Reject] >= 20 && found[Service] >= 20 && found[Exit] >= 10, "found only %v codes", found)
	for code := range clientCodes(t, filepath.Join(root, "internal/tablestore/client/errors.go")) {
		e, has := Find(code)
		conformance.True(t, has && e.Kind == Service && e.Does != "", "%s, which the client knows: %+v", code, e)
	}
}

// constants returns the constants of a file that have literal values.
func constants(t *testing.T, name string) map[string]string {
	out := map[string]string{}
	ast.Inspect(parsed(t, name), func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || len(spec.Names) != 1 || len(spec.Values) != 1 {
			return true
		}
		if lit, is := spec.Values[0].(*ast.BasicLit); is && ast.IsExported(spec.Names[0].Name) {
			out[spec.Names[0].Name] = unquoted(lit)
		}
		return true
	})
	return out
}

// clientCodes returns the error codes of the service among the string literals of a file.
func clientCodes(t *testing.T, name string) map[string]bool {
	out := map[string]bool{}
	ast.Inspect(parsed(t, name), func(n ast.Node) bool {
		if lit, is := n.(*ast.BasicLit); is && strings.HasPrefix(unquoted(lit), "OTS") {
			out[unquoted(lit)] = true
		}
		return true
	})
	conformance.MustTrue(t, len(out) >= 20, "%s has only %d codes", name, len(out))
	return out
}

func parsed(t *testing.T, name string) *ast.File {
	t.Helper()
	return conformance.Try(parser.ParseFile(token.NewFileSet(), name, nil, 0)).Must(t)
}

func unquoted(lit *ast.BasicLit) string {
	if text, err := strconv.Unquote(lit.Value); err == nil {
		return text
	}
	return lit.Value
}

func TestEntriesAreCompleteAndUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range All() {
		conformance.True(t, e.Cause != "" && e.Remedy != "", "%s lacks its cause or its remedy", e.Code)
		key := strings.ToLower(e.Code)
		conformance.True(t, !seen[key], "%s is listed twice", e.Code)
		seen[key] = true
	}
	e, found := Find("otsserverbusy")
	conformance.True(t, found && e.Code == "OTSServerBusy", "a code in other letters is not found: %+v", e)
	_, found = Find("OTSServerBus")
	conformance.True(t, !found, "half a code is found")
}

func TestErrorsPage(t *testing.T) {
	name := filepath.Join("..", "..", "docs", "errors.md")
	want := page()
	if *update {
		conformance.Must(t, os.WriteFile(name, want, 0o666))
		return
	}
	got := conformance.Try(os.ReadFile(name)).Must(t)
	conformance.Equal(t, bytes.Equal(got, want), true, "docs/errors.md differs from the catalogue; make errors writes it")
}

func page() []byte {
	var b bytes.Buffer
	fmt.Fprint(&b, `# Errors

Every code that you can meet, with its cause and what to do. `+"`tsimport errors CODE`"+
		` prints an entry. `+"`make errors`"+`
makes this page from the program's catalogue: change texts there.
`)
	all := All()
	var codes []string
	for _, c := range exitcode.Order {
		codes = append(codes, strconv.Itoa(c))
	}
	for _, section := range []struct {
		kind        Kind
		title, text string
		does        bool
	}{
		{Exit, "Exit codes", "A job's exit code is the first of " + strings.Join(codes, ", ") +
			" with which one of its loads has ended.", false},
		{Reject, "Why rows are rejected", "The run folder has each rejected record as it was. Its `rejects.jsonl` has each " +
			"one's reason, file, record, line, column and value.\nA row that the service refused has the service's code.", false},
		{Service, "What the service answers", "Codes of the service, and what a load does with each.", true},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", section.title, section.text)
		if section.does {
			fmt.Fprint(&b, "| code | cause | a load | what to do |\n|---|---|---|---|\n")
		} else {
			fmt.Fprint(&b, "| code | cause | what to do |\n|---|---|---|\n")
		}
		for _, e := range all {
			if e.Kind != section.kind {
				continue
			}
			cells := []string{"`" + e.Code + "`", e.Cause, e.Remedy}
			if section.does {
				cells = []string{"`" + e.Code + "`", e.Cause, e.Does, e.Remedy}
			}
			for i := range cells {
				cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		}
	}
	return b.Bytes()
}
