package arch

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const longestFunction = 60 // lines, of the command line

func TestFunctionsOfTheCommandLineAreShort(t *testing.T) {
	eachFile(t, func(string) bool { return false }, func(name, rel string) {
		if !strings.HasPrefix(rel, "cmd/tsimport/commands/") || strings.HasSuffix(rel, "_test.go") {
			return
		}
		file, set := parsed(t, name)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				if n := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; n > longestFunction {
					t.Errorf("%s: %s has %d lines; at most %d are read at a glance", rel, f.Name.Name, n, longestFunction)
				}
			}
		}
	})
}

// Nothing that is done again passes through an argv: what is typed is parsed in main.go, and what a run of an earlier version has kept in
// call.go (commandOf).
func TestArgumentsAreParsedInTwoPlaces(t *testing.T) {
	parse := map[string]int{}
	eachFile(t, func(string) bool { return false }, func(name, rel string) {
		if !strings.HasPrefix(rel, "cmd/tsimport/") || strings.HasSuffix(rel, "_test.go") {
			return
		}
		file, _ := parsed(t, name)
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "Run" || s.Sel.Name == "RunContext") {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "app" {
					parse[path.Base(rel)]++
				}
			}
			return true
		})
	})
	if len(parse) != 2 || parse["main.go"] != 2 || parse["call.go"] != 1 {
		t.Errorf("arguments are parsed in %v, want twice in main.go (once to complete them) and once in call.go", parse)
	}
}

// What a resumed load must find as it was is compared by the plan; what may change is said by the table of options.
func TestWhatMayChangeOnResumeIsNotCompared(t *testing.T) {
	table := pageText(t, "pipeline/options/table.go")
	compared := flagInText.FindAllString(pageText(t, "pipeline/plan/facts.go"), -1)
	if len(compared) < 15 {
		t.Fatalf("only %q are compared", compared)
	}
	for _, flag := range compared {
		entry := regexp.MustCompile(`\{Name: "` + flag[2:] + `"[^\n]*`).FindString(table)
		if entry == "" || strings.Contains(entry, "MayChange") {
			t.Errorf("%s is compared with what it was when a load is resumed, and its entry is %q", flag, entry)
		}
	}
}

// filesOfOption bounds how many files outside tests name an option as a flag, on average. Each file that speaks of one has to change with
// it: lower the bound when the average falls.
const filesOfOption = 5.45

// optionNames finds the names of options in their table, and flags in a text.
var (
	optionNames = regexp.MustCompile(`\{Name: "([a-z0-9-]+)"`)
	flagInText  = regexp.MustCompile(`--[a-z][a-z0-9-]+`)
)

func TestFewFilesNameAnOption(t *testing.T) {
	options, naming := map[string]bool{}, map[string]map[string]bool{}
	eachFile(t, func(string) bool { return false }, func(name, rel string) {
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return
		}
		file, _ := parsed(t, name)
		inTable := path.Dir(rel) == "pipeline/options"
		ast.Inspect(file, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if !ok || text.Kind != token.STRING {
				return true
			}
			value, _ := strconv.Unquote(text.Value) // the file was parsed
			for _, flag := range flagInText.FindAllString(value, -1) {
				if naming[flag[2:]] == nil {
					naming[flag[2:]] = map[string]bool{}
				}
				naming[flag[2:]][rel] = true
			}
			return true
		})
		if inTable {
			for _, m := range optionNames.FindAllStringSubmatch(pageText(t, rel), -1) {
				options[m[1]] = true
			}
		}
	})
	n := 0
	for name := range options {
		n += len(naming[name])
	}
	if len(options) < 80 {
		t.Fatalf("only %d options were found", len(options))
	}
	if average := float64(n) / float64(len(options)); average > filesOfOption {
		t.Errorf("an option is named by %.2f files on average, and %v is the bound", average, filesOfOption)
	} else {
		t.Logf("%d options, named by %.2f files on average", len(options), average)
	}
}
