package sqltable

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
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

func TestKeysRoundTripThroughPlaces(t *testing.T) {
	got, err := placeValues(appendPlace(nil, [][]byte{{}, []byte("é\x00"), []byte("12")}))
	conformance.True(t, err == nil && len(got) == 3 && string(got[0]) == "" && got[0] != nil &&
		string(got[1]) == "é\x00" && string(got[2]) == "12",
		"%q, %v", got, err)
	conformance.Refused(t, conformance.ErrorOf(placeValues([]byte{5, 'a'})), "", "a truncated place was read")
}

func TestPatternAddressBecomesTableAddress(t *testing.T) {
	for arg, want := range map[string]string{
		"postgres://u@h/d":                             "postgres://u@h/d?table=s.t",
		"postgres://u@h/d?table=s.*&sslmode=disable":   "postgres://u@h/d?table=s.t&sslmode=disable",
		"postgres://u@h/d?sslmode=disable&table=%2A":   "postgres://u@h/d?sslmode=disable&table=s.t",
		"mysql://u@h/d?ssl-ca=/a&&ssl-mode=VERIFY_CA&": "mysql://u@h/d?ssl-ca=/a&ssl-mode=VERIFY_CA&table=s.t",
	} {
		conformance.Equal(t, OfTable(arg, "s.t"), want, "%s", arg)
	}
	conformance.Equal(t, OfTable("mysql://h/d", `a&b="c"`), "mysql://h/d?table=a%26b%3D%22c%22", "of table")
}

func TestAddressParametersAreParsedOrRefused(t *testing.T) {
	for query, want := range map[string]string{"": "", "table=a": "a", "table=a%26b&x=1": "a&b"} {
		q, err := Parameters(query)
		conformance.True(t, err == nil && q.Get("table") == want, "%s: %v, %v", query, q, err)
	}
	for _, query := range []string{"table=a&table=b", "table=a&sslmode=verify-full;x=1", "table=a%zz",
		"table=a&sslmode=disable&sslmode=verify-full"} {
		q, err := Parameters(query)
		conformance.True(t, err != nil, "%s: %v", query, q)
	}
}

func TestTLSErrorsGiveAdvice(t *testing.T) {
	w := TLSWords{Off: "tls=off", CA: "tls-ca", AnyName: "tls=any", Own: "tls-cert=FILE"}
	for _, tt := range []struct {
		err   error
		wants string
	}{
		{x509.UnknownAuthorityError{}, "give the authority's certificate with tls-ca=FILE"},
		{x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"db.example"}}, Host: "10.0.0.1"},
			"connect by one of them or, to trust any that the authority has signed, give tls=any"},
		{x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired}, "replace it at the server"},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"},
			"check that host and port belong to the database"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: unknown certificate authority")},
			"give one that it trusts with tls-cert=FILE"},
		{&net.OpError{Op: "read", Err: io.ErrUnexpectedEOF}, ""},
	} {
		got := w.Explain(fmt.Errorf("tls error: %w", tt.err))
		conformance.True(t, (tt.wants != "" || strings.HasPrefix(got.Error(), "tls error: ")) &&
			strings.Contains(got.Error(), tt.wants) && !strings.Contains(got.Error(), "\n"),
			"%v is said as %v, want %q", tt.err, got, tt.wants)
	}
	said := w.NoTLS(io.EOF)
	conformance.True(t, errors.Is(said, io.EOF) && strings.Contains(said.Error(), "give tls=off"), "%v", said)
}

func TestRangeOfKeyIsReportedOnlyIfCertain(t *testing.T) {
	bound := func(texts ...string) (key [][]byte) {
		for _, text := range texts {
			key = append(key, []byte(text))
		}
		return key
	}
	of := func(kind record.Kind) *Table { return &Table{Columns: []Column{{Kind: kind}}, Key: []int{0}} }
	for _, tt := range []*struct {
		what   string
		origin Origin
		first  int64
		want   int // -1 if unknown
	}{
		{"before the first bound", Origin{of: of(record.Integer), from: [][][]byte{bound("-5"), bound("10")}}, -6, 0},
		{"at a bound", Origin{of: of(record.Integer), from: [][][]byte{bound("-5"), bound("10")}}, -5, 1},
		{"after the last one, which is no greater as a text",
			Origin{of: of(record.Integer), from: [][][]byte{bound("-5"), bound("10")}}, 9000, 2},
		{"of a table that is one range", Origin{of: of(record.Integer)}, 7, 0},
		{"where the rest of the key decides", Origin{of: of(record.Integer), from: [][][]byte{bound("10", "x")}}, 10, -1},
		{"where it does not", Origin{of: of(record.Integer), from: [][][]byte{bound("10", "x")}}, 11, 1},
		{"of texts, which the server sorts", Origin{of: of(record.String), from: [][][]byte{bound("10")}}, 11, -1},
		{"of a table that nobody has looked at", Origin{}, 7, -1},
	} {
		got, ok := tt.origin.RangeOf(tt.first)
		if !ok {
			got = -1
		}
		conformance.Equal(t, got, tt.want, "%s", tt.what)
	}
}

func TestScanHonoursReadLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pace{perSecond: 1000}
		begun := time.Now()
		for range 30 {
			conformance.Must(t, p.wait(t.Context()))
			p.took(p.limit())
		}
		conformance.Equal(t, time.Since(begun), 2900*time.Millisecond, "30 pages of %d rows", p.limit())
		time.Sleep(time.Hour) // idle time must not permit extra rows
		for range 2 {
			begun = time.Now()
			conformance.Must(t, p.wait(t.Context()))
			p.took(1000)
		}
		conformance.Equal(t, time.Since(begun), time.Second, "the second page came")
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		conformance.Is(t, p.wait(ctx), context.DeadlineExceeded, "wait")
	})
	conformance.Equal(t, (&pace{perSecond: 0.5}).limit(), 1, "limit")
}

// scripted is a server that reports a script of lags. After the last one, the lag is zero.
type scripted struct {
	Server
	lags    []any // each is a time.Duration, an error, or nil for an unknown lag
	opened  int
	watched bool
}

func (s *scripted) Watch(context.Context) (Watch, error) {
	s.opened++
	s.watched = true
	return s, nil
}

func (s *scripted) Close() { s.watched = false }

func (s *scripted) Lag(context.Context) (time.Duration, bool, error) {
	if len(s.lags) == 0 {
		return 0, true, nil
	}
	one := s.lags[0]
	s.lags = s.lags[1:]
	switch one := one.(type) {
	case error:
		return 0, false, one
	case time.Duration:
		return one, true, nil
	}
	return 0, false, nil
}

func TestReadingPausesWhileReplicationLags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{lags: []any{6 * time.Second, nil, errors.New("gone"), 5 * time.Second}}
		l := &lagWatch{server: s, max: 5 * time.Second, limit: time.Minute}
		var notes []string
		l.onPause = func(why string) { notes = append(notes, why) }
		begun := time.Now()
		if err := l.wait(t.Context()); err != nil || time.Since(begun) != 3*lagEvery ||
			time.Duration(l.paused.Load()) != 3*lagEvery || s.opened != 2 {
			t.Errorf("%v after %v, paused for %v, %d sessions", err, time.Since(begun), time.Duration(l.paused.Load()), s.opened)
		}
		s.lags = []any{time.Hour} // the lag is not queried again so soon
		if err := l.wait(t.Context()); err != nil || time.Duration(l.paused.Load()) != 3*lagEvery {
			t.Errorf("%v, %v", err, time.Duration(l.paused.Load()))
		}
		time.Sleep(lagEvery)
		if err := l.wait(t.Context()); err != nil || time.Duration(l.paused.Load()) != 4*lagEvery {
			t.Errorf("%v, %v", err, time.Duration(l.paused.Load()))
		}
		conformance.True(t, len(notes) == 2 &&
			notes[0] == "reading is paused: replication lags by 6s, and max-lag allows 5s", "%q", notes)
		l.close()
		conformance.True(t, !s.watched, "its session is open")
	})
}

func TestReadingEndsWhenPausedTooLong(t *testing.T) {
	for want, lag := range map[string]any{"lags by 1h0m0s": time.Hour, "not connected": nil,
		"be read (gone)": errors.New("gone")} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{}
			for range 1000 {
				s.lags = append(s.lags, lag)
			}
			l := &lagWatch{server: s, max: time.Second, limit: time.Minute}
			err := l.wait(t.Context())
			conformance.True(t, err != nil && final(err) && strings.Contains(err.Error(), want) &&
				time.Duration(l.paused.Load()) >= time.Minute && time.Duration(l.paused.Load()) <= time.Minute+2*lagEvery,
				"%v, paused for %v", err, time.Duration(l.paused.Load()))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			conformance.Is(t, l.wait(ctx), context.DeadlineExceeded, "wait")
		})
	}
}

