package arch

import (
	"encoding/json"
	"example.com/tsimport/internal/conformance"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const architecturePage = "docs/internals/architecture.md"

var (
	codeSpan  = regexp.MustCompile("`([^`\n]+)`")
	pathLike  = regexp.MustCompile(`^[a-z0-9_]+(/[a-z0-9_.-]+)*/?$`)
	fence     = regexp.MustCompile("(?s)```.*?```")
	namedCode = regexp.MustCompile("`([^`\n]+\\.go)` \\(((?:`[A-Za-z]+`(?:, )?)+)\\)")
	bareName  = regexp.MustCompile(`^[A-Za-z]+$`)
)

// TestArchitecturePageNamesExist checks that all names on the page exist and that it lists every package.
func TestArchitecturePageNamesExist(t *testing.T) {
	root := filepath.Join("..", "..")
	text := conformance.Read(t, root, architecturePage)
	page := string(text)
	named := map[string]bool{}
	spans := codeSpan.FindAllStringSubmatch(page, -1)
	for _, picture := range fence.FindAllString(page, -1) {
		for _, word := range strings.FieldsFunc(picture, func(r rune) bool { return strings.ContainsRune(" \n,;", r) }) {
			spans = append(spans, []string{word, word})
		}
	}
	for _, span := range spans {
		if name := span[1]; pathLike.MatchString(name) && (strings.Contains(name, "/") || arrows[name] != nil) {
			named[strings.TrimSuffix(name, "/")] = true
		}
	}
	named["."] = strings.Contains(page, "| `.` |") // the module's root
	conformance.True(t, len(named) >= 80, "%s names only %d files and rooms: another form?", architecturePage, len(named))
	for _, name := range slices.Sorted(maps.Keys(named)) {
		conformance.True(t, conformance.ErrorOf(os.Stat(filepath.Join(root, name))) == nil,
			"%s names %s, which does not exist", architecturePage, name)
	}
	for room := range arrows {
		conformance.True(t, named[room], "%s does not name room %s: add it to a table of rooms", architecturePage, room)
	}
	identifiers := 0
	for _, m := range namedCode.FindAllStringSubmatch(page, -1) {
		declared := declaredIn(t, filepath.Join(root, m[1]))
		for _, span := range codeSpan.FindAllStringSubmatch(m[2], -1) {
			identifiers++
			conformance.True(t, declared[span[1]], "%s: %s does not declare %s", architecturePage, m[1], span[1])
		}
	}
	conformance.True(t, identifiers >= 10, "%s names only %d identifiers with their files", architecturePage, identifiers)
}

// TestDecisionsNameTheirFunctions checks that each answer names a function, type or constant that its file declares.
func TestDecisionsNameTheirFunctions(t *testing.T) {
	root := filepath.Join("..", "..")
	text := conformance.Read(t, root, architecturePage)
	_, section, _ := strings.Cut(string(text), "## Where each decision is made\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(line, " | ")
		if len(cells) != 2 || !strings.HasSuffix(cells[0], "?") {
			continue
		}
		rows++
		answer, file, names := cells[1], "", 0
		for _, span := range codeSpan.FindAllStringSubmatch(answer, -1) {
			switch name := span[1]; {
			case strings.HasSuffix(name, ".go"):
				file = name
			case !bareName.MatchString(name):
			case file == "":
				t.Errorf("%s: %s names %s without a file before it", architecturePage, cells[0], name)
			case !declaredIn(t, filepath.Join(root, file))[name]:
				t.Errorf("%s: %s %s does not declare %s", architecturePage, cells[0], file, name)
			default:
				names++
			}
		}
		conformance.True(t, names != 0, "%s: %s the answer names no function", architecturePage, cells[0])
	}
	conformance.True(t, rows >= 12, "%s: the table of decisions has only %d rows", architecturePage, rows)
}

// mostOfOption limits the functions that read or change the value of an option on its way to the lane.
const mostOfOption = 8

// TestOptionPathsAreShort limits the functions that the page lists for an option. Each must use it or all options.
func TestOptionPathsAreShort(t *testing.T) {
	root := filepath.Join("..", "..")
	_, section, _ := strings.Cut(string(conformance.Read(t, root, architecturePage)), "## From a flag to the lane\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := 0
	for line := range strings.Lines(section) {
		name, way, found := strings.Cut(strings.TrimPrefix(line, "| `--"), "` | ")
		if !found || !strings.HasPrefix(line, "| `--") {
			continue
		}
		rows++
		functions := namedCode.FindAllStringSubmatch(way, -1)
		if n := len(functions); n < 4 || n > mostOfOption {
			t.Errorf("--%s is read or changed by %d functions, want 4 to %d", name, n, mostOfOption)
		}
		field := strings.ToLower(strings.ReplaceAll(name, "-", ""))
		for _, f := range functions[2:] { // the first two handle all options
			conformance.Contains(t, strings.ToLower(string(conformance.Read(t, root, f[1]))), field, "--%s: %s", name, f[1])
		}
	}
	conformance.True(t, rows >= 3, "%s has the ways of only %d options", architecturePage, rows)
}

// declaredIn returns the functions, methods, types, constants and variables of a file, or none if there is no file.
func declaredIn(t *testing.T, name string) map[string]bool {
	declared := map[string]bool{}
	source, err := os.ReadFile(name)
	if err != nil {
		return declared
	}
	file := conformance.Try(parser.ParseFile(token.NewFileSet(), name, source, 0)).Must(t)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			declared[n.Name.Name] = true
			return false // names declared inside are local
		case *ast.TypeSpec:
			declared[n.Name.Name] = true
		case *ast.ValueSpec:
			for _, name := range n.Names {
				declared[name.Name] = true
			}
		}
		return true
	})
	return declared
}

const fieldsPage = "docs/fields.md"

// TestFieldsPageHasAllFields checks the page against samples of summary.json and /status that have all fields.
func TestFieldsPageHasAllFields(t *testing.T) {
	root := filepath.Join("..", "..")
	text := conformance.Read(t, root, fieldsPage)
	named := map[string]bool{}
	for _, span := range codeSpan.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
		for _, name := range regexp.MustCompile(`[a-z_]+`).FindAllString(span[1], -1) {
			named[name] = true
		}
	}
	for _, file := range []string{"report-full.json", "state-full.json"} {
		full := conformance.Read(t, "", filepath.Join(root, "pipeline", "testdata", file))
		var v any
		conformance.Must(t, json.Unmarshal(full, &v))
		names := map[string]bool{}
		collectNames(v, names)
		conformance.True(t, len(names) >= 30, "%s has only %d names", file, len(names))
		for name := range names {
			conformance.True(t, named[name], "%s does not name the field %s of %s", fieldsPage, name, file)
		}
	}
}

func collectNames(v any, names map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			names[name] = true
			collectNames(below, names)
		}
	case []any:
		for _, below := range v {
			collectNames(below, names)
		}
	}
}
