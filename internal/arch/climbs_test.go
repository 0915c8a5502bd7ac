package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostClimbs is how many arrows between files of a room may climb: from a file to one that stands above it, for files stand above those whose
// definitions they use. Each is a place where a reader goes down and up again.
var mostClimbs = map[string]int{"pipeline": 19, "pipeline/lanes": 16, "pipeline/intake": 13, "pipeline/plan": 44}

// mostClimbsElsewhere is that of the rooms below pipeline that have no number of their own.
const mostClimbsElsewhere = 7

func TestFewArrowsBetweenFilesClimb(t *testing.T) {
	docs, err := filepath.Glob("../../pipeline/*/doc.go")
	must(t, err)
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
		if len(climbing) > most {
			t.Errorf("%s: %d arrows between files climb, more than %d: %s", room, len(climbing), most, strings.Join(climbing, ", "))
		}
	}
}

// arrowsOfFiles says for each file of a package which other ones define what it names. Methods count where one type has one of that name.
func arrowsOfFiles(t *testing.T, folder string) map[string]map[string]bool {
	files := map[string]*ast.File{}
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	must(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		must(t, err)
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
					of[d.Name.Name] = "" // nobody knows which
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
			case *ast.FuncDecl: // a method stands beside its type without using it
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

// climbs orders files so that few arrows climb, by the heuristic of Eades, Lin and Smyth, and returns those.
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
				out = len(uses) // nobody uses it: it stands on top
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

func TestClimbsAreFound(t *testing.T) {
	to := func(files ...string) map[string]bool {
		m := map[string]bool{}
		for _, f := range files {
			m[f] = true
		}
		return m
	}
	if got := climbs(map[string]map[string]bool{"a": to("b", "c"), "b": to("c"), "c": to()}); len(got) > 0 {
		t.Errorf("files that stand above each other: %q climb", got)
	}
	if got := climbs(map[string]map[string]bool{"a": to("b", "c"), "b": to("c"), "c": to("a")}); len(got) != 1 || got[0] != "c -> a" {
		t.Errorf("a circle of three: %q climb", got)
	}
}
