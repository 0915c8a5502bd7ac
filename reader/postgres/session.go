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
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"example.com/tsimport/reader/sqltable"
)

// settings make texts of values exact and keep the server from ending a read between two pages. Under a row security
// policy that would hide rows, reading fails. The settings apply to one transaction and no prepared statement has a
// name, because a pooler also lends the session to others, who must find it unchanged.
const settings = `SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO, YMD'; SET LOCAL IntervalStyle = 'iso_8601'; SET LOCAL extra_float_digits = 3;
	SET LOCAL bytea_output = 'hex'; SET LOCAL row_security = off; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '10s';
	SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL application_name = 'tsimport'`

// How transactions begin: each statement sees the rows committed so far, or all statements see the same snapshot.
const (
	beginLoose    = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"
	beginSnapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
)

// connect opens a session, which is used only in transactions.
func connect(ctx context.Context, a *Address) (*pgconn.PgConn, error) {
	conn, err := pgconn.ConnectConfig(ctx, a.config)
	if err != nil {
		return nil, refused(err)
	}
	return conn, nil
}

// begin begins a transaction, applies the settings and runs the statements in then.
func begin(ctx context.Context, conn *pgconn.PgConn, how, then string) error {
	encoding := "UTF8"
	if conn.ParameterStatus("server_encoding") == "SQL_ASCII" {
		encoding = "SQL_ASCII" // raw bytes: rows with texts that are not UTF-8 are rejected, and reading continues
	}
	return conn.Exec(ctx, how+"; "+settings+"; SET LOCAL client_encoding = '"+encoding+"'; "+then).Close()
}

// within calls do in a transaction of its own. After an error the session must be closed.
func within(ctx context.Context, conn *pgconn.PgConn, do func() error) error {
	if err := begin(ctx, conn, beginLoose, ""); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return conn.Exec(ctx, "COMMIT").Close()
}

var tlsWords = sqltable.TLSWords{Off: "sslmode=disable", CA: "sslrootcert", AnyName: "sslmode=verify-ca",
	Own: "sslcert=FILE and sslkey=FILE"}

// refused explains why a connection failed. The driver's error has no password, but a line for each attempt.
func refused(err error) error {
	if pg := new(pgconn.PgError); errors.As(err, &pg) {
		text := fmt.Sprintf("the server refuses the session: %s (SQLSTATE %s)", pg.Message, pg.Code)
		if full(err) {
			text += sqltable.NeedsOne
		}
		return sqltable.Said(text, err)
	}
	_, text, _ := strings.Cut(err.Error(), "`:")
	attempts := strings.Split(strings.TrimSpace(cmp.Or(text, err.Error())), "\n\t")
	if !slices.ContainsFunc(attempts,
		func(a string) bool { return !strings.Contains(a, "server refused TLS connection") }) {
		// The driver gives no other sign of this.
		return tlsWords.NoTLS(err)
	}
	if said := tlsWords.Explain(err); said != err {
		return said
	}
	slices.Sort(attempts)
	return sqltable.Said("no connection: "+strings.Join(slices.Compact(attempts), "; "), err)
}

// full reports whether the server, or a limit of the user or database, allows no more sessions.
func full(err error) bool {
	pg := new(pgconn.PgError)
	return errors.As(err, &pg) && pg.Code == "53300"
}

func (a *Address) Full(err error) bool { return full(err) }

// closing is the time allowed for telling the server that a session ends.
const closing = time.Second

func hangUp(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_ = conn.Close(ctx) // the server drops a session that is silent
}

func (a *Address) Shown() string { return a.shown }

func (a *Address) Name() string { return a.table }

// Look opens a session outside of any snapshot.
func (a *Address) Look(ctx context.Context) (sqltable.Session, *sqltable.Table, error) {
	conn, err := connect(ctx, a)
	if err != nil {
		return nil, nil, passing(err)
	}
	var t *described
	if err := within(ctx, conn, func() (err error) { t, err = describe(ctx, conn, a); return err }); err != nil {
		hangUp(conn)
		return nil, nil, passing(err)
	}
	return &session{conn: conn, loose: true}, t.Table, nil
}

// passing marks the errors of an overloaded server, and of a lost connection, as temporary.
func passing(err error) error {
	switch {
	case errors.As(err, new(*pgconn.PgError)) && lost(err):
		return sqltable.Passing(err)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return sqltable.Passing(fmt.Errorf("%w: %w", sqltable.ErrCut, err))
	}
	return err
}

// samplePages is the number of the table's pages to sample for the bounds of ranges.
const samplePages = 512

