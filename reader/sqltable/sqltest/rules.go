package sqltest

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
	"example.com/tsimport/reader/sqltable"
)

// Large checks that a row of five million bytes, the third of five rows, ends a reading whose limit it exceeds.
func Large(t *testing.T, s sqltable.Server) {
	t.Helper()
	_, parts := Open(t, s, func(c *sqltable.Config) { c.MaxRow = 4 << 20 })
	_, err := parts[0].Next()
	large := new(sqltable.RowTooLarge)
	if !errors.As(err, &large) || large.Limit != 4<<20 || large.Bytes < 5_000_000 ||
		!strings.Contains(err.Error(), "after the row id 2") {
		t.Error(err)
	}
	_, parts = Open(t, s, func(c *sqltable.Config) { c.MaxRow = 6 << 20 })
	if rows := All(t, parts, nil); len(rows) != 5 {
		t.Errorf("%d rows", len(rows))
	}
}

// Refused checks that each table, or query, is refused with the wanted text.
func Refused(t *testing.T, of func(name string) sqltable.Server, wants map[string]string) {
	t.Helper()
	for name, want := range wants {
		_, err := sqltable.New(sqltable.Config{Server: of(name)}).Divide(t.Context())
		conformance.Refused(t, err, want, "%s", name)
	}
}

// Named checks that the query suggested in the refusal of a table reads this many rows.
func Named(t *testing.T, table func(name string) sqltable.Server, query func(key, sql string) sqltable.Server,
	rows map[string]int) {
	t.Helper()
	for name, n := range rows {
		_, err := sqltable.New(sqltable.Config{Server: table(name)}).Divide(t.Context())
		said := regexp.MustCompile(`with --query '(SELECT .*)', and in the address key=(\S+?),? `).FindStringSubmatch(
			fmt.Sprint(err))
		if said == nil {
			t.Fatal(err)
		}
		s := query(strings.Replace(said[2], "COLUMN,…", "id", 1), strings.ReplaceAll(said[1], `'\''`, "'"))
		if _, parts := Open(t, s, nil); len(All(t, parts, nil)) != n {
			t.Errorf("%s: another number of rows was read, want %d", name, n)
		}
	}
}

// Changed reads 40,000 rows with v = 0, calling happens after a page. It wants each row once, from this many snapshots.
func Changed(t *testing.T, s sqltable.Server, page, snapshots int, happens func()) {
	t.Helper()
	o, parts := Open(t, s, nil)
	if len(parts) < 2 && page == 1 {
		t.Fatalf("%d parts", len(parts))
	}
	for _, r := range once(t, o, parts, 40000, page, snapshots, happens) {
		if snapshots == 1 && !strings.Contains(r, "|3 0 0 \"\"|") {
			t.Fatalf("a row that was changed later: %.80s", r)
		}
	}
	for got := o.Snapshots(); len(got) > 0; got = got[1:] {
		if n := len(got[0].Ranges); n == 0 || snapshots == 1 && n != len(parts) {
			t.Errorf("ranges missing in snapshot %+v of %d parts", got[0], len(parts))
		}
	}
}

// once reads parts, calling happens after a page. It wants this many rows, each once, from this many snapshots.
func once(t *testing.T, o *sqltable.Origin, parts []source.Source, want, page, snapshots int, happens func()) []string {
	t.Helper()
	rows := All(t, parts, func(n int) {
		if n == page {
			happens()
		}
	})
	seen := map[string]bool{}
	for _, r := range rows {
		seen[r] = true
	}
	if got := o.Snapshots(); len(rows) != want || len(seen) != want || len(got) != snapshots {
		t.Errorf("%d rows, %d of them different, snapshots %+v", len(rows), len(seen), got)
	}
	return rows
}

// Until waits up to a minute for a condition.
func Until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after a minute it is not so that %s", what)
		}
	}
}

// Contract checks the contract of sources for the first part of a table, with splits of this many bytes.
func Contract(t *testing.T, s func() sqltable.Server, split int) {
	t.Helper()
	sourcetest.Check(t, func() source.Source {
		_, parts := Open(t, s(), nil)
		parts[0].SetSplitBytes(split)
		return parts[0]
	})
	reread(t, s())
}

