package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"tsimport/reader/source"
)

// settings make texts of values exact and the same everywhere, and keep a reading from being stopped between two pages. A policy of row
// security that would hide rows fails the reading.
const settings = `SET client_encoding = 'UTF8'; SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'iso_8601'; SET extra_float_digits = 3;
	SET bytea_output = 'hex'; SET default_transaction_read_only = on; SET row_security = off; SET statement_timeout = 0; SET lock_timeout = '10s';
	SET idle_in_transaction_session_timeout = 0; SET application_name = 'tsimport'`

// connect opens a session.
func connect(ctx context.Context, a *Address) (*pgconn.PgConn, error) {
	conn, err := pgconn.ConnectConfig(ctx, a.config)
	if err != nil {
		return nil, err // it has no password
	}
	if err := conn.Exec(ctx, settings).Close(); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn, nil
}

// closing bounds how long a server is told that a session ends.
const closing = time.Second

func hangUp(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_ = conn.Close(ctx) // the server forgets a session that it hears nothing of
}

// sessions are those of one reading. They are lent for a page each, so that none waits for another.
type sessions struct {
	cfg *Config
	of  *described

	free chan struct{} // a token for each that may be lent
	mu   sync.Mutex
	idle []*session
	held *held // what new sessions join; nil before the first page
	noted
}

// noted is what was read from where. It has a lock of its own: whoever asks does not wait for a server.
type noted struct {
	sync.Mutex
	read []source.Snapshot
	at   map[int]int // of read, the one that a part was read from last
}

// held is a snapshot, and the session that keeps it.
type held struct {
	conn   *pgconn.PgConn
	name   string
	next   uint64 // the first transaction that it cannot see
	number int    // in sessions.read
}

// session is a transaction that reads a snapshot.
type session struct {
	conn     *pgconn.PgConn
	of       *held
	prepared map[string]bool
}

func newSessions(c *Config, of *described) *sessions {
	s := &sessions{cfg: c, of: of, noted: noted{at: map[int]int{}}, free: make(chan struct{}, c.Sessions)}
	for range c.Sessions {
		s.free <- struct{}{}
	}
	return s
}

// lend returns a session of the snapshot.
func (s *sessions) lend(ctx context.Context) (*session, error) {
	select {
	case <-s.free:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	one, err := s.take(ctx)
	if err != nil {
		s.free <- struct{}{}
	}
	return one, err
}

func (s *sessions) take(ctx context.Context) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.idle); n > 0 {
		one := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return one, nil
	}
	if s.held != nil {
		one, err := s.join(ctx)
		if err == nil || ctx.Err() != nil || !lost(err) && !gone(err) {
			return one, err
		}
		if _, alive := query(ctx, s.held.conn, "SELECT 1"); alive == nil {
			return nil, err // this session failed, not the snapshot
		}
		hangUp(s.held.conn)
		s.held.conn = nil
	}
	if s.held == nil || s.held.conn == nil {
		if err := s.begin(ctx); err != nil {
			return nil, err
		}
	}
	return s.join(ctx)
}

// gone reports that a snapshot cannot be joined because nothing holds it.
func gone(err error) bool {
	pg := new(pgconn.PgError)
	return errors.As(err, &pg) && (pg.Code == "22023" || pg.Code == "42704" || pg.Code == "55000")
}

// ErrSnapshot is why a reading ends that must be of one snapshot.
var ErrSnapshot = errors.New("the session that held the snapshot was lost, and --require-snapshot does not allow another one; start over with --fresh")

// begin takes a snapshot. The lock keeps a TRUNCATE away, which would empty the table in older snapshots too, and changes of the schema.
func (s *sessions) begin(ctx context.Context) error {
	before := s.held
	if len(s.snapshots()) > 0 && s.cfg.Whole {
		return ErrSnapshot
	}
	conn, err := connect(ctx, s.cfg.Address)
	if err != nil {
		return err
	}
	h := &held{conn: conn}
	if err := conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; LOCK TABLE "+s.of.from()+" IN ACCESS SHARE MODE").Close(); err != nil {
		hangUp(conn)
		return err
	}
	rows, err := query(ctx, conn, "SELECT pg_export_snapshot(), pg_snapshot_xmax(pg_current_snapshot())::text")
	if err != nil {
		hangUp(conn)
		return err
	}
	h.name = rows[0][0]
	if h.next, err = strconv.ParseUint(rows[0][1], 10, 64); err != nil {
		hangUp(conn)
		return fmt.Errorf("the snapshot %s of the server cannot be read: %w", h.name, err)
	}
	now, err := describe(ctx, conn, s.cfg.Address)
	if err == nil && now.schema != s.of.schema {
		err = &changedError{was: s.of.schema, is: now.schema}
	}
	if err == nil && before != nil && h.next < before.next {
		err = fmt.Errorf("the server of %s has fewer transactions (%d) than when rows were read before (%d): it was replaced by one that lags or lost some, and rows would become older; start over with --fresh", s.cfg.Address.Shown, h.next, before.next)
	}
	if err != nil {
		hangUp(conn)
		return err
	}
	s.held = h
	s.Lock()
	defer s.Unlock()
	h.number = len(s.read)
	s.read = append(s.read, source.Snapshot{Name: h.name, Taken: time.Now().UTC()})
	return nil
}

// changedError says that a table is not the one that reading began with.
type changedError struct{ was, is string }

func (e *changedError) Error() string {
	return fmt.Sprintf("the table or its server changed since the load began; it was %s, and is %s; start over with --fresh", e.was, e.is)
}

// join opens a session that reads the snapshot.
func (s *sessions) join(ctx context.Context) (*session, error) {
	conn, err := connect(ctx, s.cfg.Address)
	if err != nil {
		return nil, err
	}
	if err := conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT '"+s.held.name+"'; LOCK TABLE "+s.of.from()+" IN ACCESS SHARE MODE").Close(); err != nil {
		hangUp(conn)
		return nil, err
	}
	return &session{conn: conn, of: s.held, prepared: map[string]bool{}}, nil
}

// giveBack takes a session back, and notes which part it has read, from which key on.
func (s *sessions) giveBack(one *session, part int, from string) {
	s.mu.Lock()
	defer func() {
		s.mu.Unlock()
		s.free <- struct{}{}
	}()
	s.note(one.of.number, part, from)
	if one.of != s.held {
		hangUp(one.conn)
		return
	}
	s.idle = append(s.idle, one)
}

// note notes that a part was read from a snapshot, from a key on.
func (n *noted) note(number, part int, from string) {
	n.Lock()
	defer n.Unlock()
	if last, known := n.at[part]; !known || last != number {
		n.at[part] = number
		n.read[number].Ranges = append(n.read[number].Ranges, from)
	}
}

// drop gives a session up.
func (s *sessions) drop(one *session) {
	hangUp(one.conn)
	s.free <- struct{}{}
}

// close ends all sessions that are not lent.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.idle {
		hangUp(one.conn)
	}
	s.idle = nil
	if s.held != nil && s.held.conn != nil {
		hangUp(s.held.conn)
	}
	s.held = nil
}

// snapshots are those that have been read.
func (n *noted) snapshots() (all []source.Snapshot) {
	n.Lock()
	defer n.Unlock()
	for _, one := range n.read {
		one.Ranges = append([]string(nil), one.Ranges...)
		all = append(all, one)
	}
	return all
}
