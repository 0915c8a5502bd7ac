package table

import "strings"

// Index is a secondary index.
type Index struct {
	Name    string   `json:"name"`
	Local   bool     `json:"local"` // else it is global
	Key     []string `json:"primary_key"`
	Columns []string `json:"defined_columns"`
}

func (i Index) String() string {
	text := "global index "
	if i.Local {
		text = "local index "
	}
	text += i.Name + " with the key " + strings.Join(i.Key, ", ")
	if len(i.Columns) > 0 {
		text += " and the columns " + strings.Join(i.Columns, ", ")
	}
	return text
}
