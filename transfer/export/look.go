package export

import (
	"context"
	"maps"
	"slices"
	"time"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/tablescan"
)

// Looked is the expected result of an export, estimated from a sample of the table.
type Looked struct {
	Rows       int64 // -1 if unknown
	AtMost     bool  // Rows is an upper limit, from the table's size
	Sampled    int64
	Bytes      int64 // size of the sampled rows
	Columns    []LookedColumn
	Partitions int  // 0 if unknown
	Guessed    bool // Partitions is a guess from sizes
}

// LookedColumn is an attribute column of the rows at the two ends of the table.
type LookedColumn struct {
	Name  string
	Types []string
}

// Limits of Look: the bytes of rows that it reads, and the rows at each end whose types it reads.
const (
	lookBytes = 1 << 20
	lookRows  = 200
)

// RowsOf estimates the number of rows in bytes, given the average number of bytes per row.
func RowsOf(bytes int64, each float64) int64 { return int64(float64(bytes) / max(1, each)) }

// Look samples the rows that an export would write. It costs the read capacity units of about two megabytes.
func Look(ctx context.Context, cfg tablescan.Config) (*Looked, error) {
	admin := &client.Admin{Client: cfg.Client, Context: ctx, RetryFor: cfg.RetryFor}
	l := &Looked{Rows: -1}
	partitions := scan.NewPartitions(admin, cfg.Client, cfg.Table.Name)
	if bounds, exact, err := partitions.Read(time.Now()); err == nil {
		l.Partitions, l.Guessed = len(bounds)+1, !exact && len(bounds) > 0
	}
	types, _, err := admin.CellTypes(cfg.Table.Name, cfg.Table.Key, lookRows)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		if cfg.Columns != nil && !slices.Contains(cfg.Columns, name) {
			continue
		}
		var texts []string
		for t := range types[name] {
			texts = append(texts, t.String())
		}
		slices.Sort(texts)
		l.Columns = append(l.Columns, LookedColumn{name, texts})
	}
	cfg.Ranges = 1
	origin := tablescan.New(cfg)
	division, err := origin.Divide(ctx)
	if err != nil {
		return nil, err
	}
	parts, err := origin.Open(ctx, division)
	if err != nil {
		return nil, err
	}
	whole := true
	for i, s := range parts {
		if l.Bytes >= lookBytes {
			whole = false
			break
		}
		budget := lookBytes / max(1, len(parts)-i)
		read, err := s.Sample(budget, nil, func(*record.Record) { l.Sampled++ })
		if err != nil {
			return nil, err
		}
		l.Bytes += int64(read)
		whole = whole && read < budget
	}
	if whole {
		l.Rows = l.Sampled
	} else if size, err := partitions.Size(); err == nil && l.Sampled > 0 {
		l.Rows, l.AtMost = RowsOf(size, float64(l.Bytes)/float64(l.Sampled)), true
	}
	return l, nil
}
