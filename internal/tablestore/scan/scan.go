package scan

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
	"tsimport/ratelimit"
)

// Row is one row of a table: its primary key and the newest version of each attribute column, by name. Values are
// int64, float64, bool, string or []byte.
type Row = tablestore.Row

// Service is what a scan needs of the SDK's client.
type Service interface {
	GetRange(*tablestore.GetRangeRequest) (*tablestore.GetRangeResponse, error)
}

// Options of a scan.
type Options struct {
	Columns  []string      // attribute columns to read; nil reads all. Rows with none of them still come
	Limit    int64         // rows, 0 is all
	From, To []table.Value // of the first key columns: the rows from here, inclusive, to there, exclusive; nil means no bound
	Versions int           // of each cell, newest first; 0 reads the newest only
	RetryFor time.Duration // how long one page is tried again; 0 takes client.Patience
	Units    *atomic.Int64 // to which the read capacity units that the service charges are added; may be nil
}

// Table calls each with every row of a table, or of a range of it, in primary-key order. It stops at the first error of each.
func Table(ctx context.Context, s Service, name string, key []table.KeyColumn, o Options, each func(*Row) error) error {
	if o.RetryFor == 0 {
		o.RetryFor = client.Patience
	}
	criteria := &tablestore.RangeRowQueryCriteria{
		TableName:       name,
		StartPrimaryKey: bound(key, o.From, (*tablestore.PrimaryKey).AddPrimaryKeyColumnWithMinValue),
		EndPrimaryKey:   bound(key, o.To, (*tablestore.PrimaryKey).AddPrimaryKeyColumnWithMaxValue),
		Direction:       tablestore.FORWARD,
		MaxVersion:      int32(max(o.Versions, 1)),
	}
	if o.Columns != nil {
		// With a key column in the list, rows that have none of the attributes come too.
		criteria.ColumnsToGet = append([]string{key[0].Name}, o.Columns...)
	}
	var rows int64
	for {
		if o.Limit > 0 {
			criteria.Limit = int32(min(o.Limit-rows, 5000))
		}
		page, err := readPage(ctx, s, criteria, o.RetryFor)
		if err != nil {
			return fmt.Errorf("read table %s: %w", name, err)
		}
		o.charge(page.ConsumedCapacityUnit)
		if criteria.Limit > 0 && len(page.Rows) > int(criteria.Limit) {
			return fmt.Errorf("read table %s: unreadable answer: %d rows, of %d that were asked for", name, len(page.Rows), criteria.Limit)
		}
		for _, r := range page.Rows {
			if len(r.PrimaryKey.PrimaryKeys) != len(key) {
				return fmt.Errorf("read table %s: unreadable answer: a row with %d key columns, not %d", name, len(r.PrimaryKey.PrimaryKeys), len(key))
			}
			if err := each(r); err != nil {
				return err
			}
		}
		rows += int64(len(page.Rows))
		if page.NextStartPrimaryKey == nil || len(page.NextStartPrimaryKey.PrimaryKeys) == 0 || o.Limit > 0 && rows >= o.Limit {
			return nil
		}
		criteria.StartPrimaryKey = page.NextStartPrimaryKey
	}
}

// bound makes a key of the values that there are. The columns after given ones begin with the least value: a bound of
// fewer columns than the key has stands before all keys that begin with it. Without any, open fills in all columns.
func bound(key []table.KeyColumn, values []table.Value, open func(*tablestore.PrimaryKey, string)) *tablestore.PrimaryKey {
	pk := new(tablestore.PrimaryKey)
	for i, k := range key {
		switch {
		case i < len(values):
			pk.AddPrimaryKeyColumn(k.Name, client.SDKValue(values[i]))
		case len(values) == 0:
			open(pk, k.Name)
		default:
			pk.AddPrimaryKeyColumnWithMinValue(k.Name)
		}
	}
	return pk
}

func (o *Options) charge(c *tablestore.ConsumedCapacityUnit) {
	if o.Units != nil && c != nil {
		o.Units.Add(int64(c.Read))
	}
}

// readPage reads one page; reading is safe to repeat.
func readPage(ctx context.Context, s Service, c *tablestore.RangeRowQueryCriteria, retryFor time.Duration) (page *tablestore.GetRangeResponse, err error) {
	err = patiently(ctx, retryFor, func() error {
		if page, err = getRange(s, c); err == nil {
			err = checkPage(c, page)
		}
		return err
	})
	return page, err
}

// patiently repeats a request while that can help.
func patiently(ctx context.Context, retryFor time.Duration, request func() error) error {
	backoff := ratelimit.Backoff{Base: 50 * time.Millisecond, Max: 5 * time.Second}
	patience := ratelimit.Patience{For: retryFor}
	for attempt := 1; ; attempt++ {
		err := request()
		if err == nil {
			return nil
		}
		if !client.Classify(err).Passes() {
			return &client.Error{Cause: err}
		}
		if patience.Over(time.Now()) {
			return &client.Error{Cause: err}
		}
		timer := time.NewTimer(backoff.After(attempt))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// getRange makes an error of a panic: the SDK dereferences fields that a broken answer lacks.
func getRange(s Service, c *tablestore.RangeRowQueryCriteria) (page *tablestore.GetRangeResponse, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("unreadable answer: %v", p)
		}
	}()
	return s.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: c})
}
