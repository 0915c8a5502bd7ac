package plan

import (
	"fmt"
	"strings"
)

// Indexes are the secondary indexes of the table, or of one of several. Each takes a write unit and a read unit, or more, of every row
// that is written.
func (p *Plan) Indexes() []string {
	if p.table != nil {
		return p.table.Indexes
	}
	return nil
}

// indexText warns of what indexes take.
func indexText(name string, names []string) string {
	n := len(names)
	indexes, them := fmt.Sprintf("%d secondary indexes", n), "them"
	if n == 1 {
		indexes, them = "a secondary index", "it"
	}
	return fmt.Sprintf("table %s has %s (%s): a row that costs one write unit without costs %d write units and %d read units with %s, and the load is slower for it; a load is faster if the indexes are dropped before it and created after it",
		name, indexes, strings.Join(names, ", "), 1+n, n, them)
}
