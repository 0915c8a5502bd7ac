package spread

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
)

// What people do: requests as large as the service takes them, and enough workers for a fast load.
const (
	batchRows       = 200
	parallelWorkers = 32
)

// baseline loads a CSV file with the official SDK as it comes: rows in file order, its own retries, and a row on which
// it gives up is lost.
type baseline struct {
	engine  *engine
	data    *dataset
	path    string
	workers int

	lost atomic.Int64 // rows
}

// run loads the whole file, or until ctx ends. A request in flight is finished or dies with the engine.
func (b *baseline) run(ctx context.Context) error {
	sdk := tablestore.NewClientWithCredentialsProvider(b.engine.Endpoint, b.engine.Instance, b.engine.Credentials, tablestore.NewDefaultTableStoreConfig())
	g, ctx := errgroup.WithContext(ctx)
	batches := make(chan *tablestore.BatchWriteRowRequest)
	g.Go(func() error {
		if err := b.read(ctx, batches); err != nil {
			return err
		}
		close(batches) // the file is complete; a load that was stopped leaves the channel open
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

// read packs the file's rows into requests in order.
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
	err := b.data.each(ctx, b.path, func(values []table.Value) error {
		batch.AddRowChange(b.change(values))
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

func (b *baseline) change(values []table.Value) *tablestore.PutRowChange {
	change := &tablestore.PutRowChange{TableName: tableName, PrimaryKey: new(tablestore.PrimaryKey)}
	change.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	for _, k := range b.data.key { // in the table's order, not the file's
		for i, c := range b.data.columns {
			if c.name == k.Name {
				change.PrimaryKey.AddPrimaryKeyColumn(c.name, client.SDKValue(values[i]))
			}
		}
	}
	for i, c := range b.data.columns {
		if !c.isKey && values[i].Type != table.Null {
			change.AddColumn(c.name, client.SDKValue(values[i]))
		}
	}
	return change
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

// runFor loads until the file is complete or the deadline is there; then it ends the engine, which is not needed again.
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

// shuffleCSV writes the records of a CSV file in random order, the header first. It holds the file in memory, as the
// tools that people use for that do.
func shuffleCSV(ctx context.Context, from, to string, seed uint64) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("shuffle dataset: %w", err)
	}
	header, records, err := cutRecords(ctx, from)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(seed, 2))
	random.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	out := make([]byte, 0, len(text)+1)
	out = append(out, text[:header]...)
	for _, r := range records {
		out = append(out, text[r[0]:r[1]]...)
		if out[len(out)-1] != '\n' {
			out = append(out, '\n') // the last record of the file may lack it
		}
	}
	if err := os.WriteFile(to, out, 0o600); err != nil {
		return fmt.Errorf("shuffle dataset: %w", err)
	}
	return nil
}

// cutRecords finds where the header ends and where each record begins and ends.
func cutRecords(ctx context.Context, path string) (header int64, records [][2]int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, nil, fmt.Errorf("shuffle dataset: %w", err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.ReuseRecord = true
	var at int64
	for n := 0; ; n++ {
		if n&0xfff == 0 && ctx.Err() != nil {
			return 0, nil, context.Cause(ctx)
		}
		_, err := r.Read()
		if errors.Is(err, io.EOF) {
			return header, records, nil
		}
		if err != nil {
			return 0, nil, fmt.Errorf("shuffle dataset %s: %w", path, err)
		}
		if n == 0 {
			header = r.InputOffset()
		} else {
			records = append(records, [2]int64{at, r.InputOffset()})
		}
		at = r.InputOffset()
	}
}
