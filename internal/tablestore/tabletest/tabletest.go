package tabletest

import (
	"context"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
)

// Store is an in-memory engine with a target and clients for it.
type Store struct {
	*server.Server
	Target client.Target
	SDK    *tablestore.TableStoreClient
	Admin  *client.Admin
}

// Open opens a store that is closed when the test ends.
func Open(t testing.TB, o server.Options) *Store {
	t.Helper()
	o.InMemory = true
	s, err := server.Open("", o)
	conformance.Must(t, err)
	t.Cleanup(func() { conformance.Must(t, s.Close()) })
	target := client.Target{
		Endpoint: "http://embedded", Instance: server.DefaultInstance, Transport: s.Transport(),
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: server.DefaultAccessKeyID,
			AccessKeySecret: server.DefaultAccessKeySecret},
	}
	admin := Admin(t, target)
	return &Store{Server: s, Target: target, SDK: admin.Client, Admin: admin}
}

// Admin returns an Admin for a target.
func Admin(t testing.TB, target client.Target) *client.Admin {
	t.Helper()
	sdk, err := client.New(context.Background(), target, nil)
	conformance.Must(t, err)
	return &client.Admin{Client: sdk, Context: context.Background()}
}

// Plain defines a table with one version per column. Cells never expire.
var Plain = table.Definition{TimeToLive: -1, MaxVersions: 1}

// Cells maps the names of attributes to their values.
type Cells = map[string]any

// Key makes a primary key from alternating names and values.
func Key(columns ...any) *tablestore.PrimaryKey {
	key := new(tablestore.PrimaryKey)
	for i := 0; i < len(columns); i += 2 {
		key.AddPrimaryKeyColumn(columns[i].(string), columns[i+1])
	}
	return key
}

// Put returns a change that replaces a row. Without a stamp, the cells get the service's time.
func Put(name string, key *tablestore.PrimaryKey, cells Cells, stamp ...int64) *tablestore.PutRowChange {
	change := &tablestore.PutRowChange{TableName: name, PrimaryKey: key}
	change.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	for column, v := range cells {
		if len(stamp) > 0 {
			change.AddColumnWithTimestamp(column, v, stamp[0])
		} else {
			change.AddColumn(column, v)
		}
	}
	return change
}

// Update returns a change of a row's cells. A nil value removes a cell.
func Update(name string, key *tablestore.PrimaryKey, cells Cells, stamp ...int64) *tablestore.UpdateRowChange {
	change := &tablestore.UpdateRowChange{TableName: name, PrimaryKey: key}
	change.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	for column, v := range cells {
		switch {
		case v == nil:
			change.DeleteColumn(column)
		case len(stamp) > 0:
			change.PutColumnWithTimestamp(column, v, stamp[0])
		default:
			change.PutColumn(column, v)
		}
	}
	return change
}

func Delete(name string, key *tablestore.PrimaryKey) *tablestore.DeleteRowChange {
	change := &tablestore.DeleteRowChange{TableName: name, PrimaryKey: key}
	change.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	return change
}

// Do sends a change as a single-row operation.
func Do(sdk *tablestore.TableStoreClient, change tablestore.RowChange) (err error) {
	switch c := change.(type) {
	case *tablestore.PutRowChange:
		_, err = sdk.PutRow(&tablestore.PutRowRequest{PutRowChange: c})
	case *tablestore.UpdateRowChange:
		_, err = sdk.UpdateRow(&tablestore.UpdateRowRequest{UpdateRowChange: c})
	case *tablestore.DeleteRowChange:
		_, err = sdk.DeleteRow(&tablestore.DeleteRowRequest{DeleteRowChange: c})
	}
	return err
}

// Fill sends n changes in batches, each of which must succeed.
func Fill(t testing.TB, sdk *tablestore.TableStoreClient, n int, change func(i int) tablestore.RowChange) {
	t.Helper()
	for from := 0; from < n; from += 200 {
		batch := new(tablestore.BatchWriteRowRequest)
		for i := from; i < min(from+200, n); i++ {
			batch.AddRowChange(change(i))
		}
		res, err := sdk.BatchWriteRow(batch)
		conformance.Must(t, err)
		for _, rows := range res.TableToRowsResult {
			for _, r := range rows {
				if !r.IsSucceed {
					t.Fatal(r.Error)
				}
			}
		}
	}
}
