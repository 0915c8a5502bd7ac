package scan

import (
	"context"
	"fmt"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/client"
	"tsimport/ratelimit"
	"tsimport/table"
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
	RetryFor time.Duration // how long one page is tried again; 0 takes client.Patience
}

// Table calls each with every row of a table in primary-key order. It stops at the first error of each.
func Table(ctx context.Context, s Service, name string, key []table.KeyColumn, o Options, each func(*Row) error) error {
	if o.RetryFor == 0 {
		o.RetryFor = client.Patience
	}
	criteria := &tablestore.RangeRowQueryCriteria{
		TableName:       name,
		StartPrimaryKey: new(tablestore.PrimaryKey),
		EndPrimaryKey:   new(tablestore.PrimaryKey),
		Direction:       tablestore.FORWARD,
		MaxVersion:      1,
	}
	for _, k := range key {
		criteria.StartPrimaryKey.AddPrimaryKeyColumnWithMinValue(k.Name)
		criteria.EndPrimaryKey.AddPrimaryKeyColumnWithMaxValue(k.Name)
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
		for _, r := range page.Rows {
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

// readPage reads one page; reading is safe to repeat.
func readPage(ctx context.Context, s Service, c *tablestore.RangeRowQueryCriteria, retryFor time.Duration) (*tablestore.GetRangeResponse, error) {
	backoff := ratelimit.Backoff{Base: 50 * time.Millisecond, Max: 5 * time.Second}
	end := time.Now().Add(retryFor)
	for attempt := 1; ; attempt++ {
		page, err := getRange(s, c)
		if err == nil {
			return page, nil
		}
		switch client.Classify(err) {
		case client.Throttled, client.Unavailable, client.Ambiguous:
		default:
			return nil, &client.Error{Cause: err}
		}
		if time.Now().After(end) {
			return nil, &client.Error{Cause: err}
		}
		timer := time.NewTimer(backoff.After(attempt))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
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
