package open

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/tsimport/reader/mysql"
	"example.com/tsimport/reader/postgres"
	"example.com/tsimport/reader/sqlite"
	"example.com/tsimport/reader/sqltable"
)

// database is a kind of databases whose tables are read.
type database struct {
	is    func(address string) bool
	table func(address string) (sqltable.Server, error)
	query func(address, query string) (sqltable.Server, error)
	list  func(ctx context.Context, address string) ([]sqltable.Listed, error)
}

// databases has the kinds of databases. A new one is its room and one entry.
var databases = []database{
	{postgres.Is, server(postgres.Parse), queryServer(postgres.ParseQuery), postgres.List},
	{mysql.Is, server(mysql.Parse), queryServer(mysql.ParseQuery), mysql.List},
	{sqlite.Is, server(sqlite.Parse), noQueriesOfSQLite, sqlite.List},
}

func server[S sqltable.Server](parse func(string) (S, error)) func(string) (sqltable.Server, error) {
	return func(address string) (sqltable.Server, error) { return parse(address) }
}

func queryServer[S sqltable.Server](parse func(address, query string) (S, error)) func(address, query string) (sqltable.Server, error) {
	return func(address, query string) (sqltable.Server, error) { return parse(address, query) }
}

func noQueriesOfSQLite(string, string) (sqltable.Server, error) {
	return nil, errors.New("--query: queries of SQLite files are not read, for nothing says how far one has come; " +
		"load a table, or a file of the query: sqlite3 -quote -header FILE 'SELECT …'")
}

func databaseOf(address string) *database {
	if i := slices.IndexFunc(databases, func(d database) bool { return d.is(address) }); i >= 0 {
		return &databases[i]
	}
	return nil
}

// IsDatabase reports whether an argument is the address of a database.
func IsDatabase(address string) bool { return databaseOf(address) != nil }

// Tables lists the tables of a database, or those that a pattern in its address finds. Each has an address that Database reads.
func Tables(ctx context.Context, address string) ([]sqltable.Listed, error) {
	address, reading := cutReading(address)
	all, err := databaseOf(address).list(ctx, address)
	for i := range all {
		all[i].Address += reading
	}
	return all, err
}

// Database reads the address of a table of a database, or, if there is a query, of a server that answers it.
func Database(address, query string) (*sqltable.Config, error) {
	address, reading := cutReading(address)
	cfg, err := readingOf(reading)
	if err != nil {
		return nil, err
	}
	of := databaseOf(address)
	if query != "" {
		cfg.Server, err = of.query(address, query)
	} else {
		cfg.Server, err = of.table(address)
	}
	if err != nil {
		return nil, err
	}
	if _, ok := cfg.Server.(sqltable.Lagging); !ok && cfg.MaxLag > 0 {
		return nil, errors.New("max-lag: a SQLite file has no replicas; leave it out")
	}
	return cfg, nil
}

// readingNames are what the address of a database says of how it is read, beside what its driver takes.
var readingNames = []string{"sessions", "max-lag"}

// cutReading cuts what readingNames say, such as "&sessions=1", from an address.
func cutReading(arg string) (address, reading string) {
	address, query, _ := strings.Cut(arg, "?")
	sep := "?"
	for pair := range strings.SplitSeq(query, "&") {
		switch name, _, _ := strings.Cut(pair, "="); {
		case slices.Contains(readingNames, name):
			reading += "&" + pair
		case query != "":
			address, sep = address+sep+pair, "&"
		}
	}
	return address, reading
}

// readingOf reads what cutReading has cut.
func readingOf(reading string) (*sqltable.Config, error) {
	cfg := &sqltable.Config{Sessions: sqltable.DefaultSessions}
	said, err := url.ParseQuery(reading)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", reading, err)
	}
	if text := said.Get("sessions"); said.Has("sessions") {
		if cfg.Sessions, err = strconv.Atoi(text); err != nil || cfg.Sessions < 1 || cfg.Sessions > sqltable.MaxSessions {
			return nil, fmt.Errorf("sessions=%s: want 1 to %d", text, sqltable.MaxSessions)
		}
	}
	if text := said.Get("max-lag"); said.Has("max-lag") {
		if cfg.MaxLag, err = time.ParseDuration(text); err != nil || cfg.MaxLag < time.Second {
			return nil, fmt.Errorf("max-lag=%s: want 1s or more, such as 10s", text)
		}
	}
	return cfg, nil
}
