package pipeline

import (
	"tsimport/internal/table"
	"tsimport/pipeline/plan"
)

// checkBulk refuses what BulkImport cannot do.
func (c *Config) checkBulk(planned *plan.Plan) error {
	w := &c.Write
	what := ""
	switch {
	case !w.Bulk:
		return nil
	case w.Condition != table.Ignore:
		what = "--condition: it has no conditions"
	case w.When != nil:
		what = "--when: it has no conditions"
	case w.Unchanged:
		what = "--if-unchanged: it has no conditions"
	case w.Mode == table.Increment:
		what = "--mode increment, which needs conditions"
	case planned.Schema.Numbered > 0:
		what = "a column that the service numbers: it returns no keys"
	default:
		return nil
	}
	return &plan.UsageError{Message: "--request bulk does not go with " + what + "; leave it out, for BatchWriteRow can"}
}
