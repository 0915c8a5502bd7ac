package keyexpr

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"example.com/tsimport/internal/table"
)

// native is the set of binary operators that are compiled here and do not need the expression language's machine.
var native = map[string]bool{"+": true, "-": true, "*": true, "%": true, "/": true, "==": true, "!=": true, "<": true,
	"<=": true, ">": true, ">=": true, "and": true, "&&": true, "or": true, "||": true, "??": true}

func number(t table.Type) bool { return t == table.Integer || t == table.Double }

func (c *compiler) unary(n *ast.UnaryNode) *node {
	x := c.node(n.Node)
	made := &node{typ: x.typ, src: n.String(), order: unordered(n.String(), 0), recipe: n.String(),
		python: n.Operator + x.python}
	switch n.Operator {
	case "-", "+":
		if x.typ != table.Any && !number(x.typ) {
			panic(refusef("%s: %s is %s; want a number", brief(made.src), brief(x.src), a(x.typ)))
		}
		op := n.Operator
		made.order = reorder(x, made.src, op == "-", false)
		made.value = func(e *Evaluator, row []table.Value) table.Value {
			v := x.value(e, row)
			if v.Type == table.Double && op == "-" {
				v.Double = -v.Double
				return v
			}
			return e.arithmetic(made, op[0], table.Value{Type: table.Integer}, v)
		}
		if x.constant != nil {
			return constant(made.value(&Evaluator{program: c.program}, nil))
		}
	default:
		if x.typ != table.Any && x.typ != table.Boolean {
			panic(refusef("%s: %s is %s; want a condition", brief(made.src), brief(x.src), a(x.typ)))
		}
		made.python = "not " + x.python
		made.typ = table.Boolean
		made.value = func(e *Evaluator, row []table.Value) table.Value {
			v, ok := e.condition(made, x, row)
			if !ok {
				return null
			}
			return table.Bool(!v)
		}
	}
	return made.finish()
}

func (c *compiler) binary(n *ast.BinaryNode) *node {
	l := c.node(n.Left)
	r := c.node(n.Right)
	src := n.String()
	made := &node{src: src, order: unordered(src, 0), recipe: "(" + l.recipe + " " + n.Operator + " " + r.recipe + ")",
		python: "(" + l.python + " " + n.Operator + " " + r.python + ")"}
	switch n.Operator {
	case "&&":
		made.python = "(" + l.python + " and " + r.python + ")"
	case "||":
		made.python = "(" + l.python + " or " + r.python + ")"
	case "%":
		made.python = remainderPython(l, r)
	}
	switch n.Operator {
	case "+", "-", "*", "%", "/":
		c.arithmetic(made, n.Operator[0], l, r)
	case "??":
		c.fallback(made, l, r)
	case "and", "&&", "or", "||":
		c.logical(made, n.Operator == "or" || n.Operator == "||", l, r)
	default:
		c.comparison(made, n.Operator, l, r)
	}
	return made.finish()
}

// arithmetic compiles + - * % and /. As in the expression language, / always gives a double.
func (c *compiler) arithmetic(n *node, op byte, l, r *node) {
	text := op == '+' && (l.typ == table.String || r.typ == table.String)
	known := l.typ != table.Any && r.typ != table.Any
	for _, x := range []*node{l, r} {
		if x.typ != table.Any && (text && x.typ != table.String || !text && !number(x.typ)) {
			if text && x.typ != table.Null {
				panic(refusef("%s: %s is %s; + joins texts: write text(%s), or pad(…, n) to keep the order of numbers",
					brief(n.src), brief(x.src), a(x.typ), brief(x.src)))
			}
			panic(refusef("%s: %s is %s; want numbers", brief(n.src), brief(x.src), a(x.typ)))
		}
	}
	switch {
	case text:
		n.typ = table.String
	case op == '/':
		n.typ = table.Double
	case known && l.typ == table.Integer && r.typ == table.Integer:
		n.typ = table.Integer
	case known:
		n.typ = table.Double
	default:
		n.typ = table.Any
	}
	c.arithmeticOrder(n, op, l, r)
	if text && known {
		n.text = func(e *Evaluator, row []table.Value) bool {
			return l.text(e, row) && e.fits(n, 0) && r.text(e, row) && e.fits(n, 0)
		}
		return
	}
	n.value = func(e *Evaluator, row []table.Value) table.Value {
		a := l.value(e, row)
		return e.arithmetic(n, op, a, r.value(e, row))
	}
}

