package commands

import (
	"github.com/urfave/cli/v2"

	"tsimport/engine/server"
	"tsimport/pipeline/options"
)

// notData says which folders and files no glob and no folder makes inputs of: what loads have written, and stores.
func notData(c *cli.Context) func(name string, folder bool) string {
	written := options.NotData(givenFlags{c})
	return func(name string, folder bool) string {
		if why := written(name, folder); why != "" {
			return why
		}
		if folder && (options.Same(name, defaultStore) || server.IsStore(name)) {
			return "embedded store"
		}
		return ""
	}
}
