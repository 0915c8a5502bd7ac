package spread

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"example.com/tsimport/bench"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/transfer/verify"
)

// dataset is a file and what is known of it before anything is measured.
type dataset struct {
	path  string
	pk    []string // --pk for tsimport load
	rows  int64    // records
	key   []table.KeyColumn
	keys  *sample // of the partition key
	notes []string
}

// cardKey is the key of the student cards.
var cardKey = []string{"CardID:integer", "SellerID:string", "DeviceID:integer", "OrderNumber:integer"}

// makeCards writes the student-card dataset.
func makeCards(ctx context.Context, cards bench.StudentCards, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("create dataset: %w", err)
	}
	err = cards.WriteCSV(ctx, f)
	if closeErr := f.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("write dataset: %w", closeErr)
	}
	return err
}

// find makes the student cards, or takes the user's file, and looks at its rows.
func find(ctx context.Context, c *Config, dir string) (*dataset, error) {
	d := &dataset{path: c.Input.File, pk: c.Input.Keys, keys: newSample(c.Seed, maxSample)}
	if d.path == "" {
		d.path, d.pk = filepath.Join(dir, "student-cards.csv"), cardKey
		if err := makeCards(ctx, c.Input.StudentCards, d.path); err != nil {
			return nil, err
		}
	}
	seen, again := map[uint64]bool{}, 0
	err := d.read(ctx, func(p *plan.Plan, split *intake.Parsed) error {
		d.key = p.Schema.Key
		d.rows += int64(split.Records)
		return each(split, func(row table.Ref) error {
			v, _, err := table.DecodeKey(d.key[0].Type, row.Key())
			d.keys.add(v)
			if hash := row.Row().Hash; seen[hash] {
				again++
			} else {
				seen[hash] = true
			}
			return err
		})
	})
	if again > 0 {
		d.notes = append(d.notes, fmt.Sprintf("%d rows have the key of another row: which of them stays is only certain with last-wins, and the SDK refuses requests that hold both", again))
	}
	return d, err
}

// request is a load of the file.
func (d *dataset) request() (*plan.Request, error) {
	asked := options.Request{From: []string{d.path}, Table: tableName}
	asked.PK = d.pk
	cfg, err := options.Config(&asked)
	return cfg.Request(), err
}

// read reads the file as tsimport load does, from front to back. What take gets is valid during the call.
func (d *dataset) read(ctx context.Context, take func(*plan.Plan, *intake.Parsed) error) error {
	request, err := d.request()
	if err != nil {
		return err
	}
	request.Target.Create, request.Target.Absent = true, true
	request.Order, request.Keep = plan.LastWins, plan.KeepNothing
	p, err := plan.Make(ctx, request, nil)
	if err != nil {
		return err
	}
	defer p.Close()
	flow := intake.New(p, partitioner.NewMap(nil))
	flow.Lends = true
	_, err = flow.Each(ctx, -1, func(split *intake.Parsed) error { return take(p, split) })
	return err
}

// each calls f with the rows of a split.
func each(split *intake.Parsed, f func(table.Ref) error) error {
	for _, b := range split.Blocks {
		for i := range b.Block.Rows {
			if err := f(table.Ref{Block: b.Block, Index: int32(i)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// each calls f with the PlainBuffer bytes of every row of the file.
func (d *dataset) each(ctx context.Context, f func(row []byte) error) error {
	return d.read(ctx, func(_ *plan.Plan, split *intake.Parsed) error {
		return each(split, func(row table.Ref) error { return f(bytes.Clone(row.Body())) })
	})
}

// Comparison is a table against what it must hold.
type Comparison struct {
	Rows    int64 `json:"rows"`    // of the table
	Missing int64 `json:"missing"` // not in the table
	Extra   int64 `json:"extra"`   // keys that the file does not have
	Changed int64 `json:"changed"` // other attributes than in the file
}

// Exact says that the table holds what it must.
func (c *Comparison) Exact() bool { return c.Missing == 0 && c.Extra == 0 && c.Changed == 0 }

func (c *Comparison) String() string {
	if c.Exact() {
		return fmt.Sprintf("exact: %d rows, each as in the file", c.Rows)
	}
	return fmt.Sprintf("not exact: %d rows missing, %d with other attributes, %d too many", c.Missing, c.Changed, c.Extra)
}

// compare compares every row of a table with the file, from which it was loaded in an order.
func (d *dataset) compare(ctx context.Context, e *engine, order plan.Order) (*Comparison, error) {
	request, err := d.request()
	if err != nil {
		return nil, err
	}
	sdk, err := client.New(ctx, e.Target, nil)
	if err != nil {
		return nil, err
	}
	request.Order = order
	found, err := verify.Run(ctx, verify.Config{Request: request, Client: sdk, Memory: request.Memory})
	if err != nil {
		return nil, err
	}
	return &Comparison{Rows: found.RowsInTable, Missing: found.Missing, Extra: found.Extra, Changed: found.Different}, nil
}
