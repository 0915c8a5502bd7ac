//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"tsimport/reader/postgres/pgtest"
)

// loadAllOfShop loads the tables shop_customers, shop_items and shop_orders of a server, which has a view shop_seen too, by one job.
func loadAllOfShop(t *testing.T, address func(table string) string) {
	p := newPlace(t)
	p.ends(0, []string{"tables", address("shop_*")}, "shop_orders", "~", "shop_seen")
	p.write("shop.yaml", fmt.Sprintf("version: 1\ndefaults: {store: ./store}\nloads:\n  \"{table}\":\n    from: %q\n    table: \"{table}\"\n", address("shop_{table}")))
	p.ends(0, []string{"run", "--plan", "shop.yaml"}, "3 of 3 loads planned")
	p.ends(0, []string{"run", "shop.yaml"}, "60,000 written")
	for _, table := range []string{"customers", "items", "orders"} {
		p.has(table)
	}
}

// has checks that a table holds the 20,000 rows of its name.
func (p *place) has(table string) {
	p.t.Helper()
	if n := strings.Count(p.output("export", "--table", table, "--store", "store", "--format", "jsonl"), `"v":"`+table+" "); n != 20_000 {
		p.t.Errorf("%s: %d rows", table, n)
	}
}

func TestDatabasesInJobs(t *testing.T) {
	s := pgtest.Start(t)
	for _, table := range []string{"customers", "items", "orders"} {
		s.Exec(fmt.Sprintf("CREATE TABLE shop_%s (id int PRIMARY KEY, v text); INSERT INTO shop_%[1]s SELECT i, '%[1]s ' || i FROM generate_series(1, 20000) i", table))
	}
	s.Exec("CREATE VIEW shop_seen AS SELECT 1; ANALYZE")
	t.Run("a load is made for each table that is found", func(t *testing.T) { loadAllOfShop(t, s.Address) })
	t.Run("every command reads a table", func(t *testing.T) {
		p, address := newPlace(t), s.Address("shop_items")
		for _, tt := range []struct {
			wants string
			args  []string
		}{
			{"rows         20,000", []string{"inspect", address}},
			{"only the primary key of the source is rated (id)", []string{"advise", address}},
			{"20,000 keys, 0 records repeat", []string{"check", "--unique", address}},
			{"20,000 written", []string{"load", address, "--table", "items", "--store", "store"}},
			{"20,000 equal", []string{"verify", address, "--table", "items", "--store", "store"}},
			{`"shop_items from its first row on"`, []string{"verify", address, "--table", "items", "--store", "store", "--json"}},
			{"2 rows written, 1 deleted", []string{"sync", address, "--table", "items", "--store", "store", "--delete"}},
			{"20,000 equal, 0 missing, 0 different, 0 surplus", []string{"verify", address, "--table", "items", "--store", "store"}},
		} {
			if tt.args[0] == "sync" {
				s.Exec("UPDATE shop_items SET v = NULL WHERE id = 7; DELETE FROM shop_items WHERE id = 8; INSERT INTO shop_items VALUES (30000, 'new')")
			}
			p.ends(0, tt.args, tt.wants)
		}
	})
	t.Run("a load that was killed is resumed by its folder alone", func(t *testing.T) {
		p := newPlace(t, "TSIMPORT_CHECKPOINT_EVERY=50ms")
		r := p.start("load", s.Address("shop_orders"), "--table", "orders", "--store", "store", "--run-dir", "run", "--max-rows-per-second", "5000")
		r.must(there(p.path("run/checkpoint.bin"))) // something is kept
		r.kill()
		p.run(0, "resume", "run")
		p.has("orders")
	})
}
