package keyexpr

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/vm/runtime"
)

// A short expression can take hours or all memory: reduce(1..40, #acc + #acc, s). The expression language's own budget
// counts elements of lists, not bytes of strings, and does not limit time. So each row has a budget of work. Making or
// reading a byte of a string costs one unit; an iteration costs more. No operation that would exceed the budget begins.

// workBudget is an expression's budget for one row, in units: 16 MiB of strings, or a million iterations of loops.
const workBudget = 16 << 20

// Costs in units.
const (
	turnCost    = 16 // cost of one iteration, not including its body
	elementCost = 16 // cost of one element of a list
)

// work holds the rest of a row's budget, in units.
type work struct{ left int64 }

type errWork struct{}

func (errWork) Error() string {
	return fmt.Sprintf("takes too much time or memory for a row (over %d MiB of text, or too many loops)", workBudget>>20)
}

func (w *work) spend(n int64) error {
	if n < 0 || n > w.left {
		return errWork{}
	}
	w.left -= n
	return nil
}

// measure charges the cost of reading v with all its elements.
func (w *work) measure(v any) error {
	switch v := v.(type) {
	case nil, bool, int, int64, float64:
		return nil
	case string:
		return w.spend(int64(len(v)))
	case []byte:
		return w.spend(int64(len(v)))
	case []any:
		for _, inner := range v {
			if err := w.spend(elementCost); err != nil {
				return err
			}
			if err := w.measure(inner); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		for key, inner := range v {
			if err := w.spend(elementCost + int64(len(key))); err != nil {
				return err
			}
			if err := w.measure(inner); err != nil {
				return err
			}
		}
		return nil
	}
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice && r.Kind() != reflect.Array {
		return nil
	}
	if err := w.spend(elementCost * int64(r.Len())); err != nil {
		return err
	}
	if k := r.Type().Elem().Kind(); k != reflect.String && k != reflect.Interface && k != reflect.Slice {
		return nil
	}
	for i := range r.Len() {
		if err := w.measure(r.Index(i).Interface()); err != nil {
			return err
		}
	}
	return nil
}

// Names in the rewritten tree. Users cannot call them because of the @.
const (
	workName = "work@"
	seenName = "seen@" // measures its second argument and returns it
	turnName = "turn@" // charges an iteration and returns its result, the second argument
	addName  = "add@"  // charges the length of joined strings
)

// guards maps names in the rewritten tree to functions. Their first argument is the row's work.
var guards = map[string]func(args ...any) (any, error){
	seenName: func(args ...any) (any, error) { return args[1], args[0].(*work).measure(args[1]) },
	turnName: func(args ...any) (any, error) { return args[1], args[0].(*work).spend(turnCost) },
	addName: func(args ...any) (sum any, err error) {
		a, text := args[1].(string)
		b, _ := args[2].(string)
		if text {
			if err := args[0].(*work).spend(int64(len(a) + len(b))); err != nil {
				return nil, err
			}
		}
		return runtime.Add(args[1], args[2]), nil
	},
}

// growing maps functions whose results can be much longer than their arguments to the cost of the result.
var growing = map[string]func(args []any) int64{
	"repeat": func(args []any) int64 { return product(length(args[0]), int64(runtime.ToInt(args[1]))) },
	"replace": func(args []any) int64 {
		if len(args) < 3 {
			return 0
		}
		text, _ := args[0].(string)
		old, _ := args[1].(string)
		return product(int64(strings.Count(text, old)), length(args[2]))
	},
	"join": func(args []any) int64 {
		if len(args) < 2 {
			return 0
		}
		return product(length(args[0]), length(args[1]))
	},
	"split":    func(args []any) int64 { return product(length(args[0]), elementCost) },
	"fromJSON": func(args []any) int64 { return product(length(args[0]), elementCost) },
	"toJSON":   func(args []any) int64 { return product(length(args[0]), 6) },
	"uniq":     func(args []any) int64 { return product(length(args[0]), length(args[0])) },
}

func length(v any) int64 {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.String, reflect.Slice, reflect.Array, reflect.Map:
		return int64(r.Len())
	}
	return 0
}

// product returns a times b, or a number above any budget if that might overflow.
func product(a, b int64) int64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	if a > workBudget || b > workBudget {
		return workBudget + 1
	}
	return a * b
}

// guard inserts the budget into a checked tree, without changing types. The tree must not be checked again.
func guard(root ast.Node, config *conf.Config) ast.Node {
	for name, f := range guards {
		config.Functions[name] = &builtin.Function{Name: name, Func: f}
	}
	g := &guarding{config: config}
	ast.Walk(&root, g)
	return root
}

type guarding struct{ config *conf.Config }

// Visit wraps a node. The nodes below it have already been wrapped.
func (g *guarding) Visit(at *ast.Node) {
	switch n := (*at).(type) {
	case *ast.PredicateNode:
		n.Node = g.call(turnName, n.Node, n.Node)
	case *ast.BinaryNode:
		if n.Operator == "+" {
			if k := n.Type().Kind(); k == reflect.String || k == reflect.Interface {
				*at = g.call(addName, n, n.Left, n.Right)
			}
			return
		}
		n.Left, n.Right = g.seen(n.Left), g.seen(n.Right)
	case *ast.BuiltinNode:
		g.builtin(at, n)
	}
}

// builtin makes the tree measure the arguments of a built-in function, except loop bodies.
func (g *guarding) builtin(at *ast.Node, n *ast.BuiltinNode) {
	cost := growing[n.Name]
	if id, ok := builtin.Index[n.Name]; ok && cost != nil {
		*at = g.call(g.grown(n.Name, builtin.Builtins[id], cost), n, n.Arguments...)
		return
	}
	for i, arg := range n.Arguments {
		if _, turns := arg.(*ast.PredicateNode); !turns && n.Name != "get" {
			n.Arguments[i] = g.seen(arg)
		}
	}
}

// grown makes a function that charges the cost of its result before it calls f, and returns its name.
func (g *guarding) grown(name string, f *builtin.Function, cost func([]any) int64) string {
	unique := name + "@"
	g.config.Functions[unique] = &builtin.Function{Name: unique, Func: func(args ...any) (any, error) {
		w, args := args[0].(*work), args[1:]
		for _, arg := range args {
			if err := w.measure(arg); err != nil {
				return nil, err
			}
		}
		if err := w.spend(cost(args)); err != nil {
			return nil, err
		}
		switch {
		case f.Safe != nil:
			made, _, err := f.Safe(args...)
			return made, err
		case f.Fast != nil:
			return f.Fast(args[0]), nil
		}
		return f.Func(args...)
	}}
	return unique
}

// seen returns a call that measures the value of n, or n itself if its value cannot be large.
func (g *guarding) seen(n ast.Node) ast.Node {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NilNode, *ast.StringNode, *ast.ConstantNode:
		return n
	}
	switch n.Type().Kind() {
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return n
	}
	return g.call(seenName, n, n)
}

// call returns a call that replaces a node and has the node's location and type.
func (g *guarding) call(name string, of ast.Node, args ...ast.Node) ast.Node {
	made := &ast.CallNode{Callee: &ast.IdentifierNode{Value: name},
		Arguments: append([]ast.Node{&ast.IdentifierNode{Value: workName}}, args...)}
	made.SetLocation(of.Location())
	made.SetNature(*of.Nature())
	return made
}
