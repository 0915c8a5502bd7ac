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

	"example.com/tsimport/reader/sqlite"
	"example.com/tsimport/reader/sqltable"
)

// Database opens tables and queries of a kind of database, and lists tables.
type Database struct {
	Table func(address string) (sqltable.Server, error)
	Query func(address, query string) (sqltable.Server, error)
	List  func(ctx context.Context, address string) ([]sqltable.Listed, error)
}

func database[S sqltable.Server](
	table func(address string) (S, error), query func(address, query string) (S, error),
	list func(context.Context, string) ([]sqltable.Listed, error),
) Database {
	return Database{
		func(address string) (sqltable.Server, error) { return table(address) },
		func(address, text string) (sqltable.Server, error) { return query(address, text) }, list,
	}
}

func noQueriesOfSQLite(string, string) (*sqlite.Address, error) {
	return nil, errors.New("--query: queries of SQLite files are not supported, as they have no position to resume at; " +
		"load a table, or a file of the query: sqlite3 -quote -header FILE 'SELECT …'")
}

// IsDatabase reports whether address is the address of a database.
func IsDatabase(address string) bool {
	of, _ := schemeOf(address)
	return of.Table != nil
}

// ErrNoDatabase says which arguments Tables accepts.
var ErrNoDatabase = errors.New("want the address of one database, such as postgres://USER@HOST/DATABASE, " +
	"mysql://USER@HOST/DATABASE or sqlite:FILE; " +
	"tsimport table list lists the tables of a Tablestore")

// Tables lists the tables of a database that match the address's pattern, or all, each with its address for Config.
func Tables(ctx context.Context, address string) ([]sqltable.Listed, error) {
	if err := Check(address, ""); err != nil {
		return nil, err
	}
	of, _ := schemeOf(address)
	if of.List == nil {
		return nil, ErrNoDatabase
	}
	address, reading := cutReading(address)
	all, err := of.List(ctx, address)
	for i := range all {
		all[i].Address += reading
	}
	return all, err
}

// Config parses the address of a table or, if query is not "", of the server that is to run the query.
func Config(address, query string) (*sqltable.Config, error) {
	address, reading := cutReading(address)
	cfg, err := readingOf(reading)
	if err != nil {
		return nil, err
	}
	of, _ := schemeOf(address)
	shards, err := sqltable.Shards(address)
	if err != nil {
		return nil, err
	}
	if query != "" {
		cfg.Server, err = of.Query(address, query)
		shards = nil
	} else if shards == nil {
		cfg.Server, err = of.Table(address)
	}
	for _, one := range shards {
		server, err := of.Table(one)
		if err != nil {
			return nil, err
		}
		cfg.Shards, cfg.Pattern = append(cfg.Shards, server), address
	}
	if len(shards) > 0 {
		cfg.Server = cfg.Shards[0]
		if _, ok := cfg.Server.(sqltable.Joint); !ok {
			return nil, fmt.Errorf("%s: tables of a SQLite file cannot be read as one; load each separately", address)
		}
	}
	if err != nil {
		return nil, err
	}
	if _, ok := cfg.Server.(sqltable.Lagging); !ok && cfg.MaxLag > 0 {
		return nil, errors.New("max-lag: a SQLite file has no replicas; leave it out")
	}
	return cfg, nil
}

// readingNames lists the address parameters about reading. All other parameters are for the driver.
var readingNames = []string{"sessions", "max-lag"}

// cutReading removes the parameters in readingNames from an address and returns them, as in "&sessions=1".
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

// readingOf parses parameters returned by cutReading.
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
