package pgtest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/sqltable/sqltest"
)

// Server is a running server. Its user is postgres without a password; its database is postgres.
type Server struct {
	Most int // largest number of sessions; 0 means 50

	*sqltest.Place
	bin string
}

func Start(t testing.TB) *Server {
	t.Helper()
	if os.Getenv("TSIMPORT_SOURCES") == "" {
		t.Skip("it needs a real PostgreSQL: make sources")
	}
	s := prepare(t)
	s.run("initdb", "-D", s.Data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale", "C.UTF-8", "--no-sync")
	s.Go()
	return s
}

// Standby starts a standby of the server and returns it.
func (s *Server) Standby() *Server {
	s.Helper()
	r := prepare(s.TB)
	r.run("pg_basebackup", "-h", "127.0.0.1", "-p", strconv.Itoa(s.Port), "-U", "postgres", "-D", r.Data(), "-R", "-X",
		"stream", "-c", "fast", "--no-sync")
	r.Go()
	return r
}

// Promote makes a standby the primary.
func (s *Server) Promote() {
	s.Helper()
	s.run("pg_ctl", "-D", s.Data(), "-w", "promote")
}

func prepare(t testing.TB) *Server {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		t.Fatal("PostgreSQL is not installed: apt-get install postgresql")
	}
	s := &Server{bin: filepath.Dir(found[len(found)-1])}
	s.Place = sqltest.NewPlace(t, "postgres", func() { s.Stop("immediate") })
	return s
}

// Go starts the server. It can be called again after Stop.
func (s *Server) Go() {
	s.Helper()
	s.run("pg_ctl", "-D", s.Data(), "-w", "-l", filepath.Join(s.Dir, "log"), "-o",
		fmt.Sprintf("-p %d -c listen_addresses=127.0.0.1 -c unix_socket_directories=%s -c fsync=off -c max_connections=%d",
			s.Port, s.Dir, cmp.Or(s.Most, 50)), "start")
}

// Stop stops the server. how is fast, or immediate to simulate a crash.
func (s *Server) Stop(how string) {
	_ = s.Command(filepath.Join(s.bin, "pg_ctl"), "-D", s.Data(), "-w", "-m", how, "stop").Run() // it may be down already
}

func (s *Server) run(name string, args ...string) {
	s.Helper()
	s.Run(filepath.Join(s.bin, name), args...)
}

func (s *Server) Address(table string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable&table=%s", s.Port, table)
}

// Exec runs statements. It returns the rows of the last one as text.
func (s *Server) Exec(sql string) [][]string {
	s.Helper()
	ctx := context.Background()
	conn, err := pgconn.Connect(ctx, fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", s.Port))
	conformance.Must(s, err)
	defer conn.Close(ctx)
	results, err := conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
	var rows [][]string
	if len(results) > 0 {
		for _, r := range results[len(results)-1].Rows {
			var row []string
			for _, v := range r {
				row = append(row, string(v))
			}
			rows = append(rows, row)
		}
	}
	return rows
}
