//go:build e2e

package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"tsimport/reader/mysql/mysqltest"
	"tsimport/reader/postgres/pgtest"
)

// dataxOf is a job of DataX that reads rows of a database, by the address of ours.
func dataxOf(address, reader, table, more string) string {
	m := regexp.MustCompile(`^(\w+)://(\w+)@([^/]+)/(\w+)`).FindStringSubmatch(address)
	jdbc := "jdbc:" + strings.Replace(m[1], "postgres", "postgresql", 1) + "://" + m[3] + "/" + m[4]
	return fmt.Sprintf(`{"job":{"setting":{"errorLimit":{"record":0}},"content":[{"reader":{"name":%q,"parameter":{"username":%q,"password":"secret",%s
"connection":[{"jdbcUrl":[%q],%s}]}},"writer":{"name":"otswriter","parameter":{"endpoint":"","accessId":"i","accessKey":"k","instanceName":"","table":"orders",
"primaryKey":[{"name":"order_id","type":"int"}],"column":[{"name":"town","type":"string"},{"name":"price","type":"double"}],"writeMode":"PutRow"}}}]}}`,
		reader, m[2], more, jdbc, table)
}

// runDataX converts a job, runs it and returns the rows of its table.
func runDataX(t *testing.T, job string, environment ...string) string {
	t.Helper()
	p := newPlace(t, environment...)
	p.write("theirs.json", job)
	p.run(0, "convert", "datax", "theirs.json", "-o", "ours.yaml")
	p.run(0, "run", "ours.yaml", "--store", "store", "--create")
	return p.output("export", "--table", "orders", "--store", "store", "--format", "jsonl")
}

const dataxRows = `{"order_id":1,"price":1.5,"town":"Bern"}
{"order_id":2,"price":20.0,"town":"\"x\"\n"}
{"order_id":3}
`

func TestDatabasesOfDataX(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec(`CREATE TABLE "Orders" (id bigint PRIMARY KEY, "City" text, price numeric(8,2), day date); INSERT INTO "Orders" VALUES (1, 'Bern', 1.5, '2024-01-01'), (2, E'"x"\n', 20, '2024-01-01'), (3, NULL, NULL, '2024-01-01')`)
	s.Exec(`CREATE TABLE more AS SELECT * FROM "Orders"; INSERT INTO more VALUES (4, 'later', 0, '2024-01-02')`)
	address := s.Address("x")
	for name, c := range map[string]struct{ table, more string }{
		"a table":     {`"table":["public.\"Orders\""]`, `"column":["id","\"City\"","price"],"splitPk":"id",`},
		"a condition": {`"table":["more"]`, `"column":["id","\"City\"","price"],"where":"day = '${day}' -- of the day\n;",`},
		"a query":     {`"querySql":["SELECT id + 0, \"City\", price FROM more WHERE day < '2024-01-02' ORDER BY random();"]`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			if got := runDataX(t, dataxOf(address, "postgresqlreader", c.table, c.more), "day=2024-01-01"); got != dataxRows {
				t.Errorf("the table has\n%s, want\n%s", got, dataxRows)
			}
		})
	}
}

func TestMySQLOfDataX(t *testing.T) {
	s := mysqltest.Start(t)
	for _, part := range []string{"00", "01"} {
		s.Exec("CREATE TABLE orders_" + part + " (id bigint PRIMARY KEY, `City` varchar(20), price decimal(8,2))")
	}
	s.Exec("INSERT INTO orders_00 VALUES (1, 'Bern', 1.5), (3, NULL, NULL)", `INSERT INTO orders_01 VALUES (2, '"x"\n', 20)`)
	s.Exec("CREATE TABLE `my orders` (id int PRIMARY KEY, town varchar(20), price double)", "INSERT INTO `my orders` VALUES (1, 'Bern', 1.5), (2, 'Zürich', 2.5), (3, NULL, NULL)")
	for name, c := range map[string]struct{ table, more, want string }{
		"shards":      {`"table":["orders_[00-01]"]`, "\"column\":[\"id\",\"`City`\",\"price\"],", dataxRows},
		"a condition": {"\"table\":[\"`my orders`\"]", `"where":"town <> 'Bern' -- and so on","column":["id","town","price"],`, `{"order_id":2,"price":2.5,"town":"Zürich"}` + "\n"},
		"expressions": {"\"table\":[\"`my orders`\"]", `"column":["id * 10","upper(town) AS t","price"],`,
			`{"order_id":10,"price":1.5,"town":"BERN"}` + "\n" + `{"order_id":20,"price":2.5,"town":"ZÜRICH"}` + "\n" + `{"order_id":30}` + "\n"},
		"a query": {"\"querySql\":[\"select a.id, concat(b.town, '\\\\n'), 0.5e0 from `my orders` a join `my orders` b on b.id = a.id + 1 where b.town is not null;\"]", `"column":[],`,
			`{"order_id":1,"price":0.5,"town":"Zürich\n"}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := runDataX(t, dataxOf(s.Address("x"), "mysqlreader", c.table, c.more)); got != c.want {
				t.Errorf("the table has\n%s, want\n%s", got, c.want)
			}
		})
	}
}
