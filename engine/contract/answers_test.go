package contract

import (
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// What is wrong with the names and the filter of a read is said before its missing version rule.
func TestTheVersionRuleOfAReadIsJudgedLast(t *testing.T) {
	spec(t, "3.11.1", "3.5.6")
	t.Parallel()
	s := openService(t)
	tb := s.newTable(t, tableOptions{})
	many := make([]string, 1025)
	for i := range many {
		many[i] = "c"
	}
	wide := tablestore.NewCompositeColumnCondition(tablestore.LO_OR)
	for range 40 {
		wide.AddFilter(compare("a", eq, 1))
	}
	not := tablestore.NewCompositeColumnCondition(tablestore.LO_NOT)
	for range 2 {
		not.AddFilter(compare("a", eq, 1))
	}
	both := tablestore.NewCompositeColumnCondition(tablestore.LO_AND)
	both.AddFilter(not)
	both.AddFilter(wide)
	for name, v := range map[string]struct {
		columns []string
		filter  tablestore.ColumnFilter
		want    refusal
	}{
		"nothing else":     {nil, nil, invalid("No version condition is specified.")},
		"a column's name":  {[]string{"#a"}, nil, invalid("Invalid column name: '#a'.")},
		"the columns":      {many, nil, invalid("The number of columns from the request exceeds the limit, limit count: 1024, column count: 1025.")},
		"the filters":      {nil, wide, invalid("The count of filter exceeds the max: 32.")},
		"an operator":      {nil, not, invalid("Invalid NOT operator: the number of sub-filters must be 1.")},
		"many after a NOT": {nil, both, invalid("The count of filter exceeds the max: 32.")},
	} {
		t.Run(name, func(t *testing.T) {
			// The SDK asks for a version rule itself.
			read := func(operation string, columns, filter int, body message, want refusal) {
				for _, c := range v.columns {
					body = body.text(columns, c)
				}
				if v.filter != nil {
					body = body.bytes(filter, v.filter.Serialize())
				}
				if operation == "BatchGetRow" {
					body = message{}.bytes(1, body)
				}
				s.send(t, rawRequest{operation: operation, body: body}).check(t, want)
			}
			named := message{}.text(1, tb.name)
			read("GetRow", 3, 7, named.bytes(2, tb.key("a", 1).Build(false)), v.want)
			read("GetRange", 3, 10, named.int(2, 0).bytes(7, tb.key(minKey, minKey).Build(false)).bytes(8, tb.key(maxKey, maxKey).Build(false)), v.want)
			want := v.want
			if name == "nothing else" {
				want = invalid("No version condition is specified while querying row.")
			}
			read("BatchGetRow", 4, 8, named.bytes(2, tb.key("a", 1).Build(false)), want)
		})
	}
}

// Of a table that was created so, an update replaces the row: the columns that it does not name are gone.
func TestAnUpdateMayReplaceTheRow(t *testing.T) {
	spec(t, "3.6.11")
	t.Parallel()
	s := openService(t)
	tb := s.newTable(t, tableOptions{})
	for _, full := range []bool{false, true} {
		_, err := s.UpdateTable(&tablestore.UpdateTableRequest{TableName: tb.name, TableOption: &tablestore.TableOption{TimeToAlive: -1, UpdateFullRow: &full}})
		check(t, err, invalid("The table options of UpdateTable can not contain updateFullRow."))
	}
	name := newTableName()
	r := newCreate(name)
	r.meta = r.meta.bytes(2, message{}.text(1, "pk2").int(2, 1))
	r.options = r.options.int(7, 1)
	s.send(t, rawRequest{operation: "CreateTable", body: r.body()}).check(t, accepted)
	s.dropLater(t, name)
	d, err := s.DescribeTable(&tablestore.DescribeTableRequest{TableName: name})
	must(t, err)
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
