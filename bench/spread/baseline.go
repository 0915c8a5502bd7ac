package spread

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// What people do: requests as large as the service takes them, and enough workers for a fast load.
const (
	batchRows       = 200
	parallelWorkers = 32
)

// baseline loads rows with the official SDK as it comes: in their order, with its own retries, and a row on which
// it gives up is lost.
type baseline struct {
	engine  *engine
	each    func(ctx context.Context, f func(row []byte) error) error // calls f with the PlainBuffer bytes of each row
	workers int

	lost atomic.Int64 // rows
}

// run loads all rows, or until ctx ends. A request in flight is finished or dies with the engine.
func (b *baseline) run(ctx context.Context) error {
	sdk := tablestore.NewClientWithCredentialsProvider(b.engine.Endpoint, b.engine.Instance, b.engine.Credentials, tablestore.NewDefaultTableStoreConfig())
	g, ctx := errgroup.WithContext(ctx)
	batches := make(chan *tablestore.BatchWriteRowRequest)
	g.Go(func() error {
		if err := b.read(ctx, batches); err != nil {
			return err
		}
		close(batches) // all rows were read; a load that was stopped leaves the channel open
		return nil
	})
	for range b.workers {
		g.Go(func() error {
			for {
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case batch, ok := <-batches:
					if !ok {
						return nil
					}
					b.write(ctx, sdk, batch)
				}
			}
		})
	}
	return g.Wait()
}

// read packs the rows into requests in order.
func (b *baseline) read(ctx context.Context, batches chan<- *tablestore.BatchWriteRowRequest) error {
	batch := new(tablestore.BatchWriteRowRequest)
	send := func() error {
		select {
		case batches <- batch:
			batch = new(tablestore.BatchWriteRowRequest)
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	err := b.each(ctx, func(row []byte) error {
		change, err := changeOf(row)
		if err != nil {
			return err
		}
		batch.AddRowChange(change)
		if len(batch.RowChangesGroupByTable[tableName]) == batchRows {
			return send()
		}
		return nil
	})
	if err == nil && len(batch.RowChangesGroupByTable[tableName]) > 0 {
		err = send()
	}
	return err
}

// changeOf is a row as the SDK takes it.
func changeOf(row []byte) (*tablestore.PutRowChange, error) {
	r, err := plainbuffer.Decode(row)
	if err != nil {
		return nil, err
	}
	change := &tablestore.PutRowChange{TableName: tableName, PrimaryKey: new(tablestore.PrimaryKey)}
	change.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	for _, k := range r.Key {
		change.PrimaryKey.AddPrimaryKeyColumn(k.Name, client.SDKValue(k.Value))
	}
	for _, c := range r.Cells {
		change.AddColumn(c.Name, client.SDKValue(c.Value))
	}
	return change, nil
}

func (b *baseline) write(ctx context.Context, sdk *tablestore.TableStoreClient, batch *tablestore.BatchWriteRowRequest) {
	response, err := sdk.BatchWriteRow(batch)
	switch {
	case ctx.Err() != nil: // stopped: its rows are neither written nor lost
	case err != nil:
		b.lost.Add(int64(len(batch.RowChangesGroupByTable[tableName])))
	default:
		for _, r := range response.TableToRowsResult[tableName] {
			if !r.IsSucceed {
				b.lost.Add(1)
			}
		}
	}
}

// measured is the end of a load with the SDK.
type measured struct {
	stats   *tableStats
	ended   time.Time
	lost    int64
	stopped bool // before it was complete
}

// runFor loads until all rows are written or the deadline is there; then it ends the engine, which is not needed again.
// The counts are those of that moment.
func (b *baseline) runFor(ctx context.Context, deadline time.Time) (m measured, err error) {
	loading, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- b.run(loading) }()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	finished := false
	select {
	case err = <-done:
		finished = true
	case <-timer.C:
	case <-ctx.Done():
	}
	m = measured{ended: time.Now(), lost: b.lost.Load(), stopped: !finished}
	if err == nil {
		m.stats, _, err = b.engine.stats(ctx)
	}
	b.engine.close()
	stop()
	if !finished {
		<-done
	}
	if ctx.Err() != nil {
		return m, context.Cause(ctx)
	}
	return m, err
}

// shuffled reads all rows and returns them in random order. It holds them in memory, as the tools that people use for that do.
func (d *dataset) shuffled(ctx context.Context, seed uint64) (rows [][]byte, err error) {
	err = d.each(ctx, func(row []byte) error {
		rows = append(rows, row)
		return nil
	})
	random := rand.New(rand.NewPCG(seed, 2))
	random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows, err
}
