package commands

import (
	"example.com/tsimport/engine/server"
	"example.com/tsimport/pipeline/options"
)

// notData says which folders and files no glob and no folder makes inputs of: what loads have written, and stores.
func notData(r *options.Request, store string) func(name string, folder bool) string {
	written := options.NotData(r, store)
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
