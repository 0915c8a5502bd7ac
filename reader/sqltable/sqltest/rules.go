package sqltest

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/reader/sqltable"
)

// Large checks that a row of five million bytes, the third of five, ends the reading where it would not fit.
func Large(t *testing.T, s sqltable.Server) {
	t.Helper()
	_, parts := Open(t, s, func(c *sqltable.Config) { c.MaxRow = 4 << 20 })
	_, err := parts[0].Next()
	large := new(sqltable.RowTooLarge)
	if !errors.As(err, &large) || large.Limit != 4<<20 || large.Bytes < 5_000_000 || !strings.Contains(err.Error(), "after the row id 2") {
		t.Error(err)
	}
	_, parts = Open(t, s, func(c *sqltable.Config) { c.MaxRow = 6 << 20 })
	if rows := All(t, parts, nil); len(rows) != 5 {
		t.Errorf("%d rows", len(rows))
	}
}

// Refused checks that each table, or query, is refused with what is wanted.
func Refused(t *testing.T, of func(name string) sqltable.Server, wants map[string]string) {
	t.Helper()
	for name, want := range wants {
		_, err := sqltable.New(sqltable.Config{Server: of(name)}).Divide(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// Named checks that the query that the refusal of a table names reads so many rows.
func Named(t *testing.T, table func(name string) sqltable.Server, query func(key, sql string) sqltable.Server, rows map[string]int) {
	t.Helper()
	for name, n := range rows {
		_, err := sqltable.New(sqltable.Config{Server: table(name)}).Divide(t.Context())
		said := regexp.MustCompile(`with --query '(SELECT .*)', and in the address key=(\S+) `).FindStringSubmatch(fmt.Sprint(err))
		if said == nil {
			t.Fatal(err)
		}
		s := query(strings.Replace(said[2], "COLUMN,…", "id", 1), strings.ReplaceAll(said[1], `'\''`, "'"))
		if _, parts := Open(t, s, nil); len(All(t, parts, nil)) != n {
			t.Errorf("%s: not %d rows", name, n)
		}
	}
}

// Changed reads a table of 40,000 rows whose v is 0 while something happens after a page. All rows come once, of so many snapshots; of one
// snapshot they are as they were.
func Changed(t *testing.T, s sqltable.Server, page, snapshots int, happens func()) {
	t.Helper()
	o, parts := Open(t, s, nil)
	if len(parts) < 2 && page == 1 {
		t.Fatalf("%d parts", len(parts))
	}
	rows := All(t, parts, func(n int) {
		if n == page {
			happens()
		}
	})
	seen := map[string]bool{}
	for _, r := range rows {
		if snapshots == 1 && !strings.Contains(r, "|3 0 0 \"\"|") {
			t.Fatalf("a row that was changed later: %.80s", r)
		}
		seen[r] = true
	}
	got := o.Snapshots()
	if len(rows) != 40000 || len(seen) != 40000 || len(got) != snapshots {
		t.Errorf("%d rows, %d of them different, snapshots %+v", len(rows), len(seen), got)
	}
	for _, one := range got {
		if len(one.Ranges) == 0 || snapshots == 1 && len(one.Ranges) != len(parts) {
			t.Errorf("snapshots %+v of %d parts", got, len(parts))
		}
	}
}

// Released waits until no session of a server holds a snapshot: it notices a little later that they hung up.
func Released(t *testing.T, sessions func() string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); sessions() != "0"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s sessions hold a snapshot after the last row", sessions())
		}
	}
}

// Keyless checks that the reading of each query ends with what is wanted.
func Keyless(t *testing.T, query func(sql string) sqltable.Server, wants map[string]string) {
	t.Helper()
	for sql, want := range wants {
		_, parts := Open(t, query(sql), nil)
		var err error
		for err == nil {
			_, err = parts[0].Next()
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", sql, err, want)
		}
	}
}
