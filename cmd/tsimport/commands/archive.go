package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/tablestore/address"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	archiveReader "example.com/tsimport/reader/archive"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/open"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/transfer/restore"
)

// checkSources refuses sources that are not read, with the way to their rows. Tables says that the command reads those of Tablestore.
func checkSources(c *call, tables bool) error {
	of, err := c.command()
	if err != nil {
		return err
	}
	target := suggest.Arg(cmp.Or(of.Table, "TARGET"))
	for _, o := range options.OfCommand(job.Copy) { // what the same command would be as a copy
		if of.IsSet(o.Name) && o.Name != "table" && o.Name != "create" && !o.Kind.Repeated() && o.Kind != options.List {
			target += fmt.Sprintf(" --%s=%s", o.Name, suggest.Arg(fmt.Sprint(o.Value(of))))
		}
	}
	for _, from := range of.From {
		if err := open.Check(from, target); err != nil && !(tables && address.Is(from)) {
			return usagef("%v", err)
		}
	}
	return nil
}

// refuseArchives is for commands that read files of rows, and databases. They would take an archive's manifest and parts for such files.
func refuseArchives(c *call) error {
	if err := checkSources(c, false); err != nil {
		return err
	}
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
	r, err := requestOf(c)
	if err == nil {
		_, err = restore.New(m, r, nil)
	}
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
