package server

import (
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/sim"
	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

// lockable makes a table with transactions.
func lockable(t testing.TB, c *tablestore.TableStoreClient, name string) {
	t.Helper()
	meta := &tablestore.TableMeta{TableName: name}
	meta.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_STRING)
	meta.AddPrimaryKeyColumn("pk2", tablestore.PrimaryKeyType_INTEGER)
	yes := true
	must(t, conformance.ErrorOf(c.CreateTable(&tablestore.CreateTableRequest{TableMeta: meta, TableOption: &tablestore.TableOption{TimeToAlive: -1, MaxVersion: 1},
		ReservedThroughput: &tablestore.ReservedThroughput{}, EnableLocalTxn: &yes})))
}

func startIn(c *tablestore.TableStoreClient, table, partition string) (id string, err error) {
	k := &tablestore.PrimaryKey{}
	k.AddPrimaryKeyColumn("pk1", partition)
	r, err := c.StartLocalTransaction(&tablestore.StartLocalTransactionRequest{TableName: table, PrimaryKey: k})
	if err != nil {
		return "", err
	}
	return *r.TransactionId, nil
}

func commit(c *tablestore.TableStoreClient, id string) error {
	_, err := c.CommitTransaction(&tablestore.CommitTransactionRequest{TransactionId: &id})
	return err
}

func putIn(c *tablestore.TableStoreClient, id string, p *tablestore.PutRowChange) error {
	p.TransactionId = &id
	return putRow(c, p)
}

func TestStartCommitAndAbortTakeAUnitEach(t *testing.T) {
	at := &clock{time.Now()}
	s := open(t, Options{Now: at.now, InstanceUnits: 50})
	c := inProcess(s)
	lockable(t, c, "l")
	must(t, s.Sim().Simulate("l", Simulation{Config: sim.Config{PartitionUnits: 20}}))
	at.at = at.at.Add(200 * time.Millisecond) // four units of the partition
	id, err := startIn(c, "l", "a")
	must(t, err)
	conformance.Equal(t, code(conformance.ErrorOf(startIn(c, "l", "a"))), wire.CodeRowOperationConflict, "another of the partition key")
	must(t, putIn(c, id, put("l", key("a", 1))))
	must(t, commit(c, id))
	conformance.Equal(t, code(conformance.ErrorOf(startIn(c, "l", "a"))), wire.CodeNotEnoughCapacityUnit, "a start over the capacity")
	st := s.Sim().Stats()["l"]
	conformance.Equal(t, st.Units, 4, "units")
	conformance.Equal(t, st.Failed, 1, "refused for what they are")
	at.at = at.at.Add(-time.Second)
	for range 10 {
		_, err = startIn(c, "l", "b")
	}
	conformance.Equal(t, code(err), wire.CodeFlowControl, "a start over what the instance takes")
}
