package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"google.golang.org/protobuf/encoding/protowire"
)

func askAdmin(s *Server, method, path, body string) *answer {
	long := len(body) > maxAdminBytes
	return s.serve(testContext, &request{method: method, path: path, header: http.Header{}, body: []byte(body),
		tooLong: long})
}

func admin(t testing.TB, s *Server, method, path, body string, out any) int {
	t.Helper()
	a := askAdmin(s, method, path, body)
	if out != nil {
		conformance.MustEqual(t, json.Unmarshal(a.body, out), nil, "%s %s: %s", method, path, a.body)
	}
	return a.status
}

func tell(t testing.TB, s *Server, method, path, body string, out any) {
	t.Helper()
	if status := admin(t, s, method, path, body, out); status != http.StatusOK {
		a := askAdmin(s, method, path, body)
		t.Fatalf("%s %s: %d %s", method, path, status, a.body)
	}
}

func rowsOf(keys ...string) *tablestore.BatchWriteRowRequest {
	b := &tablestore.BatchWriteRowRequest{}
	for i, k := range keys {
		b.AddRowChange(put("t", key(k, int64(i)), "v", k))
	}
	return b
}

// writeRows sends a batch and returns the error code of each row; "" means that the row was applied.
func writeRows(t testing.TB, c *tablestore.TableStoreClient, b *tablestore.BatchWriteRowRequest) (codes []string) {
	t.Helper()
	r := conformance.Try(c.BatchWriteRow(b)).Must(t)
	for _, row := range r.TableToRowsResult["t"] {
		codes = append(codes, row.Error.Code)
	}
	return codes
}

func putRow(c *tablestore.TableStoreClient, p *tablestore.PutRowChange) error {
	_, err := c.PutRow(&tablestore.PutRowRequest{PutRowChange: p})
	return err
}

func inBubble(t *testing.T, f func(t *testing.T, s *Server, c *tablestore.TableStoreClient)) {
	synctest.Test(t, func(t *testing.T) {
		s := reopen(t, "", Options{InMemory: true})
		c := inProcess(s)
		createTable(t, c, "t", 1)
		f(t, s, c)
		conformance.Equal(t, s.Close(), nil, "Close")
	})
}

func TestOnlyThrottledRowsAreNotApplied(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		tell(t, s, "POST", "/_engine/tables/t/simulate", `{"partition_wcu": 10}`, nil)
		tell(t, s, "POST", "/_engine/tables/t/split", `{"keys": ["m"]}`, nil)
		time.Sleep(200 * time.Millisecond) // saves two units in each partition
		want := []string{"", "", "", wire.CodeNotEnoughCapacityUnit, wire.CodeNotEnoughCapacityUnit}
		conformance.Same(t, writeRows(t, c, rowsOf("a", "b", "z", "c", "d")), want, "write rows")
		hasRows(t, c, 3)
		err := putRow(c, put("t", key("e", 1)))
		e, ok := err.(*tablestore.OtsError)
		conformance.True(t, ok && e.Code == wire.CodeNotEnoughCapacityUnit && e.HttpStatusCode == http.StatusForbidden,
			"a single row: %v", err)
		must(t, putRow(c, put("t", key("y", 1)))) // in the other partition
		st := s.Sim().Stats()["t"]
		conformance.True(t, st.Rows == 4 && st.Throttled == 3 && st.Units == 4 && st.Requests == 3, "%+v", st.Count)
	})
}

func TestChildrenServeAfterSplitPause(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		var list struct{ Partitions []map[string]any }
		tell(t, s, "POST", "/_engine/tables/t/split", `{"keys": ["h", "p"], "unavailable_ms": 500}`, &list)
		conformance.MustTrue(t, len(list.Partitions) == 3 && list.Partitions[0]["end"] == "h" &&
			list.Partitions[1]["start"] == "h" && list.Partitions[2]["end"] == nil, "%v", list.Partitions)
		got := writeRows(t, c, rowsOf("a", "h"))
		conformance.True(t, got[0] == wire.CodePartitionUnavailable && got[1] == wire.CodePartitionUnavailable, "%q", got)
		err := putRow(c, put("t", key("e", 1)))
		e, ok := err.(*tablestore.OtsError)
		conformance.True(t, ok && e.Code == wire.CodePartitionUnavailable &&
			e.HttpStatusCode == http.StatusServiceUnavailable, "a single row: %v", err)
		time.Sleep(500 * time.Millisecond)
		tell(t, s, "POST", "/_engine/tables/t/split", `{"keys": ["w"], "unavailable_ms": 500}`, nil)
		got = writeRows(t, c, rowsOf("a", "h", "x"))
		conformance.True(t, got[0] == "" && got[1] == "" && got[2] == wire.CodePartitionUnavailable, "%q", got)
		hasRows(t, c, 2)
	})
}

