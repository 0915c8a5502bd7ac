package commands

import (
	"context"
	_ "time/tzdata" // time zones of --type timestamp(…) on machines that have none

	"example.com/tsimport/engine/server"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/open"
)

const inputsHelp = "A FILE is a file, a folder, a glob with **, - for standard input, @list.txt with a name on each line,\n" +
	"http(s)://…, oss://bucket/prefix or s3://bucket/prefix. Format and compression (gzip, zstd, bzip2, xz, lz4, snappy) are detected from the content."

// storesOf is how objects are reached: where the environment says, with the command's keys.
func storesOf(c *call) (o input.Options) {
	o.OSS.Credentials = ossCredentials(c)
	return o
}

// ossCredentials are the keys of Tablestore.
func ossCredentials(c *call) func(context.Context) (id, secret, token string, err error) {
	return func(context.Context) (id, secret, token string, err error) {
		provider, err := findCredentials(c)
		if err != nil {
			return "", "", "", err
		}
		keys := provider.GetCredentials()
		return keys.GetAccessKeyID(), keys.GetAccessKeySecret(), keys.GetSecurityToken(), nil
	}
}

// parseRead reads how a command reads inputs.
func parseRead(c *call) (read plan.Read, err error) {
	if read, err = options.Read(&c.given.Request); err == nil {
		completeRead(c, &c.given.Request, &read)
	}
	return read, err
}

// completeRead adds what only the command knows of reading inputs.
func completeRead(c *call, r *options.Request, read *plan.Read) {
	read.Find.NotData = notData(r, c.of.Store)
	read.Find.OSS.Credentials = ossCredentials(c)
	read.Find.Unread = func(address string) error { return open.Check(address, r.Table) }
}

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
