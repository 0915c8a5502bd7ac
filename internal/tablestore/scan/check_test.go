package scan

import (
	"bytes"
	"cmp"
	"fmt"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"pgregory.net/rapid"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
)

// TestKeysCompareAsTheirOrderingKeys: rows of the table, cut points and what is kept of a scan are compared by ordering
// keys elsewhere.
func TestKeysCompareAsTheirOrderingKeys(t *testing.T) {
	column := func(t *rapid.T, kind int) any {
		switch kind {
		case 0:
			return rapid.Int64().Draw(t, "integer")
		case 1:
			return rapid.StringOfN(rapid.SampledFrom([]rune{0, 1, 'a', 'é'}), 0, 4, -1).Draw(t, "string")
		}
		return rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0xff}), 0, 4).Draw(t, "binary")
	}
	const mixed = 3
	rapid.Check(t, func(t *rapid.T) {
		var keys [2]tablestore.PrimaryKey
		var encoded [2][]byte
		kinds := rapid.SliceOfN(rapid.IntRange(0, 2), 1, 3).Draw(t, "types")
		if rapid.Bool().Draw(t, "columns of two types") {
			kinds = append(kinds, mixed)
		}
		for i := range keys {
			for _, kind := range kinds {
				if kind == mixed {
					kind = 2 * i // an integer in the one key, binary in the other
				}
				v := column(t, kind)
				keys[i].PrimaryKeys = append(keys[i].PrimaryKeys, &tablestore.PrimaryKeyColumn{Value: v})
				encoded[i] = table.AppendKey(encoded[i], client.ValueOf(v))
			}
		}
		if got, want := compare(&keys[0], &keys[1]), bytes.Compare(encoded[0], encoded[1]); cmp.Compare(got, 0) != want {
			t.Fatalf("compare is %d, the ordering keys give %d", got, want)
		}
	})
}

func BenchmarkCheckPage(b *testing.B) {
	key := func(i int) *tablestore.PrimaryKey {
		return &tablestore.PrimaryKey{PrimaryKeys: []*tablestore.PrimaryKeyColumn{
			{ColumnName: "tenant", Value: fmt.Sprintf("tenant-%04d", i/100)}, {ColumnName: "id", Value: int64(i)}}}
	}
	bound := func(option tablestore.PrimaryKeyOption) *tablestore.PrimaryKey {
		return &tablestore.PrimaryKey{PrimaryKeys: []*tablestore.PrimaryKeyColumn{{ColumnName: "tenant", PrimaryKeyOption: option},
			{ColumnName: "id", PrimaryKeyOption: option}}}
	}
	asked := &tablestore.RangeRowQueryCriteria{StartPrimaryKey: key(0), EndPrimaryKey: bound(tablestore.MAX)}
	page := &tablestore.GetRangeResponse{NextStartPrimaryKey: key(5000)}
	for i := range 5000 {
		page.Rows = append(page.Rows, &tablestore.Row{PrimaryKey: key(i)})
	}
	b.ReportAllocs()
	for b.Loop() {
		must(b, checkPage(asked, page))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(page.Rows)), "ns/row")
}
