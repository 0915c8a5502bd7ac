package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"tsimport/engine/server"
)

// seed is an input that a new server's table begins with.
type seed struct {
	input, table string
	pk           []string
}

// parseSeed reads INPUT, or INPUT?table=TABLE&pk=COLUMN&pk=COLUMN. A table is named after its input if nothing else is said.
func parseSeed(text string) (s seed, err error) {
	s.input = text
	if at := strings.LastIndexByte(text, '?'); at >= 0 {
		q, err := url.ParseQuery(text[at+1:])
		if err != nil {
			return s, usagef("--seed %s: %v", text, err)
		}
		for name := range q {
			if name != "table" && name != "pk" {
				return s, usagef("--seed %s: there is no %s; want INPUT, or INPUT?table=TABLE&pk=COLUMN", text, name)
			}
		}
		s.input, s.table, s.pk = text[:at], q.Get("table"), q["pk"]
	}
	if s.input == "" {
		return s, usagef("--seed %s: it names no input", text)
	}
	if _, number := strconv.ParseUint(text, 10, 64); number == nil {
		if _, err := os.Stat(text); err != nil {
			return s, usagef("--seed %s: there is no such file; what is drawn at random begins with --random-seed %[1]s", text)
		}
	}
	if s.table == "" {
		s.table, _, _ = strings.Cut(filepath.Base(filepath.Clean(s.input)), ".")
	}
	return s, nil
}

// plant loads the seeds into the tables that are not there yet, each by a load of its own process: over the wire, as any client does.
func plant(c *cli.Context, store *server.Server, o server.Options, seeds []seed) (err error) {
	if len(seeds) == 0 {
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("--seed: %w", err)
	}
	dir, err := os.MkdirTemp("", "tsimport-seed")
	if err != nil {
		return fmt.Errorf("--seed: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// Nobody else sees the tables before they are whole.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("--seed: %w", err)
	}
	ctx, stop := context.WithCancel(c.Context)
	served := make(chan error, 1)
	go func() { served <- store.ServeListener(ctx, listener, server.Limits{}) }()
	defer func() {
		stop()
		err = errors.Join(err, <-served)
		store.Sim().ResetStats()
	}()
	for i, s := range seeds {
		if store.HasTable(s.table) {
			say(c, c.App.ErrWriter, "table %s is there; --seed %s leaves it as it is", s.table, s.input)
			continue
		}
		args := []string{"load", s.input, "--endpoint", "http://" + listener.Addr().String(), "--instance", o.Instance, "--table", s.table, "--create",
			"--max-errors", "0", "--quiet", "--run-dir", filepath.Join(dir, fmt.Sprint(i))}
		for _, name := range s.pk {
			args = append(args, "--pk", name)
		}
		load := exec.CommandContext(c.Context, program, args...)
		load.Env = append(os.Environ(), "TABLESTORE_ACCESS_KEY_ID="+o.AccessKeyID, secretEnv+"="+o.AccessKeySecret, "TABLESTORE_SECURITY_TOKEN=")
		var says bytes.Buffer
		load.Stdout, load.Stderr = &says, &says
		if err := load.Run(); err != nil {
			if c.Context.Err() != nil {
				return context.Cause(c.Context)
			}
			why := bytes.TrimSpace(says.Bytes())
			if at := bytes.LastIndexByte(why, '\n'); at >= 0 {
				why = why[at+1:]
			}
			return usagef("--seed %s: %s", s.input, bytes.TrimPrefix(why, []byte("tsimport: ")))
		}
		say(c, c.App.ErrWriter, "table %s was loaded from %s", s.table, s.input)
	}
	return nil
}
