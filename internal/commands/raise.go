package commands

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/urfave/cli/v2"

	"tsimport/internal/suggest"
	"tsimport/internal/tablestore/reserve"
)

// notRestored says how to restore a table's throughput after a run that could not.
func notRestored(c *cli.Context, t *target, folder string, err error) error {
	var left *reserve.NotRestored
	if !errors.As(err, &left) {
		return err
	}
	args := []string{commandName(), "table", "update", left.Table, "--reserved-write", strconv.Itoa(left.Was)}
	switch {
	case t.embedded:
		args = append(args, "--store", t.dir)
	default:
		args = append(args, "--endpoint", t.Endpoint, "--instance", t.Instance)
	}
	// The error is one line of bounded length, and a command that is cut is of no use.
	fmt.Fprintf(c.App.ErrWriter, "tsimport: to restore the throughput of table %s: %s\n", left.Table, commandLine(args))
	fmt.Fprintf(c.App.ErrWriter, "tsimport: or: %s resume %s\n", commandName(), suggest.Arg(folder))
	return err
}

// toRestore says what a run has raised and not restored; "" is nothing.
func (r *runInfo) toRestore() string {
	if r.Raised == nil {
		return ""
	}
	return fmt.Sprintf("write throughput of table %s to be restored to %d units", printable(r.Raised.Table), r.Raised.Was)
}
