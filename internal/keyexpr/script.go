package keyexpr

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker"
	machine "github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"example.com/tsimport/internal/table"
)

// script is a part of an expression that the expression language's own machine runs. In its tree, columns are
// variables. Each call of one of our functions becomes a function of its own, with the literal arguments built in.
type script struct {
	compiler *compiler
	config   *conf.Config
	columns  map[int]string
	vars     types.Map
	skip     map[ast.Node]bool // names of functions, and keywords that are not columns
	collect  bool
}

func (c *compiler) script(n ast.Node) *node {
	defer func() {
		// The library catches its own panics when it runs programs, but not when it compiles.
		switch r := recover().(type) {
		case nil:
		case refusal:
			panic(r)
		default:
			panic(refusef("%s: the expression language cannot compile this (%v); write it differently", brief(n.String()), r))
		}
	}()
	src := n.String()
	s := &script{compiler: c, config: grammar(), columns: map[int]string{}, vars: types.Map{}, skip: map[ast.Node]bool{},
		collect: true}
	ast.Walk(&n, s)
	s.collect = false
	ast.Walk(&n, s)
	expr.Env(s.vars)(s.config)
	tree := &parser.Tree{Node: n, Source: file.NewSource(c.program.source)}
	gives, err := checker.Check(tree, s.config)
	if err != nil {
		panic(languageRefusal(err))
	}
	t := resultType(src, gives)
	tree.Node = guard(tree.Node, s.config)
	program, err := machine.Compile(tree, s.config)
	if err != nil {
		panic(languageRefusal(err))
	}
	made := &node{typ: t, src: src, order: unordered(src, 0), recipe: "the expression " + src, python: noPython}
	made.value = s.runner(made, program)
	return made.finish()
}

func resultType(src string, gives reflect.Type) table.Type {
	if gives == nil {
		return table.Any
	}
	switch gives.Kind() {
	case reflect.Interface:
		return table.Any
	case reflect.String:
		return table.String
	case reflect.Bool:
		return table.Boolean
	case reflect.Int, reflect.Int64, reflect.Int32:
		return table.Integer
	case reflect.Float64:
		return table.Double
	}
	panic(refusef("%s: gives %s; want a text, a number or a condition", brief(src), gives))
}

// Visit rewrites columns and calls. It visits children before their parents, so a first walk finds the nodes to skip.
func (s *script) Visit(at *ast.Node) {
	switch n := (*at).(type) {
	case *ast.MemberNode:
		if property, ok := n.Property.(*ast.StringNode); ok && property.Value == "Local" {
			panic(refusef("Local() %s", noLocal))
		}
	case *ast.BuiltinNode:
		if n.Name == "timezone" {
			if zone, ok := n.Arguments[0].(*ast.StringNode); !ok || zone.Value == "Local" {
				panic(refusef("timezone of Local, or of a name that is not written out, %s", noLocal))
			}
		}
	case *ast.CallNode:
		callee, ok := n.Callee.(*ast.IdentifierNode)
		switch {
		case !ok:
		case s.collect:
			s.skip[callee] = true
			k := &call{name: callee.Value, args: n.Arguments}
			if callee.Value == "pad" && k.keyword(2, "signed") {
				s.skip[n.Arguments[2]] = true
			}
			if callee.Value == "splice" && k.keyword(0, "auto") {
				panic(refusef("%s: splice(auto, …) cannot be an argument of the expression language's own functions; choose a "+
					"separator", brief(n.String())))
			}
		default:
			s.call(at, callee.Value, n)
		}
	case *ast.IdentifierNode:
		if !s.collect && !s.skip[n] && !s.compiler.bound[n.Value] {
			s.column(n.Value)
		}
	}
}

func (s *script) column(name string) {
	n := s.compiler.column(name)
	s.columns[n.tells[0]] = name // a column tells only itself
	s.vars[name] = machineTypes[n.typ].variable
}

// machineTypes maps our types to those of the expression language, for variables and for the results of functions.
var machineTypes = map[table.Type]struct {
	variable types.Type
	function reflect.Type
}{
	table.Integer: {types.Int, reflect.TypeFor[func(...any) int]()},
	table.Double:  {types.Float64, reflect.TypeFor[func(...any) float64]()},
	table.Boolean: {types.Bool, reflect.TypeFor[func(...any) bool]()},
	table.String:  {types.String, reflect.TypeFor[func(...any) string]()},
	table.Binary:  {types.Any, reflect.TypeFor[func(...any) any]()},
	table.Any:     {types.Any, reflect.TypeFor[func(...any) any]()},
	table.Null:    {types.Any, reflect.TypeFor[func(...any) any]()},
}

