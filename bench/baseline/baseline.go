package baseline

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/aliyun/aliyun-tablestore-go-sdk/timeline/promise"
	"github.com/aliyun/aliyun-tablestore-go-sdk/timeline/writer"
	"golang.org/x/sync/errgroup"
)

// BatchRows is how many rows a request holds.
const BatchRows = 200

// Kind is the type of a column's values.
type Kind uint8

// The kinds.
const (
	Integer Kind = iota
	Double
	String
)

// Column is a column of the file, which has the same name in the table. The first one is the primary key.
type Column struct {
	Name string
	Kind Kind
}

// Load is one load of one file, which begins with a line of names.
type Load struct {
	Client  *tablestore.TableStoreClient
	File    string
	Table   string
	Columns []Column
	Workers int // of those ways that have several; 0 takes 32
}

// Ways are the ways to load, by name.
var Ways = map[string]func(Load, context.Context) (written int64, err error){
	"sequential": Load.Sequential,
	"workers":    Load.WithWorkers,
	"timeline":   Load.Timeline,
}

// Sequential is one goroutine: read 200 rows, write them, read on.
func (l Load) Sequential(ctx context.Context) (written int64, err error) {
	batch := new(tablestore.BatchWriteRowRequest)
	rows := 0
	send := func() error {
		n, err := l.write(batch)
		written += n
		batch, rows = new(tablestore.BatchWriteRowRequest), 0
		return err
	}
	err = l.each(ctx, func(change *tablestore.PutRowChange) error {
		batch.AddRowChange(change)
		if rows++; rows == BatchRows {
			return send()
		}
		return nil
	})
	if err == nil && rows > 0 {
		err = send()
	}
	return written, err
}

// write sends a batch and counts the rows that were written. A row that was not is an error: nothing that is measured
// here refuses any.
func (l Load) write(batch *tablestore.BatchWriteRowRequest) (written int64, err error) {
	res, err := l.Client.BatchWriteRow(batch)
	if err != nil {
		return 0, fmt.Errorf("write to table %s: %w", l.Table, err)
	}
	for _, r := range res.TableToRowsResult[l.Table] {
		if !r.IsSucceed {
			return written, fmt.Errorf("write to table %s: %s: %s", l.Table, r.Error.Code, r.Error.Message)
		}
		written++
	}
	return written, nil
}

// each reads the file and calls f with a change for each record.
func (l Load) each(ctx context.Context, f func(*tablestore.PutRowChange) error) error {
	file, err := os.Open(l.File)
	if err != nil {
		return fmt.Errorf("open input: %w", err)
	}
	defer file.Close()
	r := csv.NewReader(file)
	r.ReuseRecord = true // fields are strings of their own
	header, err := r.Read()
	if err != nil {
		return fmt.Errorf("read header of %s: %w", l.File, err)
	}
	if len(header) != len(l.Columns) {
		return fmt.Errorf("read header of %s: %d columns, want %d", l.File, len(header), len(l.Columns))
	}
	for n := 0; ; n++ {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", l.File, err)
		}
		if n%1000 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		change, err := l.change(record)
		if err != nil {
			return fmt.Errorf("read %s: record %d: %w", l.File, n+1, err)
		}
		if err := f(change); err != nil {
			return err
		}
	}
}

// change makes the row of a record.
func (l Load) change(record []string) (*tablestore.PutRowChange, error) {
	change := &tablestore.PutRowChange{TableName: l.Table, PrimaryKey: new(tablestore.PrimaryKey)}
	change.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	for i, c := range l.Columns {
		var value any = record[i]
		var err error
		switch c.Kind {
		case Integer:
			value, err = strconv.ParseInt(record[i], 10, 64)
		case Double:
			value, err = strconv.ParseFloat(record[i], 64)
		}
		if err != nil {
			return nil, err
		}
		if i == 0 {
			change.PrimaryKey.AddPrimaryKeyColumn(c.Name, value)
		} else {
			change.AddColumn(c.Name, value)
		}
	}
	return change, nil
}

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
