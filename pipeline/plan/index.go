package plan

import (
	"fmt"
	"strings"

	"tsimport/internal/tablestore/client"
)

// Indexes are the secondary indexes of the table, or of one of several. Each takes a write unit and a read unit, or more, of every row
// that is written.
func (p *Plan) Indexes() []string {
	if p.table == nil {
		return nil
	}
	return p.table.Indexes
}

// indexText warns of what indexes take.
func indexText(t *client.Table) string {
	n := len(t.Indexes)
	indexes, them := fmt.Sprintf("%d secondary indexes", n), "them"
	if n == 1 {
		indexes, them = "a secondary index", "it"
	}
	return fmt.Sprintf("table %s has %s (%s): a row that costs one write unit without costs %d write units and %d read units with %s, and the load is slower for it; a load is faster if the indexes are dropped before it and created after it",
		t.Name, indexes, strings.Join(t.Indexes, ", "), 1+n, n, them)
}
