package datax

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"

	"example.com/tsimport/internal/conformance"
)

const orders = `{"job":{"setting":{"speed":{"channel":2},"errorLimit":{"record":0}},"content":[{"reader":{
"name":"txtfilereader","parameter":{"path":["/data/orders.csv"],"encoding":"UTF-8","fieldDelimiter":"|",
"skipHeader":"true","column":[{"index":0,"type":"long"},{"index":2,"type":"string"}]}},"writer":{"name":"otswriter",
"parameter":{"endpoint":"https://shop.cn-hangzhou.ots.aliyuncs.com","accessId":"AKID","accessKey":"s3cret",
"instanceName":"shop","table":"orders","primaryKey":[{"name":"id","type":"int"}],
"column":[{"name":"city","type":"string"}],"writeMode":"PutRow"}}}]}}`

func TestDataXJobsAreConverted(t *testing.T) {
	for name, c := range map[string]struct{ old, new, from, want string }{
		"a text file": {"", "", "/data/orders.csv", "pk=id:integer names=id,unused_1,city columns=city delimiter=| " +
			"skip-lines=1 max-errors=0 create=true null= empty=string type=city=string"},
		"an update":         {"PutRow", "UpdateRow", "/data/orders.csv", "mode=update on-null=delete"},
		"a share of errors": {`{"record":0}`, `{"percentage":0.07}`, "/data/orders.csv", "max-errors=7%"},
		"a null":            {`"encoding"`, `"nullFormat":"\\N","encoding"`, "/data/orders.csv", `null=\N empty=string`},
		"an empty null":     {`"encoding"`, `"nullFormat":"","encoding"`, "/data/orders.csv", `null="" empty=null`},
		"a variable":        {"/data/orders.csv", "/data/${day}.csv", "/data/${day}.csv", ""},
		"both limits":       {`{"record":0}`, `{"record":5,"percentage":0.02}`, "/data/orders.csv", "max-errors=5"},
	} {
		t.Run(name, func(t *testing.T) {
			j := conformance.Try(Convert([]byte(strings.Replace(orders, c.old, c.new, 1)))).Must(t)
			l := j.File.Loads[0]
			for _, setting := range strings.Fields(c.want) {
				key, want, _ := strings.Cut(setting, "=")
				conformance.Equal(t, l.Value(key), want, "%s", key)
			}
			conformance.True(t, len(l.From) == 1 && l.From[0] == c.from, "from %q", l.From)
			for _, s := range append(l.Settings, j.Target...) {
				text := strings.Join(s.Values, " ")
				conformance.True(t, !strings.Contains(text, "s3cret") && !strings.Contains(text, "AKID"), "%s holds a key", s.Key)
			}
		})
	}
}

func TestSettingsThatWouldSilentlyDifferAreRefused(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"PutRow", "DeleteRow", "writeMode"},
		{`"writeMode":"PutRow"`, `"writeMode":"UpdateRow","newVersion":"true"`, "newVersion"},
		{"txtfilereader", "ossreader", "write the load by hand (docs/jobs.md): from: oss://BUCKET/OBJECT"},
		{"txtfilereader", "postgresqlreader", "by hand (docs/jobs.md): from: postgres://"},
		{"txtfilereader", "oraclereader", `reader "oraclereader": not converted; write the load by hand`},
		{"txtfilereader", "hdfsreader", "not converted"},
		{`"table":"orders"`, `"table":"orders","defaultTimestampInMillionSecond":1`, "defaultTimestampInMillionSecond"},
		{`"table":"orders"`, `"table":"orders","mode":"multiVersion"`, "several versions"},
		{`"type":"int"`, `"type":"binary"`, "binary"},
		{`{"index":2,"type":"string"}`, `{"index":2,"type":"date","format":"yyyy"}`, "format"},
		{`{"index":2,"type":"string"}`, `{"index":2,"type":"long"}`, "and written as"},
		{`{"index":2,"type":"string"}`, `{"value":"x","type":"string"}`, "value"},
		{`{"index":2,"type":"string"}`, `{"index":0,"type":"string"}`, "same index"},
		{"/data/orders.csv", "/data/order?.csv", "no wildcard but *"},
		{"/data/orders.csv", "data/*.csv", "absolute file names"},
		{`"otswriter"`, `"txtfilewriter"`, "tsimport export"},
		{"/data/orders.csv", "/data/$day.csv", "write ${day}"},
		{"/data/orders.csv", "/data/${1day}.csv", "variable"},
		{`"UTF-8"`, `"Shift-JIS"`, "encoding"},
		{`{"record":0}`, `{"percentage":2}`, "percentage"},
		{`"content":[`, `"content":[{},`, "but DataX runs only the first"},
	} {
		_, err := Convert([]byte(strings.Replace(orders, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.to, err, c.want)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error shows the access key", c.to)
		}
	}
}

