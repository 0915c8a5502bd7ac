package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"example.com/tsimport/reader/sqlname"
	"example.com/tsimport/reader/sqltable"
)

// Address is the address of a table, or of a server with a query to run.
type Address struct {
	shown  string // for users, without the password
	config *pgconn.Config
	schema string // "" to use the search path
	table  string
	query  string   // "" for a table
	key    []string // key columns of the query's result
	maxRow int64    // largest size of a row in bytes; 0 for no limit
}

// LimitRow makes reading fail at a larger row, before that row takes memory.
func (a *Address) LimitRow(bytes int64) { a.maxRow = bytes }

// frontend returns a reader of the server's messages, which are limited by maxRow.
func (a *Address) frontend(r io.Reader, w io.Writer) *pgproto3.Frontend {
	f := pgproto3.NewFrontend(r, w)
	if a.maxRow > 0 {
		f.SetMaxBodyLen(int(min(a.maxRow+rowOverhead, math.MaxInt32)))
	}
	return f
}

// rowOverhead is the size of a row's message without its values: a length for each of up to 1,600 columns.
const rowOverhead = 64 << 10

// secrets lists parameters that must not be in an address, because shell history, run folders and jobs store it.
var secrets = []string{"password", "sslpassword"}

// Parse parses an address: postgres://USER@HOST:PORT/DATABASE?table=SCHEMA.TABLE, with the parameters of libpq. Other
// settings come from psql's environment variables. The password comes only from PGPASSWORD or a password file.
func Parse(arg string) (*Address, error) {
	a, name, err := parse(arg)
	if err != nil {
		return nil, err
	}
	if a.key != nil {
		return nil, fmt.Errorf("%s: key= is for --query; a table has its own key", arg)
	}
	if a.schema, a.table, err = tableName(name); err != nil {
		return nil, fmt.Errorf("%s: %w", arg, err)
	}
	return a, nil
}

// ParseQuery parses the address of a server for a query: postgres://USER@HOST:PORT/DATABASE?key=COLUMN,COLUMN.
func ParseQuery(arg, query string) (*Address, error) {
	a, name, err := parse(arg)
	if err != nil {
		return nil, err
	}
	a.table = "query"
	if a.query, err = sqltable.CheckQuery(query, name, a.key); err != nil {
		return nil, fmt.Errorf("%s: %w", arg, err)
	}
	return a, nil
}

// parse parses an address. It returns its table parameter as name.
func parse(arg string) (a *Address, name string, err error) {
	u, err := url.Parse(arg)
	if err != nil {
		// err contains the address, which may contain a password.
		return nil, "", errors.New("cannot parse the address of the server; want postgres://USER@HOST/DATABASE?table=TABLE")
	}
	q, err := sqltable.Parameters(u.RawQuery)
	if err != nil {
		return nil, "", err
	}
	if _, has := u.User.Password(); has {
		return nil, "", errors.New("the address holds a password, which would stay in the shell's history and in the run " +
			"folder; leave it out and set PGPASSWORD, or put it into ~/.pgpass")
	}
	for _, s := range secrets {
		if q.Has(s) {
			return nil, "", fmt.Errorf("the address holds a secret (%s), which would stay in the shell's history and in the "+
				"run folder; leave it out and set PGPASSWORD, or put it into ~/.pgpass", s)
		}
	}
	a, name = &Address{shown: arg}, q.Get("table")
	if q.Has("key") {
		a.key = strings.Split(q.Get("key"), ",")
	}
	q.Del("table")
	q.Del("key")
	u.RawQuery = q.Encode()
	if a.config, err = pgconn.ParseConfig(u.String()); err != nil {
		return nil, "", fmt.Errorf("%s: %s", arg, unparsed(err))
	}
	a.config.ConnectTimeout = cmp.Or(a.config.ConnectTimeout, connectTimeout)
	a.config.BuildFrontend = a.frontend
	a.config.DialFunc = (&net.Dialer{KeepAlive: keepAlive}).DialContext
	return a, name, nil
}

// unparsed returns the text of the driver's error without the address, which it repeats.
func unparsed(err error) string {
	text := err.Error()
	if _, after, ok := strings.Cut(text, "`: "); ok && errors.As(err, new(*pgconn.ParseConfigError)) {
		text = after
	}
	return text + "; want the parameters of libpq, such as sslmode=verify-full and sslrootcert=FILE"
}

// Limits of the time to open a session, and between checks that a silent server still responds.
const (
	connectTimeout = 10 * time.Second
	keepAlive      = 15 * time.Second
)

func tableName(text string) (schema, table string, err error) {
	if text == "" {
		return "", "", errors.New("the address names no table; add ?table=TABLE or ?table=SCHEMA.TABLE")
	}
	parts, err := sqlname.Split(text)
	switch {
	case err != nil:
		return "", "", fmt.Errorf("table=%w", err)
	case len(parts) == 1:
		return "", parts[0], nil
	case len(parts) == 2:
		return parts[0], parts[1], nil
	}
	return "", "", fmt.Errorf("table=%s: want TABLE or SCHEMA.TABLE; put a name with a dot in double quotes", text)
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
