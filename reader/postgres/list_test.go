package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"tsimport/reader/postgres/pgtest"
)

func TestTablesAreListed(t *testing.T) {
	s := pgtest.Start(t)
	s.Exec(`CREATE SCHEMA other; CREATE TABLE customers (id int PRIMARY KEY); CREATE TABLE other."o.1" (b int, a text, PRIMARY KEY (a, b)); CREATE TABLE nokey (id int);
		CREATE VIEW seen AS SELECT 1; CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (500);
		INSERT INTO customers SELECT generate_series(1, 1000); INSERT INTO parted SELECT generate_series(0, 99)`)
	s.Exec("ANALYZE")
	for pattern, want := range map[string]string{
		"":          `other."o.1" table 0 [a b], public.customers table 1000 [id], public.nokey table 0 no primary key, public.parted table 100 [id], public.seen view 0 is not a table, `,
		"c*":        "customers table 1000 [id], ",
		"public.p*": "public.parted table 100 [id], ",
		"nothing":   "",
	} {
		all, err := List(context.Background(), s.Address(pattern))
		must(t, err)
		got := ""
		for _, one := range all {
			if !strings.HasPrefix(one.Address, "postgres://postgres@127.0.0.1:") || !strings.Contains(one.Address, "table=") || one.Rows > 0 && one.Bytes == 0 {
				t.Errorf("%+v", one)
			}
			why := fmt.Sprint(one.Key)
			for _, part := range []string{"no primary key", "is not a table"} {
				if strings.Contains(one.Refused, part) {
					why = part
				}
			}
			got += fmt.Sprintf("%s %s %d %s, ", one.Table, one.Kind, max(one.Rows, 0), why)
		}
		if got != want {
			t.Errorf("%s:\n%s, want\n%s", pattern, got, want)
		}
	}
	if _, err := List(context.Background(), s.Address("[")); err == nil {
		t.Error("a pattern that is none was taken")
	}
	s.Stop("immediate")
	if _, err := List(context.Background(), s.Address("")); err == nil {
		t.Error("a server that is down was listed")
	}
}