func TestQueueAnswersWhenRowsAreServed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		tell(t, s, "POST", "/_engine/simulate", `{"latency_ms": 100, "partition_wcu": 10, "limiter": "queue"}`, nil)
		for i, want := range []time.Duration{300 * time.Millisecond, 200 * time.Millisecond} {
			start := time.Now()
			list := writeRows(t, c, rowsOf(slices.Repeat([]string{"a"}, 2-i)...))
			conformance.True(t, slices.Max(list) == "" && time.Since(start) == want,
				"request %d took %v, want %v: %q", i, time.Since(start), want, list)
		}
	})
}

func TestTableLimitRefusesRows(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		tell(t, s, "POST", "/_engine/simulate", `{"table_wcu": 3, "limiter": "fixed-window"}`, nil)
		tell(t, s, "POST", "/_engine/tables/t/split", `{"keys": ["g", "p"]}`, nil)
		list := writeRows(t, c, rowsOf("a", "h", "q", "b", "i"))
		conformance.Same(t, list, []string{"", "", sim.NotEnoughCapacityUnit, "", sim.NotEnoughCapacityUnit}, "codes")
	})
}

func TestTableOperationsAreCountedInAnySecond(t *testing.T) {
	start := time.Now() // the SDK signs with the real time
	now := &clock{at: start}
	s := open(t, Options{Now: now.now, TableOps: 3})
	c := inProcess(s)
	list := func(at time.Duration, want string) {
		t.Helper()
		now.at = start.Add(at)
		_, err := c.ListTable()
		conformance.Equal(t, code(err), want, "at %s", at)
	}
	const no = wire.CodeQuotaExhausted
	list(0, "")
	list(400*time.Millisecond, "")
	list(500*time.Millisecond, "")
	list(999*time.Millisecond, no)
	list(time.Second, "") // the first operation was a second ago
	list(1399*time.Millisecond, no)
	list(1400*time.Millisecond, "")
	list(1400*time.Millisecond, no)
	list(-time.Minute, "") // the clock was set back
	_, err := c.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t"})
	e, ok := err.(*tablestore.OtsError)
	conformance.True(t, ok && e.Message == "Requested table does not exist.", "%v", err)
	now.at = now.at.Add(time.Minute)
	for range 3 {
		list(time.Minute, "")
	}
	_, err = c.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t"})
	e, ok = err.(*tablestore.OtsError)
	conformance.True(t, ok && e.Message == "Too frequent table operations." && e.HttpStatusCode == 403, "%v", err)
	writeRows(t, c, batchOf(1)) // rows are not table operations
}

// createNumbered creates the table t with the key pk1 STRING, pk2 INTEGER AUTO_INCREMENT, in two partitions.
func createNumbered(t testing.TB, s *Server) {
	t.Helper()
	r := &wire.CreateTable{Name: []byte("t"), Key: []wire.KeyColumn{
		{Name: "pk1", Type: wire.KeyString}, {Name: "pk2", Type: wire.KeyInteger, AutoIncrement: true}}}
	r.Options.TTL = wire.Optional[int32]{Value: -1, Set: true}
	r.Options.MaxVersions = wire.Optional[int32]{Value: 1, Set: true}
	r.Bounds = []wire.Cell{{Type: wire.String, Value: []byte("m")}}
	must(t, s.store.CreateTable(t.Context(), r))
}

func numbering(pk1 string) *tablestore.PutRowChange {
	k := &tablestore.PrimaryKey{}
	k.AddPrimaryKeyColumn("pk1", pk1)
	k.AddPrimaryKeyColumnWithAutoIncrement("pk2")
	p := put("t", k, "v", pk1)
	p.SetReturnPk()
	return p
}

func batch(atomic bool, changes ...tablestore.RowChange) *tablestore.BatchWriteRowRequest {
	r := &tablestore.BatchWriteRowRequest{IsAtomic: atomic}
	for _, c := range changes {
		r.AddRowChange(c)
	}
	return r
}

