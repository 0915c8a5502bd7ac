package enginetest_test

import (
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/internal/conformance"
)

func createTable(t *testing.T, c *tablestore.TableStoreClient, live int) {
	meta := &tablestore.TableMeta{TableName: "orders"}
	meta.AddPrimaryKeyColumn("id", tablestore.PrimaryKeyType_STRING)
	_, err := c.CreateTable(&tablestore.CreateTableRequest{TableMeta: meta,
		TableOption:        &tablestore.TableOption{TimeToAlive: live, MaxVersion: 1},
		ReservedThroughput: &tablestore.ReservedThroughput{}})
	conformance.MustEqual(t, err, nil, "error")
}

func columns(t *testing.T, c *tablestore.TableStoreClient) int {
	t.Helper()
	key := &tablestore.PrimaryKey{}
	key.AddPrimaryKeyColumn("id", "1")
	r, err := c.GetRow(&tablestore.GetRowRequest{SingleRowQueryCriteria: &tablestore.SingleRowQueryCriteria{
		TableName: "orders", PrimaryKey: key, MaxVersion: 1}})
	conformance.MustEqual(t, err, nil, "error")
	return len(r.Columns)
}

func TestRowExpiresWhenClockMoves(t *testing.T) {
	e := enginetest.Start(t)
	c := e.Client()
	for range 2 { // a reset restores the initial state
		createTable(t, c, 86400)
		row := &tablestore.PutRowChange{TableName: "orders", PrimaryKey: &tablestore.PrimaryKey{}}
		row.PrimaryKey.AddPrimaryKeyColumn("id", "1")
		row.AddColumn("total", int64(5))
		row.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
		conformance.Must(t, conformance.ErrorOf(c.PutRow(&tablestore.PutRowRequest{PutRowChange: row})))
		e.Advance(t, 23*time.Hour)
		conformance.Equal(t, columns(t, c), 1, "columns within the time to live")
		e.Advance(t, 2*time.Hour)
		conformance.Equal(t, columns(t, c), 0, "columns after the time to live")
		ahead := time.Until(e.Now())
		conformance.True(t, ahead >= 24*time.Hour, "the clock is %s ahead", ahead)
		e.Reset(t)
		list, err := c.ListTable()
		conformance.True(t, err == nil && len(list.TableNames) == 0, "after a reset: %v, %v", list, err)
		ahead = time.Until(e.Now())
		conformance.True(t, ahead <= time.Hour, "after a reset the clock is %s ahead", ahead)
	}
}
