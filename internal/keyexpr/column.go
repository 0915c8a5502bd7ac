package keyexpr

import (
	"fmt"
	"strings"

	"example.com/tsimport/internal/table"
)

// Column is a table column in --pk or --set.
type Column struct {
	Name string
	Type table.Type // Null means the expression's type
	Expr string     // empty means the input column of the same name
	Auto bool       // a key column that the service numbers
}

// ParseColumn parses NAME[:TYPE][=EXPR]. The first "=" begins the expression, and the last ":" before it the type. So
// no name contains "=", and a name with ":" needs a type. Compile checks EXPR.
func ParseColumn(text string) (Column, error) {
	head, expr, computed := strings.Cut(text, "=")
	c := Column{Name: head, Expr: strings.TrimSpace(expr)}
	if computed {
		c.Name = strings.TrimSpace(head) // a plain column's name may begin or end with spaces
	}
	if computed && c.Expr == "" {
		return c, fmt.Errorf("%q: no expression after the =; want NAME[:TYPE]=EXPR", text)
	}
	if computed && strings.HasPrefix(c.Expr, "=") {
		return c, fmt.Errorf("%q: == is a comparison; want NAME[:TYPE]=EXPR with a single = after the name", text)
	}
	if at := strings.LastIndexByte(c.Name, ':'); at >= 0 {
		name := strings.TrimSpace(c.Name[at+1:])
		c.Auto = name == "auto"
		if c.Auto && computed {
			return c, fmt.Errorf("%q: the service generates the values of an auto column; leave the expression out", text)
		}
		t := table.Integer
		if !c.Auto {
			var err error
			if t, err = table.ParseType(name); err != nil {
				return c, fmt.Errorf("%q: %w", text, err)
			}
		}
		c.Name, c.Type = c.Name[:at], t
		if computed {
			c.Name = strings.TrimSpace(c.Name)
		}
	}
	if err := table.CheckColumnName(c.Name); err != nil {
		return c, fmt.Errorf("%q: %w", text, err)
	}
	return c, nil
}

// Source returns the expression. For a plain column it returns the column as written in an expression.
func (c Column) Source() string {
	if c.Expr != "" {
		return c.Expr
	}
	return columnText(c.Name)
}
