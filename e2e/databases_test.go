package e2e

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tsimport/reader/postgres/pgtest"
)

// fromDatabase is a load of a table of a real server, compared by the server itself: what the target holds is copied back, and the
// server looks for rows that only one of the two has.
type fromDatabase struct {
	t      *testing.T
	server *pgtest.Server
	dir    string
}

func (d *fromDatabase) make(rows string) {
	d.server.Exec(`DROP TABLE IF EXISTS orders, back; CREATE TABLE orders (id bigint PRIMARY KEY, customer text NOT NULL, price numeric(12,2), paid boolean, at timestamptz, w double precision, note text, raw bytea);
		INSERT INTO orders SELECT i * 7 - 1000, 'customer "' || i % 1000 || E'", \\ é\n', i / 100.0, i % 3 = 0, '2024-01-01'::timestamptz + i * interval '1.25 s', i / 3.0, CASE WHEN i % 5 > 0 THEN md5(i::text) END,
			decode(md5(i::text), 'hex') FROM generate_series(1, ` + rows + `) i`)
}

func (d *fromDatabase) command(more ...string) *exec.Cmd {
	args := append([]string{"load", d.server.Address("orders"), "--table", "orders", "--store", "store", "--sync", "none", "--pk", "id:integer", "--run-dir", "run"}, more...)
	c := exec.Command(binary, args...)
	c.Dir = d.dir
	c.Env = append(os.Environ(), "TSIMPORT_CHECKPOINT_EVERY=50ms")
	return c
}

func (d *fromDatabase) summary() (s struct {
	State      string
	Consistent *bool
	Snapshots  []struct {
		Name   string
		Ranges []string
	}
	Attempts, Written, Rejected int
}) {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, "run", "summary.json"))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// compare fails if a cell differs.
func (d *fromDatabase) compare() {
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
	d.server.Exec("DROP TABLE IF EXISTS back; CREATE TABLE back (j jsonb)")
	d.server.CopyIn(context.Background(), f, "COPY back FROM STDIN WITH (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02')")
	const made = `SELECT (j->>'id')::bigint, j->>'customer', (j->>'price')::text, (j->>'paid')::boolean, j->>'at', (j->>'w')::float8, j->>'note', decode(j->'raw'->>'base64', 'base64') FROM back`
	const was = `SELECT id, customer, price::text, paid, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS') || rtrim(rtrim(to_char(at, '.US'), '0'), '.') || 'Z', w, note, raw FROM orders`
	for _, q := range []string{made + " EXCEPT ALL " + was, was + " EXCEPT ALL " + made} {
		if rows := d.server.Exec("SELECT * FROM (" + q + ") q LIMIT 3"); len(rows) > 0 {
			d.t.Errorf("rows that only one side has: %q", rows)
		}
	}
}

func TestDatabases(t *testing.T) {
	s := pgtest.Start(t)
	round := func(t *testing.T, rows string) *fromDatabase {
		d := &fromDatabase{t: t, server: s, dir: t.TempDir()}
		d.make(rows)
		return d
	}
	t.Run("a million rows are loaded as they are", func(t *testing.T) {
		d := round(t, "1000000")
		if out, err := d.command("--require-snapshot").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if sum := d.summary(); sum.Consistent == nil || !*sum.Consistent || len(sum.Snapshots) != 1 || sum.Written != 1000000 {
			t.Errorf("%+v", sum)
		}
		d.compare()
	})
	t.Run("loads that are killed are resumed", func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(7, 7))
		resumed := 0
		for range 25 {
			d := round(t, "30000")
			for tries := 0; ; tries++ {
				c := d.command("--max-rows-per-second", "40000")
				if tries > 3 {
					c = d.command()
				}
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				timer := time.AfterFunc(time.Duration(100+rnd.IntN(900))*time.Millisecond, func() {
					if tries <= 3 {
						_ = c.Process.Kill()
					}
				})
				err := c.Wait()
				timer.Stop()
				if err == nil {
					break
				}
				if tries > 3 {
					t.Fatal(err)
				}
			}
			if sum := d.summary(); sum.Attempts > 1 {
				if resumed++; sum.Consistent == nil || *sum.Consistent {
					t.Errorf("an attempt that resumed claims one snapshot: %+v", sum)
				}
			}
			d.compare()
		}
		if resumed == 0 {
			t.Error("no load was resumed")
		}
	})
	t.Run("no password is kept", func(t *testing.T) {
		d := round(t, "10")
		c := exec.Command(binary, "load", strings.Replace(s.Address("orders"), "postgres@", "postgres:planted-secret@", 1), "--table", "orders", "--store", "store", "--run-dir", "run")
		c.Dir = d.dir
		out, err := c.CombinedOutput()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 2 || strings.Contains(string(out), "planted") {
			t.Errorf("%v: %s", err, out)
		}
	})
}
