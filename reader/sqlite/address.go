package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/reader/sqltable"
)

// Address is the address of a table in an SQLite file.
type Address struct {
	shown string
	path  string // absolute path of the file
	table string
}

func (a *Address) word() string {
	return suggest.Arg(a.path)
}

const scheme = "sqlite:"

// Parse parses an address: sqlite:PATH?table=TABLE.
func Parse(arg string) (*Address, error) {
	a, err := parse(arg)
	if err != nil {
		return nil, err
	}
	if a.table == "" {
		return nil, fmt.Errorf("%s: the address names no table; add ?table=TABLE", arg)
	}
	return a, nil
}

func parse(arg string) (*Address, error) {
	path, query := arg[len(scheme):], ""
	if at := strings.LastIndexByte(path, '?'); at >= 0 {
		path, query = path[:at], path[at+1:]
	}
	if strings.HasPrefix(path, "///") {
		path = path[2:]
	}
	q, err := sqltable.Parameters(query)
	if err != nil {
		return nil, err
	}
	for name := range q {
		if name != "table" {
			return nil, fmt.Errorf("%s: unknown parameter %s; want table", arg, name)
		}
	}
	if path == "" || strings.HasPrefix(path, ":memory:") {
		return nil, fmt.Errorf("%s: the address names no file; want sqlite:PATH?table=TABLE", arg)
	}
	a := &Address{shown: arg, table: q.Get("table")}
	if a.path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("%s: %w", arg, err)
	}
	return a, nil
}

// check returns explanations in place of the library's error numbers.
func (a *Address) check() error {
	info, err := os.Stat(a.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file %s", a.path)
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder, not a SQLite file", a.path)
	case info.Size() == 0:
		return fmt.Errorf("%s is empty: it has no table", a.path)
	}
	return nil
}

func (a *Address) dsn(immutable bool) string {
	path := filepath.ToSlash(a.path)
	if !strings.HasPrefix(path, "/") { // a path such as C:/…
		path = "/" + path
	}
	path = strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
	dsn := "file://" + path + "?mode=ro&_pragma=busy_timeout(10000)&_pragma=query_only(1)"
	if immutable {
		dsn += "&immutable=1"
	}
	return dsn
}

// unlogged reports whether neither a log nor a journal with content is beside the file.
func (a *Address) unlogged() bool {
	return !slices.ContainsFunc([]string{"-wal", "-journal"}, func(ending string) bool {
		info, err := os.Stat(a.path + ending)
		return err == nil && info.Size() > 0 || err != nil && !errors.Is(err, fs.ErrNotExist)
	})
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
