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

// Find returns the manifest of the archive that the arguments name, or nil if they are files.
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

// At returns the manifest of the archive at a path or an address, or nil if there is none.
func At(ctx context.Context, arg string, find input.Options) (m *archive.Manifest, err error) {
	switch arg = input.Path(arg); {
	case archive.Is(arg):
		m, err = archive.Read(arg)
	case mayBeArchive(arg):
		var files archive.Files
		if files, err = archive.Find(ctx, arg, find); err != nil && ctx.Err() == nil {
			return nil, &plan.UsageError{Message: err.Error(), Input: true} // the same error as for other inputs
		}
		if files != nil && err == nil {
			m, err = archive.ReadFrom(ctx, files)
		}
	}
	return m, InputError(err)
}

// mayBeArchive reports whether an address may be an archive in an object store. Other addresses need no request.
func mayBeArchive(arg string) bool {
	base := path.Base(arg)
	return jobdir.IsAddress(arg) && !strings.ContainsAny(arg, "*?[{") &&
		(!strings.Contains(base, ".") || base == archive.ManifestName || strings.HasSuffix(arg, "/"))
}

// InputError turns the error of a damaged or incomplete archive into a usage error.
func InputError(err error) error {
	if damaged := new(archive.DamagedError); errors.As(err, &damaged) {
		return &plan.UsageError{Message: err.Error(), Input: true}
	}
	return err
}

// Source is the origin of a load's rows.
type Source interface {
	// Config sets the source of the load. byParts divides it into parts, one per task of a load by many machines.
	Config(cfg *pipeline.Config, byParts bool)
	// Begin completes the configuration once the target is open. missing means that the table's store does not exist yet.
	Begin(ctx context.Context, cfg *pipeline.Config, at *client.Target, missing bool) error
	// Compared makes cfg a configuration for comparing the source with the table.
	Compared(cfg *pipeline.Config)
	// Ended gives the user the final notes of the load.
	Ended(report *pipeline.Report)
}

// Open returns the source that a request names: a database table, an archive, or files. Notes are passed to say.
func Open(ctx context.Context, of *options.Command, find input.Options, say words.Say) (Source, error) {
	if l, err := fromdatabase.Of(of, say); l != nil || err != nil {
		return l, err
	}
	if l, err := Of(ctx, &of.Request, find, say); l != nil || err != nil {
		return l, err
	}
	return files{say}, nil
}

// files is the Source for plain files, for which a load needs no preparation.
type files struct{ say words.Say }

func (files) Config(*pipeline.Config, bool) {}

func (files) Begin(context.Context, *pipeline.Config, *client.Target, bool) error { return nil }

func (files) Compared(*pipeline.Config) {}

func (f files) Ended(r *pipeline.Report) {
	if text := r.Follow(); text != "" {
		f.say.Line("%s", text)
	}
}
