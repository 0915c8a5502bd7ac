package arch

import (
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

const architecturePage = "docs/architecture.md"

var (
	codeSpan  = regexp.MustCompile("`([^`\n]+)`")
	pathLike  = regexp.MustCompile(`^[a-z0-9_]+(/[a-z0-9_.-]+)*/?$`)
	fence     = regexp.MustCompile("(?s)```.*?```")
	namedCode = regexp.MustCompile("`([^`\n]+\\.go)` \\(((?:`[A-Za-z]+`(?:, )?)+)\\)")
	bareName  = regexp.MustCompile(`^[A-Za-z]+$`)
)

// TestTheArchitecturePageNamesWhatExists checks each file, folder and identifier that the page names, and that it names every
// room.
func TestTheArchitecturePageNamesWhatExists(t *testing.T) {
	root := filepath.Join("..", "..")
	text := read(t, filepath.Join(root, architecturePage))
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
	if len(named) < 80 {
		t.Errorf("%s names only %d files and rooms: is its form another?", architecturePage, len(named))
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Errorf("%s names %s, which does not exist", architecturePage, name)
		}
	}
	for room := range arrows {
		if !named[room] {
			t.Errorf("%s does not name room %s: add a line to its tables of rooms", architecturePage, room)
		}
	}
	identifiers := 0
	for _, m := range namedCode.FindAllStringSubmatch(page, -1) {
		declared := declaredIn(t, filepath.Join(root, m[1]))
		for _, span := range codeSpan.FindAllStringSubmatch(m[2], -1) {
			identifiers++
			if !declared[span[1]] {
				t.Errorf("%s: %s does not declare %s", architecturePage, m[1], span[1])
			}
		}
	}
	if identifiers < 10 {
		t.Errorf("%s names only %d identifiers with their files", architecturePage, identifiers)
	}
}

// TestEachDecisionNamesItsFunction checks that each answer of the table of decisions names a function, type or constant with its
// file, that each file declares what is named with it, and that nothing is named without a file.
func TestEachDecisionNamesItsFunction(t *testing.T) {
	root := filepath.Join("..", "..")
	text := read(t, filepath.Join(root, architecturePage))
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
		if names == 0 {
			t.Errorf("%s: %s the answer names no function", architecturePage, cells[0])
		}
	}
	if rows < 12 {
		t.Errorf("%s: the table of decisions has only %d rows", architecturePage, rows)
	}
}

// declaredIn returns the names of functions, methods, types, constants and variables that a file declares; none if there is no
// such file.
func declaredIn(t *testing.T, name string) map[string]bool {
	declared := map[string]bool{}
	source, err := os.ReadFile(name)
	if err != nil {
		return declared
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
	must(t, err)
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			declared[d.Name.Name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					declared[s.Name.Name] = true
				case *ast.ValueSpec:
					for _, n := range s.Names {
						declared[n.Name] = true
					}
				}
			}
		}
	}
	return declared
}
