package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"tsimport/reader/sqltable"
)

// settings make texts of values exact and the same everywhere, and keep a reading from being stopped between two pages. A policy of row
// security that would hide rows fails the reading.
const settings = `SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'iso_8601'; SET extra_float_digits = 3;
	SET bytea_output = 'hex'; SET default_transaction_read_only = on; SET row_security = off; SET statement_timeout = 0; SET lock_timeout = '10s';
	SET idle_in_transaction_session_timeout = 0; SET application_name = 'tsimport'`

// connect opens a session.
func connect(ctx context.Context, a *Address) (*pgconn.PgConn, error) {
	conn, err := pgconn.ConnectConfig(ctx, a.config)
	if err != nil {
		return nil, refused(err)
	}
	encoding := "UTF8"
	if conn.ParameterStatus("server_encoding") == "SQL_ASCII" {
		encoding = "SQL_ASCII" // bytes of no encoding: a row whose texts are not UTF-8 is rejected, and does not end the reading
	}
	if err := conn.Exec(ctx, settings+"; SET client_encoding = '"+encoding+"'").Close(); err != nil {
		hangUp(conn)
		return nil, err
	}
	return conn, nil
}

var tlsWords = sqltable.TLSWords{Off: "sslmode=disable", CA: "sslrootcert", AnyName: "sslmode=verify-ca", Own: "sslcert=FILE and sslkey=FILE"}

// refused says why there is no connection: the driver's error, which has no password, names each attempt in a line of its own.
func refused(err error) error {
	if pg := new(pgconn.PgError); errors.As(err, &pg) {
		return sqltable.Said(fmt.Sprintf("the server refuses the session: %s (SQLSTATE %s)", pg.Message, pg.Code), err)
	}
	_, text, _ := strings.Cut(err.Error(), "`:")
	attempts := strings.Split(strings.TrimSpace(cmp.Or(text, err.Error())), "\n\t")
	if !slices.ContainsFunc(attempts, func(a string) bool { return !strings.Contains(a, "server refused TLS connection") }) { // the driver has no other sign
		return tlsWords.NoTLS(err)
	}
	if said := tlsWords.Explain(err); said != err {
		return said
	}
	slices.Sort(attempts)
	return sqltable.Said("no connection: "+strings.Join(slices.Compact(attempts), "; "), err)
}

// closing bounds how long a server is told that a session ends.
const closing = time.Second

func hangUp(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_ = conn.Close(ctx) // the server forgets a session that it hears nothing of
}

// Shown is the address.
func (a *Address) Shown() string { return a.shown }

// Name is the table's.
func (a *Address) Name() string { return a.table }

// Look opens a session outside any snapshot.
func (a *Address) Look(ctx context.Context) (sqltable.Session, *sqltable.Table, error) {
	conn, err := connect(ctx, a)
	if err != nil {
		return nil, nil, passing(err)
	}
	t, err := describe(ctx, conn, a)
	if err != nil {
		hangUp(conn)
		return nil, nil, passing(err)
	}
	return &session{conn: conn, of: t}, t.Table, nil
}

// passing marks what a server says that is too busy, and a connection that ended.
func passing(err error) error {
	switch {
	case errors.As(err, new(*pgconn.PgError)) && lost(err):
		return sqltable.Passing(err)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return sqltable.Passing(fmt.Errorf("%w: %w", sqltable.ErrCut, err))
	}
	return err
}

// samplePages is how many pages of the server are looked at to find where ranges begin.
const samplePages = 512

// Bounds takes keys of a sample.
func (a *Address) Bounds(ctx context.Context, look sqltable.Session, _ *sqltable.Table) (bounds [][][]byte, err error) {
	s := look.(*session)
	ranges := s.of.Ranges()
	percent := min(100, 100*samplePages/float64(s.of.pages))
	keys := strings.Join(s.of.names(), ", ")
	res := s.conn.ExecParams(ctx, fmt.Sprintf("SELECT %s FROM %s TABLESAMPLE SYSTEM (%g) ORDER BY %s", keys, s.of.from(), percent, keys), nil, nil, nil, nil).Read()
	for i := 1; i < ranges && len(res.Rows) >= ranges; i++ {
		bounds = append(bounds, res.Rows[i*len(res.Rows)/ranges])
	}
	return bounds, res.Err
}