// arithmeticOrder sets the order of a sum or difference with a constant, and of concatenated strings. The order of one
// of the strings counts only if all strings before it have a fixed length.
func (c *compiler) arithmeticOrder(n *node, op byte, l, r *node) {
	switch {
	case n.typ == table.String:
		n.pieces = slices.Concat(piecesOf(l), piecesOf(r))
		n.order, n.tells = joinedOrder(n.pieces), joinedTells(n.pieces)
		if l.width > 0 && r.width > 0 {
			n.width = l.width + r.width
		}
	case n.typ != table.Integer:
	case op == '-' && strings.HasPrefix(r.src, l.src+" % ") && len(r.order) == 1 && r.order[0].Values > 0:
		n.order = reorder(l, n.src, false, true) // x - x % k rounds x to a multiple of k
	case r.constant != nil && (op == '+' || op == '-'):
		n.order, n.tells = reorder(l, n.src, false, false), l.tells
	case l.constant != nil && (op == '+' || op == '-'):
		n.order, n.tells = reorder(r, n.src, op == '-', false), r.tells
	case op == '%' && r.constant != nil && r.constant.Int > 0 && r.constant.Int < 1<<20:
		n.order = unordered(n.src, 2*int(r.constant.Int)-1)
	}
}

// arithmetic evaluates an operator. A result that overflows 64 bits is a failure, never a wrong number.
func (e *Evaluator) arithmetic(n *node, op byte, l, r table.Value) table.Value {
	switch {
	case l.Type == table.Null || r.Type == table.Null || e.why != nil:
		return null
	case l.Type == table.String && r.Type == table.String && op == '+':
		if !e.fits(n, len(l.Bytes)+len(r.Bytes)) {
			return null
		}
		start := len(e.buf)
		e.buf = append(append(e.buf, l.Bytes...), r.Bytes...)
		return table.Value{Type: table.String, Bytes: e.buf[start:len(e.buf):len(e.buf)]}
	case !number(l.Type) || !number(r.Type):
		e.fail(n, table.CodeType, e.shown(r), "%s %c %s fails; convert one with int(…) or text(…)", a(l.Type), op, a(r.Type))
		return null
	case l.Type == table.Integer && r.Type == table.Integer && op != '/':
		v, ok := integerArithmetic(op, l.Int, r.Int)
		if !ok {
			e.fail(n, table.CodeRange, nil, "%d %c %d does not fit a 64-bit integer", l.Int, op, r.Int)
			return null
		}
		return table.Value{Type: table.Integer, Int: v}
	}
	v := doubleArithmetic(op, double(l), double(r))
	if math.IsNaN(v) || math.IsInf(v, 0) {
		e.fail(n, table.CodeRange, nil, "%v %c %v is not a finite number", double(l), op, double(r))
		return null
	}
	return table.Value{Type: table.Double, Double: v}
}

// fits reports whether e.buf can grow by more bytes within a row's limit. If not, it records a failure.
func (e *Evaluator) fits(n *node, more int) bool {
	if len(e.buf)+more > workBudget {
		return e.fail(n, CodeExpression, nil, "%v", errWork{})
	}
	return true
}

func double(v table.Value) float64 {
	if v.Type == table.Integer {
		return float64(v.Int)
	}
	return v.Double
}

func integerArithmetic(op byte, l, r int64) (v int64, ok bool) {
	switch op {
	case '+':
		v = l + r
		return v, (v > l) == (r > 0)
	case '-':
		v = l - r
		return v, (v < l) == (r > 0)
	case '*':
		if l == 0 || r == 0 {
			return 0, true
		}
		v = l * r
		return v, v/r == l && !(l == -1 && r == math.MinInt64) && !(r == -1 && l == math.MinInt64)
	}
	if r == 0 {
		return 0, false
	}
	return l % r, true
}

func doubleArithmetic(op byte, l, r float64) float64 {
	switch op {
	case '+':
		return l + r
	case '-':
		return l - r
	case '*':
		return l * r
	case '%':
		return math.Mod(l, r)
	}
	return l / r
}

func (c *compiler) fallback(n *node, l, r *node) {
	n.typ = common(n.src, l, r)
	n.python = "(" + r.python + " if " + l.python + " is None else " + l.python + ")"
	n.value = func(e *Evaluator, row []table.Value) table.Value {
		if v := l.value(e, row); v.Type != table.Null || e.why != nil {
			return v
		}
		return r.value(e, row)
	}
}

