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

// Looked is an Origin for commands that examine a table. Sampled attributes are columns with their newest values.
type Looked struct {
	*Origin
	Keyed bool // sources declare the key of the table as unique and have the column Written
}

// Written is an artificial column: the time at which the newest cell of a row was written, in milliseconds since 1970.
const Written = "(written)"

// Name returns the table's name for messages.
func (l Looked) Name() string { return l.cfg.Name }

// Bounds returns the starts of the table's partitions, as scan.Partitions does.
func (l Looked) Bounds(ctx context.Context) ([]table.Value, error) {
	admin := &client.Admin{Client: l.cfg.Client, Context: ctx}
	bounds, _, err := scan.NewPartitions(admin, l.cfg.Client, l.cfg.Table.Name).Read(time.Now())
	return bounds, err
}

// Limits of the sample in which columns are found.
const (
	lookedParts = 16
	lookedBytes = 256 << 10 // number of bytes to sample in a part
)

// Open opens the parts. Their columns are the key and the attributes found in samples of some parts.
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
