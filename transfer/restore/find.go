package restore

import (
	"context"
	"errors"
	"path"
	"strings"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/fromdatabase"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/archivefile"
	"example.com/tsimport/reader/input"
)

// Find returns the manifest of the archive that the arguments are, nil if they are files.
func Find(ctx context.Context, args []string, find input.Options) (*archive.Manifest, error) {
	for _, arg := range args {
		m, err := At(ctx, arg, find)
		if err == nil && m == nil {
			continue
		}
		if len(args) > 1 {
			return nil, plan.Usagef("%s is an archive of a table; load or compare it alone", suggest.Arg(arg))
		}
		return m, err
	}
	return nil, nil
}

// At returns the manifest of the archive at a path or an address, nil if there is none.
func At(ctx context.Context, arg string, find input.Options) (m *archive.Manifest, err error) {
	switch arg = input.Path(arg); {
	case archive.Is(arg):
		m, err = archive.Read(arg)
	case mayBeArchive(arg):
		var files archive.Files
		if files, err = archive.Find(ctx, arg, find); err != nil && ctx.Err() == nil {
			return nil, &plan.UsageError{Message: err.Error(), Input: true} // as of any input
		}
		if files != nil && err == nil {
			m, err = archive.ReadFrom(ctx, files)
		}
	}
	return m, InputError(err)
}

// mayBeArchive reports whether an address may be that of an archive in a store of objects. It is not asked of files, which would cost requests.
func mayBeArchive(arg string) bool {
	base := path.Base(arg)
	return jobdir.IsAddress(arg) && !strings.ContainsAny(arg, "*?[{") && (!strings.Contains(base, ".") || base == archive.ManifestName || strings.HasSuffix(arg, "/"))
}

// InputError makes bad usage of an archive that is not whole.
func InputError(err error) error {
	if damaged := new(archive.DamagedError); errors.As(err, &damaged) {
		return &plan.UsageError{Message: err.Error(), Input: true}
	}
	return err
}

// Source is what a load knows of where its rows come from.
type Source interface {
	// Config makes the load one of the source, by its parts for tasks of a load for many machines.
	Config(cfg *pipeline.Config, byParts bool)
	// Begin completes the load, once its target is open. Missing says that the store of the table is not there yet.
	Begin(ctx context.Context, cfg *pipeline.Config, at *client.Target, missing bool) error
	// Compared makes the load what its table is compared with.
	Compared(cfg *pipeline.Config)
	// Ended says what a user should know when the load has ended.
	Ended(report *pipeline.Report)
}

// Open returns the source that a request names: a table of a database, an archive, or else files. What a user should know is said.
func Open(ctx context.Context, of *options.Command, find input.Options, say words.Say) (Source, error) {
	if l, err := fromdatabase.Of(of, say); l != nil || err != nil {
		return l, err
	}
	if l, err := Of(ctx, &of.Request, find, say); l != nil || err != nil {
		return l, err
	}
	return files{say}, nil
}

// files need nothing beside what every load has.
type files struct{ say words.Say }

func (files) Config(*pipeline.Config, bool) {}

func (files) Begin(context.Context, *pipeline.Config, *client.Target, bool) error { return nil }

func (files) Compared(*pipeline.Config) {}

func (f files) Ended(r *pipeline.Report) {
	if text := r.Follow(); text != "" { // they are an export
		f.say.Line("%s", text)
	}
}
