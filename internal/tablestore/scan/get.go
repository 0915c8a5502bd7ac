package scan

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/ratelimit"
)

// MaxGetRows is the maximum number of rows of one BatchGetRow request.
const MaxGetRows = 100

// Getter is the part of the SDK's client that Get needs.
type Getter interface {
	BatchGetRow(*tablestore.BatchGetRowRequest) (*tablestore.BatchGetRowResponse, error)
}

// Get returns the rows of at most MaxGetRows different keys, in the order of keys. Missing rows are nil.
func Get(ctx context.Context, s Getter, name string, key []table.KeyColumn, keys [][]table.Value,
	o Options) ([]*Row, error) {
	o.RetryFor = cmp.Or(o.RetryFor, client.Patience)
	rows := make([]*Row, len(keys))
	todo := make([]int, len(keys))
	for i := range todo {
		todo[i] = i
	}
	backoff := ratelimit.Backoff{Base: 50 * time.Millisecond, Max: 5 * time.Second}
	patience := ratelimit.Patience{For: o.RetryFor}
	for attempt := 1; ; attempt++ {
		again, refused, err := getOnce(ctx, s, name, key, keys, todo, rows, &o)
		switch {
		case err != nil:
			return nil, fmt.Errorf("read rows of table %s: %w", name, err)
		case len(again) == 0:
			return rows, nil
		case len(again) == len(todo) && patience.Over(time.Now()):
			return nil, fmt.Errorf("read rows of table %s: %w", name, refused)
		case len(again) < len(todo):
			attempt = 1
			patience.Progress(time.Now())
		}
		todo = again
		if err := ratelimit.Wait(ctx, backoff.After(attempt)); err != nil {
			return nil, err
		}
	}
}

// getOnce requests the rows in todo. It returns the indexes of the rows to request again, and why they were refused.
func getOnce(ctx context.Context, s Getter, name string, key []table.KeyColumn, keys [][]table.Value, todo []int,
	rows []*Row, o *Options) (again []int, refused, err error) {
	c := &tablestore.MultiRowQueryCriteria{TableName: name, MaxVersion: max(o.Versions, 1)}
	if o.Columns != nil {
		c.ColumnsToGet = append([]string{key[0].Name}, o.Columns...)
	}
	for _, i := range todo {
		pk := new(tablestore.PrimaryKey)
		for k, v := range keys[i] {
			pk.AddPrimaryKeyColumn(key[k].Name, client.SDKValue(v))
		}
		c.AddRow(pk)
	}
	reserved, err := o.Gate.wait(ctx)
	if err != nil {
		return nil, nil, err
	}
	charged := new(tablestore.ConsumedCapacityUnit)
	defer func() { o.Gate.charge(charged, reserved) }()
	var res *tablestore.BatchGetRowResponse
	err = patiently(ctx, o.RetryFor, o.Waits, func() (err error) {
		res, err = recoverPanic("response", func() (*tablestore.BatchGetRowResponse, error) {
			return s.BatchGetRow(&tablestore.BatchGetRowRequest{MultiRowQueryCriteria: []*tablestore.MultiRowQueryCriteria{c}})
		})
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	answers := res.TableToRowsResult[name]
	if len(answers) != len(todo) {
		return nil, nil, fmt.Errorf("malformed response: %d results for %d rows", len(answers), len(todo))
	}
	for n := range answers {
		a, i := &answers[n], todo[n]
		if a.IsSucceed && a.Error.Code != "" {
			refused = errors.New("malformed response: a row was read and has an error")
			again = append(again, i)
			continue
		}
		if o.charge(a.ConsumedCapacityUnit); a.ConsumedCapacityUnit != nil {
			charged.Read += a.ConsumedCapacityUnit.Read
		}
		if a.IsSucceed {
			if len(a.PrimaryKey.PrimaryKeys) > 0 {
				if !isOf(&a.PrimaryKey, keys[i]) {
					return nil, nil, errors.New("malformed response: a row with another key")
				}
				rows[i] = &Row{PrimaryKey: &a.PrimaryKey, Columns: a.Columns}
			}
			continue
		}
		refused = fmt.Errorf("%s: %s", a.Error.Code, client.OneLine(a.Error.Message))
		if !client.ClassifyCode(a.Error.Code, a.Error.Message).Passes() {
			return nil, nil, refused
		}
		again = append(again, i)
	}
	return again, refused, nil
}

// isOf reports whether a row's key is the requested one.
func isOf(pk *tablestore.PrimaryKey, key []table.Value) bool {
	return slices.EqualFunc(pk.PrimaryKeys, key, func(c *tablestore.PrimaryKeyColumn, v table.Value) bool {
		return bytes.Equal(table.AppendKey(nil, client.ValueOf(c.Value)), table.AppendKey(nil, v))
	})
}
