package commands

import (
	"encoding/json"
	"fmt"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/errorcodes"
	"example.com/tsimport/internal/suggest"
)

func errorsCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:        "errors",
		Usage:       "explain exit codes, reasons of rejects and the service's error codes",
		ArgsUsage:   "[CODE...]",
		Description: "Without CODE, all are listed; docs/errors.md has the same.",
		Flags:       []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print entries as JSON, one a line"}},
		Action:      in.act(explainErrors),
	}
}

func explainErrors(c *call) error {
	all := errorcodes.All()
	entries := all
	if c.Args().Present() {
		entries = nil
		for _, code := range c.Args().Slice() {
			e, found := errorcodes.Find(code)
			if !found {
				var known []string
				for _, k := range all {
					known = append(known, k.Code)
				}
				return usagef("errors: unknown code %q; tsimport errors lists all%s", code, suggest.Hint(code, known))
			}
			entries = append(entries, e)
		}
	}
	out := results(c)
	for _, e := range entries {
		var err error
		switch {
		case c.of.JSON:
			var text []byte
			if text, err = json.Marshal(e); err == nil {
				_, err = fmt.Fprintf(c.App.Writer, "%s\n", text)
			}
		case !c.Args().Present():
			_, err = fmt.Fprintf(out, "%-44s %s\n", e.Code, e.Cause)
		default:
			_, err = fmt.Fprintf(out, "%s (%s)\n  cause:  %s\n", e.Code, e.Kind, e.Cause)
			if err == nil && e.Does != "" {
				_, err = fmt.Fprintf(out, "  a load: %s\n", e.Does)
			}
			if err == nil {
				_, err = fmt.Fprintf(out, "  to do:  %s\n", e.Remedy)
			}
		}
		if err != nil {
			return fmt.Errorf("print errors: %w", err)
		}
	}
	return nil
}
