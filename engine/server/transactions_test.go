package server

import (
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/sim"
	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

// lockable makes a table that says whether it has transactions, or nothing about it.
func lockable(t testing.TB, c *tablestore.TableStoreClient, name string, enable *bool, numbered bool) {
	t.Helper()
	meta := &tablestore.TableMeta{TableName: name}
	meta.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_STRING)
	if numbered {
		meta.AddPrimaryKeyColumnOption("pk2", tablestore.PrimaryKeyType_INTEGER, tablestore.AUTO_INCREMENT)
	} else {
		meta.AddPrimaryKeyColumn("pk2", tablestore.PrimaryKeyType_INTEGER)
	}
	must(t, conformance.ErrorOf(c.CreateTable(&tablestore.CreateTableRequest{TableMeta: meta, TableOption: &tablestore.TableOption{TimeToAlive: -1, MaxVersion: 1},
		ReservedThroughput: &tablestore.ReservedThroughput{}, EnableLocalTxn: enable})))
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

func TestTablesHaveTransactionsUnlessTheySayOrNumberTheirRows(t *testing.T) {
	yes, no := true, false
	c := inProcess(open(t, Options{}))
	lockable(t, c, "unsaid", nil, false)
	lockable(t, c, "no", &no, false)
	lockable(t, c, "yes", &yes, false)
	lockable(t, c, "numbered", nil, true)
	for table, want := range map[string]string{"unsaid": "", "no": wire.CodeParameterInvalid, "yes": "", "numbered": wire.CodeParameterInvalid} {
		_, err := startIn(c, table, "a")
		conformance.Equal(t, code(err), want, "%s", table)
	}
}

func TestATransactionOutlivesASplitOfItsPartition(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		yes := true
		lockable(t, c, "l", &yes, false)
		id, err := startIn(c, "l", "h")
		must(t, err)
		must(t, putIn(c, id, put("l", key("h", 1))))
		tell(t, s, "POST", "/_engine/tables/l/split", `{"keys": ["h"], "unavailable_ms": 500}`, nil)
		_, err = startIn(c, "l", "h")
		for _, err := range []error{err, putIn(c, id, put("l", key("h", 2))), commit(c, id)} {
			conformance.Equal(t, code(err), wire.CodePartitionUnavailable, "a request meanwhile")
		}
		time.Sleep(500 * time.Millisecond)
		conformance.Equal(t, code(putRow(c, put("l", key("h", 9)))), wire.CodeRowOperationConflict, "another writer")
		must(t, putIn(c, id, put("l", key("h", 3))))
		must(t, commit(c, id))
		r := conformance.Try(c.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
			TableName: "l", StartPrimaryKey: key("h", 0), EndPrimaryKey: key("h", 100), MaxVersion: 1}})).Must(t)
		conformance.Equal(t, len(r.Rows), 2, "rows")
	})
}

func TestStartCommitAndAbortTakeAUnitEach(t *testing.T) {
	yes := true
	at := &clock{time.Now()}
	s := open(t, Options{Now: at.now, InstanceUnits: 50})
	c := inProcess(s)
	lockable(t, c, "l", &yes, false)
	must(t, s.Sim().Simulate("l", Simulation{Config: sim.Config{PartitionUnits: 20}}))
	at.at = at.at.Add(200 * time.Millisecond) // four units of the partition
	id, err := startIn(c, "l", "a")
	must(t, err)
	conformance.Equal(t, code(secondOf(startIn(c, "l", "a"))), wire.CodeRowOperationConflict, "another of the partition key")
	must(t, putIn(c, id, put("l", key("a", 1))))
	must(t, commit(c, id))
	conformance.Equal(t, code(secondOf(startIn(c, "l", "a"))), wire.CodeNotEnoughCapacityUnit, "a start over the capacity")
	st := s.Sim().Stats()["l"]
	conformance.Equal(t, st.Units, 4, "units")
	conformance.Equal(t, st.Failed, 1, "refused for what they are")
	at.at = at.at.Add(-time.Second)
	for range 10 {
		_, err = startIn(c, "l", "b")
	}
	conformance.Equal(t, code(err), wire.CodeFlowControl, "a start over what the instance takes")
}

func secondOf[A any](_ A, err error) error { return err }
