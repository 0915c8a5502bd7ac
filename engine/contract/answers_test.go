package contract

import (
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// Of a table that was created so, an update replaces the row: the columns that it does not name are gone.
func TestAnUpdateMayReplaceTheRow(t *testing.T) {
	s := proving(t, "3.6.11")
	tb := s.newTable(t, tableOptions{})
	for _, full := range []bool{false, true} {
		check(t, s.alter(tb.name, &tablestore.TableOption{TimeToAlive: -1, UpdateFullRow: &full}), invalid("The table options of UpdateTable can not contain updateFullRow."))
	}
	name := newTableName()
	r := newCreate(name)
	r.meta = r.meta.bytes(2, message{}.text(1, "pk2").int(2, 1))
	r.options = r.options.int(7, 1)
	s.send(t, rawRequest{operation: "CreateTable", body: r.body()}).check(t, accepted)
	s.dropLater(t, name)
	d := describe(t, s, name)
	if o := d.TableOption; o.UpdateFullRow == nil || !*o.UpdateFullRow || o.AllowUpdate == nil || !*o.AllowUpdate {
		t.Errorf("the table is described as %+v", o)
	}
	whole := &table{service: s, name: name}
	k := whole.key("a", 1)
	must(t, s.do(whole.put(k, c("a", 1), c("b", 2), c("n", 3))))
	must(t, s.do(whole.update(k, set("a", 5), add("n", 1))))
	diff(t, whole.values(t, k).Cells, []cell{c("a", int64(5)), c("n", int64(4))})
	must(t, s.do(whole.update(k, drop("n"))))
	diff(t, len(whole.values(t, k).Cells), 0)
}
