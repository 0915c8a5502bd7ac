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

// Store is an engine in memory, how clients reach it, and clients of it.
type Store struct {
	*server.Server
	Target client.Target
	SDK    *tablestore.TableStoreClient
	Admin  *client.Admin
}

// Open opens a store that ends with the test.
func Open(t testing.TB, o server.Options) *Store {
	t.Helper()
	o.InMemory = true
	s, err := server.Open("", o)
	conformance.Must(t, err)
	t.Cleanup(func() { conformance.Must(t, s.Close()) })
	target := client.Target{
		Endpoint: "http://embedded", Instance: server.DefaultInstance, Transport: s.Transport(),
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: server.DefaultAccessKeyID, AccessKeySecret: server.DefaultAccessKeySecret},
	}
	admin := Admin(t, target)
	return &Store{Server: s, Target: target, SDK: admin.Client, Admin: admin}
}

// Admin is a client of a target.
func Admin(t testing.TB, target client.Target) *client.Admin {
	t.Helper()
	sdk, err := client.New(context.Background(), target, nil)
	conformance.Must(t, err)
	return &client.Admin{Client: sdk, Context: context.Background()}
}

// Plain is the definition of a table that keeps one version of each cell, without an end.
var Plain = table.Definition{TimeToLive: -1, MaxVersions: 1}

// Cells are the attributes of a row by their names.
type Cells = map[string]any

// Key is a primary key of names and values in turn.
func Key(columns ...any) *tablestore.PrimaryKey {
	key := new(tablestore.PrimaryKey)
	for i := 0; i < len(columns); i += 2 {
		key.AddPrimaryKeyColumn(columns[i].(string), columns[i+1])
	}
	return key
}

// Put replaces a row. Without a stamp the service gives the cells its own time.
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

// Update changes the cells of a row: one without a value is taken out.
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

// Delete takes a row out.
func Delete(name string, key *tablestore.PrimaryKey) *tablestore.DeleteRowChange {
	change := &tablestore.DeleteRowChange{TableName: name, PrimaryKey: key}
	change.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	return change
}

// Do sends a change by the operation of one row.
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

// Fill sends so many changes in batches, of which each must be made.
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
