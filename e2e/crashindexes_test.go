//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// TestKilledServersKeepIndexes does the same to a table with indexes, which must be those of its rows after each restart; in every other
// round they follow later.
func TestKilledServersKeepIndexes(t *testing.T) {
	t.Parallel()
	r := openStore(t)
	tb := r.newTable(t)
	columns := &tablestore.AddDefinedColumnRequest{TableName: tb.name}
	columns.AddDefinedColumn("a", tablestore.DefinedColumn_STRING)
	columns.AddDefinedColumn("n", tablestore.DefinedColumn_INTEGER)
	_, err := r.AddDefinedColumn(columns)
	must(t, err)
	indexes := map[string][]string{"a": {"n"}, "n": nil} // by the column of the key
	for key, more := range indexes {
		index := &tablestore.IndexMeta{IndexName: tb.name + key, IndexType: tablestore.IT_GLOBAL_INDEX, Primarykey: []string{key}, DefinedColumns: more}
		_, err := r.CreateIndex(&tablestore.CreateIndexRequest{MainTableName: tb.name, IndexMeta: index})
		must(t, err)
	}
	rows := 0
	killServers(t, r, tb, func(round int) {
		r.args = nil
		if round%2 == 0 {
			r.args = []string{"--index-delay", "30ms"}
		}
		all := tb.all(t)
		for key, more := range indexes {
			want, got := map[string][]cell{}, map[string][]cell{}
			for _, row := range all {
				if v := valueOf(row, key); v != nil {
					rest := []cell{}
					for _, name := range more {
						rest = append(rest, c(name, valueOf(row, name)))
					}
					want[fmt.Sprint(append([]any{v}, row.Key...))] = rest
				}
			}
			for k, cells := range dump(t, r.server, tb.name+key) {
				got[k] = []cell{}
				for _, cell := range cells {
					got[k] = append(got[k], c(cell.Name, cell.Value))
				}
			}
			if d := differs(want, got); d != "" {
				t.Errorf("round %d: index %s is not that of the rows: %s", round, key, d)
			}
			rows += len(got)
		}
	})
	if rows == 0 {
		t.Error("the indexes were always empty")
	}
}
