package datax

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

const ofWriter = `"writer":{"name":"otswriter","parameter":{"endpoint":"https://shop.cn-hangzhou.ots.aliyuncs.com","accessId":"AKID","accessKey":"s3cret",
"instanceName":"shop","table":"orders","primaryKey":[{"name":"order_id","type":"int"}],"column":[{"name":"town","type":"string"},{"name":"price","type":"double"}],"writeMode":"PutRow"}}}]}}`

// fromTable is a table that is copied into another one.
const fromTable = `{"job":{"setting":{"errorLimit":{"record":0}},"content":[{"reader":{"name":"otsreader","parameter":{"endpoint":"https://shop.cn-hangzhou.ots.aliyuncs.com",
"accessId":"AKID","accessKey":"s3cret","instanceName":"shop","table":"old","column":[{"name":"id"},{"name":"city"},{"name":"price"}],"range":{"begin":[],"end":[]}}},` + ofWriter

// fromDatabase is a table of a database.
func fromDatabase(table, more string) string {
	return fmt.Sprintf(`{"job":{"setting":{"errorLimit":{"record":0}},"content":[{"reader":{"name":"mysqlreader","parameter":{"username":"reader","password":"s3cret",%s"splitPk":"id",
"column":["id","City","price"],"connection":[{"jdbcUrl":["jdbc:mysql://db.example:99/shop"],"table":[%q]}]}},`, more, table) + ofWriter
}

// converted is what a job became, a line for each load.
func converted(t *testing.T, text string) (lines []string, notes string) {
	t.Helper()
	j, err := Convert([]byte(text))
	must(t, err)
	for _, l := range j.File.Loads {
		line := []string{l.Name, l.Command, strings.Join(l.From, " ")}
		for _, s := range l.Settings {
			line = append(line, s.Key+"="+strings.Join(s.Values, ";"))
		}
		lines = append(lines, strings.Join(line, " "))
	}
	notes = strings.Join(j.Notes, "\n")
	if all := strings.Join(lines, "") + notes; strings.Contains(all, "s3cret") || strings.Contains(all, "AKID") {
		t.Errorf("an access key or password is shown: %s", all)
	}
	return lines, notes
}

