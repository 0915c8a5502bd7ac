package scan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/ratelimit"
)

// Row is a row of a table: its key and its attributes, with values of type int64, float64, bool, string or []byte.
type Row = tablestore.Row

// Service is the part of the SDK's client that a scan needs.
type Service interface {
	GetRange(*tablestore.GetRangeRequest) (*tablestore.GetRangeResponse, error)
}

type Options struct {
	Columns  []string      // attribute columns to read; nil means all. Rows that have none of them are also read
	Limit    int64         // number of rows; 0 means all
	From, To []table.Value // first key columns of the bounds: From inclusive, To exclusive; nil means no bound
	Versions int           // per column, newest first; 0 means only the newest
	RetryFor time.Duration // how long a page is retried; 0 means client.Patience
	Units    *atomic.Int64 // if not nil, incremented by the read capacity units charged
	// Since drops cells with a lower timestamp in milliseconds; 0 drops none. Rows may become empty.
	Since  int64
	Until  int64                   // drops cells with this or a higher timestamp; 0 drops none
	Filter tablestore.ColumnFilter // applied by the service; nil means none
	Manner
}

// Table calls each for every row of a table, or of a range of it, in primary-key order. It stops at each's first error.
func Table(ctx context.Context, s Service, name string, key []table.KeyColumn, o Options, each func(*Row) error) error {
	p := NewPager(s, name, key, o)
	var page []*Row
	return p.all(o.Limit, func() (rows int, err error) {
		page, err = p.Next(ctx)
		return len(page), err
	}, func() error {
		for _, r := range page {
			if err := each(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// PackedPages is like Table for pages of rows as bytes. It calls memory to get the memory for each page.
func PackedPages(ctx context.Context, s Service, name string, key []table.KeyColumn, o Options,
	memory func() *PackedPage, each func(*PackedPage) error) error {
	p := NewPager(s, name, key, o)
	var page *PackedPage
	return p.all(o.Limit, func() (int, error) {
		page = memory()
		err := p.NextPacked(ctx, page)
		return page.Len(), err
	}, func() error { return each(page) })
}

// all reads all pages, or up to limit rows, and calls each after every page.
func (p *Pager) all(limit int64, next func() (rows int, err error), each func() error) error {
	for rows := int64(0); ; {
		if limit > 0 {
			p.Limit(int(min(limit-rows, 5000)))
		}
		n, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := each(); err != nil {
			return err
		}
		if rows += int64(n); limit > 0 && rows >= limit {
			return nil
		}
	}
}

// Packed is like Table, but passes the index of the row in page, which is valid during the call. It ignores o.Limit.
func Packed(ctx context.Context, s Service, name string, key []table.KeyColumn, o Options, page *PackedPage,
	each func(i int) error) error {
	o.Limit = 0
	return PackedPages(ctx, s, name, key, o, func() *PackedPage { return page }, func(*PackedPage) error {
		for i := range page.Len() {
			if err := each(i); err != nil {
				return err
			}
		}
		return nil
	})
}

// bound makes a key that begins with values; the other columns get the minimum. Without values, open adds the columns.
func bound(key []table.KeyColumn, values []table.Value,
	open func(*tablestore.PrimaryKey, string)) *tablestore.PrimaryKey {
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

func readPage(ctx context.Context, s Service, c *tablestore.RangeRowQueryCriteria, o *Options,
	packed *PackedPage) (page *tablestore.GetRangeResponse, err error) {
	get := func() (*tablestore.GetRangeResponse, error) { return client.GetPacked(s, c, &packed.PageMemory) }
	err = patiently(ctx, o.RetryFor, o.Waits, func() error {
		reserved, err := o.Gate.wait(ctx)
		if err != nil {
			return err
		}
		if page, err = recoverPanic("response", get); err == nil {
			o.Gate.charge(page.ConsumedCapacityUnit, reserved)
			err = packed.check(c, page)
		}
		return err
	})
	return page, err
}

// patiently repeats a request while a retry can help.
func patiently(ctx context.Context, retryFor time.Duration, waits *Waits, request func() error) error {
	const base = 50 * time.Millisecond // patience counts at most a quarter of its time between two attempts
	backoff := ratelimit.Backoff{Base: base, Max: max(base, min(5*time.Second, retryFor/4))}
	patience := ratelimit.Patience{For: retryFor}
	began := time.Now()
	for attempt := 1; ; attempt++ {
		err := request()
		if err == nil {
			return nil
		}
		if !client.Classify(err).Passes() {
			return &client.Error{Cause: err}
		}
		now := time.Now()
		if patience.Over(now) {
			return &client.Error{Cause: err}
		}
		waits.note(began, now, err, retryFor)
		if cause := ratelimit.Wait(ctx, backoff.After(attempt)); cause != nil {
			if errors.Is(err, cause) || errors.Is(err, ctx.Err()) { // the request was stopped, not refused
				return cause
			}
			return &StoppedError{cause, err}
		}
	}
}

// StoppedError means that reading was stopped while the service refused requests or did not respond.
type StoppedError struct{ Cause, Last error }

func (e *StoppedError) Error() string {
	return fmt.Sprintf("%v, while retrying after %s", e.Cause, client.Describe(e.Last))
}
func (e *StoppedError) Unwrap() error { return e.Cause }

// recoverPanic turns a panic into an error, because the SDK dereferences fields that a broken response lacks.
func recoverPanic[T any](what string, get func() (T, error)) (got T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed %s: %v", what, p)
		}
	}()
	return get()
}
