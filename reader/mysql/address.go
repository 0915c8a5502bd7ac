package mysql

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"example.com/tsimport/reader/sqltable"
)

// Address is the address of a table, or of a server with a query to run.
type Address struct {
	shown  string // for users, without the password
	config *driver.Config
	table  string
	query  string   // set instead of table
	key    []string // key columns of the query's result

	lockPause time.Duration // pause between attempts to lock the table
	lockAfter time.Time
}

// Limits of the time to connect, and between checks that the server still responds.
const (
	connectTimeout = 10 * time.Second
	keepAlive      = 15 * time.Second
)

// maxRowBytes is the size of the largest row that a server sends.
const maxRowBytes = 1 << 30

// Parse parses an address: mysql://USER@HOST:PORT/DATABASE?table=TABLE. Other settings come from the client's option
// file and from MYSQL_PWD, as for the clients of MySQL and MariaDB. No error contains a secret.
func Parse(arg string) (*Address, error) {
	a, p, err := parse(arg)
	if err != nil {
		return nil, err
	}
	if a.table = p.table; a.table == "" {
		return nil, fmt.Errorf("%s: the address names no table; add ?table=TABLE", arg)
	}
	if p.key != nil {
		return nil, fmt.Errorf("%s: key= is for --query; a table has its own key", arg)
	}
	if db, name, ok := strings.Cut(a.table, "."); ok && a.config.DBName == "" {
		a.config.DBName, a.table = db, name
	}
	return a, a.needDatabase()
}

func (a *Address) needDatabase() error {
	if name := a.config.DBName; name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("%s: the address names no database; want mysql://USER@HOST/DATABASE?table=TABLE", a.shown)
	}
	return nil
}

// named holds the table and key parameters of an address.
type named struct {
	table string
	key   []string
}

func parse(arg string) (a *Address, of named, err error) {
	u, err := url.Parse(arg)
	if err != nil {
		// err contains the address, which may contain a password.
		return nil, of, errors.New("cannot parse the address of the server; want mysql://USER@HOST/DATABASE?table=TABLE")
	}
	q, err := sqltable.Parameters(u.RawQuery)
	if err != nil {
		return nil, of, err
	}
	if _, has := u.User.Password(); has || q.Has("password") {
		return nil, of, errors.New("the address holds a password, which would stay in the shell's history and in the run " +
			"folder; leave it out and set MYSQL_PWD, or put it into ~/.my.cnf")
	}
	for name := range q {
		if !parameters[name] {
			return nil, of, fmt.Errorf("%s: unknown parameter %s; want table, key, socket, defaults-file, ssl-mode, ssl-ca, "+
				"ssl-cert or ssl-key", arg, name)
		}
	}
	of.table = q.Get("table")
	if q.Has("key") {
		of.key = strings.Split(q.Get("key"), ",")
	}
	a = &Address{shown: arg, config: driver.NewConfig(), lockPause: 10 * time.Second}
	o, err := readOptions(q.Get("defaults-file"))
	if err != nil {
		return nil, of, fmt.Errorf("%s: %w", arg, err)
	}
	for _, name := range []string{"socket", "ssl-mode", "ssl-ca", "ssl-cert", "ssl-key"} {
		if q.Has(name) {
			o[name] = q.Get(name)
		}
	}
	c := a.config
	c.User = cmp.Or(u.User.Username(), o["user"], os.Getenv("USER"))
	c.Passwd = cmp.Or(o["password"], os.Getenv("MYSQL_PWD"))
	c.Net, c.Addr = "tcp", net.JoinHostPort(cmp.Or(u.Hostname(), o["host"], "127.0.0.1"),
		cmp.Or(u.Port(), o["port"], "3306"))
	if o["socket"] != "" && u.Host == "" {
		c.Net, c.Addr = "unix", o["socket"]
	}
	c.DBName = strings.TrimPrefix(u.Path, "/")
	c.Timeout, c.MaxAllowedPacket, c.Logger = connectTimeout, maxRowBytes, &driver.NopLogger{}
	c.Collation = "utf8mb4_general_ci"
	c.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return (&net.Dialer{Timeout: connectTimeout, KeepAlive: keepAlive}).DialContext(ctx, network, addr)
	}
	if err := a.secure(o); err != nil {
		return nil, of, fmt.Errorf("%s: %w", arg, err)
	}
	return a, of, nil
}

var parameters = map[string]bool{"table": true, "key": true, "socket": true, "defaults-file": true, "ssl-mode": true,
	"ssl-ca": true, "ssl-cert": true, "ssl-key": true}

// secure sets up TLS according to the options of MySQL's and MariaDB's clients.
func (a *Address) secure(o map[string]string) error {
	mode := strings.ToUpper(cmp.Or(o["ssl-mode"], "PREFERRED"))
	if o["ssl-mode"] == "" && o["ssl-ca"] != "" {
		mode = "VERIFY_CA"
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}
	switch mode {
	case "DISABLED":
		return nil
	case "PREFERRED":
		a.config.AllowFallbackToPlaintext = true
	case "REQUIRED":
	case "VERIFY_CA", "VERIFY_IDENTITY":
		roots, err := certificates(o["ssl-ca"])
		if err != nil {
			return err
		}
		host, _, _ := net.SplitHostPort(a.config.Addr)
		if mode == "VERIFY_CA" {
			host = ""
		}
		c.VerifyConnection = func(s tls.ConnectionState) error {
			v := x509.VerifyOptions{Roots: roots, DNSName: host, Intermediates: x509.NewCertPool()}
			for _, cert := range s.PeerCertificates[1:] {
				v.Intermediates.AddCert(cert)
			}
			_, err := s.PeerCertificates[0].Verify(v)
			return err
		}
	default:
		return fmt.Errorf("ssl-mode=%s: want DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY", mode)
	}
	if o["ssl-cert"] != "" || o["ssl-key"] != "" {
		pair, err := tls.LoadX509KeyPair(o["ssl-cert"], o["ssl-key"])
		if err != nil {
			return fmt.Errorf("ssl-cert, ssl-key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	a.config.TLS = c
	return nil
}

// certificates returns the certificates in a file or, if file is "", those of the machine.
func certificates(file string) (*x509.CertPool, error) {
	if file == "" {
		return x509.SystemCertPool()
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("ssl-ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("ssl-ca: %s has no certificate in PEM", file)
	}
	return roots, nil
}

func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
