package keyexpr

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/table"
)

// MaxSource is the maximum length of an expression, in bytes.
const MaxSource = 16 << 10

// Input is a column of the input.
type Input struct {
	Name string
	Type table.Type // Any if it varies by row
}

// Env is the environment that an expression is checked against.
type Env struct {
	Name        string   // the table's column, for messages
	Columns     []Input  // in the order of the rows that will be evaluated
	SaltColumns []string // source columns of the primary key, for salt(n)
	Separator   rune     // separator of splice(auto, …); 0 until it is chosen (see Program.Observer)
	// ReadFile reads the files of lookup; nil means os.ReadFile.
	ReadFile func(name string) ([]byte, error)

	probe bool // only the names of columns are wanted
	open  bool // any column may be named; the compiler adds it to Columns
}

// Sources returns the columns that an expression names, as indexes into columns, in the order in which they are named.
// It needs no types. It does not include columns that salt(n) uses without naming them.
func Sources(source string, columns []string) ([]int, error) {
	env := Env{probe: true}
	for _, name := range columns {
		env.Columns = append(env.Columns, Input{name, table.Any})
	}
	p, err := Compile(source, env)
	if err != nil {
		return nil, err
	}
	return p.mentions, nil
}

// Names returns the columns that an expression names, in the order in which they are named. Any name is accepted.
func Names(source string) (names []string, err error) {
	p, err := Compile(source, Env{probe: true, open: true})
	if err != nil {
		return nil, err
	}
	for _, i := range p.mentions {
		names = append(names, p.env.Columns[i].Name)
	}
	return names, nil
}

// LookupFile is a file that an expression's result depends on.
type LookupFile struct {
	Name   string
	SHA256 string // hexadecimal
	Shared int    // number of names that share their code with another name
}

// Program is a checked expression. It is immutable.
type Program struct {
	Type  table.Type   // type of the values; Any if it varies by row
	Files []LookupFile // files that lookup has read
	Auto  bool         // the expression contains splice(auto, …)

	name     string
	source   string
	columns  []int // indexes in Env.Columns of the columns used, ascending
	mentions []int // the same columns, in order of mention
	env      Env
	root     *node
	slots    int
	scripts  int
}

// Source returns the expression's text.
func (p *Program) Source() string { return p.source }

// NewEvaluator makes an Evaluator for one worker.
func (p *Program) NewEvaluator() *Evaluator {
	return &Evaluator{program: p, slots: make([]table.Value, p.slots), vms: make([]vm.VM, p.scripts),
		envs: make([]map[string]any, p.scripts)}
}

// Observer makes an Evaluator whose Eval shows the parts of splice(auto, …) to c. The values of Eval are meaningless.
func (p *Program) Observer(c *SeparatorChooser) *Evaluator {
	e := p.NewEvaluator()
	e.chooser = c
	return e
}

// Compile checks an expression against env's columns and compiles it. An error is one line that says what to change.
func Compile(source string, env Env) (*Program, error) {
	p := &Program{name: env.Name, source: source, env: env}
	c := &compiler{program: p, bound: map[string]bool{}}
	err := c.settle(func() *node {
		root := c.node(c.parse(source))
		if root.typ == table.Null {
			panic(refusef("it is always null; a column needs a value"))
		}
		return root
	})
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", brief(source), err)
	}
	return p, nil
}

// CompileColumn compiles a column of --pk or --set. The value must have the column's type, if it has one.
func CompileColumn(col Column, env Env) (*Program, error) {
	env.Name = col.Name
	if col.Expr == "" {
		p := &Program{name: col.Name, source: col.Source(), env: env}
		c := &compiler{program: p}
		return p, c.settle(func() *node { return c.column(col.Name) })
	}
	p, err := Compile(col.Expr, env)
	if err != nil || col.Type == table.Null || p.Type == col.Type {
		return p, err
	}
	if p.Type == table.Any {
		p.Type = col.Type
		return p, nil
	}
	return nil, fmt.Errorf("expression %q gives %s, but column %s has type %s; %s", brief(col.Expr), a(p.Type), col.Name,
		col.Type, convertHint(col.Type))
}

