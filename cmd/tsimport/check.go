package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tsimport/pipeline"
	"tsimport/verify"
)

func checkCommand(show *display) *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "say what a load of files would reject and, with --unique, whether their keys collide; needs no table",
		ArgsUsage: "FILE...",
		Description: inputsHelp + "\n" +
			"Every flag of tsimport load is taken and means the same. All of the files is read, nothing is written.\n" +
			"Exit code 0: nothing would be rejected, no keys collide; 1: different values make the same key, or reading\n" +
			"failed; 2: bad usage; 3: some records would be rejected.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "unique", Usage: "find the keys that several records have, and whether the values that they are made of differ"},
			&cli.IntFlag{Name: "examples", Usage: "show at most `N` rejects and collisions each", Value: 10},
		}, hidden(loadFlags(), append(targetNames, flagsOfLoad...))...),
		Action: func(c *cli.Context) error { return check(c, show) },
	}
}

// targetNames are the flags that say which store a table is in.
var targetNames = []string{"endpoint", "instance", "store", "request-timeout", "table", "concurrency", "retry-for"}

func check(c *cli.Context, show *display) error {
	cfg, err := loadConfig(c, &invocation{args: os.Args[1:]})
	if err != nil {
		return err
	}
	switch {
	case len(cfg.Target.Key) == 0:
		return usagef("no key: give --pk NAME[:TYPE][=EXPR], once for each primary-key column in order")
	case c.Int("examples") < 0:
		return usagef("--examples: want 0 or more")
	}
	if cfg.Target.Table == "" {
		cfg.Target.Table = "check"
	}
	cfg.Target.Name, cfg.Target.Create, cfg.Target.Absent = "check", true, true
	request := cfg.Request()
	request.RunDir = ""
	limitMemory(cfg.Limits.Memory, false)
	progress := new(verify.Progress)
	stop := watchComparison(c, show, "check: %s records read, %s keys compared", progress)
	r, err := verify.Check(c.Context, verify.CheckConfig{
		Request: request, Unique: c.Bool("unique"), Examples: c.Int("examples"),
		Memory: cfg.Limits.Memory, TempDir: cfg.Limits.TempDir, TempMax: cfg.Limits.TempMax, Progress: progress,
	})
	stop()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		err = printIndented(c, r)
	} else {
		err = writeCheck(c.App.Writer, r)
	}
	switch {
	case err != nil:
		return err
	case r.Collisions > 0:
		return &exitError{code: pipeline.ExitFailed}
	case r.Rejected > 0:
		return &exitError{code: pipeline.ExitRejects}
	}
	return nil
}

// writeCheck writes what was found for people.
func writeCheck(w io.Writer, r *verify.CheckResult) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s records read, %s would be rejected (%v, %s rows/s)\n", grouped(r.Read), grouped(r.Rejected),
		round(time.Duration(r.Seconds*float64(time.Second))), grouped(int64(r.RowsPerSecond)))
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", printable(n))
	}
	for _, code := range slices.Sorted(maps.Keys(r.Reasons)) {
		fmt.Fprintf(&b, "%s: %s\n", code, grouped(r.Reasons[code]))
	}
	for _, e := range r.Rejects {
		fmt.Fprintf(&b, "rejected  %s, record %s: ", printable(e.File), grouped(e.Record))
		if e.Column != "" {
			fmt.Fprintf(&b, "column %s: ", printable(e.Column))
		}
		fmt.Fprintf(&b, "%s\n", printable(e.Message))
	}
	if r.Unique {
		fmt.Fprintf(&b, "%s keys, %s records repeat one", grouped(r.Keys), grouped(r.Repeated))
		if r.Collisions > 0 {
			fmt.Fprintf(&b, "; different values make the same key: %s keys, %s records that another one would replace", grouped(r.Collisions), grouped(r.Colliding))
		}
		b.WriteString("\n")
	}
	for _, e := range r.Examples {
		fmt.Fprintf(&b, "collision %s  (%s, record %s and %s, record %s)\n", printable(e.Key.String()),
			printable(e.First.File), grouped(e.First.Record), printable(e.Other.File), grouped(e.Other.Record))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
