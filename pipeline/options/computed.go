package options

import (
	"fmt"

	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
)

// Computed reads --pk and --set.
func Computed(r *Request, target *plan.Target, columns *plan.Columns) error {
	for _, text := range r.PK {
		col, err := keyexpr.ParseColumn(text)
		if err != nil {
			return fmt.Errorf("--pk %w", err)
		}
		if col.Type != table.Null && !col.Type.KeyType() {
			return fmt.Errorf("--pk %s: a primary-key column is string, integer or binary", text)
		}
		target.Key = append(target.Key, table.KeyColumn{Name: col.Name, Type: col.Type, Auto: col.Auto})
		if col.Expr != "" {
			columns.Keys = append(columns.Keys, col)
		}
	}
	for _, text := range r.Set {
		col, err := keyexpr.ParseColumn(text)
		if err != nil {
			return fmt.Errorf("--set %w", err)
		}
		if col.Expr == "" {
			return fmt.Errorf("--set %q: no expression; want NAME[:TYPE]=EXPR", text)
		}
		columns.Set = append(columns.Set, col)
	}
	return nil
}