func TestWildcardsSpanFoldersLikeDataX(t *testing.T) {
	for theirs, ours := range map[string]string{"/data/*.csv": "/data/**/*.csv", "/data/*": "/data/**/*",
		"/data/${day}_*.csv": "/data/${day}_*.csv", "/data/**": "/data/**/*", "/data/**/*.csv": "/data/*/**/*.csv",
		"/data/*/orders.csv": "/data/*/**/orders.csv", "/data/dt=*/*/part*": "/data/dt=*/*/**/part*", "/*_a/b": "/**/*_a/b"} {
		j := conformance.Try(Convert([]byte(strings.Replace(orders, "/data/orders.csv", theirs, 1)))).Must(t)
		got := j.File.Loads[0].From
		conformance.True(t, len(got) == 1 && got[0] == ours && strings.Contains(strings.Join(j.Notes, "\n"), "path "+theirs),
			"%s: from %q, notes %q", theirs, got, j.Notes)
	}
}

// DataX looks below the folder before the first star, and a star matches any text.
func TestWildcardsMatchTheFilesOfDataX(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for _, f := range strings.Fields("a.csv b.txt dt=1/a.csv dt=1/x/a.csv dt=2/part0 dt=2/y/z/part1 e_a/b f/e_a/b " +
		"f/g/h/b.csv") {
		name := filepath.Join(dir, f)
		conformance.Must(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, nil, 0o600)))
		files = append(files, name)
	}
	for _, glob := range strings.Fields("*.csv * ** **/*.csv */a.csv dt=*/*/part* dt=*/* *_a/b f/*/b.csv f/*/*.csv x*") {
		theirs := regexp.MustCompile("^" + strings.ReplaceAll(filepath.Join(dir, glob), "*", ".*") + "$")
		var want []string
		for _, f := range files {
			if theirs.MatchString(f) {
				want = append(want, f)
			}
		}
		got, err := doublestar.FilepathGlob(new(Job).wildcard(dir+"/"+glob), doublestar.WithFilesOnly())
		slices.Sort(got)
		slices.Sort(want)
		conformance.True(t, err == nil && slices.Equal(got, want), "%s: %q, %v, want %q", glob, got, err, want)
	}
}

func TestMissingErrorLimitIsNoted(t *testing.T) {
	for text, want := range map[string]bool{orders: false, strings.Replace(orders, `,"errorLimit":{"record":0}`, ``,
		1): true} {
		j := conformance.Try(Convert([]byte(text))).Must(t)
		said := strings.Contains(strings.Join(j.Notes, "\n"), "without an error limit")
		conformance.True(t, said == want && (j.File.Loads[0].Value("max-errors") == "-1") == want,
			"%s: said %v, max-errors %s", text, said, j.File.Loads[0].Value("max-errors"))
	}
}

func FuzzConvert(f *testing.F) {
	f.Add([]byte(orders))
	f.Add([]byte(`{"job":{"content":[{}]}}`))
	f.Add([]byte(`{"job":null}`))
	f.Add([]byte(fromTable))
	f.Add([]byte(fromDatabase("orders[0-3]", "")))
	f.Fuzz(func(t *testing.T, text []byte) {
		j, err := Convert(text)
		conformance.MustTrue(t, err != nil || len(j.File.Loads) != 0, "a job without a load")
	})
}

const ofWriter = `"writer":{"name":"otswriter","parameter":{"endpoint":"https://shop.cn-hangzhou.ots.aliyuncs.com",
"accessId":"AKID","accessKey":"s3cret","instanceName":"shop","table":"orders","writeMode":"PutRow","primaryKey":
[{"name":"order_id","type":"int"}],"column":[{"name":"town","type":"string"},{"name":"price","type":"double"}]}}}]}}`

