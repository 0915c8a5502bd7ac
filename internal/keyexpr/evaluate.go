package keyexpr

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/expr-lang/expr/vm"

	"example.com/tsimport/internal/table"
)

// Codes of values that an expression refuses. Package table defines others.
const (
	CodeBreaksOrder = "BreaksOrder"     // a part of a splice contains the separator or a character below it
	CodeEmptyKey    = "EmptyKey"        // the first part of a key is empty
	CodeUnknownName = "UnknownName"     // the file of a lookup lacks the value
	CodeExpression  = "ExpressionError" // a failure of the expression language
)

// node is a compiled part of an expression. One of value and text is set, and finish derives the other. A failure sets
// e.why. text returns false without setting it for null. value may leave bytes in e.buf; text appends only the text.
type node struct {
	typ      table.Type // Any if known only for a row; Null for the literal nil
	src      string
	constant *table.Value
	value    func(e *Evaluator, row []table.Value) table.Value
	text     func(e *Evaluator, row []table.Value) bool // appends to e.buf

	order  []Segment // order of the text for a String, of the number for other types
	pieces []piece   // pieces of a concatenated string; nil for other nodes
	width  int       // bytes of a string of fixed width; 0 if the width varies
	plain  bool      // the node is an unchanged column
	tells  []int     // indexes in Env.Columns of columns whose different values always give different results
	digits bool      // the text is the text of an integer
	signed bool      // the text sorts negative numbers correctly, but does not read as a number
	recipe string    // how a reader of the table computes it, in words
	python string    // the same as a Python expression
}

// Evaluator computes the values of one Program. It is not safe for concurrent use; each worker has its own.
type Evaluator struct {
	program *Program
	buf     []byte // bytes of the current value and its parts
	why     *table.Reason
	sum     [32]byte
	chooser *SeparatorChooser
	slots   []table.Value // arguments that the expression language has computed
	vms     []vm.VM
	envs    []map[string]any
}

// Eval computes the value for a row in the order of Env.Columns. The value's bytes are valid until the next call of
// Eval, and may point into the row. A Reason says why there is no value; null is not an error.
func (e *Evaluator) Eval(row []table.Value) (table.Value, *table.Reason) {
	e.buf, e.why = e.buf[:0], nil
	p := e.program
	v := p.root.value(e, row)
	if e.why != nil {
		return table.Value{}, e.why
	}
	if v.Type != p.Type && v.Type != table.Null && p.Type != table.Any {
		e.fail(p.root, table.CodeType, e.shown(v), "gives %s for this row, but the column's type is %s", a(v.Type),
			p.Type)
		return table.Value{}, e.why
	}
	return v, nil
}

// fail returns false and records why the row has no value, with the source of n, unless a reason is already recorded.
func (e *Evaluator) fail(n *node, code string, value []byte, format string, args ...any) bool {
	if e.why == nil {
		e.why = &table.Reason{Column: e.program.name, Code: code, Value: table.Show(value), Message: brief(n.src) + ": " +
			fmt.Sprintf(format, args...)}
	}
	return false
}

func (e *Evaluator) shown(v table.Value) []byte { return appendText(nil, v) }

// maxRecipe is the maximum length of a recipe or formula, in bytes.
const maxRecipe = 2000

// null is a missing or failed value.
var null table.Value

// appendText appends a value's text. Integers and doubles are in canonical form.
func appendText(dst []byte, v table.Value) []byte {
	switch v.Type {
	case table.Integer:
		return strconv.AppendInt(dst, v.Int, 10)
	case table.Double:
		return table.AppendDouble(dst, v.Double)
	case table.Boolean:
		return strconv.AppendBool(dst, v.Int != 0)
	}
	return append(dst, v.Bytes...)
}

// finish derives a node's text from its value, or its value from its text.
func (n *node) finish() *node {
	// A recipe contains its operands' recipes, some of them twice, so its length could double with every level.
	if len(n.recipe) > maxRecipe {
		n.recipe = "the expression " + brief(n.src)
	}
	if len(n.python) > maxRecipe {
		n.python = noPython
	}
	switch {
	case n.text == nil:
		n.text = func(e *Evaluator, row []table.Value) bool {
			start := len(e.buf)
			v := n.value(e, row)
			if v.Type == table.Binary && !utf8.Valid(v.Bytes) {
				return e.fail(n, table.CodeUTF8, nil, "a binary value that is not UTF-8 has no text")
			}
			e.buf = appendText(e.buf[:start], v)
			return v.Type != table.Null
		}
	case n.value == nil:
		n.value = func(e *Evaluator, row []table.Value) table.Value {
			start := len(e.buf)
			if !n.text(e, row) {
				e.buf = e.buf[:start]
				return null
			}
			return table.Value{Type: table.String, Bytes: e.buf[start:len(e.buf):len(e.buf)]}
		}
	}
	return n
}

// bytes returns the text of n, without a copy if possible. The caller may truncate e.buf after using it.
func (n *node) bytes(e *Evaluator, row []table.Value) ([]byte, bool) {
	if n.typ == table.String || n.typ == table.Binary {
		v := n.value(e, row)
		return v.Bytes, v.Type != table.Null
	}
	start := len(e.buf)
	ok := n.text(e, row)
	return e.buf[start:], ok
}

// brief shortens the source of an expression for a message.
func brief(source string) string {
	const most = 60
	if utf8.RuneCountInString(source) <= most {
		return source
	}
	return string([]rune(source)[:most]) + "…"
}

// a returns a type's name with its article.
func a(t table.Type) string {
	switch t {
	case table.Integer:
		return "an integer"
	case table.Null:
		return "nil"
	case table.Any:
		return "a value of any type"
	case table.Binary:
		return "binary"
	}
	return "a " + t.String()
}
