package commands

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/pipeline/plan"
	archiveReader "example.com/tsimport/reader/archive"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/transfer/restore"
)

// refuseArchives is for commands that read files of rows, and databases. They would take an archive's manifest and parts for such files.
func refuseArchives(c *call) error {
	for _, arg := range c.Args().Slice() {
		if m, err := restore.At(c.Context, arg, storesOf(c)); m != nil || errors.As(err, new(*plan.UsageError)) {
			return usagef("%s is an archive of a table, which %s does not read; tsimport verify compares it with a table, and tsimport load restores it", suggest.Arg(arg), c.Command.Name)
		}
	}
	return nil
}

// originOf returns the sources that the arguments of a command are, nil if they are files.
func originOf(ctx context.Context, c *call, args []string, find input.Options) (source.Origin, error) {
	if origin, err := sqlOrigin(c, args); origin != nil || err != nil {
		return origin, err
	}
	m, err := restore.Find(ctx, args, find)
	if m == nil || err != nil {
		return nil, err
	}
	_, err = restore.New(m, &c.given.Request, nil)
	return archiveReader.New(m), err
}

// isFolder reports whether the output of an export is to be a folder, or what is one in a store of objects: there is one, or the name ends as that
// of one.
func isFolder(name string) bool {
	if jobdir.IsAddress(name) {
		return name[len(name)-1] == '/' || path.Ext(name) == ""
	}
	info, err := os.Stat(name)
	return name != "" && (name[len(name)-1] == '/' || name[len(name)-1] == filepath.Separator || err == nil && info.IsDir())
}