const fromTable = `{"job":{"setting":{"errorLimit":{"record":0}},"content":[{"reader":{"name":"otsreader","parameter":{
"endpoint":"https://shop.cn-hangzhou.ots.aliyuncs.com","accessId":"AKID","accessKey":"s3cret","instanceName":"shop",
"table":"old","column":[{"name":"id"},{"name":"city"},{"name":"price"}],"range":{"begin":[],"end":[]}}},` + ofWriter

func fromDatabase(table, more string) string {
	return fmt.Sprintf(`{"job":{"setting":{"errorLimit":{"record":0}},"content":[{"reader":{"name":"mysqlreader",
"parameter":{"username":"reader","password":"s3cret",%s"splitPk":"id","column":["id","City","price"],"connection":
[{"jdbcUrl":["jdbc:mysql://db.example:99/shop"],"table":[%q]}]}},`, more, table) + ofWriter
}

// converted returns a converted job, one line per load, and its notes.
func converted(t *testing.T, text string) (lines []string, notes string) {
	t.Helper()
	j := conformance.Try(Convert([]byte(text))).Must(t)
	for _, l := range j.File.Loads {
		line := []string{l.Name, l.Command, strings.Join(l.From, " ")}
		for _, s := range l.Settings {
			line = append(line, s.Key+"="+strings.Join(s.Values, ";"))
		}
		lines = append(lines, strings.Join(line, " "))
	}
	notes = strings.Join(j.Notes, "\n")
	all := strings.Join(lines, "") + notes
	conformance.True(t, !strings.Contains(all, "s3cret") && !strings.Contains(all, "AKID"), "a secret is shown: %s", all)
	return lines, notes
}

