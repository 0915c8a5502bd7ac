package tsimport

import (
	"context"
	"fmt"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/address"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/transfer/fromtable"
)

// CopyRequest describes a copy of a table into another one. Each field means the same as the tsimport copy flag of the
// same name. Fields that do not apply to copies, such as Mode, are refused. See docs/copy.md.
type CopyRequest struct {
	Source Target `json:"source,omitzero"` // instance of the source table
	From   string `json:"from"`            // name of the source table
	Table  string `json:"table"`           // name of the target table
	Target        // instance of the target table
	Scan
	Mapping
	NewTable
	Writing
	Rates
	Running
}

// Copy copies the rows of a table into another, with their cells' timestamps and, unless Versions is set, all versions,
// like the command tsimport copy. Calling Copy again with the same request resumes an unfinished copy.
//
// Copy returns ErrTableMissing if the source, or the target without Create, is missing. Other errors are as for Load.
func Copy(ctx context.Context, r CopyRequest) (*Summary, error) {
	asked := &options.Command{Name: "copy", Scan: r.Scan, Request: Request{
		Table: r.Table, Target: r.Target, Mapping: r.Mapping, NewTable: r.NewTable,
		Writing: r.Writing, Rates: r.Rates, Running: r.Running,
	}}
	for field, name := range map[string]string{"From": r.From, "Table": r.Table} {
		if err := table.CheckTableName(name); err != nil {
			return nil, usagef("%s: %v", field, err)
		}
	}
	for _, name := range options.Names(func(o *options.Option) bool { return asked.IsSet(o.Name) }) {
		if name != "table" && (name == "verify" || options.For(asked.Name, name) == nil) {
			return nil, usagef("--%s: Copy has no such option; leave it out", name)
		}
	}
	source, of, err := r.Source.Open(ctx)
	if err != nil {
		return nil, public(fmt.Errorf("source of the copy: %w", err))
	}
	shown := address.Address{Instance: source.Instance, Table: r.From}.String()
	asked.From = []string{shown}
	l, err := fromtable.New(asked, r.From, shown, nil)
	if err != nil {
		return nil, public(err)
	}
	cfg, err := options.Config(&asked.Request)
	if err != nil {
		return nil, public(err)
	}
	l.Config(&cfg)
	if cfg.Target.Client, cfg.Target.Name, err = r.Target.Open(ctx); err != nil {
		return nil, public(err)
	}
	if err := l.Begin(ctx, &cfg, source, of, false); err != nil {
		return nil, public(err)
	}
	return run(ctx, &asked.Request, cfg, fromtable.Next)
}
