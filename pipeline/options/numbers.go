package options

import (
	"fmt"
	"tsimport/pipeline"
)

// parseNumbers reads what is said of key columns that the service numbers.
func parseNumbers(g Given, cfg *pipeline.Config) error {
	w := &cfg.Write
	w.Marks.ReturnedKeys, w.Marks.Column = g.String("returned-keys"), g.String("mark-column")
	w.Marks.LookFirst, w.Marks.AtLeastOnce = g.Bool("look-first"), g.Bool("at-least-once")
	for _, name := range []string{"returned-keys", "mark-column"} {
		if g.IsSet(name) && g.String(name) == "" {
			return fmt.Errorf("--%s is empty; leave it out or give a name", name)
		}
	}
	return nil
}
