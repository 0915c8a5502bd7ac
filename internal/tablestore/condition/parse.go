package condition

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
)

// maxComparisons limits the parts of a condition. The service accepts 32 in a filter, counting every "and" and "or".
const maxComparisons = 32

// node is a comparison, or several joined nodes.
type node struct {
	join  tablestore.LogicalOperator // operator that joins parts
	parts []*node                    // at least two; nil for a comparison

	column string // column of the stored row
	op     tablestore.ComparatorType
	new    string      // column of the new row; empty to compare with value
	value  table.Value // literal
}

// When is a condition on writing a row. It is immutable.
type When struct {
	root        *node
	text        string
	absentFails bool
}

// Matching begins the text of a When that has the syntax and meaning of ParseFilter.
const Matching = "filter:"

// ParseWhen parses comparisons such as stored.updated_at < new.updated_at. A comparison with a missing column holds,
// and a row passes if there is no stored row. After Matching, the text is parsed like that of ParseFilter.
func ParseWhen(text string) (*When, error) {
	of, matching := strings.CutPrefix(text, Matching)
	root, err := parse(of, !matching)
	if err != nil {
		return nil, err
	}
	return &When{root, text, matching}, nil
}

// Matches reports whether comparisons with missing columns fail, as in a filter.
func (w *When) Matches() bool { return w.absentFails }

// String returns the condition as the user wrote it.
func (w *When) String() string { return w.text }

// Stored returns the columns of the stored row that the condition names.
func (w *When) Stored() []string { return columnsOf(w.root, func(n *node) string { return n.column }) }

// New returns the columns of the new row that the condition names.
func (w *When) New() []string { return columnsOf(w.root, func(n *node) string { return n.new }) }

// Rising reports whether the condition lets columns only rise or only fall: every comparison, joined with and, compares
// a column with itself by < or <=, or by > or >=. Then repeating a row after later rows of its key changes nothing.
func (w *When) Rising() bool { return w.root.rising() }

func (n *node) rising() bool {
	if n.parts != nil {
		return n.join == tablestore.LO_AND && !slices.ContainsFunc(n.parts, func(p *node) bool { return !p.rising() })
	}
	return n.new == n.column && n.op != tablestore.CT_EQUAL && n.op != tablestore.CT_NOT_EQUAL
}

// Filter returns the condition for a row in the service's form. value returns the row's value in a column of New.
func (w *When) Filter(value func(column string) table.Value) tablestore.ColumnFilter {
	return w.root.filter(value, w.absentFails)
}

// ParseFilter parses comparisons such as age >= 18 and city == "Hangzhou". It also returns the columns that they name.
// A comparison with a column that a row lacks fails.
func ParseFilter(text string) (f tablestore.ColumnFilter, columns []string, err error) {
	root, err := parse(text, false)
	if err != nil {
		return nil, nil, err
	}
	return root.filter(nil, true), columnsOf(root, func(n *node) string { return n.column }), nil
}

