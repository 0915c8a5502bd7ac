package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	library "modernc.org/sqlite"

	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqltable"
)

type connection interface {
	driver.Conn
	driver.QueryerContext
	driver.ExecerContext
}

type session struct {
	conn   connection
	of     *Address
	frozen os.FileInfo // state of a file that is read without locks; otherwise nil
}

// Error codes of SQLite that are handled here.
const (
	codePermission = 3
	codeBusy       = 5
	codeLocked     = 6
	codeReadOnly   = 8
	codeDamaged    = 11
	codeCannotOpen = 14
	codeProtocol   = 15
	codeNoDatabase = 26
)

func codeOf(err error) int {
	if e, ok := errors.AsType[*library.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// explain adds advice to an error that says that the file is damaged.
func (a *Address) explain(err error) error {
	if codeOf(err) != codeDamaged {
		return err
	}
	return fmt.Errorf("%s is damaged: %w; recover what can be read and load that: sqlite3 %s .recover | sqlite3 copy.db",
		a.path, err, a.word())
}

// connect opens the file and begins a transaction, which sees one state of it. A write-ahead log needs a file beside it
// for shared memory. If that cannot be made and there is no log, the file is read as immutable and checked per page.
func (a *Address) connect(ctx context.Context) (*session, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	s, err := a.open(ctx, false)
	if code := codeOf(err); err != nil && (code == codeCannotOpen || code == codeReadOnly || code == codePermission) &&
		a.unlogged() {
		info, statErr := os.Stat(a.path)
		if statErr != nil {
			return nil, statErr
		}
		if s, err = a.open(ctx, true); err == nil {
			s.frozen = info
		}
	}
	switch codeOf(err) {
	case 0:
		return s, err
	case codeNoDatabase:
		return nil, fmt.Errorf("%s is not a SQLite file, or is encrypted: %w", a.path, err)
	case codeCannotOpen, codeReadOnly, codePermission:
		if !a.unlogged() {
			return nil, fmt.Errorf("%s has changes in a file beside it (-wal or -journal) that cannot be read from here: grant "+
				"write access to the folder, or open it once with sqlite3, or copy it: sqlite3 %s '.backup copy.db': %w",
				a.path, a.word(), err)
		}
	}
	return nil, err
}

func (a *Address) open(ctx context.Context, immutable bool) (*session, error) {
	conn, err := (&library.Driver{}).Open(a.dsn(immutable))
	if err != nil {
		return nil, err
	}
	s := &session{of: a}
	s.conn = conn.(connection) // the methods that database/sql uses
	if err := s.begin(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// begin begins a transaction, which sees the file as it is at the first query.
func (s *session) begin(ctx context.Context) error {
	if _, err := s.conn.ExecContext(ctx, "BEGIN", nil); err != nil {
		return err
	}
	_, err := s.query(ctx, "SELECT count(*) FROM sqlite_schema")
	return err
}

func (s *session) Close() { _ = s.conn.Close() } // nothing was written

// query returns the rows of a small result as text. Nulls are "".
func (s *session) query(ctx context.Context, sql string, args ...any) (all [][]string, err error) {
	values := make([]driver.NamedValue, len(args))
	for i, v := range args {
		values[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	r, err := s.conn.QueryContext(ctx, sql, values)
	if err != nil {
		return nil, s.of.explain(err)
	}
	row := make([]driver.Value, len(r.Columns()))
	for {
		if err = r.Next(row); err != nil {
			break
		}
		texts := make([]string, len(row))
		for i, v := range row {
			if v != nil {
				texts[i] = fmt.Sprint(v)
			}
		}
		all = append(all, texts)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, s.of.explain(cmp.Or(err, r.Close()))
}

func (s *session) Page(ctx context.Context, t *sqltable.Table, q sqltable.Query) (sqltable.Rows, error) {
	var sql strings.Builder
	sql.WriteString("SELECT ")
	for i := range t.Columns {
		if i > 0 {
			sql.WriteString(", ")
		}
		sql.WriteString("+" + quote(t.Columns[i].Name)) // an expression has no declared type, so nothing is converted
	}
	fmt.Fprintf(&sql, " FROM %s", t.Name)
	args, word := []driver.NamedValue{}, " WHERE "
	bound := func(key [][]byte, op string) error {
		first := len(args) + 1
		var marks []string
		for i, v := range key {
			value, err := keyValue(t.Columns[t.Key[i]].Kind, v)
			if err != nil {
				return err
			}
			args = append(args, driver.NamedValue{Ordinal: len(args) + 1, Value: value})
			marks = append(marks, fmt.Sprintf("?%d", len(args)))
		}
		sql.WriteString(word)
		word = " AND "
		if len(key) > 1 { // redundant, but lets an index with mixed directions be used
			leading := *t
			leading.Key = t.Key[:1]
			fmt.Fprintf(&sql, "%s %c= ?%d AND ", strings.Trim(rowOf(&leading), "()"), op[1], first)
		}
		fmt.Fprintf(&sql, "%s%s(%s)", rowOf(t), op, strings.Join(marks, ", "))
		return nil
	}
	var err error
	if q.Lower != nil {
		op := " >= "
		if q.Past {
			op = " > "
		}
		err = bound(q.Lower, op)
	}
	if q.Upper != nil && err == nil {
		err = bound(q.Upper, " < ")
	}
	if err != nil {
		return nil, s.of.explain(err)
	}
	fmt.Fprintf(&sql, " ORDER BY %s LIMIT %d", strings.Trim(rowOf(t), "()"), q.Limit)
	r, err := s.conn.QueryContext(ctx, sql.String(), args)
	if err != nil {
		return nil, s.of.explain(err)
	}
	n := len(t.Columns)
	return &rows{rows: r, of: t, by: s, values: make([]driver.Value, n), texts: make([][]byte, n)}, nil
}

// rowOf returns the key for comparisons in SQL, with the collations of the key's index.
func rowOf(t *sqltable.Table) string {
	var parts []string
	for _, k := range t.Key {
		parts = append(parts, quote(t.Columns[k].Name)+" COLLATE "+quote(t.Columns[k].Of.(*column).collation))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func keyValue(kind record.Kind, text []byte) (driver.Value, error) {
	switch kind {
	case record.Integer:
		return strconv.ParseInt(string(text), 10, 64)
	case record.Binary:
		return append([]byte{}, text...), nil
	}
	return string(text), nil
}

type rows struct {
	rows   driver.Rows
	of     *sqltable.Table
	by     *session
	values []driver.Value
	texts  [][]byte
	room   []byte
	err    error
}

func (r *rows) Next() bool {
	if r.err == nil {
		r.err = r.rows.Next(r.values)
	}
	if r.err == nil {
		r.err = r.write()
	}
	return r.err == nil
}

func (r *rows) Values() [][]byte { return r.texts }

func (r *rows) Close() error {
	err := r.err
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return r.by.of.explain(cmp.Or(err, r.rows.Close(), r.by.unchanged()))
}

var errChanged = errors.New("the file was changed while it was read; start over with --fresh when nothing writes to it")

// unchanged returns an error if a file that is read without locks has changed.
func (s *session) unchanged() error {
	if s.frozen == nil {
		return nil
	}
	now, err := os.Stat(s.of.path)
	if err != nil {
		return err
	}
	if now.Size() != s.frozen.Size() || !now.ModTime().Equal(s.frozen.ModTime()) || !os.SameFile(now, s.frozen) ||
		!s.of.unlogged() {
		return errChanged
	}
	return nil
}

// write encodes the values of a row. Outside the key, where kinds can vary, each value is preceded by its kind.
func (r *rows) write() error {
	r.room = r.room[:0]
	for i, v := range r.values {
		c := &r.of.Columns[i]
		kind := kindOf(v)
		if kind == record.Null {
			if c.Of.(*column).inKey {
				return fmt.Errorf("column %s of the primary key is null in a row, and a load cannot resume at such a row; give "+
					"the row a key, or declare the column NOT NULL", c.Name)
			}
			r.texts[i] = nil
			continue
		}
		from := len(r.room)
		if c.Read != nil {
			r.room = append(r.room, byte(kind))
		} else if kind != c.Kind {
			return fmt.Errorf("column %s of the primary key holds %s in one row and %s in another; resuming needs values of "+
				"one type", c.Name, words[c.Kind], words[kind])
		}
		switch v := v.(type) {
		case int64:
			if c.Read == nil {
				r.room = strconv.AppendInt(r.room, v, 10)
			} else {
				r.room = binary.BigEndian.AppendUint64(r.room, uint64(v))
			}
		case float64:
			r.room = binary.BigEndian.AppendUint64(r.room, math.Float64bits(v))
		case string:
			r.room = append(r.room, v...)
		case []byte:
			r.room = append(r.room, v...)
		}
		r.texts[i] = r.room[from:len(r.room):len(r.room)]
	}
	return nil
}

var words = map[record.Kind]string{record.Integer: "an integer", record.Double: "a real number",
	record.String: "text", record.Binary: "a blob"}

func kindOf(v driver.Value) record.Kind {
	switch v.(type) {
	case int64:
		return record.Integer
	case float64:
		return record.Double
	case string:
		return record.String
	case []byte:
		return record.Binary
	}
	return record.Null
}

var errKind = errors.New("a stored value cannot be decoded")

// readAny decodes a value that is preceded by its kind.
func readAny(d *record.Datum, text []byte, _ *[]byte) error {
	if len(text) == 0 || record.Kind(text[0]) <= record.Double && len(text) != 9 {
		return errKind
	}
	d.Kind, text = record.Kind(text[0]), text[1:]
	switch d.Kind {
	case record.Integer:
		d.Int = int64(binary.BigEndian.Uint64(text))
	case record.Double:
		d.Double = math.Float64frombits(binary.BigEndian.Uint64(text))
	default:
		d.Bytes = text
	}
	return nil
}

func (a *Address) Shown() string { return a.shown }

func (a *Address) Name() string { return a.table }

// Look opens a session and describes the table.
func (a *Address) Look(ctx context.Context) (sqltable.Session, *sqltable.Table, error) {
	s, err := a.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	t, err := a.describe(ctx, s)
	if err == nil {
		err = a.checkKey(ctx, s, t)
	}
	if err == nil { // the session is for use outside of any snapshot
		_, err = s.conn.ExecContext(ctx, "COMMIT", nil)
	}
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, t, nil
}

// snapshot is a set of transactions that see the same state of the file.
type snapshot struct{ sqltable.Together }

// attempts limits the attempts to begin all sessions between two writes by others. One session needs one attempt.
const attempts = 20

// Snapshot begins all sessions, and begins them again if another process wrote meanwhile.
func (a *Address) Snapshot(ctx context.Context, sessions int, _ sqltable.Snapshot) (sqltable.Snapshot,
	*sqltable.Table, error) {
	look, err := a.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer look.Close()
	if _, err := look.conn.ExecContext(ctx, "COMMIT", nil); err != nil {
		return nil, nil, err
	}
	for try := 1; ; try++ {
		if try == attempts {
			sessions = 1
		}
		before, err := look.query(ctx, "PRAGMA data_version")
		if err != nil {
			return nil, nil, err
		}
		h, err := a.begin(ctx, sessions)
		if err != nil {
			return nil, nil, err
		}
		after, err := look.query(ctx, "PRAGMA data_version")
		if err == nil && (sessions == 1 || after[0][0] == before[0][0]) {
			t, err := a.describe(ctx, h.All[0].(*session))
			if err == nil {
				return h, t, nil
			}
			h.end()
			return nil, nil, err
		}
		if h.end(); err != nil {
			return nil, nil, err
		}
	}
}

func (a *Address) begin(ctx context.Context, sessions int) (*snapshot, error) {
	h := &snapshot{}
	for range sessions {
		s, err := a.connect(ctx)
		if err != nil {
			h.end()
			return nil, err
		}
		h.All = append(h.All, s)
	}
	info, err := os.Stat(a.path)
	if err != nil {
		h.end()
		return nil, err
	}
	// The name shows the state of the file; the log may have later changes.
	h.Called = fmt.Sprintf("%d bytes of %s", info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano))
	return h, nil
}

func (h *snapshot) end() {
	for _, s := range h.All {
		s.Close()
	}
}

// Lost reports whether an error is caused by other users of the file.
func (a *Address) Lost(err error) bool {
	code := codeOf(err)
	return code == codeBusy || code == codeLocked || code == codeProtocol
}
