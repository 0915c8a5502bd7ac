package spread

import (
	"bytes"
	"fmt"
	"slices"

	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
)

// maker computes a key column for the SDK's loaders, as the load by tsimport did.
type maker struct {
	name    string
	typ     table.Type
	program *keyexpr.Program
}

// compileKey makes the makers of the key columns that are expressions over the file's columns, whose types are known
// by then, or says why it cannot.
func (d *dataset) compileKey() (why string) {
	var env keyexpr.Env
	var names []string
	for _, c := range d.columns {
		env.Columns = append(env.Columns, keyexpr.Input{Name: c.name, Type: c.typ})
		names = append(names, c.name)
	}
	var computed []keyexpr.Column
	for _, text := range d.pk {
		col, err := keyexpr.ParseColumn(text)
		if err != nil {
			return err.Error()
		}
		sources := []int{slices.Index(names, col.Name)}
		if col.Expr != "" {
			if sources[0] >= 0 {
				return fmt.Sprintf("its key column %s is computed, and the file has one of that name; give it another name", col.Name)
			}
			if sources, err = keyexpr.Sources(col.Expr, names); err != nil {
				return err.Error()
			}
			computed = append(computed, col)
		}
		for _, i := range sources {
			if i >= 0 && !slices.Contains(env.SaltColumns, names[i]) {
				env.SaltColumns = append(env.SaltColumns, names[i])
			}
		}
	}
	for _, col := range computed {
		p, err := keyexpr.CompileColumn(col, env)
		if err != nil {
			return err.Error()
		}
		if p.Auto {
			return "splice(auto, …) has chosen its separator for that load alone; write it in place of auto"
		}
		d.makers = append(d.makers, maker{name: col.Name, typ: p.Type, program: p})
	}
	for _, m := range d.makers {
		d.columns = append(d.columns, column{name: m.name, typ: m.typ, isKey: true})
	}
	return ""
}

// computer computes the key columns of one reader's records.
type computer struct {
	makers     []maker
	evaluators []*keyexpr.Evaluator
}

func (d *dataset) computer() *computer {
	c := &computer{makers: d.makers}
	for _, m := range d.makers {
		c.evaluators = append(c.evaluators, m.program.NewEvaluator())
	}
	return c
}

// fill computes the last values of a record from the others; it is not ok if tsimport would reject the record.
func (c *computer) fill(values []table.Value) (ok bool) {
	fields := values[:len(values)-len(c.makers)]
	for i, m := range c.makers {
		v, why := m.program.KeyValue(c.evaluators[i], fields, false)
		if why != nil {
			return false
		}
		v.Bytes = bytes.Clone(v.Bytes) // the evaluator uses them again
		values[len(fields)+i] = v
	}
	return true
}