func TestReadersOfTablesAndDatabasesAreConverted(t *testing.T) {
	const sql = `create=true pk=order_id:integer=col("id") columns=%s,price rename=%[1]s=town type=%[1]s=string;price=double`
	for name, c := range map[string]struct {
		text        string
		want, notes []string
	}{
		"a table": {fromTable, []string{`orders copy ots://shop/old max-errors=0 create=true versions=1 pk=order_id:integer=col("id") columns= set=town:string=col("city");price:double=col("price")`}, nil},
		"a table of another account": {strings.Replace(fromTable, `"AKID"`, `"other"`, 1), []string{`orders copy ots://source@shop/old max-errors=0 create=true versions=1 pk=order_id:integer=col("id") columns= set=town:string=col("city");price:double=col("price")`},
			[]string{"TABLESTORE_ENDPOINT_SOURCE=https://shop.cn-hangzhou.ots.aliyuncs.com, TABLESTORE_ACCESS_KEY_ID_SOURCE and TABLESTORE_ACCESS_KEY_SECRET_SOURCE"}},
		"a range": {strings.Replace(fromTable, `"begin":[],"end":[]`, `"begin":[{"type":"string","value":"a,\"b"},{"type":"INF_MIN"}],"end":[{"type":"binary","value":"AQI="},{"type":"int","value":"-3"},{"type":"INF_MIN"}]`, 1),
			[]string{`orders copy ots://shop/old max-errors=0 create=true versions=1 from-key="a,\"b" to-key=0x0102,-3 pk=order_id:integer=col("id") columns= set=town:string=col("city");price:double=col("price")`}, nil},
		"all keys": {strings.Replace(fromTable, `"begin":[],"end":[]`, `"begin":[{"type":"INF_MIN"}],"end":[{"type":"INF_MAX"}],"split":[{"type":"int","value":"7"}]`, 1),
			[]string{`orders copy ots://shop/old max-errors=0 create=true versions=1 pk=order_id:integer=col("id") columns= set=town:string=col("city");price:double=col("price")`}, nil},
		"MySQL": {fromDatabase("`orders`", ""), []string{"orders load mysql://reader@db.example:99/shop?table=orders max-errors=0 " + fmt.Sprintf(sql, "City")}, []string{"MYSQL_PWD", "written as text: town."}},
		"parameters of MySQL": {strings.Replace(fromDatabase("orders", ""), "/shop\"", "/shop?useSSL=true&serverTimezone=UTC\"", 1),
			[]string{"orders load mysql://reader@db.example:99/shop?ssl-mode=REQUIRED&table=orders max-errors=0 " + fmt.Sprintf(sql, "City")}, nil},
		"parts of a table": {strings.Replace(fromDatabase("orders_[09-10], more", ""), `{"record":0}`, `{"record":5}`, 1), []string{
			"orders load mysql://reader@db.example:99/shop?table=orders_09 max-errors=5 " + fmt.Sprintf(sql, "City"),
			"orders_2 load mysql://reader@db.example:99/shop?table=orders_10 max-errors=5 " + fmt.Sprintf(sql, "City") + " table=orders",
			"orders_3 load mysql://reader@db.example:99/shop?table=more max-errors=5 " + fmt.Sprintf(sql, "City") + " table=orders",
		}, []string{"the limit of errors is that of each load"}},
		"a condition of MySQL": {fromDatabase("`my orders`", `"where":"day = '${day}' # today\n;",`), []string{
			"orders load mysql://reader@db.example:99/shop?key=order_id max-errors=0 create=true query=SELECT id AS `order_id`, City AS `town`, price AS `price` FROM `my orders` WHERE (day = '${day}' # today\n)" +
				" pk=order_id:integer columns=town,price type=town=string;price=double",
		}, []string{"MYSQL_PWD", "are of UTC", "empty sql_mode", "${day} is a variable of the environment", "no two rows of a query may share order_id"}},
		"expressions of MySQL": {strings.Replace(fromDatabase("orders", ""), `"City"`, `"upper(City) AS c"`, 1), []string{
			"orders load mysql://reader@db.example:99/shop?key=order_id max-errors=0 create=true query=WITH job (`order_id`, `town`, `price`) AS (SELECT id, upper(City) AS c, price FROM orders\n) SELECT `order_id`, `town`, `price` FROM job" +
				" pk=order_id:integer columns=town,price type=town=string;price=double",
		}, []string{"MySQL 8.0 or MariaDB 10.2"}},
		"all columns of MySQL": {strings.Replace(fromDatabase("orders", ""), `["id","City","price"]`, `["*"]`, 1), []string{
			"orders load mysql://reader@db.example:99/shop?key=order_id max-errors=0 create=true query=WITH job (`order_id`, `town`, `price`) AS (SELECT * FROM orders\n) SELECT `order_id`, `town`, `price` FROM job" +
				" pk=order_id:integer columns=town,price type=town=string;price=double",
		}, nil},
		"queries of MySQL": {strings.Replace(fromDatabase("x", ""), `"table":["x"]`, `"querySql":["select * from a;","select 1, 'x', 2.5"]`, 1), []string{
			"orders load mysql://reader@db.example:99/shop?key=order_id max-errors=0 create=true query=WITH job (`order_id`, `town`, `price`) AS (select * from a\n) SELECT `order_id`, `town`, `price` FROM job" +
				" pk=order_id:integer columns=town,price type=town=string;price=double",
			"orders_2 load mysql://reader@db.example:99/shop?key=order_id max-errors=0 create=true query=WITH job (`order_id`, `town`, `price`) AS (select 1, 'x', 2.5\n) SELECT `order_id`, `town`, `price` FROM job" +
				" pk=order_id:integer columns=town,price type=town=string;price=double table=orders",
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, notes := converted(t, c.text)
			conformance.Same(t, got, c.want, "got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			for _, want := range c.notes {
				conformance.Contains(t, notes, want, "notes")
			}
		})
	}
}

