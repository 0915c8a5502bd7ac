package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

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
	list(time.Second, "") // the first is a second ago
	list(1399*time.Millisecond, no)
	list(1400*time.Millisecond, "")
	list(1400*time.Millisecond, no)
	list(-time.Minute, "") // the clock was set back
	_, err := c.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t"})
	if e, ok := err.(*tablestore.OtsError); !ok || e.Message != "Requested table does not exist." {
		t.Error(err)
	}
	now.at = now.at.Add(time.Minute)
	for range 3 {
		list(time.Minute, "")
	}
	_, err = c.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t"})
	if e, ok := err.(*tablestore.OtsError); !ok || e.Message != "Too frequent table operations." || e.HttpStatusCode != 403 {
		t.Error(err)
	}
	writeRows(t, c, batchOf(1)) // rows are not table operations
}

// createNumbered creates the table t of pk1 STRING and pk2 INTEGER, which it numbers itself, in two partitions.
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

func TestASimulationTakesTheTablesPartitionsAndNumbersTheRowsItServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := reopen(t, "", Options{InMemory: true, Simulation: &Simulation{Config: sim.Config{PartitionUnits: 3, Partitions: 8, Seed: 1}}})
		createNumbered(t, s)
		c := inProcess(s)
		s.sim.find([]byte("t"))
		time.Sleep(time.Second) // the buckets fill
		var changes []tablestore.RowChange
		for i := range 10 {
			changes = append(changes, numbering([]string{"a", "z"}[i%2]))
		}
		r, err := c.BatchWriteRow(batch(false, changes...))
		must(t, err)
		last := map[any]int64{}
		for i, row := range r.TableToRowsResult["t"] {
			conformance.Equal(t, row.IsSucceed, i < 6, "row %d: %v", i, row.Error)
			if !row.IsSucceed {
				continue
			}
			p, n := row.PrimaryKey.PrimaryKeys[0].Value, row.PrimaryKey.PrimaryKeys[1].Value.(int64)
			if n <= last[p] {
				t.Errorf("row %d: %d is not above %d", i, n, last[p])
			}
			last[p] = n
		}
		if parts := s.Sim().Stats()["t"].Partitions; rowsIn(t, c) != 6 || len(liveOf(parts)) != 2 {
			t.Errorf("%d rows, partitions %+v", rowsIn(t, c), parts)
		}
		time.Sleep(time.Second)
		for i, code := range writeRows(t, c, batch(true, changes[0], changes[2], changes[4], changes[6])) { // three units for four rows: none is applied
			conformance.Equal(t, code, sim.NotEnoughCapacityUnit, "row %d of an atomic batch", i)
		}
		hasRows(t, c, 6)
		must(t, s.Close())
	})
}

// liveOf are the partitions that are the table's at present.
func liveOf(all []sim.PartitionStats) (live []sim.PartitionStats) {
	for _, p := range all {
		if p.Ended.IsZero() {
			live = append(live, p)
		}
	}
	return live
}

func TestFaultsOfNumberedAndAtomicRows(t *testing.T) {
	for name, v := range map[string]struct {
		fault   faults.Fault
		atomic  bool
		applied int
	}{
		"some rows are refused":           {faults.Fault{Action: faults.RefuseRows, RowCode: func(i int) string { return []string{"", wire.CodeServerBusy}[i%2] }}, false, 2},
		"one row of an atomic batch is":   {faults.Fault{Action: faults.RefuseRows, RowCode: func(i int) string { return []string{"", "", "", wire.CodeServerBusy}[i%4] }}, true, 0},
		"the answer is lost":              {faults.Fault{Action: faults.DropAfter}, false, 4},
		"the answer of an atomic one is":  {faults.Fault{Action: faults.DropAfter}, true, 4},
		"it is applied late":              {faults.Fault{Action: faults.ApplyLate, Delay: time.Nanosecond}, false, 4},
		"an atomic one is applied late":   {faults.Fault{Action: faults.ApplyLate, Delay: time.Nanosecond}, true, 4},
		"it is refused":                   {faults.Fault{Action: faults.Refuse, Code: wire.CodeServerBusy}, true, 0},
		"the connection is cut before it": {faults.Fault{Action: faults.DropBefore}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, plan := faulty(t, v.fault)
			createNumbered(t, s)
			c := inProcess(s)
			four := batch(v.atomic, numbering("a"), numbering("a"), numbering("a"), numbering("a"))
			if v.fault.Action == faults.RefuseRows {
				applied := slices.DeleteFunc(writeRows(t, c, four), func(code string) bool { return code != "" })
				conformance.Equal(t, len(applied), v.applied, "rows are answered as applied")
			} else if _, err := c.BatchWriteRow(four); err == nil {
				t.Error("it succeeded")
			}
			plan.WaitLate()
			hasRows(t, c, v.applied)
			conformance.Equal(t, writeRows(t, c, batch(v.atomic, numbering("a")))[0], "", "write rows")
		})
	}
}

func TestLocationsAreThePartitionsTheTableWasCreatedWith(t *testing.T) {
	s := open(t, Options{})
	createNumbered(t, s) // cut at "m"
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
		r, err := c.ComputeSplitPointsBySize(&tablestore.ComputeSplitPointsBySizeRequest{TableName: "t", SplitSize: 1, SplitSizeUnitInByte: &unit})
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

// Samples of SDKs make tables with a stream that they do not read.
func TestStreamsAreIgnoredWhereTheServerIsTold(t *testing.T) {
	dir := t.TempDir()
	spec := &tablestore.StreamSpecification{EnableStream: true, ExpirationTime: 168, OriginColumnsToGet: []string{"a", "b"}}
	request := func(name string) *tablestore.CreateTableRequest {
		meta := &tablestore.TableMeta{TableName: name}
		meta.AddPrimaryKeyColumn("k", tablestore.PrimaryKeyType_STRING)
		return &tablestore.CreateTableRequest{TableMeta: meta, TableOption: &tablestore.TableOption{TimeToAlive: -1, MaxVersion: 1},
			ReservedThroughput: &tablestore.ReservedThroughput{}, StreamSpec: spec}
	}
	for _, reopened := range []bool{false, true} {
		s := reopen(t, dir, Options{IgnoreStreams: true})
		c := inProcess(s)
		if !reopened {
			if _, err := c.CreateTable(request("t")); err != nil {
				t.Fatal(err)
			}
		}
		d, err := c.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t"})
		must(t, err)
		if x := d.StreamDetails; !x.EnableStream || x.ExpirationTime != 168 || !slices.Equal(x.OriginColumnsToGet, spec.OriginColumnsToGet) {
			t.Errorf("described as %+v", x)
		}
		if _, err := c.DescribeStream(&tablestore.DescribeStreamRequest{StreamId: d.StreamDetails.StreamId}); code(err) != wire.CodeUnsupported {
			t.Errorf("a stream is read: %v", err)
		}
		if reopened {
			u, err := c.UpdateTable(&tablestore.UpdateTableRequest{TableName: "t", StreamSpec: &tablestore.StreamSpecification{EnableStream: false}})
			if err != nil || u.StreamDetails.EnableStream {
				t.Errorf("switched off: %v, %+v", err, u)
			}
		}
		must(t, s.Close())
	}
	s := open(t, Options{})
	if _, err := inProcess(s).CreateTable(request("u")); code(err) != wire.CodeUnsupported {
		t.Errorf("a stream that nobody ignores: %v", err)
	}
}
