//go:build e2e

package e2e

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tsimport/reader/mysql/mysqltest"
)

// fromMySQL is a load of a table of a real server. What the target holds is exported and compared with what the server's driver reads.
type fromMySQL struct {
	t      *testing.T
	server *mysqltest.Server
	dir    string
}

func (d *fromMySQL) make(rows string) {
	d.server.Exec("DROP TABLE IF EXISTS orders", "CREATE TABLE orders (id bigint PRIMARY KEY, customer varchar(40) NOT NULL, price decimal(12,2), paid bit(1), at timestamp(3) NULL, w double, note text, raw blob)",
		`INSERT INTO orders SELECT CAST(seq AS INT) * 7 - 1000, CONCAT('customer "', seq MOD 1000, '", \\ é\n'), seq / 100.0, seq MOD 3 = 0, '2024-01-01' + INTERVAL seq SECOND, seq / 3e0, IF(seq MOD 5 > 0, MD5(seq), NULL), UNHEX(MD5(seq)) FROM seq_1_to_`+rows, "ANALYZE TABLE orders")
}

func (d *fromMySQL) command(more ...string) *exec.Cmd {
	args := append([]string{"load", d.server.Address("orders"), "--table", "orders", "--store", "store", "--sync", "none", "--run-dir", "run"}, more...)
	c := exec.Command(binary, args...)
	c.Dir = d.dir
	c.Env = append(os.Environ(), "TSIMPORT_CHECKPOINT_EVERY=50ms")
	return c
}

