package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

const longestFunction = 60 // maximum lines of a function in cmd/tsimport/commands

func TestCommandFunctionsAreShort(t *testing.T) {
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

// Only main.go may parse arguments: code that runs a command again must not build an argument list for it.
func TestArgumentsAreParsedInOnePlace(t *testing.T) {
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
	conformance.True(t, len(parse) == 1 && parse["main.go"] == 2,
		"arguments are parsed in %v, want twice in main.go, once to complete them", parse)
}

// The plan compares the options that must not change when a load resumes; the table of options lists those that may.
func TestResumableOptionsAreNotCompared(t *testing.T) {
	table := pageText(t, "pipeline/options/table.go")
	compared := flagInText.FindAllString(pageText(t, "pipeline/plan/facts.go"), -1)
	conformance.MustTrue(t, len(compared) >= 15, "only %q are compared", compared)
	for _, flag := range compared {
		entry := regexp.MustCompile(`\{Name: "` + flag[2:] + `"[^\n]*`).FindString(table)
		conformance.True(t, entry != "" && !strings.Contains(entry, "MayChange"),
			"%s is compared with what it was when a load is resumed, and its entry is %q", flag, entry)
	}
}

// filesOfOption limits the average number of files that name an option's flag. Lower it when the average falls.
const filesOfOption = 5.45

// optionNames matches option names in the table of options; flagInText matches flags in text.
var (
	optionNames = regexp.MustCompile(`\{Name: "([a-z0-9-]+)"`)
	flagInText  = regexp.MustCompile(`--[a-z][a-z0-9-]+`)
)

func TestOptionsAreNamedInFewFiles(t *testing.T) {
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
	conformance.MustTrue(t, len(options) >= 80, "only %d options were found", len(options))
	if average := float64(n) / float64(len(options)); average > filesOfOption {
		t.Errorf("an option is named by %.2f files on average, and %v is the bound", average, filesOfOption)
	} else {
		t.Logf("%d options, named by %.2f files on average", len(options), average)
	}
}

// mostClimbs limits, by package, the references from a file to a file above it: each makes a reader jump back.
var mostClimbs = map[string]int{"pipeline": 19, "pipeline/lanes": 16, "pipeline/intake": 13, "pipeline/plan": 44}

// mostClimbsElsewhere is the limit for packages below pipeline that mostClimbs does not list.
const mostClimbsElsewhere = 7

func TestFileReferencesRarelyPointUp(t *testing.T) {
	docs := conformance.Try(filepath.Glob("../../pipeline/*/doc.go")).Must(t)
	for _, doc := range append(docs, "../../pipeline/doc.go") {
		folder := filepath.Dir(doc)
		room := strings.TrimPrefix(filepath.ToSlash(folder), "../../")
		uses := arrowsOfFiles(t, folder)
		all, climbing := 0, climbs(uses)
		for _, to := range uses {
			all += len(to)
		}
		most, ok := mostClimbs[room]
		if !ok {
			most = mostClimbsElsewhere
		}
		t.Logf("%s: %d arrows between %d files, %d climb", room, all, len(uses), len(climbing))
		conformance.True(t, len(climbing) <= most,
			"%s: %d arrows between files climb, more than %d: %s", room, len(climbing), most, strings.Join(climbing, ", "))
	}
}

// arrowsOfFiles maps each file of a package to the files that define names it uses, except methods of several types.
func arrowsOfFiles(t *testing.T, folder string) map[string]map[string]bool {
	files := map[string]*ast.File{}
	names := conformance.Try(filepath.Glob(filepath.Join(folder, "*.go"))).Must(t)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f := conformance.Try(parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)).Must(t)
		files[filepath.Base(name)] = f
	}
	top, methods := map[string]string{}, map[string]string{}
	for name, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				of := top
				if d.Recv != nil {
					of = methods
				}
				if _, twice := of[d.Name.Name]; twice {
					of[d.Name.Name] = "" // ambiguous
				} else {
					of[d.Name.Name] = name
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						top[s.Name.Name] = name
					case *ast.ValueSpec:
						for _, n := range s.Names {
							top[n.Name] = name
						}
					}
				}
			}
		}
	}
	uses := map[string]map[string]bool{}
	for name, f := range files {
		to, selected := map[string]bool{}, map[*ast.Ident]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl: // a receiver is not a use of its type
				if n.Recv != nil {
					ast.Inspect(n.Recv, func(n ast.Node) bool {
						if id, ok := n.(*ast.Ident); ok {
							selected[id] = true
						}
						return true
					})
				}
			case *ast.Field:
				for _, id := range n.Names {
					selected[id] = true
				}
			case *ast.SelectorExpr:
				selected[n.Sel] = true
				to[methods[n.Sel.Name]] = true
			case *ast.Ident:
				if !selected[n] {
					to[top[n.Name]] = true
				}
			}
			return true
		})
		delete(to, name)
		delete(to, "")
		uses[name] = to
	}
	return uses
}

