package arch

import (
	"cmp"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxFields is how many fields a struct of the load path has at most: one with more hides a second noun. An embedded struct is
// one field.
const maxFields = 15

// loadPath are the rooms that rows pass through. Rooms below them count too.
var loadPath = []string{"pipeline", "shuffle", "partitioner", "writer", "reader", "ratelimit"}

// wideStructs are the structs that have more fields. The comment of each says why.
var wideStructs = []string{
	"pipeline.Report",
	"pipeline/checkpoint.About",
	"pipeline/checkpoint.Job",
	"pipeline/intake.partMaker",
	"pipeline/plan.Inspection",
	"pipeline/plan.Plan",
	"pipeline/plan.Request",
	"reader.File",
	"reader/source.About",
	"reader.textReader",
	"reader/jsonl.Parser",
	"reader/parquet.column",
	"reader/parquet.values",
}

// TestStructsOfTheLoadPathHaveOneNounEach counts the fields of structs.
func TestStructsOfTheLoadPathHaveOneNounEach(t *testing.T) {
	root := filepath.Join("..", "..")
	wide := map[string]bool{}
	counted := 0
	for _, room := range slices.Sorted(maps.Keys(arrows)) {
		if top, _, _ := strings.Cut(room, "/"); !slices.Contains(loadPath, top) {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(root, room))
		must(t, err)
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			file, _ := parsed(t, filepath.Join(root, room, e.Name()))
			for _, d := range file.Decls {
				decl, ok := d.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, x := range decl.Specs {
					spec, ok := x.(*ast.TypeSpec)
					if !ok {
						continue
					}
					s, ok := spec.Type.(*ast.StructType)
					if !ok {
						continue
					}
					counted++
					n := fields(s)
					if n <= maxFields {
						continue
					}
					name := room + "." + spec.Name.Name
					wide[name] = true
					switch {
					case !slices.Contains(wideStructs, name):
						t.Errorf("%s has %d fields, more than %d: look for the second noun in it", name, n, maxFields)
					case !strings.Contains(strings.Join(strings.Fields(cmp.Or(spec.Doc, decl.Doc).Text()), " "), "many fields"):
						t.Errorf("%s has %d fields, and its comment does not say why it has so many fields", name, n)
					}
				}
			}
		}
	}
	if counted < 100 {
		t.Errorf("only %d structs were counted", counted)
	}
	for _, name := range wideStructs {
		if !wide[name] {
			t.Errorf("%s has %d fields or fewer: take it off the list", name, maxFields)
		}
	}
}

// fields counts the fields of a struct. An embedded one is one.
func fields(s *ast.StructType) (n int) {
	for _, f := range s.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}
