package options

import (
	"context"
	"os"
	"path/filepath"

	"tsimport/pipeline"
)

// Command is what the command of this module has to do with a load that it starts through the library: screens, signals and exit codes
// are not a matter of the library's options.
type Command struct {
	// Complete adds what watches the load, how it drains and how it was invoked.
	Complete func(*pipeline.Config)
	// Report and Err are what the load returned.
	Report *pipeline.Report
	Err    error
}

type commandKey struct{}

// ForCommand returns a context for a load that is the command's.
func ForCommand(ctx context.Context, c *Command) context.Context {
	return context.WithValue(ctx, commandKey{}, c)
}

// CommandOf returns the command that a load is of, nil if it is another program's.
func CommandOf(ctx context.Context) *Command {
	c, _ := ctx.Value(commandKey{}).(*Command)
	return c
}

// LocksDir is where loads of the user are locked on this machine, from any working folder; "" if there is no place.
func LocksDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "tsimport", "locks")
}
