package baseline

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/aliyun/aliyun-tablestore-go-sdk/timeline/promise"
	"github.com/aliyun/aliyun-tablestore-go-sdk/timeline/writer"
	"golang.org/x/sync/errgroup"
)

const defaultWorkers = 32

// WithWorkers is one goroutine that reads and several that take rows off a channel and write them 200 at a time.
func (l Load) WithWorkers(ctx context.Context) (int64, error) {
	var written atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	workers := cmp.Or(l.Workers, defaultWorkers)
	rows := make(chan *tablestore.PutRowChange, 2*BatchRows)
	group.Go(func() error {
		err := l.each(ctx, func(change *tablestore.PutRowChange) error {
			select {
			case rows <- change:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		if err == nil {
			close(rows) // complete; a load that was stopped leaves it open
		}
		return err
	})
	for range workers {
		group.Go(func() error {
			for {
				batch, n := new(tablestore.BatchWriteRowRequest), 0
				for n < BatchRows {
					change, ok := take(ctx, rows)
					if !ok {
						break
					}
					batch.AddRowChange(change)
					n++
				}
				if n == 0 || ctx.Err() != nil {
					return context.Cause(ctx)
				}
				done, err := l.write(batch)
				written.Add(done)
				if err != nil {
					return err
				}
			}
		})
	}
	err := group.Wait()
	return written.Load(), err
}

func take(ctx context.Context, rows <-chan *tablestore.PutRowChange) (change *tablestore.PutRowChange, ok bool) {
	select {
	case change, ok = <-rows:
		return change, ok
	case <-ctx.Done():
		return nil, false
	}
}

// promisedAtOnce is how many rows are in flight before the oldest answers are waited for.
const promisedAtOnce = 20 * BatchRows

// Timeline hands every row to the batch writer that the SDK's timeline library writes messages with, and waits for the
// rows' promises.
func (l Load) Timeline(ctx context.Context) (written int64, err error) {
	w := writer.NewBatchWriter(l.Client, nil)
	defer w.Close()
	var promised []*promise.Future
	settle := func(n int) error {
		for _, f := range promised[:n] {
			if _, err := f.Get(); err != nil {
				return fmt.Errorf("write to table %s: %w", l.Table, err)
			}
			written++
		}
		promised = append(promised[:0], promised[n:]...)
		return nil
	}
	err = l.each(ctx, func(change *tablestore.PutRowChange) error {
		f := promise.NewFuture()
		if err := w.BatchAdd(writer.NewBatchAdd("", change, f)); err != nil {
			return err
		}
		promised = append(promised, f)
		if len(promised) == promisedAtOnce {
			return settle(promisedAtOnce / 2)
		}
		return nil
	})
	if err == nil {
		err = settle(len(promised))
	}
	return written, err
}