// Bounds returns keys from a sample of the table.
func (a *Address) Bounds(ctx context.Context, look sqltable.Session, t *sqltable.Table) (bounds [][][]byte, err error) {
	s, of := look.(*session), t.Of.(*described)
	ranges := of.Ranges()
	percent := min(100, 100*samplePages/float64(of.pages))
	keys := strings.Join(of.names(), ", ")
	ask := func() error {
		res := s.conn.ExecParams(ctx, fmt.Sprintf("SELECT %s FROM %s TABLESAMPLE SYSTEM (%g) ORDER BY %s", keys, of.from(),
			percent, keys), nil, nil, nil, nil).Read()
		for i := 1; i < ranges && len(res.Rows) >= ranges; i++ {
			bounds = append(bounds, res.Rows[i*len(res.Rows)/ranges])
		}
		return res.Err
	}
	s.prepared = ""
	if s.loose {
		err = within(ctx, s.conn, ask)
	} else {
		err = ask()
	}
	return bounds, err
}

// Lost reports whether an error is about the session, or about a snapshot that has ended.
func (a *Address) Lost(err error) bool {
	pg := new(pgconn.PgError)
	return lost(err) || errors.As(err, &pg) && (pg.Code == "22023" || pg.Code == "42704" || pg.Code == "55000")
}

// snapshot is an exported snapshot, with the session that keeps it alive, its keeper.
type snapshot struct {
	of   *Address
	t    *described
	conn *pgconn.PgConn
	name string
	next uint64 // number of the first transaction that it does not see

	// joint holds the tables of a snapshot of several tables, as in FROM; it is nil for a single table.
	joint map[string]bool
	mu    sync.Mutex // guards queries of the keeper

	alone *session // the keeper, if it reads alone
}

// Snapshot exports a snapshot. It fails if rows would be older than in the previous snapshot, before.
func (a *Address) Snapshot(ctx context.Context, sessions int, before sqltable.Snapshot) (sqltable.Snapshot,
	*sqltable.Table, error) {
	conn, err := connect(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	h := &snapshot{of: a, conn: conn}
	if err = h.begin(ctx); err == nil {
		err = h.export(ctx, before)
	}
	if err == nil {
		h.t, err = describe(ctx, conn, a)
	}
	if err != nil {
		hangUp(conn)
		return nil, nil, err
	}
	if sessions == 1 {
		h.Alone()
	}
	return h, h.t.Table, nil
}

// Alone makes the keeper read the snapshot. No other session can then join.
func (h *snapshot) Alone() sqltable.Session {
	h.alone = h.reader(h.conn)
	return h.alone
}

func (h *snapshot) begin(ctx context.Context) (err error) {
	// The table must be known by name before it can be locked.
	if err := within(ctx, h.conn, func() (err error) { h.t, err = describe(ctx, h.conn, h.of); return err }); err != nil {
		return err
	}
	if h.t.query != "" {
		return h.t.hold(ctx, h.conn)
	}
	return h.t.lock(ctx, h.conn, "")
}

// export exports the snapshot of the keeper's transaction, so that other sessions can join it.
func (h *snapshot) export(ctx context.Context, before sqltable.Snapshot) error {
	rows, err := query(ctx, h.conn, "SELECT pg_export_snapshot(), pg_snapshot_xmax(pg_current_snapshot())::text")
	if err != nil {
		return err
	}
	h.name = rows[0][0]
	if h.next, err = strconv.ParseUint(rows[0][1], 10, 64); err != nil {
		return fmt.Errorf("cannot parse the server's snapshot %s: %w", h.name, err)
	}
	if before, ok := before.(*snapshot); ok && h.next < before.next {
		return fmt.Errorf("the server of %s has fewer transactions (%d) than when rows were last read (%d): it was "+
			"replaced by one that lags or lost some, and rows would revert; start over with --fresh", h.of.shown, h.next,
			before.next)
	}
	return nil
}

// beginIn returns SQL that begins a transaction in the snapshot with a name, or in a new one if the name is "".
func beginIn(snapshot string) string {
	if snapshot == "" {
		return beginSnapshot
	}
	return beginSnapshot + "; SET TRANSACTION SNAPSHOT '" + snapshot + "'"
}

// lock begins a transaction that reads the table, in the snapshot with a name or in a new one.
func (t *described) lock(ctx context.Context, conn *pgconn.PgConn, snapshot string) error {
	// A snapshot does not prevent ALTER, so the table is locked. The tables of a query are locked by the keeper.
	then := "SELECT 1"
	if t.query == "" {
		then = lockTables(t.from())
	}
	return begin(ctx, conn, beginIn(snapshot), then)
}

func lockTables(names ...string) string {
	return "LOCK TABLE " + strings.Join(names, ", ") + " IN ACCESS SHARE MODE"
}

func (h *snapshot) Name() string { return h.name }

// Sessions returns the keeper if it reads alone. Otherwise it returns nil, and sessions must join.
func (h *snapshot) Sessions() []sqltable.Session {
	if h.alone == nil {
		return nil
	}
	return []sqltable.Session{h.alone}
}

func (h *snapshot) Join(ctx context.Context) (sqltable.Session, error) {
	conn, err := connect(ctx, h.of)
	if err != nil {
		return nil, err
	}
	if h.joint != nil {
		err = begin(ctx, conn, beginIn(h.name), "SELECT 1")
	} else {
		err = h.t.lock(ctx, conn, h.name)
	}
	if err != nil {
		hangUp(conn)
		return nil, err
	}
	return h.reader(conn), nil
}

func (h *snapshot) reader(conn *pgconn.PgConn) *session {
	s := &session{conn: conn}
	if h.joint != nil {
		s.joins = h
	} else if h.t.query != "" {
		s.stream = &sqltable.Stream{Ask: func(ctx context.Context, q sqltable.Query) (sqltable.Rows,
			error) {
			return s.ask(ctx, h.t, q)
		}}
	}
	return s
}

func (h *snapshot) Alive(ctx context.Context) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := query(ctx, h.conn, "SELECT 1")
	return err == nil
}