// climbs orders files by the heuristic of Eades, Lin and Smyth, and returns the references that still point up.
func climbs(uses map[string]map[string]bool) (climbing []string) {
	left := slices.Sorted(maps.Keys(uses))
	var above, below []string
	balance := func(file string) (out, in int) {
		for _, other := range left {
			if uses[file][other] {
				out++
			}
			if uses[other][file] {
				in++
			}
		}
		return out, in
	}
	for len(left) > 0 {
		at, best, ground := 0, -len(uses), false
		for i, file := range left {
			out, in := balance(file)
			if out == 0 {
				at, ground = i, true
				break
			}
			if in == 0 {
				out = len(uses) // no file uses it, so it is placed first
			}
			if out-in > best {
				at, best = i, out-in
			}
		}
		if ground {
			below = append(below, left[at])
		} else {
			above = append(above, left[at])
		}
		left = slices.Delete(left, at, at+1)
	}
	slices.Reverse(below)
	order := append(above, below...)
	for i, file := range order {
		for _, higher := range order[:i] {
			if uses[file][higher] {
				climbing = append(climbing, file+" -> "+higher)
			}
		}
	}
	return climbing
}

func TestUpwardReferencesAreFound(t *testing.T) {
	to := func(files ...string) map[string]bool {
		m := map[string]bool{}
		for _, f := range files {
			m[f] = true
		}
		return m
	}
	got := climbs(map[string]map[string]bool{"a": to("b", "c"), "b": to("c"), "c": to()})
	conformance.True(t, len(got) == 0, "files that stand above each other: %q climb", got)
	got = climbs(map[string]map[string]bool{"a": to("b", "c"), "b": to("c"), "c": to("a")})
	conformance.True(t, len(got) == 1 && got[0] == "c -> a", "a circle of three: %q climb", got)
}

// realTime maps the test files outside e2e that wait in real time to the reason they cannot use a synctest bubble.
var realTime = map[string]string{
	"cmd/tsbench/main_test.go":                "another process makes a folder",
	"bench/write/run_test.go":                 "the system closes connections when it has the time",
	"engine/contract/assumptions_test.go":     "a real instance, whose clock is its own",
	"engine/contract/service_test.go":         "a real instance takes ten table operations a second",
	"internal/tablestore/client/slow_test.go": "a link of this machine whose buffers are full",
	"pipeline/drawnkills_test.go":             "in the bubble of drawn_test.go",
	"reader/postgres/pooler_test.go":          "a real PostgreSQL replicates, or has no session left",
}

// bubbles lists identifiers that show that a test file runs in virtual time.
var bubbles = []string{"synctest", "virtually", "virtual", "inBubble", "eachSeed"}

// waits lists the functions of package time that make a test wait. The package's other functions only limit a wait.
var waits = []string{"Sleep", "Tick", "NewTicker"}

func TestOnlyListedFilesWaitInRealTime(t *testing.T) {
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
