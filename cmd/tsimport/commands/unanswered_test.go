package commands

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/mysql"
	"example.com/tsimport/reader/postgres"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/sqltable"
)

// A scheduler tries again after exit code 1, and not after 2, which an input gets that is not there.
func TestAServerThatDoesNotAnswerIsNotAWrongQuestion(t *testing.T) {
	busyMySQL := append([]byte{23, 0, 0, 0, 0xff, 0x10, 0x04}, "Too many connections"...)
	busyPostgres := append([]byte{'E', 0, 0, 0, 62}, "SFATAL\x00VFATAL\x00C57P03\x00Mthe database system is starting up\x00\x00"...)
	look := func(origin source.Origin) error {
		_, err := pipeline.Look(context.Background(), pipeline.Config{Target: plan.Target{Table: "t", Absent: true}, Read: plan.Read{Sources: origin}, Inputs: []string{"x"}}, 1)
		return err
	}
	for _, tt := range []struct {
		what    string
		at      string
		want    string
		servers []string
	}{
		{"a server that is not there", "127.0.0.1:1", "refused", []string{"mysql", "postgres"}},
		{"one that hangs up", listening(t, []byte{}), "the server ended the connection", []string{"mysql", "postgres"}},
		{"a MySQL that is busy", listening(t, busyMySQL), "Too many connections", []string{"mysql"}},
		{"a PostgreSQL that starts", listening(t, busyPostgres), "starting up", []string{"postgres"}},
	} {
		for _, name := range tt.servers {
			var server sqltable.Server
			var err error
			if name == "mysql" {
				server, err = mysql.Parse("mysql://u@" + tt.at + "/shop?table=t")
			} else {
				server, err = postgres.Parse("postgres://u@" + tt.at + "/shop?table=t&sslmode=disable")
			}
			must(t, err)
			err = look(sqltable.New(sqltable.Config{Server: server, Sessions: 1}))
			if err == nil || errors.As(err, new(*plan.UsageError)) || exitcode.Of(err) != exitcode.Failed || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, %s: exit code %d: %v", tt.what, name, exitcode.Of(err), err)
			}
		}
	}
}

// listening answers each client that speaks, or is to be spoken to, with some bytes and hangs up, at the address.
func listening(t *testing.T, answer []byte) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write(answer)
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn) // a client that still writes is not to lose the answer
			conn.Close()
		}
	}()
	return l.Addr().String()
}