// Close ends the keeper.
func (h *snapshot) Close() { hangUp(h.conn) }

type session struct {
	conn     *pgconn.PgConn
	joins    *snapshot        // snapshot of several tables; otherwise nil
	entered  []string         // tables that this session has locked
	loose    bool             // whether each page is read in its own transaction
	prepared string           // SQL of the prepared statement
	stream   *sqltable.Stream // for queries; nil means a statement for each page
}

func (s *session) Close() { hangUp(s.conn) }

func (s *session) Page(ctx context.Context, t *sqltable.Table, q sqltable.Query) (sqltable.Rows, error) {
	if s.stream != nil && !q.Once {
		return s.stream.Page(ctx, t, q)
	}
	of := t.Of.(*described)
	if err := s.enter(ctx, of); err != nil {
		return nil, err
	}
	return s.ask(ctx, of, q)
}

// ask requests all rows from the lower bound on as a single stream.
func (s *session) ask(ctx context.Context, t *described, q sqltable.Query) (sqltable.Rows, error) {
	sql := t.pageSQL(q.Lower != nil, q.Past, q.Upper != nil)
	args := append(append([][]byte{}, q.Lower...), q.Upper...)
	var oids []uint32
	for range len(args) / len(t.Key) {
		for _, k := range t.Key {
			oids = append(oids, t.Columns[k].Of.(column).oid)
		}
	}
	limit := fmt.Append(nil, q.Limit)
	if s.stream != nil && !q.Once {
		limit = nil // LIMIT NULL means no limit
	}
	args = append(args, limit)
	var after func() error
	if s.loose {
		if err := begin(ctx, s.conn, beginLoose, ""); err != nil {
			return nil, err
		}
		s.prepared, after = "", func() error { return s.conn.Exec(ctx, "COMMIT").Close() }
	}
	if s.prepared != sql {
		if _, err := s.conn.Prepare(ctx, "", sql, append(oids, 20)); err != nil { // the limit is an int8
			return nil, err
		}
		s.prepared = sql
	}
	return rows{s.conn.ExecPrepared(ctx, "", args, nil, t.forms), after}, nil
}

type rows struct {
	*pgconn.ResultReader
	after func() error // ends the transaction; nil if it continues
}

func (r rows) Next() bool { return r.NextRow() }

func (r rows) Close() error {
	_, err := r.ResultReader.Close()
	if err == nil && r.after != nil {
		return r.after()
	}
	if large := new(pgproto3.ExceededMaxBodyLenErr); errors.As(err, &large) {
		return &sqltable.RowTooLarge{Bytes: int64(large.ActualBodyLen), Limit: int64(large.MaxExpectedBodyLen) - rowOverhead}
	}
	if pg := new(pgconn.PgError); errors.As(err, &pg) && (pg.Code == "22021" || pg.Code == "22P05") {
		return fmt.Errorf("the server cannot convert a string to UTF-8: %w; correct the row, or leave its column out "+
			"with --query", err)
	}
	return err
}

// pageSQL returns the statement for a page. Rows are compared and sorted as in the index of the primary key.
func (t *described) pageSQL(lower, past, upper bool) (sql string) {
	var columns []string
	for _, c := range t.Columns {
		text := quote(c.Name)
		if c.Of.(column).base == "money" {
			text += "::numeric" // the text of money depends on the server's locale
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
	if lower {
		op := ">="
		if past {
			op = ">"
		}
		where = append(where, "("+names+") "+op+" "+row())
	}
	if upper {
		where = append(where, "("+names+") < "+row())
	}
	sql = "SELECT " + strings.Join(columns, ", ") + " FROM " + t.from()
	if len(where) > 0 {
		sql += " WHERE " + strings.Join(where, " AND ")
	}
	order := t.names()
	if t.query != "" { // nulls must come first, because later bounds exclude them
		for i := range order {
			order[i] += " NULLS FIRST"
		}
	}
	return sql + " ORDER BY " + strings.Join(order, ", ") + fmt.Sprintf(" LIMIT $%d", n+1)
}

func (t *described) names() []string {
	names := make([]string, len(t.Key))
	for i, k := range t.Key {
		names[i] = quote(t.Columns[k].Name) + t.Columns[k].Of.(column).sort
	}
	return names
}

func (t *described) from() string {
	if t.query != "" {
		return t.query
	}
	return t.only + t.Name
}
