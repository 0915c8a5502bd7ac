package mysql

import (
	"bytes"
	"cmp"
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	mysql "github.com/go-sql-driver/mysql"

	"example.com/tsimport/reader/sqltable"
)

// settings make texts of values exact and independent of the server's defaults, and keep the server from ending a read
// between two pages. A proxy may lend the session to others later; none of the settings makes a statement fail.
var settings = []string{
	"SET SESSION time_zone = '+00:00', sql_mode = '', sql_select_limit = 18446744073709551615, max_sort_length = 1024, " +
		"wait_timeout = 604800, net_write_timeout = 3600, lock_wait_timeout = 3",
}

// connection is what the driver's connections implement.
type connection interface {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
}

type session struct {
	conn   connection
	joins  map[string]bool  // tables of a snapshot of several tables; otherwise nil
	source string           // FROM clause of a query; "" for a table
	stream *sqltable.Stream // for queries; nil means a statement for each page
}

func (a *Address) connect(ctx context.Context) (*session, error) {
	c, err := mysql.NewConnector(a.config)
	if err != nil {
		return nil, err
	}
	conn, err := c.Connect(ctx)
	if err != nil {
		return nil, a.refused(err)
	}
	s := &session{}
	if a.query != "" {
		s.source = a.source()
	}
	var ok bool
	if s.conn, ok = conn.(connection); !ok {
		return nil, errors.Join(errors.New("the driver's connections do not support contexts"), conn.Close())
	}
	for _, sql := range append(settings, timeouts(ctx, s)...) {
		if err := s.exec(ctx, sql); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

var tlsWords = sqltable.TLSWords{Off: "ssl-mode=DISABLED", CA: "ssl-ca", AnyName: "ssl-mode=VERIFY_CA",
	Own: "ssl-cert=FILE and ssl-key=FILE"}

// refused explains why a connection failed. The driver's errors contain no password.
func (a *Address) refused(err error) error {
	switch {
	case errors.Is(err, mysql.ErrNoTLS):
		return tlsWords.NoTLS(err)
	case cut(err) != err && a.config.TLS != nil && len(a.config.TLS.Certificates) > 0: // the driver drops TLS alerts
		return sqltable.Said("the server ended the connection before a session began; check that it trusts the "+
			"certificate that ssl-cert and ssl-key give", cut(err))
	}
	if a.Full(err) {
		return sqltable.Said(err.Error()+sqltable.NeedsOne, err)
	}
	return tlsWords.Explain(cut(err))
}

// timeouts returns statements that remove the time limits of statements, whose names depend on the kind of server.
func timeouts(ctx context.Context, s *session) (sql []string) {
	rows, err := s.query(ctx, "SHOW VARIABLES WHERE Variable_name IN ('max_statement_time', 'max_execution_time')")
	if err != nil {
		return nil // the next call will report the error
	}
	for _, r := range rows {
		sql = append(sql, "SET SESSION "+r[0]+" = 0")
	}
	return sql
}

func (s *session) Close() { _ = s.conn.Close() } // the server drops a session that is silent

func (s *session) exec(ctx context.Context, sql string) error {
	_, err := s.conn.ExecContext(ctx, sql, nil)
	return cut(err)
}

// cut replaces the driver's errors about an ended connection.
func cut(err error) error {
	if errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) {
		return sqltable.ErrCut
	}
	return err
}

// query returns the rows of a small result as text. Nulls are "".
func (s *session) query(ctx context.Context, sql string) (all [][]string, err error) {
	r, err := s.rows(ctx, sql)
	if err != nil {
		return nil, err
	}
	for r.Next() {
		row := make([]string, len(r.values))
		for i, v := range r.Values() {
			row[i] = string(v)
		}
		all = append(all, row)
	}
	return all, r.Close()
}

func (s *session) rows(ctx context.Context, sql string) (*rows, error) {
	r, err := s.conn.QueryContext(ctx, sql, nil)
	if err != nil {
		return nil, cut(err)
	}
	n := len(r.Columns())
	return &rows{rows: r, values: make([]driver.Value, n), texts: make([][]byte, n)}, nil
}

// rows are the rows of a result. Values are text, valid until the next row; numbers of plain columns are eight bytes.
type rows struct {
	rows   driver.Rows
	plain  []bool // by column; nil if there is no plain column
	values []driver.Value
	texts  [][]byte
	room   []byte
	err    error
}

func (r *rows) Next() bool {
	r.err = r.rows.Next(r.values)
	return r.err == nil
}

func (r *rows) Values() [][]byte {
	r.room = r.room[:0]
	for i, v := range r.values {
		from := len(r.room)
		if r.plain != nil && r.plain[i] && v != nil {
			switch v := v.(type) {
			case int64:
				r.room = binary.BigEndian.AppendUint64(r.room, uint64(v))
			case float64:
				r.room = binary.BigEndian.AppendUint64(r.room, math.Float64bits(v))
			}
			r.texts[i] = r.room[from:len(r.room):len(r.room)] // "" for unexpected types, with errPlain
			continue
		}
		switch v := v.(type) {
		case nil:
			r.texts[i] = nil
			continue
		case []byte:
			if r.texts[i] = v; v == nil {
				r.texts[i] = []byte{}
			}
			continue
		case int64:
			r.room = strconv.AppendInt(r.room, v, 10)
		case uint64:
			r.room = strconv.AppendUint(r.room, v, 10)
		case float64:
			r.room = strconv.AppendFloat(r.room, v, 'g', -1, 64)
		case float32:
			r.room = strconv.AppendFloat(r.room, float64(v), 'g', -1, 64)
		default:
			r.room = fmt.Append(r.room, v)
		}
		r.texts[i] = r.room[from:len(r.room):len(r.room)]
	}
	return r.texts
}

func (r *rows) Close() error {
	err := r.err
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if end := r.rows.Close(); err == nil {
		err = end
	}
	return cut(err)
}

func (s *session) Page(ctx context.Context, t *sqltable.Table, q sqltable.Query) (sqltable.Rows, error) {
	if s.stream != nil && !q.Once {
		return s.stream.Page(ctx, t, q)
	}
	return s.ask(ctx, t, q)
}

// ask requests the rows of a page or, for the session's stream, all rows within the bounds.
func (s *session) ask(ctx context.Context, t *sqltable.Table, q sqltable.Query) (sqltable.Rows, error) {
	expressions, plain := make([]string, len(t.Columns)), make([]bool, len(t.Columns))
	for i := range t.Columns {
		of := t.Columns[i].Of.(*column)
		expressions[i], plain[i] = of.expression, of.plain
	}
	var sql bytes.Buffer
	sql.WriteString("SELECT " + strings.Join(expressions, ", ") + cmp.Or(s.source, from(t)))
	where(&sql, t, q)
	sql.WriteString(" ORDER BY " + keyNames(t))
	if s.stream == nil || q.Once {
		fmt.Fprintf(&sql, " LIMIT %d", q.Limit)
	}
	r, err := s.rows(ctx, sql.String())
	if err != nil {
		return nil, err
	}
	r.plain = plain
	return r, nil
}

func from(t *sqltable.Table) string { return " FROM " + t.Name + " FORCE INDEX (PRIMARY)" }

// keyNames returns the columns of the key in sort order, as SQL.
func keyNames(t *sqltable.Table) string {
	var names []string
	for _, k := range t.Key {
		names = append(names, sorted(&t.Columns[k]))
	}
	return strings.Join(names, ", ")
}

// where writes the bounds of a page with AND and OR, because the server uses no index to compare rows.
func where(sql *bytes.Buffer, t *sqltable.Table, q sqltable.Query) {
	word := " WHERE "
	bound := func(key [][]byte, op, last string) {
		sql.WriteString(word)
		word = " AND "
		for n := range t.Key {
			if n == 0 {
				sql.WriteString("(")
			} else {
				sql.WriteString(" OR ")
			}
			for i := range n + 1 {
				if i > 0 {
					sql.WriteString(" AND ")
				}
				c := &t.Columns[t.Key[i]]
				sql.WriteString(sorted(c))
				switch {
				case i < n:
					sql.WriteString(" = ")
				case n == len(t.Key)-1:
					sql.WriteString(last)
				default:
					sql.WriteString(op)
				}
				c.Of.(*column).literal(sql, key[i])
			}
		}
		sql.WriteString(")")
	}
	if q.Lower != nil && q.Past {
		bound(q.Lower, " > ", " > ")
	} else if q.Lower != nil {
		bound(q.Lower, " > ", " >= ")
	}
	if q.Upper != nil {
		bound(q.Upper, " < ", " < ")
	}
}

// Lost reports whether an error is about the session, or is temporary.
func (a *Address) Lost(err error) bool {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return !errors.As(err, new(*refusal)) && !sqltable.IsChanged(err)
	}
	switch e.Number {
	case 1040, 1203, 1226, // too many sessions
		1053, 1077, 1080, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 2006, 2013, 3169,
		1205, 1213, 1317, 1969, 3024, // locks not granted, statements killed
		1412: // a table was altered; a new snapshot will describe it
		return true
	}
	return false
}