// Lost reports whether an error is about the session, or about a snapshot that is no more.
func (a *Address) Lost(err error) bool { return lost(err) || gone(err) }

// gone reports that a snapshot cannot be joined because nothing holds it.
func gone(err error) bool {
	pg := new(pgconn.PgError)
	return errors.As(err, &pg) && (pg.Code == "22023" || pg.Code == "42704" || pg.Code == "55000")
}

// snapshot is an exported one, and the session that keeps it.
type snapshot struct {
	of   *Address
	t    *described
	conn *pgconn.PgConn
	name string
	next uint64 // the first transaction that it cannot see
}

// Snapshot exports a snapshot, and sees to it that the table is what it was, and its rows are none that are older than those read before.
func (a *Address) Snapshot(ctx context.Context, _ int, before sqltable.Snapshot) (sqltable.Snapshot, *sqltable.Table, error) {
	conn, err := connect(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	h := &snapshot{of: a, conn: conn}
	if err := h.begin(ctx, before); err != nil {
		hangUp(conn)
		return nil, nil, err
	}
	return h, h.t.Table, nil
}

func (h *snapshot) begin(ctx context.Context, before sqltable.Snapshot) (err error) {
	// What the table is called has to be known before it can be locked.
	if h.t, err = describe(ctx, h.conn, h.of); err != nil {
		return err
	}
	if h.t.query != "" {
		err = h.t.hold(ctx, h.conn)
	} else {
		err = h.conn.Exec(ctx, h.t.lock("")).Close()
	}
	if err != nil {
		return err
	}
	rows, err := query(ctx, h.conn, "SELECT pg_export_snapshot(), pg_snapshot_xmax(pg_current_snapshot())::text")
	if err != nil {
		return err
	}
	h.name = rows[0][0]
	if h.next, err = strconv.ParseUint(rows[0][1], 10, 64); err != nil {
		return fmt.Errorf("the snapshot %s of the server cannot be read: %w", h.name, err)
	}
	if h.t, err = describe(ctx, h.conn, h.of); err != nil {
		return err
	}
	if before, ok := before.(*snapshot); ok && h.next < before.next {
		return fmt.Errorf("the server of %s has fewer transactions (%d) than when rows were read before (%d): it was replaced by one that lags or lost some, and rows would become older; start over with --fresh", h.of.shown, h.next, before.next)
	}
	return nil
}

// lock begins a transaction that reads the table, in a snapshot that is named or one of its own.
func (t *described) lock(snapshot string) string {
	sql := "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
	if snapshot != "" {
		sql += "SET TRANSACTION SNAPSHOT '" + snapshot + "'; "
	}
	if t.query != "" {
		return sql + "SELECT 1" // what holds the snapshot locks its tables
	}
	// An altered table is of no snapshot: it is locked against that, not against writers.
	return sql + "LOCK TABLE " + t.from() + " IN ACCESS SHARE MODE"
}

// Name is what the server calls it.
func (h *snapshot) Name() string { return h.name }

// Sessions are none: they join.
func (h *snapshot) Sessions() []sqltable.Session { return nil }

// Join opens a session that reads the snapshot.
func (h *snapshot) Join(ctx context.Context) (sqltable.Session, error) {
	conn, err := connect(ctx, h.of)
	if err != nil {
		return nil, err
	}
	if err := conn.Exec(ctx, h.t.lock(h.name)).Close(); err != nil {
		hangUp(conn)
		return nil, err
	}
	s := &session{conn: conn, of: h.t, prepared: map[string]bool{}}
	if h.t.query != "" {
		s.stream = &sqltable.Stream{Ask: s.ask}
	}
	return s, nil
}

// Alive asks the session that keeps it.
func (h *snapshot) Alive(ctx context.Context) bool {
	_, err := query(ctx, h.conn, "SELECT 1")
	return err == nil
}

// Close ends the session that keeps it.
func (h *snapshot) Close() { hangUp(h.conn) }

// session reads pages.
type session struct {
	conn     *pgconn.PgConn
	of       *described
	prepared map[string]bool  // statements that it has; nil prepares none
	stream   *sqltable.Stream // of a query; nil asks for each page
}

// Close ends the session.
func (s *session) Close() { hangUp(s.conn) }

// Page asks for a page.
func (s *session) Page(ctx context.Context, t *sqltable.Table, q sqltable.Query) (sqltable.Rows, error) {
	if s.stream != nil {
		return s.stream.Page(ctx, t, q)
	}
	return s.ask(ctx, q)
}

// ask asks for rows: all from the lower bound on in a stream.
func (s *session) ask(ctx context.Context, q sqltable.Query) (sqltable.Rows, error) {
	t := s.of
	sql, name := t.pageSQL(q.Lower != nil, q.Past, q.Upper != nil)
	args := append(append([][]byte{}, q.Lower...), q.Upper...)
	var oids []uint32
	for range len(args) / len(t.Key) {
		for _, k := range t.Key {
			oids = append(oids, t.Columns[k].Of.(column).oid)
		}
	}
	limit := fmt.Append(nil, q.Limit)
	if s.stream != nil {
		limit = nil // LIMIT NULL is none
	}
	args = append(args, limit)
	if s.prepared == nil {
		name = ""
	}
	if !s.prepared[name] {
		if _, err := s.conn.Prepare(ctx, name, sql, append(oids, 20)); err != nil { // int8
			return nil, err
		}
		if s.prepared != nil {
			s.prepared[name] = true
		}
	}
	return rows{s.conn.ExecPrepared(ctx, name, args, nil, t.forms)}, nil
}

// rows are those of a page.
type rows struct{ *pgconn.ResultReader }

func (r rows) Next() bool { return r.NextRow() }

func (r rows) Close() error {
	_, err := r.ResultReader.Close()
	if large := new(pgproto3.ExceededMaxBodyLenErr); errors.As(err, &large) {
		return &sqltable.RowTooLarge{Bytes: int64(large.ActualBodyLen), Limit: int64(large.MaxExpectedBodyLen) - rowOverhead}
	}
	if pg := new(pgconn.PgError); errors.As(err, &pg) && (pg.Code == "22021" || pg.Code == "22P05") {
		return fmt.Errorf("the server has no UTF-8 for a text: %w; correct the row, or leave its column out by a query (--query)", err)
	}
	return err
}

// pageSQL is the statement of a page, and a name for it. Rows are compared and sorted as the primary key's index has them.
func (t *described) pageSQL(lower, past, upper bool) (sql, name string) {
	var columns []string
	for _, c := range t.Columns {
		text := quote(c.Name)
		if c.Of.(column).base == "money" {
			text += "::numeric" // its own text depends on the server's language
		}
		columns = append(columns, text)
	}
	n := 0
	row := func() string {
		var at []string
		for range t.Key {
			n++
			at = append(at, fmt.Sprintf("$%d", n))
		}
		return "(" + strings.Join(at, ", ") + ")"
	}
	var where []string
	names := strings.Join(t.names(), ", ")
	name = "page"
	if lower {
		op := ">="
		if name += "_from"; past {
			op, name = ">", "page_after"
		}
		where = append(where, "("+names+") "+op+" "+row())
	}
	if upper {
		name += "_before"
		where = append(where, "("+names+") < "+row())
	}
	sql = "SELECT " + strings.Join(columns, ", ") + " FROM " + t.from()
	if len(where) > 0 {
		sql += " WHERE " + strings.Join(where, " AND ")
	}
	order := t.names()
	if t.query != "" { // a null is to be seen first: later bounds leave it out
		for i := range order {
			order[i] += " NULLS FIRST"
		}
	}
	return sql + " ORDER BY " + strings.Join(order, ", ") + fmt.Sprintf(" LIMIT $%d", n+1), name
}

// names are those of the key's columns, as SQL writes them.
func (t *described) names() []string {
	names := make([]string, len(t.Key))
	for i, k := range t.Key {
		names[i] = quote(t.Columns[k].Name) + t.Columns[k].Of.(column).sort
	}
	return names
}

// from is the table in a statement.
func (t *described) from() string {
	if t.query != "" {
		return t.query
	}
	return t.only + t.Name
}
