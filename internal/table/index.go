package table

import (
	"slices"
	"strings"
)

// Index is a secondary index.
type Index struct {
	Name    string   `json:"name"`
	Local   bool     `json:"local"` // else it is global
	Key     []string `json:"primary_key"`
	Columns []string `json:"defined_columns"`
}

// Holds reports whether the index is as another one was asked for: the service completes the key by that of the table.
func (i Index) Holds(asked *Index) bool {
	return i.Name == asked.Name && i.Local == asked.Local && len(i.Key) >= len(asked.Key) && slices.Equal(i.Key[:len(asked.Key)], asked.Key) &&
		slices.Equal(slices.Sorted(slices.Values(i.Columns)), slices.Sorted(slices.Values(asked.Columns)))
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
