package contract

import (
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

func TestDataSurvivesARestart(t *testing.T) {
	spec(t, "3.6.5", "3.8.9")
	t.Parallel()
	for name, end := range map[string]func(*restartable){"after a stop": func(r *restartable) { r.stop() }, "after a loss of power": (*restartable).losePower} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := openStore(t)
			tb := r.newTable(t, tableOptions{versions: 2})
			gone := r.newTable(t, tableOptions{})
			must(t, r.do(gone.put(gone.key("a", 1))))
			must(t, r.deleteTable(gone.name))
			must(t, r.alter(tb.name, newOptions(864000, 3)))
			tb.load(t,
				tb.put(tb.key("put", 1), c("b", []byte{0, 255}), c("d", 0.5), c("i", -7), c("s", "表\x00"), c("t", true)),
				tb.put(tb.key("deleted", 1)), tb.put(tb.key("empty", 1)), tb.update(tb.key("updated", 1), set("a", 1)))
			must(t, r.do(tb.delete(tb.key("deleted", 1))))
			must(t, r.do(tb.update(tb.key("updated", 1), set("a", 2), add("n", 5))))
			read := func() (rows []*row) {
				rows, _ = tb.scan(t, tablestore.FORWARD, tb.key(minKey, minKey), tb.key(maxKey, maxKey), 0, versions(3))
				return rows
			}
			before := read()
			for range 2 {
				end(r)
				r.start(t)
				diff(t, read(), before)
				diff(t, options(describe(t, r.service, tb.name).TableOption), [3]int64{864000, 3, 86400})
				check(t, r.do(gone.put(gone.key("a", 1))), noSuchTable)
			}
			t.Run("and a table of a deleted one's name is empty", func(t *testing.T) {
				must(t, r.create(newMeta(gone.name, "pk1", "pk2"), newOptions(-1, 1)))
				diff(t, len(gone.all(t)), 0)
			})
		})
	}
}