// compare fails if a cell differs.
func (d *fromMySQL) compare() {
	d.t.Helper()
	c := exec.Command(binary, "export", "--table", "orders", "--store", "store", "--format", "jsonl", "-o", "back.jsonl")
	c.Dir = d.dir
	if out, err := c.CombinedOutput(); err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
	f, err := os.Open(filepath.Join(d.dir, "back.jsonl"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	rows, err := d.server.DB.Query("SELECT id, customer, CAST(price AS CHAR), paid + 0, DATE_FORMAT(CONVERT_TZ(at, @@session.time_zone, '+00:00'), '%Y-%m-%dT%H:%i:%s.%f'), w, note, raw FROM orders ORDER BY id")
	if err != nil {
		d.t.Fatal(err)
	}
	defer rows.Close()
	lines := bufio.NewScanner(f)
	n := 0
	for ; rows.Next(); n++ {
		var id, paid int64
		var customer, price, at string
		var w float64
		var note *string
		var raw []byte
		if err := rows.Scan(&id, &customer, &price, &paid, &at, &w, &note, &raw); err != nil {
			d.t.Fatal(err)
		}
		if !lines.Scan() {
			d.t.Fatalf("%d rows: there are more at the server", n)
		}
		var got struct {
			ID       json.Number
			Customer string
			Price    string
			Paid     bool
			At       string
			W        json.Number
			Note     *string
			Raw      struct{ Base64 string }
		}
		if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
			d.t.Fatal(err)
		}
		number, _ := strconv.ParseFloat(string(got.W), 64)
		bytes, _ := base64.StdEncoding.DecodeString(got.Raw.Base64)
		same := string(got.ID) == fmt.Sprint(id) && got.Customer == customer && got.Price == price && got.Paid == (paid == 1) && got.At == at[:23]+"Z" && number == w && string(bytes) == string(raw) &&
			(got.Note == nil) == (note == nil) && (note == nil || *got.Note == *note)
		if !same {
			d.t.Fatalf("row %d of the server is %s", id, lines.Bytes())
		}
	}
	if err := rows.Err(); err != nil || lines.Scan() {
		d.t.Errorf("%d rows at the server, and more in the table: %v", n, err)
	}
}

func (d *fromMySQL) folder() string { return d.dir }

func TestMySQL(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	s := mysqltest.Start(t)
	round := func(t *testing.T, rows string) *fromMySQL {
		d := &fromMySQL{t: t, server: s, dir: t.TempDir()}
		d.make(rows)
		return d
	}
	t.Run("a million rows are loaded as they are", func(t *testing.T) {
		d := round(t, "1000000")
		if out, err := d.command("--require-snapshot", "--verify").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if sum := summaryOf(t, d); sum.Consistent == nil || !*sum.Consistent || len(sum.Snapshots) != 1 || len(sum.Snapshots[0].Ranges) < 10 || sum.Written != 1000000 {
			t.Errorf("%+v", sum)
		}
		d.compare()
	})
	small := func(t *testing.T) liveLoad { return round(t, "30000") }
	t.Run("loads that are killed are resumed", func(t *testing.T) { loseClients(t, small) })
	t.Run("loads whose server is killed continue", func(t *testing.T) {
		loseServers(t, small, func() {
			s.Kill()
			s.Go()
		})
	})
	t.Run("all rows are of one moment while they change", func(t *testing.T) {
		s.Exec("CREATE TABLE moving (id int PRIMARY KEY, n int NOT NULL, mark text NOT NULL, pad text)", fmt.Sprintf("INSERT INTO moving SELECT seq, 0, MD5(CONCAT(seq, ':', 0)), REPEAT('x', 80) FROM seq_1_to_%d", movingRows), "ANALYZE TABLE moving")
		loadMoving(t, t.TempDir(), s.Address("moving"), func(n int) {
			up, down := movingRows/2+n*7919%(movingRows/2), movingRows/2+(n*7919+104729)%(movingRows/2)
			tx, err := s.DB.Begin()
			must(t, err)
			for _, sql := range []string{
				fmt.Sprintf("UPDATE moving SET n = n + 1, mark = MD5(CONCAT(id, ':', n)) WHERE id = %d", up), fmt.Sprintf("UPDATE moving SET n = n - 1, mark = MD5(CONCAT(id, ':', n)) WHERE id = %d", down),
				fmt.Sprintf("UPDATE moving SET id = %d, mark = MD5(CONCAT(id, ':', n)) WHERE id = %d", movingRows+n+1, n+1),
			} {
				_, err := tx.Exec(sql)
				must(t, err)
			}
			must(t, tx.Commit())
		})
	})
	t.Run("a load is made for each table that is found", func(t *testing.T) {
		for _, table := range []string{"customers", "items", "orders"} {
			s.Exec(fmt.Sprintf("CREATE TABLE shop_%s (id int PRIMARY KEY, v varchar(30))", table), fmt.Sprintf("INSERT INTO shop_%s SELECT seq, CONCAT('%[1]s ', seq) FROM seq_1_to_20000", table), "ANALYZE TABLE shop_"+table)
		}
		s.Exec("CREATE VIEW shop_seen AS SELECT 1")
		loadAllOfShop(t, s.Address)
	})
	t.Run("queries of a job of DataX are loaded", func(t *testing.T) {
		s.Exec("CREATE TABLE `my orders` (id int PRIMARY KEY, town varchar(20), price double, at timestamp)",
			"INSERT INTO `my orders` VALUES (1, 'Bern', 1.5, '2024-01-01 00:00:00'), (2, 'Zürich', 2.5, '2024-06-01 00:00:00'), (3, NULL, NULL, '2024-07-01 00:00:00')")
		host := strings.TrimSuffix(strings.TrimPrefix(s.Address(""), "mysql://root@"), "/shop?table=")
		for name, tt := range map[string]struct{ more, column, connection, want string }{
			"a condition": {`"where":"town <> 'Bern' -- and so on",`, `["id","town","price"]`, "\"table\":[\"`my orders`\"]", `{"order_id":2,"price":2.5,"town":"Zürich"}` + "\n"},
			"expressions": {"", `["id * 10","upper(town) AS t","price"]`, "\"table\":[\"`my orders`\"]",
				`{"order_id":10,"price":1.5,"town":"BERN"}` + "\n" + `{"order_id":20,"price":2.5,"town":"ZÜRICH"}` + "\n" + `{"order_id":30}` + "\n"},
			"a query": {"", `[]`, "\"querySql\":[\"select a.id, concat(b.town, '\\\\n'), 0.5e0 from `my orders` a join `my orders` b on b.id = a.id + 1 where b.town is not null;\"]",
				`{"order_id":1,"price":0.5,"town":"Zürich\n"}` + "\n"},
		} {
			dir := t.TempDir()
			text := fmt.Sprintf(`{"job":{"setting":{"errorLimit":{"record":0}},"content":[{"reader":{"name":"mysqlreader","parameter":{"username":"root","password":"",%s"column":%s,
				"connection":[{"jdbcUrl":["jdbc:mysql://%s/shop?useSSL=false"],%s}]}},"writer":{"name":"otswriter","parameter":{"endpoint":"","accessId":"","accessKey":"","instanceName":"","table":"orders",
				"primaryKey":[{"name":"order_id","type":"int"}],"column":[{"name":"town","type":"string"},{"name":"price","type":"double"}],"writeMode":"PutRow"}}}]}}`, tt.more, tt.column, host, tt.connection)
			must(t, os.WriteFile(filepath.Join(dir, "theirs.json"), []byte(text), 0o644))
			resultIn(t, dir, "convert", "datax", "theirs.json", "-o", "ours.yaml")
			resultIn(t, dir, "run", "ours.yaml", "--store", "store")
			if got := resultIn(t, dir, "export", "--table", "orders", "--store", "store", "--format", "jsonl", "-q"); got != tt.want {
				t.Errorf("%s: %s, want %s", name, got, tt.want)
			}
		}
	})
	t.Run("no password is kept", func(t *testing.T) {
		d := round(t, "10")
		s.Exec("CREATE USER guarded@'127.0.0.1' IDENTIFIED BY 'planted-secret'", "GRANT SELECT ON shop.* TO guarded@'127.0.0.1'")
		guarded := strings.Replace(s.Address("orders"), "root@", "guarded@", 1)
		for _, v := range []struct {
			address, password string
			code              int
		}{{strings.Replace(guarded, "guarded@", "guarded:planted-secret@", 1), "", 2}, {guarded, "wrong-planted", 2}, {guarded, "planted-secret", 0}} {
			c := exec.Command(binary, "load", v.address, "--table", "orders", "--store", "store", "--run-dir", "run")
			c.Dir, c.Env = d.dir, append(os.Environ(), "MYSQL_PWD="+v.password)
			out, err := c.CombinedOutput()
			if c.ProcessState.ExitCode() != v.code || strings.Contains(string(out), "planted") {
				t.Errorf("%v: %s", err, out)
			}
		}
		d.compare()
		if out, _ := exec.Command("grep", "-r", "planted", d.dir).CombinedOutput(); len(out) > 0 {
			t.Errorf("kept: %s", out)
		}
	})
}
