//go:build e2e

package e2e

import (
	"fmt"
	"regexp"
	"testing"

	"example.com/tsimport/reader/mysql/mysqltest"
)

// TestDatabasesOfDataX converts jobs that read databases and runs them against real servers.
func TestDatabasesOfDataX(t *testing.T) {
	my := mysqltest.Start(t)
	my.Exec("CREATE TABLE orders (id bigint PRIMARY KEY, City varchar(20), price decimal(8,2), day date)",
		`INSERT INTO orders VALUES (1, 'Bern', 1.5, '2024-01-01'), (2, '"x"\n', 20, '2024-01-01'), (3, NULL, NULL, '2024-01-01'), (4, 'later', 0, '2024-01-02')`)
	for part, rows := range map[string]string{"00": "(1, 'Bern', 1.5), (3, NULL, NULL)", "01": `(2, '"x"\n', 20)`} {
		my.Exec("CREATE TABLE orders_"+part+" (id bigint PRIMARY KEY, `City` varchar(20), price decimal(8,2))", "INSERT INTO orders_"+part+" VALUES "+rows)
	}
	const three = `{"order_id":1,"price":1.5,"town":"Bern"}` + "\n" + `{"order_id":2,"price":20.0,"town":"\"x\"\n"}` + "\n" + `{"order_id":3}` + "\n"
	for name, c := range map[string]struct{ address, table, more, want string }{
		"a condition": {my.Address("x"), `"table":["orders"]`, `"column":["id","City","price"],"splitPk":"id","where":"day = '${day}' -- of the day\n;",`, three},
		"a query":     {my.Address("x"), `"querySql":["SELECT id + 0, City, price FROM orders WHERE day < '2024-01-02' ORDER BY rand();"]`, ``, three},
		"shards":      {my.Address("x"), `"table":["orders_[00-01]"]`, "\"column\":[\"id\",\"`City`\",\"price\"],", three},
		"expressions": {my.Address("x"), `"table":["orders_00"]`, `"column":["id * 10","upper(City) AS t","price"],`,
			`{"order_id":10,"price":1.5,"town":"BERN"}` + "\n" + `{"order_id":30}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			m := regexp.MustCompile(`^mysql://(\w+)@([^/]+)/(\w+)`).FindStringSubmatch(c.address)
			p := newPlace(t, "day=2024-01-01")
			p.write("theirs.json", fmt.Sprintf(`{"job":{"setting":{"errorLimit":{"record":0}},"content":[{
"reader":{"name":"mysqlreader","parameter":{"username":%q,"password":"secret",%s"connection":[{"jdbcUrl":["jdbc:mysql://%s/%s"],%s}]}},
"writer":{"name":"otswriter","parameter":{"endpoint":"","accessId":"i","accessKey":"k","instanceName":"","table":"orders",
"primaryKey":[{"name":"order_id","type":"int"}],"column":[{"name":"town","type":"string"},{"name":"price","type":"double"}],"writeMode":"PutRow"}}}]}}`,
				m[1], c.more, m[2], m[3], c.table))
			p.run(0, "convert", "datax", "theirs.json", "-o", "ours.yaml")
			p.run(0, "run", "ours.yaml", "--store", "store", "--create")
			if got := p.output("export", "--table", "orders", "--store", "store", "--format", "jsonl"); got != c.want {
				t.Errorf("the table has\n%s, want\n%s", got, c.want)
			}
		})
	}
}
