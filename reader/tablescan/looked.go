package tablescan

import (
	"context"
	"maps"
	"slices"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Looked is an Origin for commands that examine a table: the attributes of sampled rows are columns of newest values.
type Looked struct {
	*Origin
	Keyed bool // sources say that the table's key is unique, and have the column Written
}

// Written is an artificial column: when a row's newest cell was written, in milliseconds.
const Written = "(written)"

// Name is the table's name in messages.
func (l Looked) Name() string { return l.cfg.Name }

// Bounds returns the starts of the table's partitions, as scan.Partitions does.
func (l Looked) Bounds(ctx context.Context) ([]table.Value, error) {
	admin := &client.Admin{Client: l.cfg.Client, Context: ctx}
	bounds, _, err := scan.NewPartitions(admin, l.cfg.Client, l.cfg.Table.Name).Read(time.Now())
	return bounds, err
}

// Limits of the sample that finds the columns.
const (
	lookedParts = 16
	lookedBytes = 256 << 10 // of a part
)

// Open implements source.Origin.
func (l Looked) Open(ctx context.Context, division []byte) ([]source.Source, error) {
	parts, err := l.Origin.Open(ctx, division)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	n := min(len(parts), lookedParts)
	for i := range n {
		if _, err := parts[i*len(parts)/n].Sample(lookedBytes, nil, func(rec *record.Record) {
			for _, c := range rec.Cells {
				seen[string(c.Name)] = true
			}
		}); err != nil {
			return nil, err
		}
	}
	names := slices.Sorted(maps.Keys(seen))
	if l.Keyed {
		names = append(names, Written)
	}
	for i, p := range parts {
		p.About().AddColumns(names)
		parts[i] = looked{p, l.Keyed}
	}
	return parts, nil
}

// looked is a part whose records have columns.
type looked struct {
	source.Source
	keyed bool
}

func (l looked) About() source.About {
	a := l.Source.About()
	a.Wide, a.Live, a.AddColumns = false, false, nil
	if !l.keyed {
		a.Unique = nil
	}
	return a
}
