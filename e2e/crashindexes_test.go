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
	tb := r.newTable(t, tableOptions{})
	columns := &tablestore.AddDefinedColumnRequest{TableName: tb.name}
	columns.AddDefinedColumn("a", tablestore.DefinedColumn_STRING)
	columns.AddDefinedColumn("n", tablestore.DefinedColumn_INTEGER)
	_, err := r.AddDefinedColumn(columns)
	must(t, err)
	indexes := map[string][]string{"a": {"n"}, "n": nil} // by the column of the key
	for key, more := range indexes {
		_, err := r.CreateIndex(&tablestore.CreateIndexRequest{MainTableName: tb.name, IndexMeta: indexOn(tb.name+key, []string{key}, more...)})
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
			want := map[string]bool{}
			for _, row := range all {
				if v := valueOf(row, key); v != nil {
					rest := []any{}
					for _, name := range more {
						rest = append(rest, valueOf(row, name))
					}
					want[fmt.Sprint(v, row.Key, rest)] = true
				}
			}
			keys, cells := tb.indexRows(t, tb.name+key, 3)
			for i, k := range keys {
				rest := []any{}
				for _, c := range cells[i] {
					rest = append(rest, c.Value)
				}
				if text := fmt.Sprint(k[0], k[1:], rest); !want[text] {
					t.Errorf("round %d: index %s has %s, of no row", round, key, text)
				}
			}
			if len(keys) != len(want) {
				t.Errorf("round %d: index %s has %d rows, want %d", round, key, len(keys), len(want))
			}
			rows += len(keys)
		}
	})
	if rows == 0 {
		t.Error("the indexes were always empty")
	}
}
