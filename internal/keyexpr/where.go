package keyexpr

import (
	"fmt"

	"example.com/tsimport/internal/table"
)

// Where is a condition, or another expression, over rows with any columns of any types. It is immutable.
type Where struct {
	program *Program
	names   []string
}

// CompileWhere compiles a condition. A comparison with a missing column is null, so the row does not pass.
func CompileWhere(source string) (*Where, error) {
	w, err := CompileOfRows(source, "where")
	if err == nil && w.program.Type != table.Boolean && w.program.Type != table.Any {
		return nil, fmt.Errorf("expression %q: it is of type %s, not a condition", brief(source), w.program.Type)
	}
	return w, err
}

// CompileOfRows is like CompileWhere for an expression of any type. Reasons refer to the expression by name.
func CompileOfRows(source, name string) (*Where, error) {
	names, err := Names(source)
	if err != nil {
		return nil, err
	}
	env := Env{Name: name}
	for _, name := range names {
		env.Columns = append(env.Columns, Input{name, table.Any})
	}
	p, err := Compile(source, env)
	if err != nil {
		return nil, err
	}
	return &Where{p, names}, nil
}

func (w *Where) Source() string { return w.program.Source() }

// Columns returns the columns that the condition names.
func (w *Where) Columns() []string { return w.names }

// Test evaluates a condition. It is not safe for concurrent use; each worker has its own.
type Test struct {
	of        *Where
	evaluator *Evaluator
	values    []table.Value
}

func (w *Where) NewTest() *Test {
	return &Test{w, w.program.NewEvaluator(), make([]table.Value, len(w.names))}
}

// Passes reports whether a row passes, or why that is unknown. value returns a column's value, Null for a missing one.
func (t *Test) Passes(value func(name string) table.Value) (bool, *table.Reason) {
	v, why := t.Value(value)
	switch {
	case why != nil:
		return false, why
	case v.Type != table.Boolean && v.Type != table.Null:
		return false, &table.Reason{Code: CodeExpression, Message: fmt.Sprintf(
			"the condition %s gives a value of type %s, not true or false", brief(t.of.Source()), v.Type)}
	}
	return v.Type == table.Boolean && v.Int != 0, nil
}

// Value returns the expression's value for a row, which may be Null. It is valid until the next call.
func (t *Test) Value(value func(name string) table.Value) (table.Value, *table.Reason) {
	for i, name := range t.of.names {
		t.values[i] = value(name)
	}
	return t.evaluator.Eval(t.values)
}
