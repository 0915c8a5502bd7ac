package mysqldump

import (
	"bytes"
	"net/url"
	"os/exec"
	"slices"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/mysql"
	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/sqltable/sqltest"
)

// TestDumpsOfARealServerHoldWhatItsTablesHold makes dumps with mysqldump and compares every value with that of the live table. Values of float are
// those of six digits, as mysqldump writes them.
func TestDumpsOfARealServerHoldWhatItsTablesHold(t *testing.T) {
	s := mysqltest.Start(t)
	const rows = " FROM (SELECT CAST(seq AS SIGNED) seq FROM seq_1_to_3000) q"
	s.Exec("CREATE TABLE `odd ``t(;` (id bigint unsigned PRIMARY KEY, i1 tinyint, i2 smallint unsigned, i3 mediumint, i4 int, z int(8) zerofill, dc decimal(40,5), f float, d double, b1 bit(1), b9 bit(9), b64 bit(64), y year, bi binary(16), vb varbinary(200), tb tinyblob, bl longblob,"+
		" c char(9), v varchar(99) DEFAULT 'a;b(\\'', t text, l1 varchar(50) CHARACTER SET latin1, e enum('a','b\\'c','NULL'), s set('x','y'), j json, da date, ti time(3), dt datetime, dt6 datetime(6), ts timestamp NULL, ts3 timestamp(3) NULL, g geometry, u uuid, i6 inet6,"+
		" `PRIMARY` int, `odd ``name(;` int, gen int GENERATED ALWAYS AS (i4 * 2) STORED, virt varchar(20) GENERATED ALWAYS AS (CONCAT(c, '!')) VIRTUAL) COMMENT 'it\\'s; PRIMARY KEY (x)'",
		"INSERT INTO `odd ``t(;` (id,i1,i2,i3,i4,z,dc,f,d,b1,b9,b64,y,bi,vb,tb,bl,c,v,t,l1,e,s,j,da,ti,dt,dt6,ts,ts3,g,u,i6,`PRIMARY`,`odd ``name(;`) SELECT seq, seq % 100 - 50, seq, -seq, seq * 7, seq, seq / 7, ROUND(seq / 8, 3), seq / 7e0 * POW(10, seq % 300), seq % 2, seq % 512, seq * 12345678901, 1901 + seq % 200,"+
			" UNHEX(MD5(seq)), CONCAT(UNHEX(MD5(seq)), CHAR(seq % 256), '\\\\', \"'\", CHAR(0), CHAR(26)), CHAR(seq % 256), REPEAT(CHAR(seq % 256), seq % 50), seq % 1000, CONCAT('v', CHAR(seq % 128), '\\\\\\'\"'), CONCAT(CHAR(seq USING utf32), 'a\\tb\\n\\r\\0\\Z%_;),('), 'é', 'b\\'c', 'x,y', '{\"a\": \"b\\\\n\"}',"+
			" DATE_ADD('1000-01-01', INTERVAL seq * 100 DAY), SEC_TO_TIME(seq * 500.5 - 700000), DATE_ADD('1970-01-02', INTERVAL seq HOUR), DATE_ADD('1970-01-02', INTERVAL seq * 1000001 MICROSECOND), DATE_ADD('1970-01-02', INTERVAL seq HOUR), DATE_ADD('1970-01-02', INTERVAL seq HOUR), POINT(seq, -seq), UUID(), '::1', seq, NULL"+rows+" WHERE seq NOT BETWEEN 0xD800 AND 0xDFFF",
		"INSERT INTO `odd ``t(;` (id) VALUES (18446744073709551615)",
		"INSERT INTO `odd ``t(;` (id, da, dt, ts, t, bl, v, d) VALUES (0, '0000-00-00', '0000-00-00', '0000-00-00', '', '', 'NULL', -0.0), (9000, '2024-00-00', '2024-00-01', NULL, '\\\\N', '0x41', '\\\\', 5e-324)",
		"CREATE TABLE plain (a varchar(9), b int, PRIMARY KEY (b, a))", "INSERT INTO plain SELECT CONCAT('x', seq), seq"+rows,
		"CREATE TRIGGER tr BEFORE INSERT ON plain FOR EACH ROW SET NEW.a = CONCAT(NEW.a, ';;')", "CREATE VIEW vw AS SELECT 1", "CREATE PROCEDURE p() BEGIN SELECT 'INSERT INTO `plain` VALUES (9);'; END")
	address, err := url.Parse(s.Address("x"))
	must(t, err)
	for _, flags := range [][]string{{"--routines", "shop"}, {"--hex-blob", "shop"}, {"--complete-insert", "--skip-extended-insert", "shop"}, {"--skip-opt", "--quick", "shop"}, {"--replace", "--no-autocommit", "--databases", "shop"},
		{"--insert-ignore", "--skip-comments", "--net-buffer-length=16384", "shop"}, {"--compact", "shop"}, {"--single-transaction", "--skip-tz-utc", "shop", "plain"}, {"--all-databases"}} {
		c := exec.Command("mysqldump", append([]string{"--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--port=" + address.Port(), "--user=root", "--default-character-set=utf8mb4"}, flags...)...)
		var says bytes.Buffer
		c.Stderr = &says
		out, err := c.Output()
		conformance.MustEqual(t, err, nil, "%q: %s", flags, says.String())
		d, err := Index(bytes.NewReader(out))
		if err != nil || d.Truncated != nil {
			t.Fatal(flags, err, d)
		}
		for _, name := range []string{"odd `t(;", "plain"} {
			if name != "plain" && slices.Contains(flags, "plain") {
				continue
			}
			of, err := d.Choose(name)
			must(t, err)
			live, err := mysql.Parse(s.Address(url.QueryEscape(name)))
			must(t, err)
			for i, c := range of.Columns {
				if slices.Contains(flags, "--compact") && c.Form == asTime { // without the line that says so it is not known that times are in UTC
					of.Columns[i].Form = map[bool]int{true: asUTC, false: asTime}[c.SQL[:4] == "time"]
				}
			}
			sqltest.Compare(t, live, out, of, NewParser(of.Columns))
		}
	}
}
