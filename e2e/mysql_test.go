//go:build e2e

package e2e

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"tsimport/reader/mysql/mysqltest"
)

// fromMySQL is a load of a table of a real server. What the target holds is exported and compared with what the server's driver reads.
func fromMySQL(t *testing.T, s *mysqltest.Server, rows int) *liveLoad {
	s.Exec("DROP TABLE IF EXISTS orders", "CREATE TABLE orders (id bigint PRIMARY KEY, customer varchar(40) NOT NULL, price decimal(12,2), paid bit(1), at timestamp(3) NULL, w double, note text, raw blob)",
		`INSERT INTO orders SELECT CAST(seq AS INT) * 7 - 1000, CONCAT('customer "', seq MOD 1000, '", \\ é\n'), seq / 100.0, seq MOD 3 = 0, '2024-01-01' + INTERVAL seq SECOND, seq / 3e0, IF(seq MOD 5 > 0, MD5(seq), NULL), UNHEX(MD5(seq)) FROM seq_1_to_`+fmt.Sprint(rows), "ANALYZE TABLE orders")
	d := newLiveLoad(t, s.Address("orders"))
	d.compare = func() {
		t.Helper()
		back := d.back() // before the query, which does not wait for an export
		stored, err := s.DB.Query("SELECT id, customer, CAST(price AS CHAR), paid + 0, DATE_FORMAT(CONVERT_TZ(at, @@session.time_zone, '+00:00'), '%Y-%m-%dT%H:%i:%s.%f'), w, note, raw FROM orders ORDER BY id")
		must(t, err)
		defer stored.Close()
		lines := bufio.NewScanner(back)
		n := 0
		for ; stored.Next(); n++ {
			var id, paid int64
			var customer, price, at string
			var w float64
			var note *string
			var raw []byte
			must(t, stored.Scan(&id, &customer, &price, &paid, &at, &w, &note, &raw))
			if !lines.Scan() {
				t.Fatalf("%d rows: there are more at the server", n)
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
			must(t, json.Unmarshal(lines.Bytes(), &got))
			number, _ := strconv.ParseFloat(string(got.W), 64)
			bytes, _ := base64.StdEncoding.DecodeString(got.Raw.Base64)
			same := string(got.ID) == fmt.Sprint(id) && got.Customer == customer && got.Price == price && got.Paid == (paid == 1) && got.At == at[:23]+"Z" && number == w && string(bytes) == string(raw) &&
				(got.Note == nil) == (note == nil) && (note == nil || *got.Note == *note)
			if !same {
				t.Fatalf("row %d of the server is %s", id, lines.Bytes())
			}
		}
		if err := stored.Err(); err != nil || lines.Scan() {
			t.Errorf("%d rows at the server, and more in the table: %v", n, err)
		}
	}
	return d
}

func TestMySQL(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	s := mysqltest.Start(t)
	round := func(t *testing.T, rows int) *liveLoad { return fromMySQL(t, s, rows) }
	t.Run("a million rows are loaded as they are", func(t *testing.T) {
		d := round(t, 1_000_000)
		d.loadWhole(1_000_000, "--verify")
		if n := len(d.liveSummary().Snapshots[0].Ranges); n < 10 {
			t.Errorf("%d ranges", n)
		}
	})
	small := func(t *testing.T) *liveLoad { return round(t, 30_000) }
	t.Run("loads that are killed are resumed", func(t *testing.T) { loseClients(t, small) })
	t.Run("loads whose server is killed continue", func(t *testing.T) {
		loseServers(t, small, func() {
			s.Kill()
			s.Go()
		})
	})
	t.Run("all rows are of one moment while they change", func(t *testing.T) {
		s.Exec("CREATE TABLE moving (id int PRIMARY KEY, n int NOT NULL, mark text NOT NULL, pad text)", fmt.Sprintf("INSERT INTO moving SELECT seq, 0, MD5(CONCAT(seq, ':', 0)), REPEAT('x', 80) FROM seq_1_to_%d", movingRows), "ANALYZE TABLE moving")
		loadMoving(t, s.Address("moving"), func(n int) {
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
	t.Run("no password is kept", func(t *testing.T) {
		d := round(t, 10)
		s.Exec("CREATE USER guarded@'127.0.0.1' IDENTIFIED BY 'planted-secret'", "GRANT SELECT ON shop.* TO guarded@'127.0.0.1'")
		guarded := strings.Replace(s.Address("orders"), "root@", "guarded@", 1)
		d.keepsNoPassword("MYSQL_PWD", strings.Replace(guarded, "guarded@", "guarded:planted-secret@", 1), guarded, guarded)
	})
}