func TestUnknowableLagIsRefused(t *testing.T) {
	l := &lagWatch{server: &scripted{lags: []any{&Unwatched{"nobody says"}, nil}}}
	conformance.Refused(t, l.check(t.Context()), "max-lag: nobody says", "error")
	conformance.Is(t, l.check(t.Context()), nil, "a lag that is unknown now, but perhaps known later")
	s := &scripted{Server: &counting{rows: 30}}
	_, err := readAll(t, New(Config{Server: s, MaxLag: time.Second}))
	conformance.True(t, err == nil && s.opened > 0 && !s.watched, "%v, or its session is open after the reading", err)
}

func TestShardPatternGivesAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"mysql://h/d?table=t":        "",
		"mysql://h/d?table=t_{0..2}": "mysql://h/d?table=t_0 mysql://h/d?table=t_1 mysql://h/d?table=t_2",
		"mysql://h/d?table=t_{08..11}x&sessions=2": "mysql://h/d?table=t_08x&sessions=2 " +
			"mysql://h/d?table=t_09x&sessions=2 mysql://h/d?table=t_10x&sessions=2 mysql://h/d?table=t_11x&sessions=2",
		"postgres://h/d?a=b&table=s.t{9..10}":        "postgres://h/d?a=b&table=s.t9 postgres://h/d?a=b&table=s.t10",
		"mysql://h/d?table=t_{3..3}":                 "want {FIRST..LAST}",
		"mysql://h/d?table=t_{5..3}":                 "want {FIRST..LAST}",
		"mysql://h/d?table=t_{0..1024}":              "want {FIRST..LAST} with 2 to 1024 numbers",
		"mysql://h/d?table=t_{0..99999999999999999}": "want {FIRST..LAST}",
		"mysql://h/d?table=t_{0..1}_{0..1}":          "want at most one {FIRST..LAST}",
		"mysql://h/d?other={0..1}&table={table}":     "",
	} {
		all, err := Shards(address)
		conformance.True(t, (!strings.HasPrefix(want, "want") || err != nil && strings.Contains(err.Error(), want)) &&
			(strings.HasPrefix(want, "want") || err == nil && slices.Equal(all, strings.Fields(want))),
			"%s: %q, %v; want %q", address, all, err, want)
	}
}

// shown is a server that has only an address.
type shown struct{ Server }

func (shown) Shown() string { return "shards" }

// TestShardRowsAreNotReread is needed because the first shard alone would report the rows of others as deleted.
func TestShardRowsAreNotReread(t *testing.T) {
	o := &Origin{cfg: Config{Server: shown{}, Shards: []Server{shown{}, shown{}}}}
	_, err := o.Reread(t.Context(), nil)
	conformance.True(t, err != nil && strings.Contains(err.Error(), "shards cannot be looked up"), "%v", err)
}

// counting is a server with the keys 1 to rows. Tests make its sessions fail.
type counting struct {
	rows   int
	schema string
	pages  int                      // number of pages requested
	page   func(page int) error     // called before each page; nil never fails
	row    func(key int) error      // called for each row; an error takes the row's place
	open   func(snapshot int) error // called before each snapshot
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

// moment is a snapshot that any number of sessions can join until one is killed.
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

// readAll returns the number of rows read, and the error that ended the reading.
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

func TestFailingServerIsRetriedOrEndsReading(t *testing.T) {
	for _, tt := range []struct {
		what  string
		fail  func(c *counting)
		rows  int
		want  string // part of the error; "" for no error
		taken int    // number of snapshots opened
		exit  int    // exit code of the load: 2 if repeating it would fail in the same way
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

// TestOnlyUniqueIndexesInsideKeyAreUsed adds unique indexes with columns outside of the key. They prove nothing about
// the key, because rows may differ only in these columns.
func TestOnlyUniqueIndexesInsideKeyAreUsed(t *testing.T) {
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
				if note != "waiting: the database does not answer: the session was killed; retrying for up to 1m0s" {
					t.Error(note)
				}
			}
		})
	}
}

// few is a server with one session, which also keeps the snapshot, or with two.
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
