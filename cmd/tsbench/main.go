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

	"example.com/tsimport/bench/cost"
	"example.com/tsimport/cmd/tsimport/commands"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/plan"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == cost.Tool {
		code := commands.Run(os.Args[1:], os.Stdout, os.Stderr)
		if name := os.Getenv(cost.UsedEnv); name != "" {
			text, err := json.Marshal(used())
			if err == nil {
				err = os.WriteFile(name, text, 0o600)
			}
			if err != nil {
				fmt.Fprintf(os.Stderr, "tsbench: write what was used: %v\n", err)
			}
		}
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args, os.Stdout, os.Stderr))
}

// run is a command of tsbench. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := &cli.App{
		Name: "tsbench", Usage: "measure tsimport", Writer: stdout, ErrWriter: stderr,
		DisableSliceFlagSeparator: true, // an expression may hold a comma
		ExitErrHandler:            func(*cli.Context, error) {},
		Commands:                  []*cli.Command{clientCommand(), spreadCommand(), nullServerCommand(), baselineCommand(), scanTableCommand()},
	}
	for _, c := range app.Commands {
		c.OnUsageError = func(_ *cli.Context, err error, _ bool) error { return &plan.UsageError{Message: err.Error()} }
		c.HideHelpCommand = true // or a file called help would run it
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

// say shows progress.
func say(c *cli.Context) words.Say {
	return func(kind words.Kind, line string) { fmt.Fprintf(c.App.ErrWriter, "tsbench: %s%s\n", kind, line) }
}

// report is a result.
type report interface{ WriteText(io.Writer) error }

func show(c *cli.Context, r report) (err error) {
	if c.Bool("json") {
		out := json.NewEncoder(c.App.Writer)
		out.SetIndent("", "  ")
		err = out.Encode(r)
	} else {
		err = r.WriteText(c.App.Writer)
	}
	if err != nil {
		return fmt.Errorf("print measurements: %w", err)
	}
	return nil
}

// used is what this process has allocated, and its peak memory: what the system says of the peak has its parent's in it.
func used() map[string]any {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	_, peak := pipeline.Resources()
	return map[string]any{"allocations": memory.Mallocs, "allocated_bytes": memory.TotalAlloc, "peak_rss_bytes": peak}
}
