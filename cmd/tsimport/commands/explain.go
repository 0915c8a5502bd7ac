package commands

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader"
)

func explainCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "explain a primary-key design: order, ranges, how readers compute it",
		ArgsUsage: "[FILE...]",
		Description: inputsHelp + "\n" +
			"Looks at the beginning of files. Writes nothing and needs no store. Without files, --type gives columns and\n" +
			"their types. For each column it prints the bounds of its range, in Go and in Python, for the values of the first\n" +
			"record or of --value.",
		Flags: append(flagsOf(options.Looking), []cli.Flag{
			textsFlag("pk", "primary-key column `NAME[:TYPE][=EXPR]` as tsimport load takes it, in order, 1 to 4 times"),
			textsFlag("set", "attribute column `NAME[:TYPE]=EXPR` as tsimport load takes it; it is checked"),
			textsFlag("type", "type of a column, `NAME=TYPE`, as tsimport load takes it; may be repeated"),
			textsFlag("value", "print the bounds of the range for this value of a column, `NAME=VALUE`, or from one value to "+
				"another, NAME=FROM..TO; may be repeated; a binary one is hexadecimal (default: the first record's)"),
			&cli.IntFlag{Name: "examples", Usage: "show the keys of the first `N` records", Value: 5},
			&cli.BoolFlag{Name: "json", Usage: "print JSON"},
		}...),
		Action: in.with(options.Looking, explain),
	}
}

func explain(c *call) error {
	r := &plan.Request{Inputs: c.Args().Slice(), Memory: options.MinMemory}
	r.Target = plan.Target{Name: "explain", Table: "explain", Create: true, Absent: true}
	asked, err := &c.given.Request, error(nil)
	if r.Read, err = parseRead(c); err != nil {
		return usagef("%v", err)
	}
	if r.Columns, err = options.Columns(asked); err != nil {
		return usagef("%v", err)
	}
	if err = options.Computed(asked, &r.Target, &r.Columns); err != nil {
		return usagef("%v", err)
	}
	if len(r.Target.Key) == 0 {
		return usagef("no key to explain: give --pk NAME[:TYPE][=EXPR], once for each primary-key column in order")
	}
	if c.Int("examples") < 0 {
		return usagef("--examples %d: want 0 or more", c.Int("examples"))
	}
	typesOnly := len(r.Inputs) == 0
	if typesOnly {
		if err := inputOfTypes(r); err != nil {
			return err
		}
	}
	p, err := plan.Make(c.Context, r, nil)
	if err != nil && typesOnly {
		return usagef("%v (without a file, give the columns with --type NAME=TYPE)", err)
	}
	if err != nil {
		return err
	}
	defer p.Close()
	if typesOnly && p.Separator() != "" {
		return usagef("splice(auto, …) chooses its separator from a sample: name a file, or write the separator")
	}
	x, err := explainPlan(p, c.Int("examples"), textsOf(c.line, "value"))
	if err != nil {
		return err
	}
	if !c.of.JSON {
		_, err = fmt.Fprint(results(c), x.Text())
		return err
	}
	return printJSON(c, x)
}

// inputOfTypes replaces the files with an input that has the columns with declared types, but no records.
func inputOfTypes(r *plan.Request) error {
	names := slices.Sorted(maps.Keys(r.Columns.Types))
	for _, k := range r.Target.Key {
		plain := !k.Auto && !slices.ContainsFunc(r.Columns.Keys, func(col keyexpr.Column) bool { return col.Name == k.Name })
		switch {
		case !plain:
		case slices.Contains(names, k.Name):
		case k.Type != table.Null:
			names = append(names, k.Name)
			r.Columns.Types[k.Name] = plan.Type{Type: k.Type}
		default:
			return usagef("no input, and no type for %s: name a file, or give --type %s", k.Name, suggest.Arg(k.Name+"=string"))
		}
	}
	if len(names) == 0 {
		return usagef("no input: name a file, or give the columns with --type NAME=TYPE")
	}
	var header bytes.Buffer
	w := csv.NewWriter(&header)
	if err := w.Write(names); err != nil {
		return err
	}
	w.Flush()
	r.Inputs = []string{"-"}
	r.Read = plan.Read{Options: reader.Options{Format: reader.CSV}, Stdin: &header}
	return nil
}