func convertHint(to table.Type) string {
	switch to {
	case table.String:
		return "wrap it in text(…), or in pad(…, n) to keep the order of numbers"
	case table.Integer:
		return "wrap it in int(…)"
	}
	return "leave the type out or change the expression"
}

type compiler struct {
	program *Program
	used    []int           // indexes in Env.Columns, in order of mention
	bound   map[string]bool // names that let defines
	lookups map[string]lookupTable
}

// Visit collects the names defined by let.
func (c *compiler) Visit(n *ast.Node) {
	if let, ok := (*n).(*ast.VariableDeclaratorNode); ok {
		c.bound[let.Name] = true
	}
}

// parse returns the syntax tree. It refuses a let that hides a column, because people would confuse the two.
func (c *compiler) parse(source string) ast.Node {
	if len(source) > MaxSource {
		panic(refusef("%d bytes long, the limit is %d", len(source), MaxSource))
	}
	tree, err := parser.ParseWithConfig(source, grammar())
	if err != nil {
		panic(languageRefusal(err))
	}
	ast.Walk(&tree.Node, c)
	for _, in := range c.program.env.Columns {
		if c.bound[in.Name] {
			panic(refusef("let %s hides the column of that name; use another name", in.Name))
		}
	}
	return tree.Node
}

// grammar returns the expression language's grammar without the built-in functions that our functions replace.
func grammar() *conf.Config {
	config := conf.CreateNew()
	config.MaxNodes = 2000
	for name := range functions {
		config.Disabled[name] = true
	}
	for name := range refused {
		config.Disabled[name] = true
	}
	for name := range config.Disabled {
		delete(config.Builtins, name)
	}
	return config
}

// languageRefusal turns an error of the expression language into a one-line refusal.
func languageRefusal(err error) refusal {
	if at, ok := errors.AsType[*file.Error](err); ok {
		return refusef("%s, at character %d", languageMessage(err), at.Column+1)
	}
	return refusef("%s", languageMessage(err))
}

// languageMessage returns the message of an error of the expression language, without the position.
func languageMessage(err error) string {
	if at, ok := errors.AsType[*file.Error](err); ok {
		return strings.Join(strings.Fields(at.Message), " ")
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

// refusal says why an expression does not compile. Functions of the compiler panic with it, and settle returns it.
type refusal struct{ error }

func refusef(format string, args ...any) refusal { return refusal{fmt.Errorf(format, args...)} }

// settle makes the node that compile returns the root of the program. A refusal that compile panics with is returned.
func (c *compiler) settle(compile func() *node) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case refusal:
			err = r.error
		default:
			panic(r)
		}
	}()
	p := c.program
	p.root = compile()
	p.Type, p.mentions, p.columns = p.root.typ, c.used, slices.Sorted(slices.Values(c.used))
	return nil
}

func (c *compiler) column(name string) *node {
	i := slices.IndexFunc(c.program.env.Columns, func(in Input) bool { return in.Name == name })
	if i < 0 && !c.program.env.open {
		panic(c.unknownColumn(name))
	}
	if i < 0 {
		i = len(c.program.env.Columns)
		c.program.env.Columns = append(c.program.env.Columns, Input{name, table.Any})
	}
	if !slices.Contains(c.used, i) {
		c.used = append(c.used, i)
	}
	in := c.program.env.Columns[i]
	n := &node{typ: in.Type, src: columnText(name), plain: true, tells: []int{i}, recipe: name, python: pythonName(name),
		order: []Segment{{Text: name, Column: name, Order: Ascending}},
		value: func(e *Evaluator, row []table.Value) table.Value { return row[i] }}
	if n.typ == table.Null {
		n.typ = table.Any
	}
	return n.finish()
}

func (c *compiler) unknownColumn(name string) refusal {
	var names, list []string
	for _, in := range c.program.env.Columns {
		names, list = append(names, in.Name), append(list, columnText(in.Name))
	}
	if len(list) > 20 {
		list = append(list[:20], "…")
	}
	hint := cmp.Or(suggest.Hint(name, names), ".")
	return refusef("unknown column %q%s The input has %s", name, hint, strings.Join(list, ", "))
}
