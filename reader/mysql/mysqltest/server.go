package mysqltest

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // registers the driver

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/sqltable/sqltest"
)

// Server is a running server. Its user is root without a password; its database is shop.
type Server struct {
	DB *sql.DB

	*sqltest.Place
	cmd  *exec.Cmd
	more []string // additional options
}

func Start(t testing.TB) *Server {
	t.Helper()
	if os.Getenv("TSIMPORT_SOURCES") == "" {
		t.Skip("it needs a real MariaDB: make sources")
	}
	install, err := exec.LookPath("mariadb-install-db")
	if err != nil {
		t.Fatal("MariaDB is not installed: apt-get install mariadb-server")
	}
	s := new(Server)
	s.Place = sqltest.NewPlace(t, "mysql", func() {
		if s.DB != nil {
			s.DB.Close()
		}
		s.Kill()
	})
	s.Run(install, "--no-defaults", "--datadir="+s.Data(), "--auth-root-authentication-method=normal", "--skip-test-db")
	s.Go()
	s.Exec("CREATE DATABASE IF NOT EXISTS shop")
	s.DB.Close()
	if s.DB, err = sql.Open("mysql", s.dsn("shop")); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Server) dsn(db string) string { return fmt.Sprintf("root@tcp(127.0.0.1:%d)/%s", s.Port, db) }

// Go starts the server and returns once it answers. It can be called again after Kill.
func (s *Server) Go() {
	s.Helper()
	server, err := exec.LookPath("mariadbd")
	if err != nil {
		server = "/usr/sbin/mariadbd"
	}
	s.cmd = s.Command(server, "--no-defaults", "--datadir="+s.Data(), fmt.Sprintf("--port=%d", s.Port),
		"--bind-address=127.0.0.1",
		"--socket="+filepath.Join(s.Dir, "sock"), "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=256M",
		"--character-set-server=utf8mb4", "--max-allowed-packet=64M",
		fmt.Sprintf("--server-id=%d", s.Port), "--log-bin="+filepath.Join(s.Dir, "bin"))
	s.cmd.Args = append(s.cmd.Args, s.more...)
	log, err := os.OpenFile(filepath.Join(s.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	conformance.Must(s, err)
	defer log.Close()
	s.cmd.Stderr = log
	conformance.Must(s, s.cmd.Start())
	if s.DB == nil {
		if s.DB, err = sql.Open("mysql", s.dsn("")); err != nil {
			s.Fatal(err)
		}
	}
	for end := time.Now().Add(time.Minute); s.DB.Ping() != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			text, _ := os.ReadFile(filepath.Join(s.Dir, "log"))
			s.Fatalf("the server does not answer:\n%s", text)
		}
	}
}

// Kill ends the server as a crash would.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// Options restarts the server with more options.
func (s *Server) Options(more ...string) {
	s.Helper()
	s.more = more
	s.Kill()
	s.Go()
}

// Own gives the server a copy of a file and returns the copy's path. Only the server's user can read the copy.
func (s *Server) Own(file string) string {
	s.Helper()
	own := filepath.Join(s.Dir, strings.ReplaceAll(strings.Trim(file, "/"), "/", "-"))
	s.Place.Own(file, own)
	return own
}

// Follow makes the server a replica of another.
func (s *Server) Follow(of *Server) {
	s.Helper()
	s.Exec(fmt.Sprintf("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %d, MASTER_USER = 'root', "+
		"MASTER_USE_GTID = slave_pos", of.Port), "START SLAVE")
}

// Address returns the address of a table.
func (s *Server) Address(table string) string {
	return fmt.Sprintf("mysql://root@127.0.0.1:%d/shop?table=%s", s.Port, table)
}

func (s *Server) Exec(statements ...string) {
	s.Helper()
	for _, one := range statements {
		if _, err := s.DB.Exec(one); err != nil {
			s.Fatalf("%s: %v", one, err)
		}
	}
}

// Rows returns the rows of a query as text. Nulls are NULL.
func (s *Server) Rows(query string) (all [][]string) {
	s.Helper()
	rows, err := s.DB.Query(query)
	if err != nil {
		s.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	names, _ := rows.Columns()
	for rows.Next() {
		texts, to := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range texts {
			to[i] = &texts[i]
		}
		conformance.Must(s, rows.Scan(to...))
		row := make([]string, len(names))
		for i, v := range texts {
			if row[i] = "NULL"; v.Valid {
				row[i] = v.String
			}
		}
		all = append(all, row)
	}
	conformance.Must(s, rows.Err())
	return all
}
