//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/mysql/mysqltest"
	"example.com/tsimport/reader/postgres/pgtest"
)

// The way back: data loaded from a database is exported, and the server takes it back unchanged with the statement that
// the export prints.

// texts are values that look like the format's own syntax.
var texts = []string{``, `plain`, `\N`, `\.`, `NULL`, `a\tb`, "tab\there", "line\nbreak\r\n", `"quoted", 'text'`, `back\\slash\`, "中文 é 😀", ` blanks `}

// exportedFor loads a table, exports it, and returns the statement that the export names.
func exportedFor(t *testing.T, address, format, key string) (dir, statement string) {
	t.Helper()
	dir = t.TempDir()
	for _, args := range [][]string{{"load", address, "-t", "a", "--create", "-q"}, {"export", "-t", "a", "--format", format, "-o", "out.txt"}} {
		cmd := exec.Command(binary, append(args, "--store", "store")...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		conformance.MustTrue(t, err == nil, "%q: %v\n%s", args, err, out)
		if _, after, found := strings.Cut(string(out), "to load it: "); found {
			statement, _, _ = strings.Cut(after, "\n")
		}
	}
	for of := dir; of != "/" && of != os.TempDir(); of = filepath.Dir(of) { // the server is another user
		must(t, os.Chmod(of, 0o755))
	}
	must(t, os.Chmod(filepath.Join(dir, "out.txt"), 0o644))
	return dir, statement
}

func TestPostgreSQLRoundTrip(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec(`CREATE TABLE a (id int PRIMARY KEY, i2 smallint, i8 bigint, n numeric, n2 numeric(20,4), r real, d double precision, m money, c char(5), v varchar(99), t text, b bytea, bo boolean,
		da date, ti time(3), ts timestamp, tz timestamptz(3), iv interval, u uuid, ip inet, ci cidr, mac macaddr, bi bit(3), bv bit varying(9), j json, jb jsonb, x xml, ar int[], at text[], ra int4range, po point, tsv tsvector)`)
	for i, text := range texts {
		quoted := "E'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
		s.Exec(fmt.Sprintf(`INSERT INTO a (id, v, t, at, j) VALUES (%d, %s, %[2]s, ARRAY[%[2]s, NULL], to_json(%[2]s::text))`, i, quoted))
	}
	s.Exec(`INSERT INTO a VALUES (100, -32768, 9223372036854775807, 'NaN', 1.5000, 3e38, 0.1, -12.34, 'ab', '', '', '\x00ff5c090a', true, '-infinity', '23:59:59.999', '0044-03-15 12:00:00 BC', '2026-01-01 00:00:00+08',
		'1 year -2 days 03:04:05.6', '00000000-0000-0000-0000-000000000001', '::1/64', '10.0.0.0/8', '08:00:2b:01:02:03', B'101', B'', '{"a": 1,  "a": "\t"}', '{"b": null}', '<a>\</a>', '{1,NULL}', '{"a,b","\\"}', '[1,5)', '(1,2)', 'a b'),
		(101, 0, -9223372036854775808, 123456789012345678901234567890.123456789, -0.0001, 1e-30, '-0', 0, '', NULL, NULL, '', false, '2026-02-28', '00:00', '2026-01-01 00:00:00.000001', 'infinity', '0', NULL, '10.1.2.3', '::/0', NULL, B'000', B'1', 'null', '[]', NULL, '{}', '{}', 'empty', NULL, '')`)
	dir, statement := exportedFor(t, s.Address("a"), "postgres", "id")
	s.Exec(`CREATE TABLE b (LIKE a INCLUDING ALL)`)
	s.Exec(strings.NewReplacer(`\copy a`, "COPY b", "'out.txt'", "'"+filepath.Join(dir, "out.txt")+"'").Replace(statement))
	if rows := s.Exec(`(SELECT 'a', old::text FROM a old EXCEPT ALL SELECT 'a', new::text FROM b new) UNION ALL (SELECT 'b', new::text FROM b new EXCEPT ALL SELECT 'b', old::text FROM a old)`); len(rows) > 0 {
		t.Errorf("%d rows differ after %s: %q", len(rows), statement, rows)
	}
	rows := s.Exec("SELECT count(*) FROM b")
	conformance.Equal(t, rows[0][0], fmt.Sprint(len(texts)+2), "%v rows came back", rows)
}

func TestMariaDBRoundTrip(t *testing.T) {
	s := mysqltest.Start(t)
	s.Exec(`CREATE TABLE a (id int PRIMARY KEY, t1 tinyint, u8 bigint unsigned, de decimal(30,10), f float, d double, c char(5), v varchar(99) CHARACTER SET utf8mb4, tx text CHARACTER SET utf8mb4, l1 varchar(20) CHARACTER SET latin1,
		b varbinary(20), bl blob, b4 binary(4), bo bit(1), bi bit(9), da date, ti time(3), dt datetime(6), ts timestamp(3) NULL, y year, e enum('x','y'), st set('p','q'), j json, g point)`)
	for i, text := range texts {
		s.Exec(fmt.Sprintf(`INSERT INTO a (id, v, tx) VALUES (%d, x'%x', x'%[2]x')`, i, text))
	}
	s.Exec(`SET time_zone = '+00:00'`, `INSERT INTO a VALUES (100, -128, 9223372036854775807, 12345678901234567890.0123456789, 0.1, -1e300, 'ab', '', '', 'é', x'00ff5c090a0d1a', x'', x'5c4e0000', 1, 257, '2026-02-28', '-838:59:58.999', '0001-01-01 00:00:00.000001',
		'2026-01-01 00:00:00.5', 2026, 'y', 'p,q', '{"a":  "\\t"}', POINT(1.5, -2)), (101, 0, 0, 0, 16777216, 0, '', NULL, NULL, '', x'80818283', x'c3a9ff', x'', 0, 0, '9999-12-31', '00:00:00', '2026-01-01 00:00:00', '1970-01-01 00:00:01', 1901, 'x', '', '[]', NULL)`)
	every := ""
	for b := range 256 {
		every += fmt.Sprintf("%02x%02x", b, 255-b)
	}
	s.Exec(fmt.Sprintf(`INSERT INTO a (id, bl) VALUES (102, x'%s')`, every))
	dir, statement := exportedFor(t, s.Address("a"), "mysql", "id")
	s.Exec(`CREATE TABLE b LIKE a`)
	statement = strings.NewReplacer("LOCAL ", "", "TABLE a", "TABLE b", "'out.txt'", "'"+filepath.Join(dir, "out.txt")+"'", "`bo`", "@bo", "`bi`", "@bi", "`ts`", "@ts").Replace(statement)
	s.Exec(`SET time_zone = '+00:00'`, statement+` SET bo = CAST(@bo AS UNSIGNED), bi = CAST(@bi AS UNSIGNED), ts = REPLACE(@ts, 'Z', '')`)
	columns := "id, t1, u8, de, f + 0e0, d + 0e0, c, v, tx, l1, HEX(b), HEX(bl), HEX(b4), bo + 0, bi + 0, da, ti, dt, ts, y, e, st, j, HEX(g)"
	if rows := s.Rows("SELECT * FROM (SELECT " + columns + " FROM a EXCEPT SELECT " + columns + " FROM b) x UNION ALL SELECT * FROM (SELECT " + columns + " FROM b EXCEPT SELECT " + columns + " FROM a) y"); len(rows) > 0 {
		t.Errorf("%d rows differ after %s: %q", len(rows), statement, rows)
	}
	rows := s.Rows("SELECT count(*) FROM b")
	conformance.Equal(t, rows[0][0], fmt.Sprint(len(texts)+3), "%v rows came back", rows)
}
