package options

import (
	"fmt"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader"
)

// notOfChanges lists options with which a row might not end up as the changes of its key leave it.
var notOfChanges = []struct{ name, why string }{
	{"condition", "a repeated change would meet its own earlier write"},
	{"when", "a skipped change leaves a row that differs"},
	{"max-errors", "a skipped change leaves a row that differs"},
	{"limit", "a load that ends in the middle of changes would be mistaken for a complete one"},
	{"set", "a change may lack the columns that the value is computed from"},
	{"version-column", "a change that deletes a row or a column has no version"},
	{"accept-changed-input", "changes that were not read would be mistaken for those that were"},
	{"age-policy", "a change that deletes a row may lack the column that gives its age"},
	{"verify", "a stream of changes does not show the final table; compare the table with its source"},
}

// ops are the operations of change records by the value of --op-column, which is a letter, as from AWS DMS, or a word.
var ops = map[string]table.Mode{
	"I": table.Put, "i": table.Put, "c": table.Put, "r": table.Put, "insert": table.Put, "INSERT": table.Put,
	"put": table.Put, "PUT": table.Put, "bootstrap-insert": table.Put, "U": table.Put, "u": table.Put, "update": table.Put,
	"UPDATE": table.Put, "D": table.Delete, "d": table.Delete, "delete": table.Delete, "DELETE": table.Delete,
}

func checkChanges(asked *Request) error {
	if asked.Mode != "changes" {
		return nil
	}
	for _, o := range notOfChanges {
		if asked.IsSet(o.name) {
			return fmt.Errorf("--mode changes with --%s: %s; leave it out", o.name, o.why)
		}
	}
	switch {
	case asked.Order == "none":
		return fmt.Errorf("--mode changes with --order none: changes of a row must be applied in order; leave it out")
	case plan.IsTemplate(asked.Table):
		return fmt.Errorf("--mode changes into table %s: a change that deletes a row may lack the column that names its "+
			"table; load into one table", asked.Table)
	}
	return nil
}

func parseChanges(r *Request, to *plan.Read) error {
	if r.Mode != "changes" {
		if r.OpColumn != "" {
			return fmt.Errorf("--op-column needs --mode changes")
		}
		return nil
	}
	typed := map[string]bool{}
	for name := range r.Type {
		typed[name] = true
	}
	column, given, found := strings.Cut(r.OpColumn, ":")
	c := &reader.Changes{Column: column, Values: ops, Typed: func(name string) bool { return typed[name] }}
	if found {
		c.Values = map[string]table.Mode{}
		for _, one := range strings.Split(given, ",") {
			value, op, _ := strings.Cut(one, "=")
			mode, known := map[string]table.Mode{"put": table.Put, "update": table.Update, "delete": table.Delete}[op]
			if !known || column == "" {
				return fmt.Errorf("--op-column %s: want NAME:VALUE=put|update|delete,…, such as Op:I=put,U=put,D=delete",
					r.OpColumn)
			}
			c.Values[value] = mode
		}
	}
	columns, err := Columns(r)
	if err != nil {
		return err
	}
	c.Without = func(name string) bool { return !columns.Takes(name) }
	to.Named.Missing = true // a member that a change lacks keeps its value
	to.Changes = c
	return nil
}
