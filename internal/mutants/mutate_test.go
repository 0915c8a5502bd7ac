package mutants

import (
	"bytes"
	"cmp"
	"crypto/sha256"
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
	"testing"

	"example.com/tsimport/internal/conformance"
)

// A mutant is one change in one function: text replaces the bytes of the file from start to end.
type mutant struct {
	room       *room
	file       *sourceFile
	body       *ast.FuncDecl
	start, end int
	text       string

	function string
	change   string // the changed line
	id       string // derived from the function and the change, so it does not depend on line numbers
}

// key returns the name of a mutant in testdata/known.txt.
func (m *mutant) key() string { return m.room.path + " " + m.function + ": " + m.change }

func (m *mutant) place() string {
	return fmt.Sprintf("%s:%d", m.file.name, 1+bytes.Count(m.file.text[:m.start], []byte("\n")))
}

// sites returns the places in a package that can be changed, each with its possible changes.
func (r *room) sites() [][]*mutant {
	var sites [][]*mutant
	for _, file := range r.files {
		for _, decl := range file.tree.Decls {
			if body, ok := decl.(*ast.FuncDecl); ok && body.Body != nil && !recovers(body.Body) {
				sites = append(sites, r.sitesOf(file, body)...)
			}
		}
	}
	return sites
}

// recovers reports whether a function calls recover, which would have no effect if the body became a closure.
func recovers(body *ast.BlockStmt) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			name, ok := call.Fun.(*ast.Ident)
			found = found || ok && name.Name == "recover"
		}
		_, inner := n.(*ast.FuncLit)
		return !inner
	})
	return found
}

func (r *room) sitesOf(file *sourceFile, body *ast.FuncDecl) [][]*mutant {
	name := body.Name.Name
	if body.Recv != nil {
		name = "(" + types.ExprString(body.Recv.List[0].Type) + ")." + name
	}
	var sites [][]*mutant
	last := body.Body.List
	ast.Inspect(body.Body, func(n ast.Node) bool {
		var site []*mutant
		add := func(from, to token.Pos, text string) {
			site = append(site, &mutant{room: r, file: file, body: body, start: r.offset(from), end: r.offset(to), text: text,
				function: name})
		}
		isLast := len(last) > 0 && n == ast.Node(last[len(last)-1])
		r.change(n, isLast, add)
		if len(site) > 0 {
			sites = append(sites, site)
		}
		return true
	})
	slices.SortStableFunc(sites, func(a, b []*mutant) int { return cmp.Compare(a[0].start, b[0].start) })
	seen := map[string]int{}
	for _, m := range slices.Concat(sites...) {
		m.change = describe(file.text, m)
		seen[m.change]++
		if n := seen[m.change]; n > 1 {
			m.change += fmt.Sprintf(" #%d", n)
		}
		m.id = fmt.Sprintf("%x", sha256.Sum256([]byte(m.key())))[:8]
	}
	return sites
}

// flipped maps operators to their replacements. Mutants that do not type-check are dropped later.
var flipped = map[token.Token][]token.Token{
	token.LSS: {token.LEQ}, token.LEQ: {token.LSS}, token.GTR: {token.GEQ}, token.GEQ: {token.GTR},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.QUO},
	token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN}, token.INC: {token.DEC},
	token.DEC:      {token.INC},
	token.CONTINUE: {token.BREAK}, token.BREAK: {token.CONTINUE},
}

// change calls add with each replacement of a node.
func (r *room) change(n ast.Node, isLast bool, add func(from, to token.Pos, text string)) {
	flip := func(at token.Pos, op token.Token) {
		for _, other := range flipped[op] {
			add(at, at+token.Pos(len(op.String())), other.String())
		}
	}
	switch n := n.(type) {
	case *ast.IfStmt:
		cond := r.source(n.Cond)
		add(n.Cond.Pos(), n.Cond.End(), "false && ("+cond+")")
		if !r.failed(n.Cond) { // any test would notice a negated error check
			add(n.Cond.Pos(), n.Cond.End(), "!("+cond+")")
			add(n.Cond.Pos(), n.Cond.End(), "true || ("+cond+")")
		}
	case *ast.ForStmt:
		if n.Cond != nil {
			add(n.Cond.Pos(), n.Cond.End(), "false && ("+r.source(n.Cond)+")")
		}
	case *ast.BinaryExpr:
		flip(n.OpPos, n.Op)
	case *ast.BasicLit:
		if n.Kind == token.INT {
			add(n.Pos(), n.End(), "("+n.Value+" + 1)")
		}
	case *ast.Ident:
		switch r.info.Uses[n] {
		case types.Universe.Lookup("true"):
			add(n.Pos(), n.End(), "false")
		case types.Universe.Lookup("false"):
			add(n.Pos(), n.End(), "true")
		}
	case *ast.IncDecStmt:
		flip(n.TokPos, n.Tok)
		add(n.Pos(), n.End(), "{}")
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			flip(n.TokPos, n.Tok)
			add(n.Pos(), n.End(), "{}")
		}
	case *ast.ExprStmt, *ast.DeferStmt, *ast.SendStmt:
		add(n.Pos(), n.End(), "{}")
	case *ast.BranchStmt:
		flip(n.Pos(), n.Tok)
	case *ast.CaseClause:
		add(n.Pos(), n.End(), "")
	case *ast.CommClause:
		add(n.Pos(), n.End(), "")
	case *ast.ReturnStmt:
		if !isLast {
			add(n.Pos(), n.End(), "{}")
		}
		if len(n.Results) > 0 {
			if result := n.Results[len(n.Results)-1]; r.isError(result) {
				add(result.Pos(), result.End(), "nil")
			}
		}
	}
}