// call turns a call of one of our functions into a function of the machine, which passes arguments through slots.
func (s *script) call(at *ast.Node, name string, n *ast.CallNode) {
	c := s.compiler
	if name == "col" && len(n.Arguments) == 1 {
		if column, ok := n.Arguments[0].(*ast.StringNode); ok {
			ast.Patch(at, &ast.IdentifierNode{Value: column.Value})
			s.column(column.Value)
			return
		}
	}
	inner := &ast.CallNode{Callee: n.Callee, Arguments: make([]ast.Node, 0, len(n.Arguments))}
	args := n.Arguments
	if name == "salt" && len(args) == 1 {
		for _, column := range c.program.env.SaltColumns {
			s.column(column)
			args = append(args, &ast.IdentifierNode{Value: column})
		}
	}
	var passed []ast.Node
	first := c.program.slots
	for _, arg := range args {
		stays := s.skip[arg]
		switch arg.(type) {
		case *ast.IntegerNode, *ast.StringNode, *ast.FloatNode, *ast.BoolNode:
			stays = true
		}
		if stays {
			inner.Arguments = append(inner.Arguments, arg)
			continue
		}
		inner.Arguments = append(inner.Arguments, &ast.ConstantNode{Value: slotRef(c.program.slots)})
		c.program.slots++
		passed = append(passed, arg)
	}
	made := c.call(name, inner)
	made.src = n.String()
	unique := fmt.Sprintf("%s@%d", name, len(s.config.Functions))
	returns := []reflect.Type{machineTypes[made.typ].function}
	s.config.Functions[unique] = &builtin.Function{Name: unique, Func: c.program.boxed(made, first), Types: returns}
	ast.Patch(at, &ast.CallNode{Callee: &ast.IdentifierNode{Value: unique}, Arguments: passed})
}

// boxed wraps a call as a function of the machine. Each call makes an evaluator, because the machine cannot pass one.
func (p *Program) boxed(n *node, first int) func(...any) (any, error) {
	return func(args ...any) (any, error) {
		e := p.NewEvaluator()
		for i, arg := range args {
			v, ok := unbox(arg)
			if !ok {
				return nil, &table.Reason{Column: p.name, Code: table.CodeType,
					Message: fmt.Sprintf("%s: argument is %T; want a text, a number or a condition", brief(n.src), arg)}
			}
			e.slots[first+i] = v
		}
		v := n.value(e, nil)
		if e.why != nil {
			return nil, e.why
		}
		return box(v), nil
	}
}

func box(v table.Value) any {
	switch v.Type {
	case table.Integer:
		return int(v.Int)
	case table.Double:
		return v.Double
	case table.Boolean:
		return v.Int != 0
	case table.String:
		return string(v.Bytes)
	case table.Binary:
		return append([]byte{}, v.Bytes...)
	}
	return nil
}

func unbox(v any) (table.Value, bool) {
	switch v := v.(type) {
	case nil:
		return null, true
	case int:
		return table.Value{Type: table.Integer, Int: int64(v)}, true
	case int64:
		return table.Value{Type: table.Integer, Int: v}, true
	case int32:
		return table.Value{Type: table.Integer, Int: int64(v)}, true
	case float64:
		return table.Value{Type: table.Double, Double: v}, true
	case bool:
		return table.Bool(v), true
	case string:
		return table.Value{Type: table.String, Bytes: []byte(v)}, true
	case []byte:
		return table.Value{Type: table.Binary, Bytes: v}, true
	}
	return null, false
}

// runner returns a function that runs the program on a row. If an operator cannot handle a null, the result is null.
func (s *script) runner(n *node, program *vm.Program) func(*Evaluator, []table.Value) table.Value {
	k := s.compiler.program.scripts
	s.compiler.program.scripts++
	columns := s.columns
	return func(e *Evaluator, row []table.Value) table.Value {
		if e.envs[k] == nil {
			e.envs[k] = make(map[string]any, len(columns)+1)
			e.envs[k][workName] = new(work)
		}
		e.envs[k][workName].(*work).left = workBudget
		hasNull := false
		for i, name := range columns {
			e.envs[k][name] = box(row[i])
			hasNull = hasNull || row[i].Type == table.Null
		}
		result, err := e.vms[k].Run(program, e.envs[k])
		if err != nil {
			e.scriptFailed(n, err, hasNull)
			return null
		}
		v, ok := unbox(result)
		switch {
		case !ok:
			e.fail(n, table.CodeType, nil, "gives %T; want a text, a number or a condition", result)
		case v.Type == table.String && !utf8.Valid(v.Bytes):
			e.fail(n, table.CodeUTF8, v.Bytes, "cuts a character in two; substr(x, from, n) counts characters")
		default:
			return v
		}
		return null
	}
}

// ofNull reports whether an error of the expression language was caused by a null.
func ofNull(err error) bool {
	return strings.Contains(err.Error(), "nil") || strings.Contains(err.Error(), "cannot slice") // cannot slice nil
}

func (e *Evaluator) scriptFailed(n *node, err error, hasNull bool) {
	switch why, ok := errors.AsType[*table.Reason](err); {
	case ok:
		e.why = cmp.Or(e.why, why)
	case !hasNull || !ofNull(err):
		e.fail(n, CodeExpression, nil, "%s", languageMessage(err))
	}
}