func TestSimulationUsesTablePartitionsAndNumbersServedRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := reopen(t, "", Options{InMemory: true, Simulation: &Simulation{Config: sim.Config{PartitionUnits: 3,
			Partitions: 8, Seed: 1}}})
		createNumbered(t, s)
		c := inProcess(s)
		s.sim.find([]byte("t"))
		time.Sleep(time.Second) // the buckets fill
		var changes []tablestore.RowChange
		for i := range 10 {
			changes = append(changes, numbering([]string{"a", "z"}[i%2]))
		}
		r := conformance.Try(c.BatchWriteRow(batch(false, changes...))).Must(t)
		last := map[any]int64{}
		for i, row := range r.TableToRowsResult["t"] {
			conformance.Equal(t, row.IsSucceed, i < 6, "row %d: %v", i, row.Error)
			if !row.IsSucceed {
				continue
			}
			p, n := row.PrimaryKey.PrimaryKeys[0].Value, row.PrimaryKey.PrimaryKeys[1].Value.(int64)
			conformance.True(t, n > last[p], "row %d: %d is not above %d", i, n, last[p])
			last[p] = n
		}
		parts := s.Sim().Stats()["t"].Partitions
		conformance.True(t, rowsIn(t, c) == 6 && len(liveOf(parts)) == 2, "%d rows, partitions %+v", rowsIn(t, c), parts)
		time.Sleep(time.Second)
		for i, code := range writeRows(t, c, batch(true, changes[0], changes[2], changes[4], changes[6])) { // 3 units each
			conformance.Equal(t, code, sim.NotEnoughCapacityUnit, "row %d of an atomic batch", i)
		}
		hasRows(t, c, 6)
		must(t, s.Close())
	})
}

func liveOf(all []sim.PartitionStats) (live []sim.PartitionStats) {
	for _, p := range all {
		if p.Ended.IsZero() {
			live = append(live, p)
		}
	}
	return live
}

func TestLocationsAreInitialPartitions(t *testing.T) {
	s := open(t, Options{})
	createNumbered(t, s) // divided at "m"
	c := inProcess(s)
	value := strings.Repeat("x", 700<<10)
	for _, p := range []string{"a", "b", "c", "d", "m", "n", "o", "p"} {
		r := numbering(p)
		r.AddColumn("x", value)
		must(t, putRow(c, r))
	}
	for _, simulated := range []bool{false, true} {
		if simulated {
			must(t, s.Sim().Simulate("", Simulation{}))
		}
		unit := int64(1 << 20)
		r, err := c.ComputeSplitPointsBySize(&tablestore.ComputeSplitPointsBySizeRequest{TableName: "t", SplitSize: 1,
			SplitSizeUnitInByte: &unit})
		must(t, err)
		var got []string
		names := map[string]int{}
		for _, split := range r.Splits {
			if names[split.Location] == 0 {
				names[split.Location] = len(names) + 1
			}
			got = append(got, fmt.Sprintf("%v %d", split.LowerBound.PrimaryKeys[0].Value, names[split.Location]))
		}
		conformance.Equal(t, fmt.Sprint(got), "[<nil> 1 c 1 m 2 o 2]", "simulated %t", simulated)
	}
}

// The SDKs' samples create tables with a stream that they never read.
func TestIgnoreStreams(t *testing.T) {
	dir := t.TempDir()
	spec := &tablestore.StreamSpecification{EnableStream: true, ExpirationTime: 168,
		OriginColumnsToGet: []string{"a", "b"}}
	request := func(name string) *tablestore.CreateTableRequest {
		meta := &tablestore.TableMeta{TableName: name}
		meta.AddPrimaryKeyColumn("k", tablestore.PrimaryKeyType_STRING)
		return &tablestore.CreateTableRequest{TableMeta: meta, TableOption: &tablestore.TableOption{TimeToAlive: -1,
			MaxVersion: 1},
			ReservedThroughput: &tablestore.ReservedThroughput{}, StreamSpec: spec}
	}
	for _, reopened := range []bool{false, true} {
		s := reopen(t, dir, Options{IgnoreStreams: true})
		c := inProcess(s)
		if !reopened {
			conformance.Must(t, conformance.ErrorOf(c.CreateTable(request("t"))))
		}
		d, err := c.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t"})
		must(t, err)
		x := d.StreamDetails
		conformance.True(t, x.EnableStream && x.ExpirationTime == 168 &&
			slices.Equal(x.OriginColumnsToGet, spec.OriginColumnsToGet), "described as %+v", x)
		_, err = c.DescribeStream(&tablestore.DescribeStreamRequest{StreamId: d.StreamDetails.StreamId})
		conformance.Equal(t, code(err), wire.CodeUnsupported, "a stream is read: %v", err)
		if reopened {
			u, err := c.UpdateTable(&tablestore.UpdateTableRequest{TableName: "t",
				StreamSpec: &tablestore.StreamSpecification{EnableStream: false}})
			conformance.True(t, err == nil && !u.StreamDetails.EnableStream, "switched off: %v, %+v", err, u)
		}
		must(t, s.Close())
	}
	s := open(t, Options{})
	_, err := inProcess(s).CreateTable(request("u"))
	conformance.Equal(t, code(err), wire.CodeUnsupported, "a stream that nobody ignores: %v", err)
}

