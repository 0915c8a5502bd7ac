package options

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
)

// WantDefine describes the value of --define.
const WantDefine = "want 'column NAME[:TYPE]' or '[local] index NAME(COLUMN[:TYPE],…) [COLUMN[:TYPE],…]'"

var (
	defineColumn = regexp.MustCompile(`^\s*column\s+(.+)$`)
	defineIndex  = regexp.MustCompile(`^\s*(local\s+)?index\s+([A-Za-z0-9_]+)\s*\(([^()]+)\)(.*)$`)
)

// Define parses the predefined columns and secondary indexes of a new table. The load determines missing types.
func Define(texts []string, to *plan.Target) error {
	if len(texts) > 0 && to.Defined == nil {
		to.Defined = map[string]table.Type{}
	}
	for _, text := range texts {
		if m := defineColumn.FindStringSubmatch(text); m != nil {
			if _, err := definedColumns(text, m[1], to); err != nil {
				return err
			}
			continue
		}
		m := defineIndex.FindStringSubmatch(text)
		if m == nil {
			return fmt.Errorf("--define %q: %s", text, WantDefine)
		}
		key, err := definedColumns(text, m[3], to)
		if err != nil {
			return err
		}
		columns := []string{}
		if strings.TrimSpace(m[4]) != "" {
			if columns, err = definedColumns(text, m[4], to); err != nil {
				return err
			}
		}
		if slices.ContainsFunc(to.Indexes, func(i table.Index) bool { return i.Name == m[2] }) {
			return fmt.Errorf("--define %q: index %s is already defined", text, m[2])
		}
		to.Indexes = append(to.Indexes, table.Index{Name: m[2], Local: m[1] != "", Key: key, Columns: columns})
	}
	return nil
}

func definedColumns(text, list string, to *plan.Target) (names []string, err error) {
	for _, one := range strings.Split(list, ",") {
		col, err := keyexpr.ParseColumn(strings.TrimSpace(one))
		switch was := to.Defined[col.Name]; {
		case err != nil:
			return nil, fmt.Errorf("--define %q: %w", text, err)
		case col.Name == "" || col.Expr != "" || col.Auto:
			return nil, fmt.Errorf("--define %q: %q is not the name of a column; %s", text, one, WantDefine)
		case slices.Contains(names, col.Name):
			return nil, fmt.Errorf("--define %q: column %s is named twice", text, col.Name)
		case was != table.Null && col.Type != table.Null && was != col.Type:
			return nil, fmt.Errorf("--define %q: column %s has the type %s elsewhere", text, col.Name, was)
		case col.Type != table.Null || was == table.Null:
			to.Defined[col.Name] = col.Type
		}
		names = append(names, col.Name)
	}
	return names, nil
}
