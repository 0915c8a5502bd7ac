//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
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
		if err != nil {
			t.Fatal(err)
		}
		address.RawQuery = "sslmode=disable"
		dump, err := exec.Command("pg_dump", address.String()).Output()
		if err != nil {
			t.Fatal(err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		dump, err := exec.Command("mysqldump", "--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--port="+address.Port(), "--user=root", "--default-character-set=utf8mb4", "shop").Output()
		if err != nil {
			t.Fatal(err)
		}
		loadShop(t, dump, s.Address)
	})
}

// loadShop loads the shop by a job of six loads.
func loadShop(t *testing.T, dump []byte, address func(table string) string) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "shop.sql"), dump, 0o644); err != nil {
		t.Fatal(err)
	}
	writeGzip(t, filepath.Join(dir, "shop.sql.gz"), string(dump))
	job := "version: 1\ntarget: {store: ./store}\ndefaults: {sync: none, create: true}\nloads:\n"
	shop := map[string]int{"customers": 2000, "orders": 5000, "lines": 20000}
	for table := range shop {
		file := "shop.sql"
		if table == "lines" {
			file += ".gz"
		}
		job += fmt.Sprintf("  %s_live: {from: [%q]}\n  %s_dump: {from: [%s], source-table: %s}\n", table, address(table), table, file, table)
	}
	if err := os.WriteFile(filepath.Join(dir, "job.yaml"), []byte(job), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		c := exec.Command(binary, args...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	run("run", "job.yaml")
	for table, rows := range shop {
		var both [2][]byte
		for i, from := range []string{"_live", "_dump"} {
			out := table + from + ".jsonl"
			run("export", "--store", "store", "--table", table+from, "--format", "jsonl", "-o", out)
			var err error
			if both[i], err = os.ReadFile(filepath.Join(dir, out)); err != nil {
				t.Fatal(err)
			}
		}
		if n := bytes.Count(both[0], []byte("\n")); n != rows || !bytes.Equal(both[0], both[1]) {
			t.Errorf("%s: %d rows live, %d of the dump, and they are not equal", table, n, bytes.Count(both[1], []byte("\n")))
		}
	}
}
