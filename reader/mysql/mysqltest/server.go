package mysqltest

import (
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver
)

// Server is a running server. Its user is root, which needs no password, and its database shop.
type Server struct {
	DB *sql.DB

	t    testing.TB
	dir  string
	port int
	as   *syscall.SysProcAttr // the user that it runs as; nil is this one
	uid  int                  // of that user
	gid  int
	cmd  *exec.Cmd
	more []string // options
}

// Start starts a server.
func Start(t testing.TB) *Server {
	t.Helper()
	if os.Getenv("TSIMPORT_SOURCES") == "" {
		t.Skip("it needs a real MariaDB: make sources")
	}
	install, err := exec.LookPath("mariadb-install-db")
	if err != nil {
		t.Fatal("MariaDB is not installed: apt-get install mariadb-server")
	}
	dir, err := os.MkdirTemp("", "mysqltest")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, dir: dir}
	t.Cleanup(func() {
		if s.DB != nil {
			s.DB.Close()
		}
		s.Kill()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if os.Getuid() == 0 { // the server refuses to run as root
		u, err := user.Lookup("mysql")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		s.as, s.uid, s.gid = userOf(uid, gid), uid, gid
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(install, "--no-defaults", "--datadir="+s.data(), "--auth-root-authentication-method=normal", "--skip-test-db")
	c.SysProcAttr, c.Dir = s.as, s.dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.port = free.Addr().(*net.TCPAddr).Port
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	s.Go()
	s.Exec("CREATE DATABASE IF NOT EXISTS shop")
	s.DB.Close()
	if s.DB, err = sql.Open("mysql", s.dsn("shop")); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) dsn(db string) string { return fmt.Sprintf("root@tcp(127.0.0.1:%d)/%s", s.port, db) }

// Go starts the server, again after Kill, and returns when it answers.
func (s *Server) Go() {
	s.t.Helper()
	server, err := exec.LookPath("mariadbd")
	if err != nil {
		server = "/usr/sbin/mariadbd"
	}
	s.cmd = exec.Command(server, "--no-defaults", "--datadir="+s.data(), fmt.Sprintf("--port=%d", s.port), "--bind-address=127.0.0.1",
		"--socket="+filepath.Join(s.dir, "sock"), "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=256M", "--character-set-server=utf8mb4", "--max-allowed-packet=64M",
		fmt.Sprintf("--server-id=%d", s.port), "--log-bin="+filepath.Join(s.dir, "bin"))
	s.cmd.Args = append(s.cmd.Args, s.more...)
	s.cmd.SysProcAttr, s.cmd.Dir = s.as, s.dir
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.cmd.Stderr = log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	if s.DB == nil {
		if s.DB, err = sql.Open("mysql", s.dsn("")); err != nil {
			s.t.Fatal(err)
		}
	}
	for end := time.Now().Add(time.Minute); s.DB.Ping() != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			s.t.Fatalf("the server does not answer:\n%s", text)
		}
	}
}

// Kill ends it as a crash does.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// Options starts the server again with more options.
func (s *Server) Options(more ...string) {
	s.t.Helper()
	s.more = more
	s.Kill()
	s.Go()
}

// Own gives the server a copy of a file that only its user may read.
func (s *Server) Own(file string) string {
	s.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	own := filepath.Join(s.dir, strings.ReplaceAll(strings.Trim(file, "/"), "/", "-"))
	if err = os.WriteFile(own, text, 0o600); err == nil && s.as != nil {
		err = os.Chown(own, s.uid, s.gid)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return own
}

// Follow makes the server a replica of another one.
func (s *Server) Follow(of *Server) {
	s.t.Helper()
	s.Exec(fmt.Sprintf("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %d, MASTER_USER = 'root', MASTER_USE_GTID = slave_pos", of.port), "START SLAVE")
}

// Address is that of a table.
func (s *Server) Address(table string) string {
	return fmt.Sprintf("mysql://root@127.0.0.1:%d/shop?table=%s", s.port, table)
}

// Exec runs statements, one after the other.
func (s *Server) Exec(statements ...string) {
	s.t.Helper()
	for _, one := range statements {
		if _, err := s.DB.Exec(one); err != nil {
			s.t.Fatalf("%s: %v", one, err)
		}
	}
}

// Rows returns the rows of a query as text; null is NULL.
func (s *Server) Rows(query string) (all [][]string) {
	s.t.Helper()
	rows, err := s.DB.Query(query)
	if err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	names, _ := rows.Columns()
	for rows.Next() {
		texts, to := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range texts {
			to[i] = &texts[i]
		}
		if err := rows.Scan(to...); err != nil {
			s.t.Fatal(err)
		}
		row := make([]string, len(names))
		for i, v := range texts {
			if row[i] = "NULL"; v.Valid {
				row[i] = v.String
			}
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	return all
}
