package sqltable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// counting is a server with the keys 1 to rows, whose sessions fail as a test says.
type counting struct {
	rows   int
	schema string
	pages  int                      // that were asked for
	page   func(page int) error     // before a page; nil never fails
	row    func(key int) error      // in place of a row
	open   func(snapshot int) error // before a snapshot
	taken  int
}

var errSession, errRow = errors.New("the session was killed"), errors.New("the row cannot be read")

func (c *counting) Shown() string { return "count://" }
func (c *counting) Name() string  { return "numbers" }
func (c *counting) table() *Table {
	return &Table{Name: "numbers", Schema: c.schema, Key: []int{0},
		Columns: []Column{{Name: "id", Kind: record.Integer, Type: table.Integer}}}
}
func (c *counting) Look(context.Context) (Session, *Table, error) { return c, c.table(), nil }
func (c *counting) Bounds(context.Context, Session, *Table) ([][][]byte, error) {
	return nil, nil
}
func (c *counting) Lost(err error) bool { return errors.Is(err, errSession) }
func (c *counting) Snapshot(context.Context, int, Snapshot) (Snapshot, *Table, error) {
	if c.open != nil {
		if err := c.open(c.taken); err != nil {
			return nil, nil, err
		}
	}
	c.taken++
	return &moment{c, fmt.Sprint(c.taken)}, c.table(), nil
}
func (c *counting) Close() {}

// moment is a snapshot that any number of sessions can join until a session is killed.
type moment struct {
	*counting
	name string
}

func (m *moment) Name() string                          { return m.name }
func (m *moment) Sessions() []Session                   { return nil }
func (m *moment) Join(context.Context) (Session, error) { return m.counting, nil }
func (m *moment) Alive(context.Context) bool            { return true }

func (c *counting) Page(_ context.Context, _ *Table, q Query) (Rows, error) {
	c.pages++
	if c.page != nil {
		if err := c.page(c.pages); err != nil {
			return nil, err
		}
	}
	next := 1
	if q.Lower != nil {
		next, _ = strconv.Atoi(string(q.Lower[0]))
		if q.Past {
			next++
		}
	}
	return &numbers{of: c, next: next, left: min(q.Limit, 10)}, nil
}

type numbers struct {
	of         *counting
	next, left int
	err        error
}

func (n *numbers) Next() bool {
	if n.of.row != nil {
		n.err = n.of.row(n.next)
	}
	if n.left == 0 || n.next > n.of.rows || n.err != nil {
		return false
	}
	n.left--
	n.next++
	return true
}
func (n *numbers) Values() [][]byte { return [][]byte{strconv.AppendInt(nil, int64(n.next-1), 10)} }
func (n *numbers) Close() error     { return n.err }

// readAll returns the number of rows read, and the error that ended it.
func readAll(t *testing.T, o *Origin) (rows int, err error) {
	t.Helper()
	division, err := o.Divide(t.Context())
	if err != nil {
		return 0, err
	}
	parts, err := o.Open(t.Context(), division)
	if err != nil {
		return 0, err
	}
	defer parts[0].Close()
	parser := parts[0].NewParser(nil)
	for {
		piece, err := parts[0].Next()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		splits, err := parts[0].Add(piece)
		if err != nil {
			return rows, err
		}
		if _, _, err := parser.Parse(source.Split{Part: splits[0].Part}, func(r *record.Record) {
			if rows++; r.Fields[0].Int != int64(rows) {
				t.Errorf("row %d is %d", rows, r.Fields[0].Int)
			}
		}); err != nil {
			return rows, err
		}
	}
}

func TestFailingServers(t *testing.T) {
	for _, tt := range []struct {
		what  string
		fail  func(c *counting)
		rows  int
		want  string // in the error; empty is none
		taken int    // snapshots
		exit  int    // code of the load: 2 if the same load would meet it again
	}{
		{"a query that is killed is asked again in the same snapshot", func(c *counting) {
			c.page = func(page int) error {
				if page%2 == 0 {
					return errSession
				}
				return nil
			}
		}, 100, "", 1, 0},
		{"a session that ends amid a page is asked for the page again", func(c *counting) {
			ends := true
			c.row = func(key int) error {
				if key == 15 && ends {
					ends = false
					return errSession
				}
				return nil
			}
		}, 100, "", 1, 0},
		{"a server that is gone for less than --retry-for is waited for", func(c *counting) {
			gone := time.Now().Add(50 * time.Second)
			c.page = func(page int) error {
				if page > 3 && time.Now().Before(gone) {
					return errSession
				}
				return nil
			}
		}, 100, "", 1, 0},
		{"one that stays away ends the reading after the rows before", func(c *counting) {
			c.page = func(page int) error {
				if page > 3 {
					return errSession
				}
				return nil
			}
		}, 30, "read numbers: no session could read for 1m0s (--retry-for): the session was killed; resume when the server " +
			"answers", 1, 1},
		{"a row that the server cannot give ends the reading, and says where", func(c *counting) {
			c.row = func(key int) error {
				if key == 15 {
					return errRow
				}
				return nil
			}
		}, 10, "read numbers: after the row id 14: the row cannot be read", 1, 2},
		{"the first row that the server cannot give has none before it", func(c *counting) {
			c.row = func(int) error { return errRow }
		}, 0, "read numbers: the first row: the row cannot be read", 1, 2},
		{"another server is not read from", func(c *counting) {
			c.open = func(int) error { c.schema = "numbers, server_id 2, \"id\" bigint"; return nil }
		}, 0, "read numbers: the table or its server changed since the load began: it was server_id 1, and is now " +
			"server_id 2; start over with --fresh", 1, 2},
		{"a table with other columns is not read from", func(c *counting) {
			c.open = func(int) error { c.schema = "numbers, server_id 1, \"id\" bigint, \"more\" text"; return nil }
		}, 0, `since the load began: it now has "more" text; start over with --fresh`, 1, 2},
		{"a table that has lost a column is not read from", func(c *counting) {
			c.open = func(int) error { c.schema = "numbers, server_id 1"; return nil }
		}, 0, `since the load began: it no longer has "id" bigint; start over with --fresh`, 1, 2},
		{"a claim about a query that does not hold ends the reading", func(c *counting) {
			c.row = func(int) error {
				return errors.Join(errSession, &claimError{"two rows of the query have the key id 1"})
			}
		}, 0, "two rows of the query have the key id 1", 1, 2},
	} {
		t.Run(tt.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &counting{rows: 100, schema: "numbers, server_id 1, \"id\" bigint"}
				tt.fail(c)
				rows, err := readAll(t, New(Config{Server: c}))
				conformance.Equal(t, rows, tt.rows, "rows")
				conformance.Equal(t, c.taken, tt.taken, "taken")
				conformance.True(t, (err != nil) == (tt.want != "") && (err == nil || strings.Contains(err.Error(), tt.want)),
					"%v, want %q", err, tt.want)
				conformance.Equal(t, errors.As(err, new(*source.Lasting)), tt.exit == 2, "%v", err)
			})
		})
	}
}