func columnsOf(n *node, of func(*node) string) (names []string) {
	if n.parts == nil {
		if name := of(n); name != "" {
			names = append(names, name)
		}
	}
	for _, p := range n.parts {
		for _, name := range columnsOf(p, of) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// filter returns the node in the service's form. absentFails says whether comparisons with missing columns fail.
func (n *node) filter(value func(string) table.Value, absentFails bool) tablestore.ColumnFilter {
	if n.parts != nil {
		joined := tablestore.NewCompositeColumnCondition(n.join)
		for _, p := range n.parts {
			joined.AddFilter(p.filter(value, absentFails))
		}
		return joined
	}
	v := n.value
	if n.new != "" {
		v = value(n.new)
	}
	c := tablestore.NewSingleColumnCondition(n.column, n.op, client.SDKValue(v))
	c.FilterIfMissing, c.LatestVersionOnly = absentFails, true
	return c
}

type reader struct {
	when  bool
	count int
}

func parse(text string, when bool) (*node, error) {
	tree, err := parser.Parse(text)
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return nil, errors.New(line)
	}
	r := &reader{when: when}
	root, err := r.node(tree.Node, false)
	if err == nil && r.count > maxComparisons {
		err = fmt.Errorf("it has %d parts, but the service's limit is %d", r.count, maxComparisons)
	}
	return root, err
}

var (
	comparators = map[string]tablestore.ComparatorType{
		"==": tablestore.CT_EQUAL, "!=": tablestore.CT_NOT_EQUAL, ">": tablestore.CT_GREATER_THAN,
		">=": tablestore.CT_GREATER_EQUAL, "<": tablestore.CT_LESS_THAN, "<=": tablestore.CT_LESS_EQUAL,
	}
	opposite = map[string]string{"==": "!=", "!=": "==", ">": "<=", ">=": "<", "<": ">=", "<=": ">"}
	mirrored = map[string]string{"==": "==", "!=": "!=", ">": "<", ">=": "<=", "<": ">", "<=": ">="}
)

// node converts an expression or its negation. It negates comparisons: NOT with a missing column is undocumented.
func (r *reader) node(n ast.Node, not bool) (*node, error) {
	r.count++
	switch n := n.(type) {
	case *ast.UnaryNode:
		if n.Operator == "not" || n.Operator == "!" {
			r.count--
			return r.node(n.Node, !not)
		}
	case *ast.BinaryNode:
		switch n.Operator {
		case "and", "&&":
			return r.joined(n, not, tablestore.LO_AND, tablestore.LO_OR)
		case "or", "||":
			return r.joined(n, not, tablestore.LO_OR, tablestore.LO_AND)
		}
		if _, ok := comparators[n.Operator]; ok {
			return r.comparison(n, not)
		}
		return nil, fmt.Errorf("the service cannot check %q: it supports == != < <= > >= and, or, not", n.Operator)
	}
	return nil, fmt.Errorf("the service cannot check %s: want comparisons, joined with and, or, not", n)
}

func (r *reader) joined(n *ast.BinaryNode, not bool, by, contrary tablestore.LogicalOperator) (*node, error) {
	left, err := r.node(n.Left, not)
	if err != nil {
		return nil, err
	}
	right, err := r.node(n.Right, not)
	if err != nil {
		return nil, err
	}
	if not {
		by = contrary
	}
	return &node{join: by, parts: []*node{left, right}}, nil
}

type operand struct {
	stored, new string
	value       table.Value
}

func (r *reader) comparison(n *ast.BinaryNode, not bool) (*node, error) {
	left, err := r.operand(n.Left)
	if err != nil {
		return nil, err
	}
	right, err := r.operand(n.Right)
	if err != nil {
		return nil, err
	}
	op := n.Operator
	if left.stored == "" {
		left, right, op = right, left, mirrored[op]
	}
	if not {
		op = opposite[op]
	}
	if left.stored == "" || right.stored != "" {
		return nil, fmt.Errorf("the service cannot check %s: it compares one column of the row in the table with a value", n)
	}
	return &node{column: left.stored, op: comparators[op], new: right.new, value: right.value}, nil
}

func (r *reader) operand(n ast.Node) (o operand, err error) {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return operand{value: table.Value{Type: table.Integer, Int: int64(n.Value)}}, nil
	case *ast.FloatNode:
		return operand{value: table.Value{Type: table.Double, Double: n.Value}}, nil
	case *ast.StringNode:
		return operand{value: table.Value{Type: table.String, Bytes: []byte(n.Value)}}, nil
	case *ast.BoolNode:
		return operand{value: table.Bool(n.Value)}, nil
	case *ast.UnaryNode:
		of, err := r.operand(n.Node)
		if err == nil && n.Operator == "-" && (of.value.Type == table.Integer || of.value.Type == table.Double) {
			of.value.Int, of.value.Double = -of.value.Int, -of.value.Double
			return of, nil
		}
	case *ast.IdentifierNode:
		if !r.when {
			return operand{stored: n.Value}, nil
		}
		return o, fmt.Errorf("%s: say whose column it is, stored.%s or new.%s", n.Value, n.Value, n.Value)
	case *ast.CallNode:
		name, ok := n.Callee.(*ast.IdentifierNode)
		if ok && name.Value == "col" && len(n.Arguments) == 1 && !r.when {
			if column, ok := n.Arguments[0].(*ast.StringNode); ok {
				return operand{stored: column.Value}, nil
			}
		}
	case *ast.MemberNode:
		of, ok1 := n.Node.(*ast.IdentifierNode)
		column, ok2 := n.Property.(*ast.StringNode)
		switch {
		case !r.when || !ok1 || !ok2:
		case of.Value == "stored":
			return operand{stored: column.Value}, nil
		case of.Value == "new":
			return operand{new: column.Value}, nil
		}
	}
	return o, fmt.Errorf("the service cannot check %s: it can only compare a column with a value", n)
}
