package spread

import (
	"context"
	"fmt"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/transfer/verify"
)

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