// failed reports whether a condition tests for an error.
func (r *room) failed(cond ast.Expr) bool {
	is, ok := cond.(*ast.BinaryExpr)
	return ok && is.Op == token.NEQ && r.isError(is.X)
}

func (r *room) isError(e ast.Expr) bool {
	t := r.info.Types[e].Type
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

// describe returns the changed line, or the first one if there are several.
func describe(text []byte, m *mutant) string {
	before := bytes.LastIndexByte(text[:m.start], '\n') + 1
	after := m.end + max(0, bytes.IndexByte(text[m.end:], '\n'))
	old, more, long := strings.Cut(string(text[m.start:m.end]), "\n")
	rest, changed := string(text[m.end:after]), m.text
	if long {
		changed = strings.ReplaceAll(changed, old+"\n"+more, "…")
		old, rest = old+" …", ""
	} else if len(old) > 12 {
		changed = strings.ReplaceAll(changed, old, "…")
	}
	line := string(text[before:m.start]) + "‹" + old + " → " + cmp.Or(changed, "{}") + "›" + rest
	return strings.Join(strings.Fields(line), " ")
}

// A room is a package of the module with its types.
type room struct {
	root, dir string // folders of the module and the room
	path      string // import path relative to the module's
	module    string
	fset      *token.FileSet
	files     []*sourceFile
	info      types.Info
	importer  types.Importer
}

type sourceFile struct {
	name string // path relative to the module
	text []byte
	tree *ast.File
}

// listed is a package in the output of go list.
type listed struct {
	ImportPath, Dir, Export                                                string
	GoFiles, TestGoFiles, XTestGoFiles, Imports, TestImports, XTestImports []string
	DepOnly                                                                bool // a dependency, not requested itself
	Module                                                                 *struct{ Path, Dir string }
}

func (p *listed) hasTests() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

// list runs go list in the module's root folder.
func list(t testing.TB, root string, args ...string) []*listed {
	t.Helper()
	const fields = "-json=ImportPath,Dir,Export,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,DepOnly,Module"
	cmd := exec.Command("go", append([]string{"list", fields}, args...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	conformance.MustTrue(t, err == nil, "go list %v: %v", args, err)
	var packages []*listed
	for in := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := &listed{}
		if err := in.Decode(p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("read the packages of go list: %v", err)
		}
		packages = append(packages, p)
	}
}

// load reads and type-checks packages, whose names are patterns for go list.
func load(t testing.TB, root string, names ...string) []*room {
	t.Helper()
	packages := list(t, root, append([]string{"-export", "-deps"}, names...)...)
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
		r := &room{root: p.Module.Dir, dir: p.Dir, path: strings.TrimPrefix(p.ImportPath, p.Module.Path+"/"),
			module: p.Module.Path, fset: fset, importer: imports}
		r.info = types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
		for _, name := range p.GoFiles {
			text := conformance.Try(os.ReadFile(filepath.Join(p.Dir, name))).Must(t)
			tree := conformance.Try(parser.ParseFile(fset, name, text, parser.SkipObjectResolution)).Must(t)
			r.files = append(r.files, &sourceFile{filepath.ToSlash(filepath.Join(r.path, name)), text, tree})
		}
		conformance.Must(t, r.check(nil, &r.info))
		rooms = append(rooms, r)
	}
	slices.SortFunc(rooms, func(a, b *room) int { return strings.Compare(a.path, b.path) })
	return rooms
}

// check type-checks the package with changed in place of the file of the same name.
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

// compiles reports whether a mutant type-checks.
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

// chosen names the function that reports whether a mutant is active; selected and seen are its environment variables.
const (
	chosen   = "tsimportMutant"
	selected = "GO_MUTANT"
	seen     = "GO_MUTANTS_SEEN"
)

// chooser is a file added to each mutated package. Number -1 records the reached mutants in the file named by seen.
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

// compose returns a file with its mutants. Each changed function begins with a closure for each of its mutated bodies.
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

// build compiles the test binaries of suites, each with all mutants.
func build(t testing.TB, folder string, mutants []*mutant, suites []*suite, workers int) {
	overlay, done, files := map[string]string{}, map[*sourceFile]bool{}, 0
	put := func(m *mutant, name string, text []byte) {
		files++
		into := filepath.Join(folder, fmt.Sprintf("%d.go", files))
		overlay[filepath.Join(m.room.dir, name)] = into
		conformance.Must(t, os.WriteFile(into, text, 0o644))
	}
	for _, m := range mutants {
		if done[m.file] {
			continue
		}
		done[m.file] = true
		put(m, "zz_mutants.go", fmt.Appendf(nil, chooser, m.file.tree.Name, chosen, selected, seen, len(mutants)+1))
		put(m, filepath.Base(m.file.name), m.room.compose(m.file, mutants))
	}
	overlayFile := filepath.Join(folder, "overlay.json")
	text := conformance.Try(json.Marshal(map[string]any{"Replace": overlay})).Must(t)
	conformance.Must(t, os.WriteFile(overlayFile, text, 0o644))
	conformance.Must(t, inParallel(workers, suites, func(s *suite) error {
		s.binary = filepath.Join(folder, s.dirName()+"test")
		cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlayFile, "-o", s.binary, s.ImportPath)
		cmd.Dir = mutants[0].room.root
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("compile the tests of %s with mutants: %w\n%s", s.name, err, out)
		}
		return nil
	}))
}