func TestWhatReadersOfTablesAndDatabasesCannotIsRefusedByName(t *testing.T) {
	my := fromDatabase("orders", "")
	for _, c := range []struct{ text, from, to, want string }{
		{fromTable, "PutRow", "UpdateRow", "writeMode UpdateRow"},
		{fromTable, `{"name":"city"}`, `{"type":"string","value":"x"}`, `column 2: "type"`},
		{fromTable, `,{"name":"price"}`, ``, "the reader has 2 and the writer 3"},
		{fromTable, `"range"`, `"mode":"multiVersion","range"`, "docs/copy.md"},
		{fromTable, `"end":[]`, `"end":[{"type":"int","value":"9"}]`, "end: DataX reads to the end"},
		{fromTable, `"end":[]`, `"end":[{"type":"int","value":"9"},{"type":"INF_MAX"}]`, "end: DataX reads to the end"},
		{fromTable, `"begin":[]`, `"begin":[{"type":"INF_MAX"}]`, "backward"},
		{fromTable, `"begin":[]`, `"begin":[{"type":"INF_MIN"},{"type":"int","value":"9"}]`, "after INF_MIN"},
		{fromTable, `"begin":[]`, `"begin":[{"type":"double","value":"9"}]`, `"DOUBLE"`},
		{fromTable, `"range"`, `"maxVersion":3,"range"`, "maxVersion"},
		{fromTable, `"town","type":"string"`, `"town"`, `type`},
		{my, `"splitPk"`, `"session":["set names utf8"],"splitPk"`, "session"},
		{my, `"splitPk"`, `"where":"a = $day","splitPk"`, "write ${day}"},
		{my, `"type":"int"`, `"type":"double"`, "key column"},
		{my, `"City"`, `"id"`, "read twice"},
		{my, `,"price"]`, `]`, "the reader has 2 columns and the writer 3"},
		{my, `/shop"`, `/shop?sessionVariables=sql_mode=''"`, `"sessionVariables"`},
		{my, `"jdbc:mysql://db.example:99/shop"`, `"jdbc:mysql://a/shop","jdbc:mysql://b/shop"`, "keep one"},
		{my, `db.example:99`, `a,b`, "jdbcUrl"},
		{my, `"table":["orders"]`, `"table":["orders; drop"]`, "orders; drop"},
		{my, `"table":["orders"]`, `"table":["o[0-5000]"]`, "more than"},
		{my, `"table":["orders"]`, `"table":["orders"],"querySql":["select 1"]`, "not both"},
	} {
		text := strings.Replace(c.text, c.from, c.to, 1)
		if text == c.text {
			t.Fatalf("%s is not in the job", c.from)
		}
		if _, err := Convert([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.to, err, c.want)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error shows the password", c.to)
		}
	}
}

func TestJobsOfOneFileEachBecomeOneJob(t *testing.T) {
	all := func(texts ...string) *Job {
		var jobs []*Job
		for _, text := range texts {
			j, err := Convert([]byte(text))
			must(t, err)
			jobs = append(jobs, j)
		}
		return Join(jobs)
	}
	j := all(fromTable, fromDatabase("a,b", ""), orders)
	var names []string
	for _, l := range j.File.Loads {
		names = append(names, l.Name+"/"+l.Table())
	}
	if want := []string{"orders/orders", "orders_2/orders", "orders_3/orders", "orders_4/orders"}; !slices.Equal(names, want) || len(j.Target) != 2 {
		t.Errorf("loads %q, target %v; want %q", names, j.Target, want)
	}
	j = all(orders, strings.Replace(orders, `"shop"`, `"other"`, 1))
	if len(j.Target) != 0 || j.File.Loads[0].Value("instance") != "shop" || j.File.Loads[1].Value("instance") != "other" || j.File.Loads[1].Value("endpoint") == "" {
		t.Errorf("two instances: target %v, loads %+v", j.Target, j.File.Loads)
	}
}
