package restore

import (
	"context"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/fromdatabase"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/reader/input"
)

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
