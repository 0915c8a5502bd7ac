package keyexpr

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/expr-lang/expr/ast"

	"example.com/tsimport/internal/table"
)

// slotRef stands in a syntax tree for an argument that the expression language's machine computes into a slot.
type slotRef int

// node compiles a syntax node. Columns, literals, our functions and simple operators run natively, others as scripts.
func (c *compiler) node(n ast.Node) *node {
	switch n := n.(type) {
	case *ast.NilNode:
		return (&node{src: "nil", python: "None",
			value: func(*Evaluator, []table.Value) table.Value { return null }}).finish()
	case *ast.IdentifierNode:
		return c.column(n.Value)
	case *ast.IntegerNode:
		return constant(table.Value{Type: table.Integer, Int: int64(n.Value)})
	case *ast.FloatNode:
		return constant(table.Value{Type: table.Double, Double: n.Value})
	case *ast.BoolNode:
		return constant(table.Bool(n.Value))
	case *ast.StringNode:
		return constant(table.Value{Type: table.String, Bytes: []byte(n.Value)})
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		if native[n.Operator] {
			return c.binary(n)
		}
	case *ast.ConditionalNode:
		return c.conditional(n)
	case *ast.ConstantNode:
		if k, ok := n.Value.(slotRef); ok {
			return slot(k)
		}
	case *ast.CallNode:
		if callee, ok := n.Callee.(*ast.IdentifierNode); ok {
			return c.call(callee.Value, n)
		}
	}
	return c.script(n)
}

func slot(k slotRef) *node {
	return (&node{typ: table.Any, src: "…", recipe: "…", python: noPython, order: unordered("…", 0),
		value: func(e *Evaluator, _ []table.Value) table.Value { return e.slots[k] }}).finish()
}

func constant(v table.Value) *node {
	text := string(appendText(nil, v))
	if v.Type == table.String {
		text = strconv.Quote(text)
	}
	n := &node{typ: v.Type, src: text, recipe: text, python: text, constant: &v,
		order: []Segment{{Text: text, Order: Constant, Values: 1}},
		value: func(*Evaluator, []table.Value) table.Value { return v }}
	if v.Type == table.Boolean && v.Int != 0 {
		n.python = "True"
	} else if v.Type == table.Boolean {
		n.python = "False"
	}
	if v.Type == table.String {
		n.width = len(v.Bytes)
	}
	return n.finish()
}

func (c *compiler) call(name string, n *ast.CallNode) *node {
	f, ok := functions[name]
	if !ok {
		panic(unknownFunction(name))
	}
	if len(n.Arguments) < f.least || f.most >= 0 && len(n.Arguments) > f.most {
		panic(refusef("%s: %d arguments; want %s", brief(n.String()), len(n.Arguments), f.usage))
	}
	made := f.build(c, &call{name: name, src: n.String(), usage: f.usage, args: n.Arguments})
	made.src = n.String()
	return made.finish()
}

// call is a call of one of our functions that is being compiled.
type call struct {
	name, src, usage string
	args             []ast.Node
}

func (k *call) refusef(format string, args ...any) refusal {
	return refusef("%s: %s", brief(k.src), fmt.Sprintf(format, args...))
}

// number returns an argument that must be a literal integer from 1 to most.
func (k *call) number(i int, most int64) int64 {
	n, ok := k.args[i].(*ast.IntegerNode)
	if !ok {
		panic(k.refusef("argument %d must be a number from 1 to %d, written out; want %s", i+1, most, k.usage))
	}
	if v := int64(n.Value); v < 1 || v > most {
		panic(k.refusef("%d is not from 1 to %d; want %s", v, most, k.usage))
	}
	return int64(n.Value)
}

// literal returns an argument that must be a literal string.
func (k *call) literal(i int) string {
	n, ok := k.args[i].(*ast.StringNode)
	if !ok {
		panic(k.refusef("argument %d must be a quoted text; want %s", i+1, k.usage))
	}
	return n.Value
}

// keyword reports whether an argument is the given word without quotes.
func (k *call) keyword(i int, word string) bool {
	if i >= len(k.args) {
		return false
	}
	n, ok := k.args[i].(*ast.IdentifierNode)
	return ok && n.Value == word
}

// operand compiles an argument, which must be of an allowed type or of a type known only at run time.
func (c *compiler) operand(k *call, i int, allowed ...table.Type) *node {
	n := c.node(k.args[i])
	if n.typ == table.Any || len(allowed) == 0 && n.typ != table.Null || slices.Contains(allowed, n.typ) {
		return n
	}
	panic(k.refusef("%s is %s; want %s", brief(n.src), a(n.typ), k.usage))
}
