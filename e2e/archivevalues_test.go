//go:build e2e

package e2e

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// exact is a dump in which doubles are equal if all their bits are.
func exact(rows map[string][]cell) map[string][]cell {
	for _, cells := range rows {
		for i := range cells {
			if double, ok := cells[i].Value.(float64); ok {
				cells[i].Value = fmt.Sprintf("double %016x", math.Float64bits(double))
			}
		}
	}
	return rows
}

// TestEveryValueComesBackFromAnArchive exports tables of every type, number of key columns and versions, and loads them elsewhere.
func TestEveryValueComesBackFromAnArchive(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	q := p.swapped()
	var planes strings.Builder
	for plane := range rune(17) {
		planes.WriteString(string([]rune{plane<<16 + 0x42, plane<<16 + 0xfffd}))
	}
	values := []any{
		int64(0), int64(math.MinInt64), int64(math.MaxInt64), int64(1<<53 + 1), 0.0, math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, 1e21, 3.0,
		true, false, "", planes.String(), "\x00\x1f\"\\\u2028\r\n\t", "7", "true", []byte{}, []byte{0, 255}, []byte("text"),
	}
	types := []tablestore.PrimaryKeyType{tablestore.PrimaryKeyType_BINARY, tablestore.PrimaryKeyType_INTEGER, tablestore.PrimaryKeyType_STRING, tablestore.PrimaryKeyType_BINARY}
	now := time.Now().UnixMilli()
	for keys := 1; keys <= 4; keys++ {
		name := fmt.Sprint("t", keys)
		meta := &tablestore.TableMeta{TableName: name}
		for i := range keys {
			meta.AddPrimaryKeyColumn(fmt.Sprint("pk", i+1), types[i])
		}
		tb := &table{service: &service{TableStoreClient: newClient(p.a.URL, p.a.Instance, p.a.AccessKeyID, p.a.AccessKeySecret)}, name: name}
		must(t, tb.create(meta, newOptions(-1, 5)))
		key := func(i int) *tablestore.PrimaryKey {
			return tb.key([]any{[]byte{byte(i), 0, 255}, int64(math.MaxInt64 - i), fmt.Sprint("é \x00", i), []byte{}}[:keys]...)
		}
		var changes []tablestore.RowChange
		for i, value := range values {
			cells := []cell{c("value", value)}
			for back := range i%5 + 1 {
				cells = append(cells, v("versions", values[(i+back)%len(values)], now-int64(back)*3_600_000))
			}
			changes = append(changes, tb.put(key(i), cells...))
		}
		var wide []cell
		for i := range 1024 {
			wide = append(wide, c(fmt.Sprintf("列%04d", i), values[i%len(values)]))
		}
		changes = append(changes, tb.put(key(100), wide...), tb.put(key(101)))
		tb.load(t, changes...)
		rows := len(changes)
		if keys == 4 {
			rows += 2
			tb.load(t, tb.put(key(102), c("large", []byte(strings.Repeat("\x00\xfe", 1<<20)))), tb.put(key(103), c("large", strings.Repeat("é", 1<<20-100))))
		}

		p.run(0, "export", "--table", name, "-o", name+"/")
		q.run(0, "load", name, "--table", name, "--create", "--verify")
		before, after := exact(dump(t, p.a, name)), exact(dump(t, p.b, name))
		if diff := differs(before, after); diff != "" || len(before) != rows {
			t.Errorf("%d key columns, %d rows: %.2000s", keys, len(before), diff)
		}
	}
}
