package enginetest_test

import (
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/enginetest"
)

func TestByteOrders(t *testing.T) {
	client := enginetest.Start(t).Client()
	meta := &tablestore.TableMeta{TableName: "orders"}
	meta.AddPrimaryKeyColumn("id", tablestore.PrimaryKeyType_INTEGER)
	create := &tablestore.CreateTableRequest{TableMeta: meta, ReservedThroughput: new(tablestore.ReservedThroughput),
		TableOption: &tablestore.TableOption{TimeToAlive: -1, MaxVersion: 1}}
	if _, err := client.CreateTable(create); err != nil {
		t.Fatal(err)
	}
	key := new(tablestore.PrimaryKey)
	key.AddPrimaryKeyColumn("id", int64(1))
	put := &tablestore.PutRowChange{TableName: "orders", PrimaryKey: key}
	put.AddColumn("item", "tea")
	put.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	if _, err := client.PutRow(&tablestore.PutRowRequest{PutRowChange: put}); err != nil {
		t.Fatal(err)
	}
	get := &tablestore.SingleRowQueryCriteria{TableName: "orders", PrimaryKey: key, MaxVersion: 1}
	row, err := client.GetRow(&tablestore.GetRowRequest{SingleRowQueryCriteria: get})
	if err != nil || len(row.Columns) != 1 || row.Columns[0].Value != "tea" {
		t.Fatalf("got %v, %v", row, err)
	}
}
