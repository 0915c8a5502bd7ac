//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tsimport/reader/postgres/pgtest"
)

// resultIn runs the binary in a folder, and returns all that it says.
func resultIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := exec.Command(binary, args...)
	c.Dir, c.Env = dir, append(os.Environ(), "TSIMPORT_CHECKPOINT_EVERY=50ms")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

// loadAllOfShop loads the tables shop_customers, shop_items and shop_orders of a server, which has a view shop_seen too, by one job.
func loadAllOfShop(t *testing.T, address func(table string) string) {
	dir := t.TempDir()
	if out := resultIn(t, dir, "tables", address("shop_*")); !strings.Contains(out, "shop_orders") || !strings.Contains(out, "~") || !strings.Contains(out, "shop_seen") {
		t.Error(out)
	}
	text := fmt.Sprintf("version: 1\ndefaults: {store: ./store}\nloads:\n  \"{table}\":\n    from: %q\n    table: \"{table}\"\n", address("shop_{table}"))
	must(t, os.WriteFile(filepath.Join(dir, "shop.yaml"), []byte(text), 0o644))
	if out := resultIn(t, dir, "run", "--plan", "shop.yaml"); !strings.Contains(out, "3 of 3 loads planned") {
		t.Error(out)
	}
	if out := resultIn(t, dir, "run", "shop.yaml"); !strings.Contains(out, "60,000 written") {
		t.Error(out)
	}
	for _, table := range []string{"customers", "items", "orders"} {
		out := resultIn(t, dir, "export", "--table", table, "--store", "store", "--format", "jsonl")
		if n := strings.Count(out, `"v":"`+table+" "); n != 20000 {
			t.Errorf("%s: %d rows", table, n)
		}
	}
}

func TestDatabasesInJobs(t *testing.T) {
	s := pgtest.Start(t)
	for _, table := range []string{"customers", "items", "orders"} {
		s.Exec(fmt.Sprintf("CREATE TABLE shop_%s (id int PRIMARY KEY, v text); INSERT INTO shop_%[1]s SELECT i, '%[1]s ' || i FROM generate_series(1, 20000) i", table))
	}
	s.Exec("CREATE VIEW shop_seen AS SELECT 1; ANALYZE")
	run := func(dir string, args ...string) string {
		t.Helper()
		return resultIn(t, dir, args...)
	}
	t.Run("a load is made for each table that is found", func(t *testing.T) { loadAllOfShop(t, s.Address) })
	t.Run("every command reads a table", func(t *testing.T) {
		dir, address := t.TempDir(), s.Address("shop_items")
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
			if out := run(dir, tt.args...); !strings.Contains(out, tt.wants) {
				t.Errorf("%q: no %q in\n%s", tt.args, tt.wants, out)
			}
		}
	})
	t.Run("a load that was killed is resumed by its folder alone", func(t *testing.T) {
		dir := t.TempDir()
		c := exec.Command(binary, "load", s.Address("shop_orders"), "--table", "orders", "--store", "store", "--run-dir", "run", "--max-rows-per-second", "5000")
		c.Dir, c.Env = dir, append(os.Environ(), "TSIMPORT_CHECKPOINT_EVERY=50ms")
		must(t, c.Start())
		for { // until something is kept
			if _, err := os.Stat(filepath.Join(dir, "run", "checkpoint.bin")); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		must(t, c.Process.Kill())
		_ = c.Wait()
		run(dir, "resume", "run")
		if n := strings.Count(run(dir, "export", "--table", "orders", "--store", "store", "--format", "jsonl"), `"v":"orders `); n != 20000 {
			t.Errorf("%d rows", n)
		}
	})
}
