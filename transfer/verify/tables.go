package verify

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/plan"
)

type target struct {
	*client.Table
	absent bool
	// prefix is the prefix of the ordering keys of the table's rows; nil if there is only one table.
	prefix []byte
}

// bounds adds the table's prefix to two ordering keys. nil means no bound.
func (t *target) bounds(from, to []byte) (lower, upper []byte) {
	if t.prefix == nil {
		return from, to
	}
	lower = append(slices.Clone(t.prefix), from...)
	if to == nil {
		return lower, table.AppendTableEnd(nil, t.Name)
	}
	return lower, append(slices.Clone(t.prefix), to...)
}

// findTables finds the tables that records belong to. Other tables that match the template are not compared.
func (v *verifier) findTables() error {
	for _, name := range slices.Sorted(maps.Keys(v.named)) {
		t := &target{prefix: table.AppendTable(nil, name)}
		described, err := v.admin.Describe(name)
		switch {
		case errors.Is(err, client.ErrNoTable):
			t.absent, t.Table = true, &client.Table{Name: name, Key: v.plan.Schema.Key}
		case err != nil:
			return err
		case !slices.Equal(described.Key, v.plan.Schema.Key):
			return plan.Usagef("table %s has a different primary key than the load", name)
		default:
			t.Table = described
		}
		v.tables = append(v.tables, t)
		v.result.Tables = append(v.result.Tables, TableResult{Name: name, Absent: t.absent})
	}
	return nil
}

func (v *verifier) target(key []byte) *target {
	if v.plan.Tables == nil {
		return v.tables[0]
	}
	name, _ := table.CutTable(key)
	byName := func(t *target, name string) int { return strings.Compare(t.Name, name) }
	at, _ := slices.BinarySearchFunc(v.tables, string(name), byName)
	return v.tables[at]
}
