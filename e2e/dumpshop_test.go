//go:build e2e

package e2e

import (
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"tsimport/reader/mysql/mysqltest"
	"tsimport/reader/postgres/pgtest"
)

// TestDumpsOfAShop loads three tables of a real server and the same tables of its dump in one job, and compares them.
func TestDumpsOfAShop(t *testing.T) {
	t.Run("PostgreSQL", func(t *testing.T) {
		s := pgtest.Start(t)
		s.Exec(`CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, since timestamptz); CREATE TABLE orders (id bigint PRIMARY KEY, customer int, total numeric(12,2), paid boolean, raw bytea, spent interval);
			CREATE TABLE lines ("order" bigint, n smallint, item text, weight double precision, PRIMARY KEY ("order", n));
			INSERT INTO customers SELECT i, E'customer "\\' || i || E'\n\té', '2024-01-01'::timestamptz + i * interval '1.25 h' FROM generate_series(1, 2000) i;
			INSERT INTO orders SELECT i, i % 2000, CASE WHEN i % 7 > 0 THEN i / 100.0 END, i % 2 = 0, decode(md5(i::text), 'hex'), i * interval '1 day 1 s' FROM generate_series(1, 5000) i;
			INSERT INTO lines SELECT i / 3, i % 3, 'item ' || i % 100, i / 3.0 FROM generate_series(1, 20000) i`)
		address, err := url.Parse(s.Address("x"))
		must(t, err)
		address.RawQuery = "sslmode=disable"
		dump, err := exec.Command("pg_dump", address.String()).Output()
		must(t, err)
		loadShop(t, dump, s.Address)
	})
	t.Run("MariaDB", func(t *testing.T) {
		s := mysqltest.Start(t)
		s.Exec("CREATE TABLE customers (id int PRIMARY KEY, name varchar(50) NOT NULL, since timestamp(3) NULL)", "CREATE TABLE orders (id bigint PRIMARY KEY, customer int, total decimal(12,2), paid bit(1), raw varbinary(16), spent time)",
			"CREATE TABLE `lines` (`order` bigint, n smallint, item text, weight double, PRIMARY KEY (`order`, n))",
			`INSERT INTO customers SELECT seq, CONCAT('customer "\\', seq, '\n\té'), '2024-01-01' + INTERVAL seq * 1250 SECOND FROM seq_1_to_2000`,
			"INSERT INTO orders SELECT seq, seq % 2000, IF(seq % 7 > 0, seq / 100, NULL), seq % 2, UNHEX(MD5(seq)), SEC_TO_TIME(seq) FROM seq_1_to_5000",
			"INSERT INTO `lines` SELECT seq DIV 3, seq % 3, CONCAT('item ', seq % 100), seq / 3e0 FROM seq_1_to_20000", "ANALYZE TABLE `lines`")
		address, err := url.Parse(s.Address("x"))
		must(t, err)
		dump, err := exec.Command("mysqldump", "--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--port="+address.Port(), "--user=root", "--default-character-set=utf8mb4", "shop").Output()
		must(t, err)
		loadShop(t, dump, s.Address)
	})
}

// loadShop loads the shop by a job of six loads.
func loadShop(t *testing.T, dump []byte, address func(table string) string) {
	p := newPlace(t)
	p.write("shop.sql", string(dump))
	writeGzip(t, p.path("shop.sql.gz"), string(dump))
	job := "version: 1\ntarget: {store: ./store}\ndefaults: {sync: none, create: true}\nloads:\n"
	shop := map[string]int{"customers": 2000, "orders": 5000, "lines": 20000}
	for table := range shop {
		file := "shop.sql"
		if table == "lines" {
			file += ".gz"
		}
		job += fmt.Sprintf("  %s_live: {from: [%q]}\n  %s_dump: {from: [%s], source-table: %s}\n", table, address(table), table, file, table)
	}
	p.write("job.yaml", job)
	p.run(0, "run", "job.yaml")
	for table, rows := range shop {
		live, dumped := p.output("export", "--store", "store", "--table", table+"_live", "--format", "jsonl"), p.output("export", "--store", "store", "--table", table+"_dump", "--format", "jsonl")
		if n := strings.Count(live, "\n"); n != rows || live != dumped {
			t.Errorf("%s: %d rows live, %d of the dump, and they are not equal", table, n, strings.Count(dumped, "\n"))
		}
	}
}
