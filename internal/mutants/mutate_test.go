package mutants

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// A mutant is one change of one function: text takes the place of the bytes from start to end of the file.
type mutant struct {
	file       *sourceFile
	body       *ast.FuncDecl
	start, end int
	text       string

	function string
	change   string // the line, with the change in it
	id       string // by function and change, so that it stays while lines move
}

// key names a mutant in testdata/known.txt.
func (m *mutant) key(room string) string { return room + " " + m.function + ": " + m.change }

func (m *mutant) place() string {
	return fmt.Sprintf("%s:%d", m.file.name, 1+bytes.Count(m.file.text[:m.start], []byte("\n")))
}

// sites returns the places of a room that can be changed, each with all changes of it.
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

// recovers reports whether a function calls recover by itself, which a closure in it could not do in its place.
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
			site = append(site, &mutant{file: file, body: body, start: r.offset(from), end: r.offset(to), text: text, function: name})
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
		m.id = fmt.Sprintf("%x", sha256.Sum256([]byte(m.key(r.path))))[:8]
	}
	return sites
}

// flipped are the operators that take each other's place; what the types do not allow is dropped later.
var flipped = map[token.Token][]token.Token{
	token.LSS: {token.LEQ}, token.LEQ: {token.LSS}, token.GTR: {token.GEQ}, token.GEQ: {token.GTR},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.QUO},
	token.ADD_ASSIGN: {token.SUB_ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN}, token.INC: {token.DEC}, token.DEC: {token.INC},
	token.CONTINUE: {token.BREAK}, token.BREAK: {token.CONTINUE},
}

// change lists what may take the place of a node.
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
		if !r.failed(n.Cond) { // the contrary of which every test sees
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

// failed reports whether a condition asks whether an error happened.
func (r *room) failed(cond ast.Expr) bool {
	is, ok := cond.(*ast.BinaryExpr)
	return ok && is.Op == token.NEQ && r.isError(is.X)
}

func (r *room) isError(e ast.Expr) bool {
	t := r.info.Types[e].Type
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

// describe shows a change in its line; of what has several, the first.
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
