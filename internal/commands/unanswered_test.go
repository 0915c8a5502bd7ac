package commands

import (
	"context"
	"errors"
	"net"
	"testing"

	"tsimport/internal/exitcode"
	"tsimport/pipeline"
	"tsimport/pipeline/plan"
	"tsimport/reader/mysql"
	"tsimport/reader/postgres"
	"tsimport/reader/source"
	"tsimport/reader/sqltable"
)

// A scheduler tries again after exit code 1, and not after 2, which an input gets that is not there.
func TestAServerThatDoesNotAnswerIsNotAWrongQuestion(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := closed.Addr().String()
	closed.Close()
	look := func(origin source.Origin) error {
		_, err := pipeline.Look(context.Background(), pipeline.Config{Target: plan.Target{Table: "t", Absent: true}, Read: plan.Read{Sources: origin}, Inputs: []string{"x"}}, 1)
		return err
	}
	my, err := mysql.Parse("mysql://u@" + at + "/shop?table=t")
	if err != nil {
		t.Fatal(err)
	}
	pg, err := postgres.Parse("postgres://u@" + at + "/shop?table=t&sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	for name, server := range map[string]sqltable.Server{"mysql": my, "postgres": pg} {
		err := look(sqltable.New(sqltable.Config{Server: server, Sessions: 1}))
		if err == nil || errors.As(err, new(*plan.UsageError)) || exitcode.Of(err) != exitcode.Failed {
			t.Errorf("%s: exit code %d: %v", name, exitcode.Of(err), err)
		}
	}
}