func lockable(t testing.TB, c *tablestore.TableStoreClient, name string) {
	meta := &tablestore.TableMeta{TableName: name}
	meta.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_STRING)
	meta.AddPrimaryKeyColumn("pk2", tablestore.PrimaryKeyType_INTEGER)
	yes := true
	must(t, conformance.ErrorOf(c.CreateTable(&tablestore.CreateTableRequest{TableMeta: meta,
		TableOption:        &tablestore.TableOption{TimeToAlive: -1, MaxVersion: 1},
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

func TestTransactionOperationsCostOneUnit(t *testing.T) {
	at := &clock{time.Now()}
	s := open(t, Options{Now: at.now, InstanceUnits: 50})
	c := inProcess(s)
	lockable(t, c, "l")
	must(t, s.Sim().Simulate("l", Simulation{Config: sim.Config{PartitionUnits: 20}}))
	at.at = at.at.Add(200 * time.Millisecond) // saves four units in the partition
	id, err := startIn(c, "l", "a")
	must(t, err)
	conformance.Equal(t, code(conformance.ErrorOf(startIn(c, "l", "a"))), wire.CodeRowOperationConflict, "another one")
	p := put("l", key("a", 1))
	p.TransactionId = &id
	must(t, putRow(c, p))
	conformance.Try(c.CommitTransaction(&tablestore.CommitTransactionRequest{TransactionId: &id})).Must(t)
	conformance.Equal(t, code(conformance.ErrorOf(startIn(c, "l", "a"))), wire.CodeNotEnoughCapacityUnit, "over capacity")
	st := s.Sim().Stats()["l"]
	conformance.Equal(t, st.Units, 4, "units")
	conformance.Equal(t, st.Failed, 1, "rows that the table refused")
	at.at = at.at.Add(-time.Second)
	for range 10 {
		_, err = startIn(c, "l", "b")
	}
	conformance.Equal(t, code(err), wire.CodeFlowControl, "a start over what the instance takes")
}

func faulty(t *testing.T, f faults.Fault) (*Server, *faults.Plan) {
	plan := &faults.Plan{Decide: func(r faults.Request) faults.Fault {
		if r.N == 0 {
			return f
		}
		return faults.Fault{}
	}}
	return open(t, Options{Faults: plan}), plan
}

func eachWay(t *testing.T, fault faults.Fault, f func(t *testing.T, c *tablestore.TableStoreClient, p *faults.Plan)) {
	for way, client := range map[string]func(testing.TB, *Server) *tablestore.TableStoreClient{
		"direct": func(_ testing.TB, s *Server) *tablestore.TableStoreClient { return inProcess(s) }, "over HTTP": overHTTP,
	} {
		t.Run(way, func(t *testing.T) {
			s, p := faulty(t, fault)
			createTable(t, inProcess(s), "t", 1)
			f(t, client(t, s), p)
		})
	}
}

func batchOf(n int) *tablestore.BatchWriteRowRequest {
	b := &tablestore.BatchWriteRowRequest{}
	for i := range n {
		b.AddRowChange(put("t", key("k", int64(i)), "v", int64(i)))
	}
	return b
}

func rowsIn(t *testing.T, c *tablestore.TableStoreClient) int {
	t.Helper()
	return len(scan(t, c, "t", tablestore.FORWARD, 0))
}

func hasRows(t *testing.T, c *tablestore.TableStoreClient, want int) {
	t.Helper()
	conformance.Equal(t, rowsIn(t, c), want, "rows")
}

func TestWholeRequestFaults(t *testing.T) {
	for name, v := range map[string]struct {
		fault   faults.Fault
		err     string // part of the code or of the text
		applied int
	}{
		"busy":         {faults.Fault{Action: faults.Refuse, Code: "OTSServerBusy"}, "OTSServerBusy", 0},
		"an odd code":  {faults.Fault{Action: faults.Refuse, Code: "OTSStorageServerBusy"}, "OTSStorageServerBusy", 0},
		"cut before":   {faults.Fault{Action: faults.DropBefore}, "EOF", 0},
		"cut after":    {faults.Fault{Action: faults.DropAfter}, "EOF", 3},
		"then timeout": {faults.Fault{Action: faults.AnswerErrorAfter}, "OTSTimeout", 3},
		"then internal": {faults.Fault{Action: faults.AnswerErrorAfter, Code: "OTSInternalServerError"},
			"OTSInternalServerError", 3},
		"a proxy's page": {faults.Fault{Action: faults.BadBody}, "OTSServerUnavailable", 0},
		"a cut answer":   {faults.Fault{Action: faults.TruncateBody}, "EOF", 3},
		"reset midway":   {faults.Fault{Action: faults.ResetBody}, "", 3},
		"late, and cut":  {faults.Fault{Action: faults.ApplyLate, Delay: 20 * time.Millisecond}, "", 3},
		"late, then timeout": {faults.Fault{Action: faults.ApplyLate, Code: "OTSTimeout", Delay: 20 * time.Millisecond},
			"OTSTimeout", 3},
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, v.fault, func(t *testing.T, c *tablestore.TableStoreClient, p *faults.Plan) {
				_, err := c.BatchWriteRow(batchOf(3))
				conformance.True(t, err != nil && strings.Contains(code(err), v.err) && p.Done()[v.fault.Action] == 1,
					"got %v, %v, want %s", err, p.Done(), v.err)
				p.WaitLate()
				n := rowsIn(t, c)
				conformance.True(t, n == v.applied && p.Late() == 0, "%d rows applied, want %d", n, v.applied)
				writeRows(t, c, batchOf(5))
				n = rowsIn(t, c)
				conformance.True(t, n == 5 && p.Requests() == 2, "%d rows after %d requests", n, p.Requests())
			})
		})
	}
}

func TestFaultRefusesChosenRowsOnly(t *testing.T) {
	fault := faults.Fault{Action: faults.RefuseRows, RowCode: func(i int) string {
		return map[int]string{1: "OTSServerBusy", 3: "OTSNotEnoughCapacityUnit"}[i]
	}}
	eachWay(t, fault, func(t *testing.T, c *tablestore.TableStoreClient, p *faults.Plan) {
		for i, got := range writeRows(t, c, batchOf(5)) {
			conformance.Equal(t, got, fault.RowCode(i), "row %d", i)
		}
		hasRows(t, c, 3)
	})
}

// A fault refuses one of five rows, the capacity limit another. Later requests are lost before or after being applied.
func TestBulkImportAcknowledgesOnlyAppliedRows(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		var rows []*tablestore.PutRowChange
		for i := range int64(5) {
			rows = append(rows, put("t", key("k", i), "v", i))
		}
		s.SetFaults(&faults.Plan{Only: func(op string) bool { return op == "BulkImport" },
			Decide: func(r faults.Request) faults.Fault {
				refused := func(i int) string { return map[int]string{1: "OTSServerBusy"}[i] }
				return []faults.Fault{{Action: faults.RefuseRows, RowCode: refused}, {Action: faults.DropBefore},
					{Action: faults.DropAfter}}[min(r.N, 2)]
			}})
		tell(t, s, "POST", "/_engine/tables/t/simulate", `{"partition_wcu": 3, "burst_ms": 1000}`, nil)
		time.Sleep(time.Second)
		var applied []bool
		answer := raw(s, "BulkImport", bulkImport(rows...), nil).body
		for b := answer; len(b) > 0; {
			id, _, n := protowire.ConsumeTag(b)
			row, m := protowire.ConsumeBytes(b[n:])
			if b = b[n+m:]; id == 2 {
				applied = append(applied, row[1] == 1)
			}
		}
		conformance.Same(t, applied, []bool{true, false, true, true, false}, "%q", answer)
		for _, want := range []int{3, 3, 5} {
			hasRows(t, c, want)
			time.Sleep(time.Second)
			raw(s, "BulkImport", bulkImport(rows[1], rows[4]), nil)
		}
	})
}

func TestClosedServerAppliesNothing(t *testing.T) {
	s := reopen(t, "", Options{InMemory: true})
	must(t, s.Close())
	conformance.Equal(t, raw(s, "ListTable", nil, nil).status, http.StatusServiceUnavailable, "status")
	must(t, s.Close())
}

func TestLateRequestIsAppliedWithinLimitOnly(t *testing.T) {
	for within, want := range map[time.Duration]int{0: 3, time.Nanosecond: 0, time.Hour: 3} {
		s, plan := faulty(t, faults.Fault{Action: faults.ApplyLate, Delay: time.Millisecond})
		plan.Within = within
		c := inProcess(s)
		createTable(t, c, "t", 1)
		_, err := c.BatchWriteRow(batchOf(3))
		conformance.MustTrue(t, err != nil, "the request was answered")
		plan.WaitLate()
		hasRows(t, c, want)
	}
}
