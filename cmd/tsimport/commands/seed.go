package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/atomicfile"
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
func plant(c *call, store *server.Server, o server.Options, seeds []seed) (err error) {
	begun, err := unfinishedSeed(c.Context, store, o, c.String("store"), seeds)
	if err != nil || len(seeds) == 0 {
		return err
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
		if begun == s.table {
			say(c, c.App.ErrWriter, "table %s is loaded again: its seed was interrupted", s.table)
		}
		if store.HasTable(s.table) {
			say(c, c.App.ErrWriter, "table %s is there; --seed %s leaves it as it is", s.table, s.input)
			continue
		}
		args := []string{"load", s.input, "--endpoint", "http://" + listener.Addr().String(), "--instance", o.Instance, "--table", s.table, "--create",
			"--max-errors", "0", "--quiet", "--run-dir", filepath.Join(dir, fmt.Sprint(i))}
		for _, name := range s.pk {
			args = append(args, "--pk", name)
		}
		if err := markSeed(o, c.String("store"), s.table); err != nil {
			return err
		}
		load := exec.CommandContext(c.Context, program, args...)
		load.Env = append(os.Environ(), "TABLESTORE_ACCESS_KEY_ID="+o.AccessKeyID, secretEnv+"="+o.AccessKeySecret, "TABLESTORE_SECURITY_TOKEN=")
		var says bytes.Buffer
		load.Stdout, load.Stderr = &says, &says
		if err := load.Run(); err != nil {
			if c.Context.Err() != nil {
				return context.Cause(c.Context) // the mark stays: the next start takes the table away
			}
			if err := unmarkSeed(c.Context, store, o, c.String("store"), s.table, false); err != nil {
				return err
			}
			why := whyNot(says.Bytes(), filepath.Join(dir, fmt.Sprint(i)))
			if len(s.pk) == 0 && strings.Contains(why, " --pk ") {
				why = fmt.Sprintf("the table needs a primary key: --seed '%s?table=%s&pk=COLUMN', with one pk for each column in order", s.input, s.table)
			}
			return usagef("--seed %s: %s", s.input, why)
		}
		if err := unmarkSeed(c.Context, store, o, c.String("store"), s.table, true); err != nil {
			return err
		}
		say(c, c.App.ErrWriter, "table %s was loaded from %s", s.table, s.input)
	}
	return nil
}

// whyNot is why a seed was not loaded: the first record that the load rejected, or what it said last.
func whyNot(said []byte, run string) string {
	var first struct {
		Record, Line  int64
		Code, Message string
	}
	if f, err := os.Open(filepath.Join(run, "rejects.jsonl")); err == nil {
		defer f.Close()
		if json.NewDecoder(f).Decode(&first) == nil {
			return fmt.Sprintf("record %d (line %d) cannot be loaded: %s: %s", first.Record, first.Line, first.Code, first.Message)
		}
	}
	said = bytes.TrimSpace(said)
	if at := bytes.LastIndexByte(said, '\n'); at >= 0 {
		said = said[at+1:]
	}
	return string(bytes.TrimPrefix(said, []byte("tsimport: ")))
}

// seedMark is a file of the store that names the table whose seed is being loaded: a table that a kill left in part is not taken for whole.
const seedMark = "SEEDING"

// unfinishedSeed takes away the table whose seed was interrupted, and says which it was.
func unfinishedSeed(ctx context.Context, store *server.Server, o server.Options, dir string, seeds []seed) (table string, err error) {
	if o.InMemory {
		return "", nil
	}
	text, err := os.ReadFile(filepath.Join(dir, seedMark))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("--seed: %w", err)
	}
	table = strings.TrimSpace(string(text))
	if !slices.ContainsFunc(seeds, func(s seed) bool { return s.table == table }) {
		return "", usagef("the load of table %s was interrupted, and has left a part of it: name its --seed again, or delete %s to keep the part", table, filepath.Join(dir, seedMark))
	}
	return table, unmarkSeed(ctx, store, o, dir, table, false)
}

func markSeed(o server.Options, dir, table string) error {
	if o.InMemory {
		return nil
	}
	err := atomicfile.Write(filepath.Join(dir, seedMark), atomicfile.Options{Perm: 0o600}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, table)
		return err
	})
	if err != nil {
		return fmt.Errorf("--seed: %w", err)
	}
	return nil
}

// unmarkSeed ends the load of a seed, which is whole on disk now, or is taken away.
func unmarkSeed(ctx context.Context, store *server.Server, o server.Options, dir, table string, whole bool) error {
	if o.InMemory {
		return nil
	}
	if whole {
		if err := store.Sync(); err != nil {
			return fmt.Errorf("--seed: %w", err)
		}
	} else if store.HasTable(table) {
		if err := store.DropTable(ctx, table); err != nil {
			return fmt.Errorf("--seed: %w", err)
		}
	}
	if err := os.Remove(filepath.Join(dir, seedMark)); err != nil {
		return fmt.Errorf("--seed: %w", err)
	}
	return nil
}
