package commands

import (
	"context"
	_ "time/tzdata" // time zones for --type timestamp(…) on machines without a database of them

	"example.com/tsimport/engine/server"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/open"
)

const inputsHelp = "A FILE is a file, a folder, a glob with **, - for standard input, @list.txt with a name a line,\n" +
	"http(s)://…, oss://bucket/prefix or s3://bucket/prefix. Format and compression (gzip, zstd, bzip2, xz, lz4, " +
	"snappy) are detected from the content."

// storesOf returns the options of object stores. OSS gets the keys of the Tablestore.
func storesOf(c *call) (o input.Options) {
	o.OSS.Credentials = func(context.Context) (id, secret, token string, err error) {
		provider, err := findCredentials(c)
		if err != nil {
			return "", "", "", err
		}
		keys := provider.GetCredentials()
		return keys.GetAccessKeyID(), keys.GetAccessKeySecret(), keys.GetSecurityToken(), nil
	}
	return o
}

func parseRead(c *call) (read plan.Read, err error) {
	if read, err = options.Read(&c.given.Request); err == nil {
		completeRead(c, &c.given.Request, &read)
	}
	return read, err
}

// completeRead adds reading options that only the command knows.
func completeRead(c *call, r *options.Request, read *plan.Read) {
	read.Find.NotData = notData(r, c.of.Store)
	read.Find.OSS = storesOf(c).OSS
	read.Find.Unread = func(address string) error { return open.Check(address, r.Table) }
}

// notData returns a function that excludes run folders and stores from globs and folders.
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
