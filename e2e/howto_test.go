//go:build e2e

package e2e

import (
	"os"
	"strings"
	"testing"

	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/postgres/pgtest"
)

// before are commands that give a page what its reader has already: files to load, a load that was interrupted.
var before = map[string][]string{
	"how-to/after-an-incident.md": {
		`tsimport load orders.csv --table interrupted --pk CardID --pk DeviceID --pk OrderNumber --max-rows-per-second 1000 & ` +
			`until ls tsimport-runs/*-interrupted/checkpoint.bin; do kill -0 $!; sleep 0.05; done; kill -9 $!; ! wait $!`,
	},
	"copy.md": {
		`printf 'room,text\nhall,hello\nyard,hi\nhall,bye\n' > chat.csv`,
		`tsimport load chat.csv --table chat --create --pk room --pk id:auto`,
	},
	"how-to/document-exports.md": {
		`printf '%s\n' '{"_id":{"$oid":"64f1c0ffee0000000000abcd"},"name":"Ann","visits":{"$numberLong":"12"},"since":{"$date":{"$numberLong":"1718000000000"}}}' > customers.json`,
		`printf '%s\n' '{"Item":{"id":{"S":"a-7"},"price":{"N":"12.5"},"paid":{"BOOL":true}}}' | gzip > purchases.json.gz`,
	},
	"how-to/excel.md": {
		`printf '\xef\xbb\xbfsep=;\r\nid;item;code\r\n1;"tea; green";007\r\n2;coffee;008\r\n' > stock.csv`,
	},
	"how-to/archive-and-restore.md": {
		`printf 'group,text\ntea,hello\ntea,hi\n' > messages.csv`,
		`tsimport load messages.csv --table messages --create --pk group --pk seq:auto`,
		`tsimport export --table messages -o messages-archive --format archive`,
	},
	"coming-from/datax.md": {
		`printf 'id|city\n1|Hangzhou\n' > cities.txt`,
		`printf '%s' '{"job":{"setting":{},"content":[{"reader":{"name":"txtfilereader","parameter":{"path":["'$PWD'/cities.txt"],"encoding":"UTF-8","fieldDelimiter":"|",` +
			`"skipHeader":"true","column":[{"index":0,"type":"long"},{"index":1,"type":"string"}]}},"writer":{"name":"otswriter","parameter":{"endpoint":"https://shop.cn-hangzhou.ots.aliyuncs.com",` +
			`"accessId":"","accessKey":"","instanceName":"shop","table":"orders","primaryKey":[{"name":"id","type":"int"}],"column":[{"name":"city","type":"string"}],"writeMode":"PutRow"}}}]}}' > orders.json`,
	},
	"coming-from/tablestorewriter.md": {`printf 'id,item\n1,tea\n' > rows.csv && rm -rf tsimport-store`},
	"coming-from/tablestore-cli.md":   {`printf '%s\n' '{"PK":{"Values":[7]},"Attr":{"Values":[{"C":"item","V":"tea"}]}}' > rows.json && rm -rf tsimport-store`},
}

// TestTheHowToOfDatabasesRunsAgainstServers runs the commands of the page against a real MariaDB and PostgreSQL.
func TestTheHowToOfDatabasesRunsAgainstServers(t *testing.T) {
	my, pg := mysqltest.Start(t), pgtest.Start(t)
	my.Exec("CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(20))", "INSERT INTO orders VALUES (1, 'tea'), (2, 'coffee')",
		"CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(20))", "INSERT INTO customers VALUES (1, 'Ann')")
	pg.Exec("CREATE TABLE orders (id int PRIMARY KEY, item text); INSERT INTO orders VALUES (1, 'tea'), (2, 'coffee')")
	text, err := os.ReadFile("../docs/how-to/databases.md")
	must(t, err)
	here := strings.NewReplacer(
		"mysql://reader@db.example/shop?table=", my.Address(""), "mysql://reader@db.example/shop", strings.TrimSuffix(my.Address(""), "?table="),
		"postgres://reader@db.example/shop?table=", pg.Address(""))
	p := newPlace(t)
	_, job, found := strings.Cut(string(text), "```yaml\n")
	if !found {
		t.Fatal("the page has no job")
	}
	job, _, _ = strings.Cut(job, "```")
	p.write("shop.yaml", here.Replace(job))
	ran := 0
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			ran++
			if r := p.bash(here.Replace(line)); r.wait() != 0 {
				t.Errorf("%s%v\n%s", line, r.ProcessState, &r.said)
			}
		}
	}
	if ran < 7 {
		t.Errorf("only %d commands were run", ran)
	}
}