// TestUniqueIndexesOfKeyColumns: indexes with other columns prove nothing, for rows may differ only in a column outside
// the key.
func TestUniqueIndexesOfKeyColumns(t *testing.T) {
	table := &Table{Key: []int{0, 2}, Columns: []Column{{Name: "a"}, {Name: "x"}, {Name: "b"}}}
	table.AddUnique([][]string{{"key", "a"}, {"key", "b"}, {"one", "b"}, {"other", "x"}, {"half", "a"}, {"half", "x"},
		{"prefix", "a"}, {"prefix", ""}})
	conformance.Equal(t, fmt.Sprint(table.Unique), "[[a b] [b]]", "unique")
}

func TestUnresponsiveServerIsReportedAfterTwoSeconds(t *testing.T) {
	for outage, want := range map[time.Duration]int{time.Second: 0, 20 * time.Second: 1, 50 * time.Second: 2} {
		synctest.Test(t, func(t *testing.T) {
			c := &counting{rows: 100, schema: "numbers"}
			var notes []string
			o := New(Config{Server: c, OnPause: func(why string) { notes = append(notes, why) }})
			gone, waited := time.Now().Add(outage), false
			c.page = func(page int) error {
				waited = waited || o.Waiting()
				if page > 3 && time.Now().Before(gone) {
					return errSession
				}
				return nil
			}
			rows, err := readAll(t, o)
			conformance.True(t, err == nil && rows == 100 && len(notes) == want && waited && !o.Waiting(),
				"%v: %d rows, %v, %q, waiting %v, then %v", outage, rows, err, notes, waited, o.Waiting())
			for _, note := range notes {
				if note != "waiting: the database does not answer: the session was killed; tried again for up to 1m0s" {
					t.Error(note)
				}
			}
		})
	}
}

// few is a server that has one session, which keeps the snapshot, or two.
type few struct {
	*counting
	left int
}

var errFull = errors.New("too many connections")

func (f *few) Full(err error) bool { return errors.Is(err, errFull) }

func (f *few) Snapshot(ctx context.Context, n int, before Snapshot) (Snapshot, *Table, error) {
	now, t, err := f.counting.Snapshot(ctx, n, before)
	return &fewMoment{now, f}, t, err
}

type fewMoment struct {
	Snapshot
	of *few
}

func (m *fewMoment) Alone() Session { return m.of.counting }

func (m *fewMoment) Join(ctx context.Context) (Session, error) {
	if m.of.left == 0 {
		return nil, errFull
	}
	m.of.left--
	return m.Snapshot.Join(ctx)
}

func TestReadingUsesAvailableSessions(t *testing.T) {
	for left := range 3 {
		synctest.Test(t, func(t *testing.T) {
			var notes []string
			cfg := &Config{Server: &few{&counting{schema: "numbers"}, left}, Sessions: 3,
				OnPause: func(why string) { notes = append(notes, why) }}
			o := New(*cfg)
			o.of = cfg.Server.(*few).table()
			s := newSessions(&o.cfg, o.open)
			var lent []*session
			for range max(left, 1) {
				lent = append(lent, conformance.Try(s.borrow(t.Context(), -1)).Must(t))
			}
			came := make(chan *session)
			go func() {
				one, _ := s.borrow(t.Context(), -1)
				came <- one
			}()
			synctest.Wait()
			select {
			case <-came:
				t.Error("a session more than the server has")
			default:
			}
			s.giveBack(lent[0])
			conformance.Equal(t, <-came, lent[0], "a buffer that was given back")
			want := fmt.Sprintf("reading with %d of 3 sessions, because the server has no more (too many connections); "+
				"sessions=%[1]d asks for no others", max(left, 1))
			conformance.True(t, len(notes) == 1 && notes[0] == want, "%q, want %q", notes, want)
		})
	}
}