func TestReadersOfTablesAndDatabasesAreConverted(t *testing.T) {
	const (
		copied  = ` pk=order_id:integer=col("id") columns= set=town:string=col("city");price:double=col("price")`
		sql     = `create=true pk=order_id:integer=col("id") columns=City,price rename=City=town type=City=string;price=double`
		query   = " load mysql://reader@db.example:99/shop?key=order_id max-errors=0 create=true query="
		columns = " pk=order_id:integer columns=town,price type=town=string;price=double"
		with    = query + "WITH job (`order_id`, `town`, `price`) AS ("
		from    = "\n) SELECT `order_id`, `town`, `price` FROM job" + columns
	)
	for name, c := range map[string]struct {
		text        string
		want, notes []string
	}{
		"a table": {fromTable, []string{"orders copy ots://shop/old max-errors=0 create=true versions=1" + copied}, nil},
		"a table of another account": {strings.Replace(fromTable, `"AKID"`, `"other"`, 1),
			[]string{"orders copy ots://source@shop/old max-errors=0 create=true versions=1" + copied},
			[]string{"TABLESTORE_ENDPOINT_SOURCE=https://shop.cn-hangzhou.ots.aliyuncs.com, TABLESTORE_ACCESS_KEY_ID_SOURCE " +
				"and TABLESTORE_ACCESS_KEY_SECRET_SOURCE"}},
		"a range": {strings.Replace(fromTable, `"begin":[],"end":[]`,
			`"begin":[{"type":"string","value":"a,\"b"},{"type":"INF_MIN"}],"end":[{"type":"binary","value":"AQI="},{"type":"int","value":"-3"},{"type":"INF_MIN"}]`, 1),
			[]string{`orders copy ots://shop/old max-errors=0 create=true versions=1 from-key="a,\"b" to-key=0x0102,-3` +
				copied}, nil},
		"all keys": {strings.Replace(fromTable, `"begin":[],"end":[]`,
			`"begin":[{"type":"INF_MIN"}],"end":[{"type":"INF_MAX"}],"split":[{"type":"int","value":"7"}]`, 1),
			[]string{"orders copy ots://shop/old max-errors=0 create=true versions=1" + copied}, nil},
		"MySQL": {fromDatabase("`orders`", ""),
			[]string{"orders load mysql://reader@db.example:99/shop?table=orders max-errors=0 " + sql},
			[]string{"MYSQL_PWD", "written as text: town."}},
		"a TLS mode": {strings.Replace(fromDatabase("orders", ""), "/shop\"", "/shop?useSSL=true&serverTimezone=UTC\"", 1),
			[]string{"orders load mysql://reader@db.example:99/shop?ssl-mode=REQUIRED&table=orders max-errors=0 " + sql}, nil},
		"parts": {strings.Replace(fromDatabase("orders_[09-10], more", ""), `{"record":0}`, `{"record":5}`, 1), []string{
			"orders load mysql://reader@db.example:99/shop?table=orders_09 max-errors=5 " + sql,
			"orders_2 load mysql://reader@db.example:99/shop?table=orders_10 max-errors=5 " + sql + " table=orders",
			"orders_3 load mysql://reader@db.example:99/shop?table=more max-errors=5 " + sql + " table=orders",
		}, []string{"the error limit applies to each load"}},
		"a condition of MySQL": {fromDatabase("`my orders`", `"where":"day = '${day}' # today\n;",`), []string{
			"orders" + query + "SELECT id AS `order_id`, City AS `town`, price AS `price` FROM `my orders` " +
				"WHERE (day = '${day}' # today\n)" + columns,
		}, []string{"MYSQL_PWD", "are in UTC", "empty sql_mode", "${day} is now an environment variable",
			"no two rows of a query may share order_id"}},
		"expressions of MySQL": {strings.Replace(fromDatabase("orders", ""), `"City"`, `"upper(City) AS c"`, 1), []string{
			"orders" + with + "SELECT id, upper(City) AS c, price FROM orders" + from,
		}, []string{"MySQL 8.0 or MariaDB 10.2"}},
		"all columns of MySQL": {strings.Replace(fromDatabase("orders", ""), `["id","City","price"]`, `["*"]`, 1), []string{
			"orders" + with + "SELECT * FROM orders" + from,
		}, nil},
		"queries of MySQL": {strings.Replace(fromDatabase("x", ""), `"table":["x"]`,
			`"querySql":["select * from a;","select 1, 'x', 2.5"]`, 1), []string{
			"orders" + with + "select * from a" + from,
			"orders_2" + with + "select 1, 'x', 2.5" + from + " table=orders",
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

func TestUnsupportedReaderSettingsAreRefusedByName(t *testing.T) {
	my := fromDatabase("orders", "")
	for _, c := range []struct{ text, from, to, want string }{
		{fromTable, "PutRow", "UpdateRow", "writeMode UpdateRow"},
		{fromTable, `{"name":"city"}`, `{"type":"string","value":"x"}`, `column 2: "type"`},
		{fromTable, `,{"name":"price"}`, ``, "the reader has 2 columns, but the writer has 3"},
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
		{my, `,"price"]`, `]`, "the reader has 2 columns, but the writer has 3"},
		{my, `/shop"`, `/shop?sessionVariables=sql_mode=''"`, `"sessionVariables"`},
		{my, `"jdbc:mysql://db.example:99/shop"`, `"jdbc:mysql://a/shop","jdbc:mysql://b/shop"`, "keep one"},
		{my, `db.example:99`, `a,b`, "jdbcUrl"},
		{my, `/shop"`, `/shop?useSSL=yes"`, "useSSL=yes"},
		{my, `"table":["orders"]`, `"table":["orders; drop"]`, "orders; drop"},
		{my, `"table":["orders"]`, `"table":["o[0-5000]"]`, "more than"},
		{my, `"table":["orders"]`, `"table":["orders"],"querySql":["select 1"]`, "not both"},
	} {
		text := strings.Replace(c.text, c.from, c.to, 1)
		conformance.MustTrue(t, text != c.text, "%s is not in the job", c.from)
		if _, err := Convert([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.to, err, c.want)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error shows the password", c.to)
		}
	}
}

func TestSeveralJobFilesBecomeOneJob(t *testing.T) {
	all := func(texts ...string) *Job {
		var jobs []*Job
		for _, text := range texts {
			j := conformance.Try(Convert([]byte(text))).Must(t)
			jobs = append(jobs, j)
		}
		return Join(jobs)
	}
	j := all(fromTable, fromDatabase("a,b", ""), orders)
	var names []string
	for _, l := range j.File.Loads {
		names = append(names, l.Name+"/"+l.Table())
	}
	want := []string{"orders/orders", "orders_2/orders", "orders_3/orders", "orders_4/orders"}
	conformance.True(t, slices.Equal(names, want) && len(j.Target) == 2, "%q, target %v; want %q", names, j.Target, want)
	j = all(orders, strings.Replace(orders, `"shop"`, `"other"`, 1))
	conformance.True(t, len(j.Target) == 0 && j.File.Loads[0].Value("instance") == "shop" &&
		j.File.Loads[1].Value("instance") == "other" && j.File.Loads[1].Value("endpoint") != "",
		"two instances: target %v, loads %+v", j.Target, j.File.Loads)
}