// explainPlan explains the key of a plan, with the first records as examples and the bounds for the given values or, if
// there are none, for the first record's.
func explainPlan(p *plan.Plan, examples int, values []string) (x keyexpr.Explanation, err error) {
	d, err := p.Design()
	if err != nil {
		return x, err
	}
	given, upto, err := givenValues(d, values)
	if err != nil {
		return x, err
	}
	var shown []keyexpr.Example
	first := d.Programs[0].NewEvaluator()
	keys, rows := map[string]bool{}, 0
	err = p.Sample(func(row []table.Value) bool {
		if rows == 0 && len(values) == 0 {
			for i, in := range d.Inputs {
				if row[i].Type != table.Null {
					v := row[i]
					v.Bytes = bytes.Clone(v.Bytes)
					given[in.Name] = v
				}
			}
		}
		if rows++; rows <= examples {
			shown = append(shown, d.Example(row))
		}
		if v, why := first.Eval(row); why == nil && len(keys) < sampledKeys {
			keys[string(table.AppendKey(nil, v))] = true
		}
		return true
	})
	x = keyexpr.Explain(d, nil, given, upto)
	x.Examples = append(x.Examples, shown...)
	x.NoteSample(rows, len(keys))
	return x, err
}

// sampledKeys limits the distinct partition keys counted; a column with this many values is not an enumeration.
const sampledKeys = 1000

// givenValues parses NAME=VALUE and NAME=FROM..TO by the types of the columns. A text with two dots must be quoted.
func givenValues(d keyexpr.Design, values []string) (keyexpr.Given, keyexpr.Upto, error) {
	given, upto := keyexpr.Given{}, keyexpr.Upto{}
	for _, text := range values {
		name, value, ok := options.CutRename(text)
		i := slices.IndexFunc(d.Inputs, func(in keyexpr.Input) bool { return in.Name == name })
		if !ok || i < 0 {
			return nil, nil, usagef("--value %q: want NAME=VALUE with a column that the key uses", text)
		}
		from, to, ranged := strings.Cut(value, "..")
		if unquoted, err := strconv.Unquote(value); err == nil && d.Inputs[i].Type == table.String {
			from, ranged = unquoted, false
		}
		var err error
		if given[name], err = parseValue(d.Inputs[i].Type, from); err == nil && ranged {
			upto[name], err = parseValue(d.Inputs[i].Type, to)
		}
		if a, b := given[name], upto[name]; err == nil && ranged &&
			cmp.Or(cmp.Compare(a.Int, b.Int), cmp.Compare(a.Double, b.Double), bytes.Compare(a.Bytes, b.Bytes)) >= 0 {
			err = errors.New("the range is empty; its first value is inclusive, its last exclusive")
		}
		if err != nil {
			return nil, nil, usagef("--value %q: %v", text, err)
		}
	}
	return given, upto, nil
}

func parseValue(t table.Type, text string) (v table.Value, err error) {
	v.Type = t
	switch t {
	case table.Integer:
		if v.Int, err = strconv.ParseInt(text, 10, 64); err != nil {
			err = errors.New("want an integer of 64 bits")
		}
	case table.Double:
		if v.Double, err = strconv.ParseFloat(text, 64); err != nil {
			err = errors.New("want a number")
		}
	case table.Boolean:
		if text != "true" && text != "false" {
			err = errors.New("want true or false")
		}
		if text == "true" {
			v.Int = 1
		}
	case table.Binary:
		if v.Bytes, err = hex.DecodeString(strings.TrimPrefix(text, "0x")); err != nil {
			err = errors.New("want hexadecimal digits, two for each byte")
		}
	default:
		v.Type, v.Bytes = table.String, []byte(text)
	}
	return v, err
}
