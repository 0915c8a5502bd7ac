package sqltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
)

// Joined opens the parts of tables that are read in one Moment by two sessions.
func Joined(t *testing.T, whole bool, tables ...sqltable.Server) (origins []*sqltable.Origin,
	open func(n int, ctx context.Context) ([]source.Source, error)) {
	t.Helper()
	all := new(sqltable.Moments)
	for _, s := range tables {
		all.Add(sqltable.Config{Server: s, Sessions: 2}, false)
	}
	t.Cleanup(all.Close)
	for _, s := range tables {
		origins = append(origins, sqltable.New(sqltable.Config{Server: s, Moment: all.Of(s), Whole: whole,
			RetryFor: 10 * time.Second}))
	}
	return origins, func(n int, ctx context.Context) ([]source.Source, error) {
		division, err := origins[n].Divide(ctx)
		if err != nil {
			return nil, err
		}
		parts, err := origins[n].Open(ctx, division)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() {
			for _, p := range parts {
				_ = p.Close()
			}
		})
		return parts, nil
	}
}

// Cancelled checks that cancelling loads in the middle of a page costs other loads no session of their Moment.
func Cancelled(t *testing.T, tables ...sqltable.Server) {
	t.Helper()
	origins, open := Joined(t, true, tables...)
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		parts, err := open(0, ctx)
		conformance.Must(t, err)
		time.AfterFunc(time.Millisecond, cancel)
		for err == nil {
			_, err = parts[0].Next()
		}
		if !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	for n := range tables {
		parts, err := open(n, t.Context())
		if err == nil {
			_, err = parts[0].Next()
		}
		conformance.Must(t, err)
	}
	if a, b := origins[0].Snapshots(), origins[1].Snapshots(); len(a) != 1 || len(b) != 1 || a[0].Name != b[0].Name ||
		!a[0].Taken.Equal(b[0].Taken) {
		t.Errorf("snapshots %+v and %+v, want the same", a, b)
	}
}

// Alike checks that tables have the same rows whether they are read in one Moment or separately.
func Alike(t *testing.T, tables ...sqltable.Server) {
	t.Helper()
	_, open := Joined(t, true, tables...)
	var joined [][]source.Source
	for n := range tables {
		parts, err := open(n, t.Context())
		conformance.Must(t, err)
		joined = append(joined, parts)
	}
	for n, s := range tables {
		_, own := Open(t, s, nil)
		got, want := All(t, joined[n], nil), All(t, own, nil)
		slices.Sort(got)
		slices.Sort(want)
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: %d rows, want %d", s.Name(), len(got), len(want))
		}
	}
}

// Says checks the error of do. "" means no error.
func Says(t *testing.T, do func() error, text string) {
	t.Helper()
	if err := do(); (err == nil) != (text == "") || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("err = %v, want %q", err, text)
	}
}

// Sharded checks the shards s_00 to s_03 of a server, which have an integer id and a text v. execute runs SQL.
func Sharded(t *testing.T, of func(table string) sqltable.Server, execute func(sql string)) {
	t.Helper()
	var servers []sqltable.Server
	for n := range 4 {
		name := fmt.Sprintf("s_%02d", n)
		servers = append(servers, of(name))
		execute("CREATE TABLE " + name + " (id integer PRIMARY KEY, v varchar(300))")
		var values []string
		for i := range 1000 {
			values = append(values, fmt.Sprintf("(%d, 'row %d of %s')", 4*i+n, 4*i+n, name))
		}
		execute("INSERT INTO " + name + " VALUES " + strings.Join(values, ", "))
	}
	shards := func(c *sqltable.Config) { c.Shards, c.Pattern, c.Whole = servers, "s_{00..03}", true }
	t.Run("rows move between them, and each is read once", func(t *testing.T) {
		o, parts := Open(t, servers[0], shards)
		rows := All(t, parts, func(n int) {
			if n == 1 {
				execute("DELETE FROM s_00 WHERE id = 40")
				execute("INSERT INTO s_03 VALUES (40, 'it has moved')")
			}
		})
		seen := map[string]bool{}
		for _, r := range rows {
			seen[r] = true
		}
		if all := strings.Join(rows, ""); len(seen) != 4000 || len(rows) != 4000 || len(o.Snapshots()) != 1 ||
			strings.Contains(all, "moved") || !strings.Contains(all, "row 40 of s_00") {
			t.Errorf("%d rows, %d distinct, snapshots %+v", len(rows), len(seen), o.Snapshots())
		}
	})
	refused := func(t *testing.T, want ...string) {
		t.Helper()
		c := sqltable.Config{Server: servers[0]}
		shards(&c)
		_, err := sqltable.New(c).Divide(t.Context())
		for _, text := range want {
			conformance.Refused(t, err, text, "the shards")
		}
	}
	t.Run("a key that occurs in two shards is refused", func(t *testing.T) {
		execute("INSERT INTO s_02 VALUES (5, 'that of s_01')")
		refused(t, "read s_{00..03}: shards ", "s_01", "s_02", "both have a row with the key id 5")
		execute("DELETE FROM s_02 WHERE id = 5")
	})
	t.Run("shards with other columns are refused by name", func(t *testing.T) {
		execute("ALTER TABLE s_02 ADD COLUMN more integer")
		refused(t, "s_02", "has a column more")
		execute("ALTER TABLE s_02 DROP COLUMN more")
		execute("ALTER TABLE s_01 DROP COLUMN v")
		refused(t, "s_01", "has no column v")
		execute("ALTER TABLE s_01 ADD COLUMN v varchar(299)")
		refused(t, "column 2 of shard ", "s_01", "v ", "299")
		execute("DROP TABLE s_03")
		refused(t, "there is no table")
	})
}