// reread reads rows again by their keys, mixed with keys that have no rows, unless the server refuses that.
func reread(t *testing.T, s sqltable.Server) {
	t.Helper()
	o, parts := Open(t, s, nil)
	about := parts[0].About()
	types := map[record.Kind]table.Type{record.Integer: table.Integer, record.String: table.String,
		record.Binary: table.Binary}
	var keys [][]table.Value
	var want []string
	Each(t, parts, nil, func(r *record.Record) {
		if len(want) >= 200 {
			return
		}
		var key, none []table.Value
		for _, u := range about.Unique {
			d := &r.Fields[slices.Index(about.Columns, u.Name)]
			v := table.Value{Type: types[d.Kind], Int: d.Int, Bytes: slices.Clone(d.Bytes)}
			key = append(key, v)
			v.Int, v.Bytes = math.MaxInt64-1, append(slices.Clone(v.Bytes), "\x00none\xff"...)
			none = append(none, v)
		}
		keys, want = append(keys, key, none), append(want, Show(r, nil))
	})
	again, err := o.Reread(t.Context(), keys)
	if err != nil && strings.Contains(err.Error(), "because of the type of key column") {
		return
	}
	conformance.Must(t, err)
	var got []string
	Each(t, []source.Source{again}, nil, func(r *record.Record) { got = append(got, Show(r, nil)) })
	if !slices.Equal(got, want) {
		t.Errorf("%s: reread %d rows, want %d: %.300q, want %.300q", s.Name(), len(got), len(want), got, want)
	}
}

// Exact checks that a table has these rows in this order, perhaps with others between them.
func Exact(t *testing.T, s sqltable.Server, rows ...[]string) {
	t.Helper()
	_, parts := Open(t, s, nil)
	all := All(t, parts, nil)
	for n, wants := range rows {
		rest := all[n]
		for i, want := range wants {
			at := strings.Index(rest, want)
			if at < 0 {
				t.Fatalf("row %d, value %d: no %s in %s", n, i, want, rest)
			}
			rest = rest[at+len(want):]
		}
	}
}

// Unique checks which unique indexes were found on parts of a table's key.
func Unique(t *testing.T, s sqltable.Server, want ...[]string) {
	t.Helper()
	_, parts := Open(t, s, nil)
	got := parts[0].About().AlsoUnique
	for _, names := range got {
		slices.Sort(names)
	}
	if slices.SortFunc(got, slices.Compare); !reflect.DeepEqual(got, want) {
		t.Errorf("%s: unique %q, want %q", s.Name(), got, want)
	}
}

// Continued reads 30,000 rows of a query, each once, from this many snapshots. It calls kill after page two.
func Continued(t *testing.T, s sqltable.Server, snapshots int, kill func()) {
	t.Helper()
	o, parts := Open(t, s, nil)
	once(t, o, parts, 30000, 2, snapshots, kill)
}

// Whole checks that a reading that needs one snapshot stops when all its sessions are killed.
func Whole(t *testing.T, s sqltable.Server, kill func()) {
	t.Helper()
	_, parts := Open(t, s, func(c *sqltable.Config) { c.Whole = true })
	_, err := parts[0].Next()
	conformance.Must(t, err)
	for kill(); err == nil; {
		_, err = parts[0].Next()
	}
	if !errors.Is(err, sqltable.ErrSnapshot) {
		t.Error(err)
	}
}

// Replaced checks that a reading fails with the wanted text if the table is replaced after the first page.
func Replaced(t *testing.T, s sqltable.Server, replace func(), want string) {
	t.Helper()
	_, parts := Open(t, s, func(c *sqltable.Config) { c.RetryFor = 30 * time.Second })
	if _, err := parts[0].Next(); err != nil {
		t.Fatal(err)
	}
	replace()
	if _, err := parts[0].Next(); !sqltable.IsChanged(err) || !strings.Contains(err.Error(), want) ||
		len(err.Error()) > 400 {
		t.Error(err)
	}
}

// Lost checks which errors are about the session and which are about the query.
func Lost(t *testing.T, s sqltable.Server, lost, not map[string]error) {
	t.Helper()
	for is, errs := range map[bool]map[string]error{true: lost, false: not} {
		for what, err := range errs {
			if s.Lost(err) != is {
				t.Errorf("%s: Lost = %v", what, !is)
			}
		}
	}
}

// Addresses checks that each address is refused with the wanted text but without "planted", or accepted if want is "".
func Addresses[A any](t *testing.T, parse func(string) (A, error), wants map[string]string) {
	t.Helper()
	for arg, want := range wants {
		_, err := parse(arg)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "planted")) {
			t.Errorf("%s: err = %v, want %q", arg, err, want)
		}
	}
}

