package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/rundir"
)

// seed is an input with the initial rows of a new server's table.
type seed struct {
	input, table string
	pk           []string
}

// parseSeed parses INPUT, or INPUT?table=TABLE&pk=COLUMN&pk=COLUMN. The table is named after the input by default.
func parseSeed(text string) (s seed, err error) {
	s.input = text
	if at := strings.LastIndexByte(text, '?'); at >= 0 {
		q, err := url.ParseQuery(text[at+1:])
		if err != nil {
			return s, usagef("--seed %s: %v", text, err)
		}
		for name := range q {
			if name != "table" && name != "pk" {
				return s, usagef("--seed %s: unknown parameter %s; want INPUT, or INPUT?table=TABLE&pk=COLUMN", text, name)
			}
		}
		s.input, s.table, s.pk = text[:at], q.Get("table"), q["pk"]
	}
	if s.input == "" {
		return s, usagef("--seed %s: no input is named", text)
	}
	if _, number := strconv.ParseUint(text, 10, 64); number == nil {
		if _, err := os.Stat(text); err != nil {
			return s, usagef("--seed %s: there is no such file; to seed random numbers, give --random-seed %[1]s", text)
		}
	}
	if s.table == "" {
		s.table, _, _ = strings.Cut(filepath.Base(filepath.Clean(s.input)), ".")
	}
	return s, nil
}

func plant(c *call, store *server.Server, o server.Options, seeds []seed) (err error) {
	begun, err := unfinishedSeed(c.Context, store, o, c.String("store"), seeds)
	if err != nil || len(seeds) == 0 {
		return err
	}
	dir, err := os.MkdirTemp("", "tsimport-seed")
	if err != nil {
		return fmt.Errorf("--seed: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	defer store.Sim().ResetStats()
	for i, s := range seeds {
		if begun == s.table {
			c.say.Line("loading table %s again: its seed was interrupted", s.table)
		}
		if store.HasTable(s.table) {
			c.say.Line("table %s already exists; --seed %s leaves it unchanged", s.table, s.input)
			continue
		}
		if err := markSeed(o, c.String("store"), s.table); err != nil {
			return err
		}
		if err := s.load(c, store, o, filepath.Join(dir, fmt.Sprint(i))); err != nil {
			if c.Context.Err() != nil {
				return context.Cause(c.Context) // the mark remains, so that the next start drops the table
			}
			return errors.Join(usagef("--seed %s: %v", s.input, err), unmarkSeed(c.Context, store, o, c.String("store"),
				s.table, false))
		}
		if err := unmarkSeed(c.Context, store, o, c.String("store"), s.table, true); err != nil {
			return err
		}
		c.say.Line("table %s was loaded from %s", s.table, s.input)
	}
	return nil
}

// load loads the seed like any client. The error names the first rejected record, if there is one.
func (s *seed) load(c *call, store *server.Server, o server.Options, run string) error {
	of := &options.Command{Name: job.Load}
	of.From, of.Table, of.PK, of.Create, of.MaxErrors, of.RunDir, of.Quiet = []string{s.input}, s.table, s.pk, true,
		"0", run, true
	at := &target{name: "the store that is served", Target: client.Target{
		Endpoint: "http://embedded", Instance: o.Instance, Transport: store.SameMemory(),
		RequestTimeout: client.DefaultRequestTimeout,
		Credentials:    &common.DefaultCredentialsProvider{AccessKeyID: o.AccessKeyID, AccessKeySecret: o.AccessKeySecret},
	}}
	interrupts, stop := c.interrupts.ofLoad()
	defer stop()
	in := &invocation{own: of, within: within{target: at}}
	err := perform(in.again(interrupts.hard, of, io.Discard, interrupts, newDisplay(io.Discard)))
	if err == nil {
		return nil
	}
	if len(s.pk) == 0 && strings.Contains(err.Error(), " --pk ") {
		return fmt.Errorf("the table needs a primary key: --seed '%s?table=%s&pk=COLUMN', with one pk per column",
			s.input, s.table)
	}
	var first struct {
		Record, Line  int64
		Code, Message string
	}
	if text, readErr := os.ReadFile(filepath.Join(run, rundir.ReasonsFile)); readErr == nil &&
		json.NewDecoder(bytes.NewReader(text)).Decode(&first) == nil {
		return fmt.Errorf("record %d (line %d) cannot be loaded: %s: %s", first.Record, first.Line, first.Code, first.Message)
	}
	return err
}

// seedMark is a file in the store that names the table being seeded, which would be incomplete after a kill.
const seedMark = "SEEDING"

// unfinishedSeed drops the table of an interrupted seed and returns its name.
func unfinishedSeed(ctx context.Context, store *server.Server, o server.Options, dir string,
	seeds []seed) (table string, err error) {
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
		return "",
			usagef("the load of table %s was interrupted and left it incomplete: give its --seed again, or delete %s to keep it",
				table, filepath.Join(dir, seedMark))
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

// unmarkSeed ends the load of a seed, whose table is now complete on disk, or dropped.
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