// common returns the type of a result that is either l or r.
func common(src string, l, r *node) table.Type {
	switch {
	case l.typ == r.typ || r.typ == table.Null:
		return l.typ
	case l.typ == table.Null:
		return r.typ
	case l.typ == table.Any || r.typ == table.Any:
		return table.Any
	}
	panic(refusef("%s: %s is %s, %s is %s; want one type", brief(src), brief(l.src), a(l.typ), brief(r.src), a(r.typ)))
}

func (c *compiler) conditional(n *ast.ConditionalNode) *node {
	var parts [3]*node
	for i, part := range []ast.Node{n.Cond, n.Exp1, n.Exp2} {
		parts[i] = c.node(part)
	}
	cond, yes, no := parts[0], parts[1], parts[2]
	src := n.String()
	if cond.typ != table.Boolean && cond.typ != table.Any {
		panic(refusef("%s: %s is %s; want a condition", brief(src), brief(cond.src), a(cond.typ)))
	}
	t := common(src, yes, no)
	made := &node{typ: t, src: src, order: unordered(src, 0), recipe: src, python: "(" + yes.python + " if " +
		cond.python + " else " + no.python + ")"}
	made.value = func(e *Evaluator, row []table.Value) table.Value {
		v, ok := e.condition(made, cond, row)
		switch {
		case !ok:
			return null
		case v:
			return yes.value(e, row)
		}
		return no.value(e, row)
	}
	return made.finish()
}

// condition evaluates the condition x of n; ok is false if it is null or fails.
func (e *Evaluator) condition(n, x *node, row []table.Value) (v, ok bool) {
	c := x.value(e, row)
	if c.Type != table.Null && c.Type != table.Boolean {
		e.fail(n, table.CodeType, e.shown(c), "%s is %s; want a condition", brief(x.src), a(c.Type))
	}
	return c.Int != 0, c.Type == table.Boolean && e.why == nil
}

// logical compiles "and" and "or". The right operand is evaluated only if the left one does not decide the result.
func (c *compiler) logical(n *node, or bool, l, r *node) {
	for _, x := range []*node{l, r} {
		if x.typ != table.Boolean && x.typ != table.Any {
			panic(refusef("%s: %s is %s; want a condition", brief(n.src), brief(x.src), a(x.typ)))
		}
	}
	n.typ = table.Boolean
	n.value = func(e *Evaluator, row []table.Value) table.Value {
		v, ok := e.condition(n, l, row)
		if ok && v != or {
			v, ok = e.condition(n, r, row)
		}
		if !ok {
			return null
		}
		return table.Bool(v)
	}
}

func (c *compiler) comparison(n *node, op string, l, r *node) {
	n.typ = table.Boolean
	if l.typ == table.Null || r.typ == table.Null {
		if op != "==" && op != "!=" {
			panic(refusef("%s: nil has no order; compare with == or !=", brief(n.src)))
		}
		n.value = func(e *Evaluator, row []table.Value) table.Value {
			same := l.value(e, row).Type == table.Null && r.value(e, row).Type == table.Null
			return table.Bool(same == (op == "=="))
		}
		return
	}
	if l.typ != table.Any && r.typ != table.Any && l.typ != r.typ && !(number(l.typ) && number(r.typ)) {
		panic(refusef("%s: %s is %s, %s is %s; want one type", brief(n.src), brief(l.src), a(l.typ), brief(r.src), a(r.typ)))
	}
	n.value = func(e *Evaluator, row []table.Value) table.Value {
		a := l.value(e, row)
		return e.compare(n, op, a, r.value(e, row))
	}
}

func (e *Evaluator) compare(n *node, op string, l, r table.Value) table.Value {
	order := 0
	switch {
	case l.Type == table.Null || r.Type == table.Null || e.why != nil:
		return null
	case l.Type == r.Type && (l.Type == table.String || l.Type == table.Binary):
		order = bytes.Compare(l.Bytes, r.Bytes)
	case l.Type == r.Type && l.Type != table.Double:
		order = cmp.Compare(l.Int, r.Int)
	case number(l.Type) && number(r.Type):
		order = cmp.Compare(double(l), double(r))
	default:
		e.fail(n, table.CodeType, e.shown(r), "cannot compare %s with %s; use int(…) or text(…)", a(l.Type), a(r.Type))
		return null
	}
	var v bool
	switch op {
	case "==":
		v = order == 0
	case "!=":
		v = order != 0
	case "<":
		v = order < 0
	case "<=":
		v = order <= 0
	case ">":
		v = order > 0
	default:
		v = order >= 0
	}
	return table.Bool(v)
}
