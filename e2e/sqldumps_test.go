//go:build e2e

package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestADumpOfPostgreSQLIsLoadedAsItIs(t *testing.T) {
	const dump = "../reader/pgdump/testdata/shop.sql"
	lines, shown, p := loadAndExport(t, dump, 3, "--source-table", "public.orders", "--columns", "id,customer,amount,paid,at,raw,w,iv")
	same(t, lines, []string{
		`{"id":1,"amount":"10.50","at":"2024-02-29T07:04:56.789Z","customer":"Ann\t\"x\", \\ é\nline","iv":"P1Y-2DT3H4M5.5S","paid":true,"raw":{"base64":"AP9c"},"w":0.1}`,
		`{"id":3,"amount":"0.00","at":"0044-03-15 00:00:00+00 BC","customer":"\\.","iv":"PT0S","w":1e+300}`,
	})
	for _, want := range []string{"table public.orders, 3 rows; skipped: 5 other tables with 7 rows", "the new table's primary key is that of the source: --pk id:integer", "rejected 1 with OutOfRange", "shop.sql:225, column w"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in %s", want, shown)
		}
	}
	if got := p.retried(`"NaN"`, "1.5"); !slices.Contains(got, `{"id":2,"at":"infinity","customer":"","iv":"P-1MT-0.000001S","paid":false,"raw":{"base64":""},"w":1.5}`) || len(got) != 3 {
		t.Errorf("%q", got)
	}
	lines, _, _ = loadAndExport(t, dump, 0, "--source-table", "customers", "--exclude", "v")
	slices.Sort(lines)
	same(t, lines[:1], []string{`{"b":1,"a":"c1"}`})
	content, err := os.ReadFile(dump)
	must(t, err)
	text := string(content)
	if again, _, _ := loadAndExport(t, writeGzip(t, p.path("shop.sql.gz"), text), 0, "--source-table", "customers", "--exclude", "v"); len(again) != 5 {
		t.Errorf("%q", again)
	}
	cut := p.write("cut.sql", text[:strings.Index(text, "c4\t4")+3])
	lines, shown, _ = loadAndExport(t, cut, 2, "--source-table", "customers", "--pk", "b:integer")
	if len(lines) != 3 || !strings.Contains(shown, "the dump ends within the rows of public.customers") {
		t.Errorf("%q, %s", lines, shown)
	}
	p.write("shop.sql", text)
	for _, command := range []string{"inspect", "advise", "check --unique"} {
		p.ends(0, append(strings.Fields(command), "shop.sql", "--source-table", "customers"))
	}
	p.ends(2, []string{"inspect", "shop.sql"}, "4 tables with rows: other.orders, public.customers, public.orders, public.parted_1; say which with --source-table")
}

func TestADumpOfMySQLIsLoadedAsItIs(t *testing.T) {
	const dump = "../reader/mysqldump/testdata/shop.sql"
	lines, shown, p := loadAndExport(t, dump, 3, "--source-table", "orders", "--columns", "id,b1,b,bi,dc,d,v,ts,dt,z,e")
	same(t, lines, []string{
		`{"id":1,"b":5,"b1":true,"bi":{"base64":"AP8AAA=="},"d":0.1,"dc":"10.50","dt":"2024-02-29T12:34:56.789","e":"b'c","ts":"2024-02-29T12:34:56.789123Z","v":"a'b\"c\\d\ne\rf\u0000g\u001ah\ti%\\_é😀","z":42}`,
		`{"id":3,"b":0,"b1":false,"bi":{"base64":"YWJjZA=="},"d":1.7976931348623157e+308,"dc":"-0.01","dt":"2024-01-01T00:00:00.000","e":"a","ts":"2024-01-01T00:00:00.000000Z","v":"NULL","z":0}`,
	})
	for _, want := range []string{"table orders, 3 rows; skipped: 2 other tables with 2 rows (customers 2) and 89 other statements", "--pk id:integer", "rejected 1 with OutOfRange", "column id"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in %s", want, shown)
		}
	}
	content, err := os.ReadFile(dump)
	must(t, err)
	text := string(content)
	cut := p.write("cut.sql", text[:strings.Index(text, "('y',2)")+4])
	lines, shown, _ = loadAndExport(t, cut, 2)
	if len(lines) != 1 || lines[0] != `{"b":1,"a":"x"}` || !strings.Contains(shown, "the dump ends within the rows of customers") {
		t.Errorf("%q, %s", lines, shown)
	}
	p.write("shop.sql", text)
	for _, command := range []string{"inspect", "advise"} {
		p.ends(0, []string{command, "shop.sql", "--source-table", "customers"})
	}
}
