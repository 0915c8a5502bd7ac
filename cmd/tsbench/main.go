package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/cmd/tsimport/commands"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/plan"
)

// The ways of loading: tsimport, a hand-written program with the SDK, and the command of --baseline-cmd.
const (
	tool     = "tsimport"
	baseline = "baseline"
	external = "external"
)

// usedEnv names the environment variable with the file to which tsimport writes its usage. Its stdout is not free.
const usedEnv = "TSIMPORT_BENCH_USED"

func main() {
	if len(os.Args) > 1 && os.Args[1] == tool {
		code := commands.Run(os.Args[1:], os.Stdout, os.Stderr)
		if name := os.Getenv(usedEnv); name != "" {
			text, err := json.Marshal(used())
			if err == nil {
				err = os.WriteFile(name, text, 0o600)
			}
			if err != nil {
				fmt.Fprintf(os.Stderr, "tsbench: write the usage: %v\n", err)
			}
		}
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := &cli.App{
		Name: "tsbench", Usage: "measure tsimport", Writer: stdout, ErrWriter: stderr,
		DisableSliceFlagSeparator: true, // a load's flag may contain a comma
		ExitErrHandler:            func(*cli.Context, error) {},
		Commands:                  []*cli.Command{clientCommand(), spreadCommand(), nullServerCommand(), baselineCommand()},
	}
	for _, c := range app.Commands {
		c.OnUsageError = func(_ *cli.Context, err error, _ bool) error { return &plan.UsageError{Message: err.Error()} }
		c.HideHelpCommand = true // otherwise an argument help would run that command
	}
	err := app.RunContext(ctx, args)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "tsbench: interrupted")
		return 130
	}
	fmt.Fprintf(stderr, "tsbench: %s\n", client.OneLine(err.Error()))
	if errors.As(err, new(*plan.UsageError)) {
		return 2
	}
	return 1
}

// inFolder calls f with a folder for files: --keep, or a temporary one.
func inFolder(keep string, f func(dir string) error) (err error) {
	dir := keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "tsbench-*"); err != nil {
			return fmt.Errorf("create temporary folder: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	return f(dir)
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("generate input: %w", err)
	}
	err = write(f)
	if closeErr := f.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("generate input: %w", closeErr)
	}
	return err
}

func show(c *cli.Context, result any, text func(io.Writer) error) (err error) {
	if c.Bool("json") {
		out := json.NewEncoder(c.App.Writer)
		out.SetIndent("", "  ")
		err = out.Encode(result)
	} else {
		err = text(c.App.Writer)
	}
	if err != nil {
		return fmt.Errorf("print measurements: %w", err)
	}
	return nil
}

// usage holds a process's allocations and its own peak memory. The peak that the system reports includes the parent's.
type usage struct {
	Allocations    uint64 `json:"allocations"`
	AllocatedBytes uint64 `json:"allocated_bytes"`
	PeakRSSBytes   int64  `json:"peak_rss_bytes"`
}

func used() usage {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	_, peak := pipeline.Resources()
	return usage{memory.Mallocs, memory.TotalAlloc, peak}
}