// NoLag checks that reading with a limit on the replication lag fails with the wanted reason.
func NoLag(t *testing.T, s sqltable.Server, want string) {
	t.Helper()
	_, err := sqltable.New(sqltable.Config{Server: s, MaxLag: time.Second}).Divide(t.Context())
	conformance.Refused(t, err, want, "the lag")
}

// Paused checks that reading a table of 30,000 rows pauses while replication lags.
func Paused(t *testing.T, s sqltable.Server, lag, resume func()) {
	t.Helper()
	var once sync.Once
	resumed := make(chan struct{})
	_, parts := Open(t, s, func(c *sqltable.Config) {
		c.MaxLag, c.RetryFor = time.Second, time.Minute
		c.OnPause = func(string) {
			once.Do(func() { time.AfterFunc(100*time.Millisecond, func() { resume(); close(resumed) }) })
		}
	})
	lag()
	if rows := All(t, parts, nil); len(rows) != 30000 {
		t.Errorf("%d rows", len(rows))
	}
	select {
	case <-resumed:
	default:
		t.Error("reading did not pause while replication lagged")
		resume()
	}
}

// TLS is a connection to try, with part of its error; "" if it succeeds.
type TLS = struct{ User, Host, Parameters, Wants string }

// Tried tries to connect. address takes the user, the host and the parameters after the table.
func Tried[S sqltable.Server](t *testing.T, address func(user, host, parameters string) (S, error), tries []TLS) {
	t.Helper()
	for _, c := range tries {
		s, err := address(c.User, c.Host, c.Parameters)
		if err == nil {
			var look sqltable.Session
			if look, _, err = s.Look(t.Context()); err == nil {
				look.Close()
			}
		}
		if c.Wants == "" && err != nil || c.Wants != "" && (err == nil || !strings.Contains(err.Error(), c.Wants)) {
			t.Errorf("%s at %s%s: %v, want %q", c.User, c.Host, c.Parameters, err, c.Wants)
		}
	}
}

// Keyless checks that reading each query ends with an error that contains the wanted text.
func Keyless(t *testing.T, query func(sql string) sqltable.Server, wants map[string]string) {
	t.Helper()
	for sql, want := range wants {
		_, parts := Open(t, query(sql), nil)
		var err error
		for err == nil {
			_, err = parts[0].Next()
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: err = %v, want %q", sql, err, want)
		}
	}
}

// Followed checks that a second reading, of rows changed since the first one's position, finds the rows of transactions
// that were open during the first. A reading since the snapshot would miss most. open opens this many transactions,
// each of which writes a row, and returns their commit. changed reads the rows since a time.
func Followed(t *testing.T, table sqltable.Server, changed func(since string) sqltable.Server, rows int,
	open func() (commit func())) {
	t.Helper()
	commit := open()
	o, parts := Open(t, table, func(c *sqltable.Config) { c.Sessions = 1 })
	before := map[string]bool{}
	for _, r := range All(t, parts, nil) {
		before[r] = true
	}
	p, taken := o.Position(), o.Snapshots()[0].Taken
	commit()
	if since, err := time.Parse(time.RFC3339, p.SafeSince); err != nil || since.After(taken) {
		t.Fatalf("%+v, and the snapshot of %v", p, taken)
	}
	found := func(since string) (n int) {
		_, parts := Open(t, changed(since), nil)
		for _, r := range All(t, parts, nil) {
			if !before[r] {
				n++
			}
		}
		return n
	}
	if n := found(p.SafeSince); n != rows {
		t.Errorf("found %d of %d rows since %s", n, rows, p.SafeSince)
	}
	if n := found(taken.Format(time.RFC3339Nano)); n > rows/10 {
		t.Errorf("found %d of %d rows since the snapshot (%v): their transactions were not open then", n, rows, taken)
	}
}

// Position returns the position at which a table is divided. It checks that resuming gives the same position.
func Position(t *testing.T, s sqltable.Server) source.Position {
	t.Helper()
	o := sqltable.New(sqltable.Config{Server: s})
	division, err := o.Divide(t.Context())
	conformance.Must(t, err)
	var said [2]source.Position
	for i, o := range []*sqltable.Origin{o, sqltable.New(sqltable.Config{Server: s})} {
		parts, err := o.Open(t.Context(), division)
		conformance.Must(t, err)
		said[i] = o.Position()
		for _, p := range parts {
			conformance.Must(t, p.Close())
		}
	}
	if said[0].ResumeFrom == nil || !reflect.DeepEqual(said[0], said[1]) {
		t.Errorf("position %+v, but %+v in another process", said[0], said[1])
	}
	return said[0]
}
