package mutants

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A room is a package with its types.
type room struct {
	root, dir string // of the module, of the room
	path      string // below the module
	module    string
	fset      *token.FileSet
	files     []*sourceFile
	info      types.Info
	importer  types.Importer
}

type sourceFile struct {
	name string // below the module
	text []byte
	tree *ast.File
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir, Export                                                string
	GoFiles, TestGoFiles, XTestGoFiles, Imports, TestImports, XTestImports []string
	DepOnly                                                                bool // it is not asked for
	Module                                                                 *struct{ Path, Dir string }
}

func (p *listed) hasTests() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

// list runs go list in a folder of the module.
func list(root string, args ...string) ([]*listed, error) {
	const fields = "-json=ImportPath,Dir,Export,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,DepOnly,Module"
	cmd := exec.Command("go", append([]string{"list", fields}, args...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %v: %w", args, err)
	}
	var packages []*listed
	for in := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := &listed{}
		if err := in.Decode(p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the packages of go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// load reads rooms, as go list names them, with their types.
func load(root string, names ...string) ([]*room, error) {
	packages, err := list(root, append([]string{"-export", "-deps"}, names...)...)
	if err != nil {
		return nil, err
	}
	exports, fset := map[string]string{}, token.NewFileSet()
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(cmp.Or(exports[path], exports["vendor/"+path]))
	})
	var rooms []*room
	for _, p := range packages {
		if p.DepOnly {
			continue
		}
		r := &room{root: p.Module.Dir, dir: p.Dir, path: strings.TrimPrefix(p.ImportPath, p.Module.Path+"/"), module: p.Module.Path, fset: fset, importer: imports}
		r.info = types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
		for _, name := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				return nil, err
			}
			tree, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			r.files = append(r.files, &sourceFile{filepath.ToSlash(filepath.Join(r.path, name)), text, tree})
		}
		if err := r.check(nil, &r.info); err != nil {
			return nil, err
		}
		rooms = append(rooms, r)
	}
	slices.SortFunc(rooms, func(a, b *room) int { return strings.Compare(a.path, b.path) })
	return rooms, nil
}

// check type-checks the room, with changed in place of the file of the same name.
func (r *room) check(changed *ast.File, info *types.Info) error {
	var trees []*ast.File
	for _, file := range r.files {
		tree := file.tree
		if changed != nil && r.fset.File(changed.FileStart).Name() == r.fset.File(tree.FileStart).Name() {
			tree = changed
		}
		trees = append(trees, tree)
	}
	config := types.Config{Importer: r.importer}
	_, err := config.Check(r.module+"/"+r.path, r.fset, trees, info)
	return err
}

// compiles reports whether a mutant has types.
func (r *room) compiles(m *mutant) bool {
	text := strings.ReplaceAll(string(r.compose(m.file, []*mutant{m})), chosen+"(1)", "len(os_"+chosen+") == 0")
	text += "\nvar os_" + chosen + " string\n"
	tree, err := parser.ParseFile(r.fset, filepath.Base(m.file.name), text, parser.SkipObjectResolution)
	return err == nil && r.check(tree, nil) == nil
}

func (r *room) offset(at token.Pos) int { return r.fset.Position(at).Offset }

func (r *room) source(n ast.Node) string {
	for _, file := range r.files {
		if file.tree.FileStart <= n.Pos() && n.Pos() < file.tree.FileEnd {
			return string(file.text[r.offset(n.Pos()):r.offset(n.End())])
		}
	}
	return ""
}

// chosen is the function that says whether a mutant is the one to run; selected and seen are the variables of the
// environment that it reads.
const (
	chosen   = "tsimportMutant"
	selected = "GO_MUTANT"
	seen     = "GO_MUTANTS_SEEN"
)

// chooser is the file of each mutated room. With number -1 it notes which mutants the tests reach, in the file that seen names.
const chooser = `package %[1]s

import (
	zzfmt "fmt"
	zzos "os"
	zzstrconv "strconv"
	zzatomic "sync/atomic"
)

var (
	zzNumber, _ = zzstrconv.Atoi(zzos.Getenv("%[3]s"))
	zzReached   = zzos.Getenv("%[4]s")
	zzSeen      [%[5]d]zzatomic.Bool
)

func %[2]s(n int) bool { return zzNumber != 0 && (zzNumber == n || zzNumber < 0 && zzSee(n)) }

func zzSee(n int) bool {
	if zzSeen[n].CompareAndSwap(false, true) {
		if f, err := zzos.OpenFile(zzReached, zzos.O_APPEND|zzos.O_CREATE|zzos.O_WRONLY, 0o644); err == nil {
			zzfmt.Fprintln(f, n)
			f.Close()
		}
	}
	return false
}
`

// compose returns a file with mutants in it: at the start of its function, each has a closure with the mutated body.
func (r *room) compose(file *sourceFile, mutants []*mutant) []byte {
	inserts := map[int]string{}
	for i, m := range mutants {
		if m.file != file {
			continue
		}
		start, end := r.offset(m.body.Body.Lbrace), r.offset(m.body.Body.Rbrace)+1
		results, give, leave := "", "", "\nreturn"
		if list := m.body.Type.Results; list != nil {
			results, give, leave = string(file.text[r.offset(list.Pos()):r.offset(list.End())]), "return ", ""
		}
		body := string(file.text[start:m.start]) + m.text + string(file.text[m.end:end])
		inserts[start+1] += fmt.Sprintf("\nif %s(%d) {\n%sfunc() %s %s()%s\n}\n", chosen, i+1, give, results, body, leave)
	}
	var text []byte
	for i, b := range file.text {
		text = append(append(text, inserts[i]...), b)
	}
	return text
}

// build compiles the tests of packages with all mutants in them and returns the binaries.
func (r *room) build(folder string, mutants []*mutant, packages []*listed) ([]string, error) {
	overlay := map[string]string{}
	put := func(name string, text []byte) error {
		overlay[filepath.Join(r.dir, name)] = filepath.Join(folder, name)
		return os.WriteFile(filepath.Join(folder, name), text, 0o644)
	}
	choose := fmt.Appendf(nil, chooser, r.files[0].tree.Name, chosen, selected, seen, len(mutants)+1)
	if err := put("zz_mutants.go", choose); err != nil {
		return nil, err
	}
	for _, file := range r.files {
		if slices.ContainsFunc(mutants, func(m *mutant) bool { return m.file == file }) {
			if err := put(filepath.Base(file.name), r.compose(file, mutants)); err != nil {
				return nil, err
			}
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, "overlay.json"), text, 0o644); err != nil {
		return nil, err
	}
	var binaries []string
	for i, p := range packages {
		binary := filepath.Join(folder, fmt.Sprintf("%d.test", i))
		binaries = append(binaries, binary)
		overlay := filepath.Join(folder, "overlay.json")
		cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, p.ImportPath)
		cmd.Dir = r.root
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compile the tests of %s with the mutants of %s: %w\n%s", p.ImportPath, r.path, err, out)
		}
	}
	return binaries, nil
}
