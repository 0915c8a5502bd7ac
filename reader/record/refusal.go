package record

import (
	"fmt"

	"example.com/tsimport/internal/table"
)

// Refusal is why a value is refused: the first reason.
type Refusal struct{ Bad *table.Reason }

// Refuse refuses the value, unless it was.
func (r *Refusal) Refuse(column, code, message string) {
	if r.Bad == nil {
		r.Bad = &table.Reason{Column: column, Code: code, Message: message}
	}
}

// RefuseUTF8 refuses what is not UTF-8.
func (r *Refusal) RefuseUTF8(column, what string) {
	r.Refuse(column, table.CodeUTF8, what+" is not valid UTF-8")
}

// RefuseTwice refuses a map in which a key occurs twice.
func (r *Refusal) RefuseTwice(column string, key []byte) {
	r.Refuse(column, table.CodeType, fmt.Sprintf("key %s occurs twice in a map", table.Show(key)))
}
