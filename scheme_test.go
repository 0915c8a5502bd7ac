package tsimport

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/open"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqltable"
)

// squares is the room of a new kind of source: a table of the whole numbers from 1 on and their squares. It is server,
// session and its snapshot.
type squares struct {
	sqltable.Server
	rows int
}

func openSquares(address string) (sqltable.Server, error) {
	rows, err := strconv.Atoi(address[len("squares:"):])
	return squares{rows: rows}, err
}

func (squares) table() *sqltable.Table {
	column := func(name string) sqltable.Column {
		return sqltable.Column{Name: name, Kind: record.Integer, Type: table.Integer}
	}
	return &sqltable.Table{Name: "squares", Key: []int{0}, Columns: []sqltable.Column{column("n"), column("square")}}
}

func (squares) Shown() string { return "squares:" }
func (squares) Name() string  { return "squares" }
func (s squares) Look(context.Context) (sqltable.Session, *sqltable.Table, error) {
	return s, s.table(), nil
}
func (s squares) Snapshot(context.Context, int, sqltable.Snapshot) (sqltable.Snapshot, *sqltable.Table, error) {
	return s, s.table(), nil
}
func (squares) Sessions() []sqltable.Session                     { return nil }
func (s squares) Join(context.Context) (sqltable.Session, error) { return s, nil }
func (squares) Alive(context.Context) bool                       { return true }
func (squares) Close()                                           {}
func (s squares) Page(_ context.Context, _ *sqltable.Table, q sqltable.Query) (sqltable.Rows, error) {
	p := &squaresPage{last: s.rows}
	if q.Past {
		p.n, _ = strconv.Atoi(string(q.Lower[0]))
	}
	p.last = min(p.last, p.n+q.Limit)
	return p, nil
}

type squaresPage struct{ n, last int }

func (p *squaresPage) Next() bool { p.n++; return p.n <= p.last }
func (p *squaresPage) Values() [][]byte {
	return [][]byte{fmt.Append(nil, p.n), fmt.Append(nil, p.n*p.n)}
}
func (*squaresPage) Close() error { return nil }

func TestNewSchemeNeedsItsRoomAndOneLine(t *testing.T) {
	defer func(before []open.Scheme) { open.Schemes = before }(open.Schemes)
	open.Schemes = append(open.Schemes, open.Scheme{Begins: "squares:", Database: open.Database{Table: openSquares}})

	w := newWorld(t)
	s := conformance.Try(Load(t.Context(), Request{
		From: []string{"squares:1000"}, Table: "t", Target: w.target(), NewTable: NewTable{Create: true},
		Running: Running{RunDir: filepath.Join(t.TempDir(), "run")},
	})).Must(t)
	if rows := w.rows(1); s.Written != 1000 || len(rows) != 1000 || rows["999"] == "" {
		t.Errorf("%+v, %d rows, %q", s, len(rows), rows["999"])
	}
}
