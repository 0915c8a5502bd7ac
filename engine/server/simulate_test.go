package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/engine/sim"
	"tsimport/engine/wire"
)

// admin asks the admin API and decodes the answer into out, which may be nil.
func admin(t testing.TB, s *Server, method, path, body string, out any) int {
	t.Helper()
	a := s.serve(testContext, &request{method: method, path: path, header: http.Header{}, body: []byte(body), tooLong: len(body) > maxAdminBytes})
	if out != nil {
		if err := json.Unmarshal(a.body, out); err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, a.body)
		}
	}
	return a.status
}

// must is admin for what has to succeed.
func must(t testing.TB, s *Server, method, path, body string, out any) {
	t.Helper()
	if status := admin(t, s, method, path, body, out); status != http.StatusOK {
		a := s.serve(testContext, &request{method: method, path: path, header: http.Header{}, body: []byte(body), tooLong: len(body) > maxAdminBytes})
		t.Fatalf("%s %s: %d %s", method, path, status, a.body)
	}
}

// rows is a batch of rows with the partition keys.
func rowsOf(keys ...string) *tablestore.BatchWriteRowRequest {
	b := &tablestore.BatchWriteRowRequest{}
	for i, k := range keys {
		b.AddRowChange(put("t", key(k, int64(i)), "v", k))
	}
	return b
}

// codes are the rows' codes, "" for an applied row.
func codes(t testing.TB, r *tablestore.BatchWriteRowResponse, err error) []string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, row := range r.TableToRowsResult["t"] {
		list = append(list, row.Error.Code)
	}
	return list
}

// inBubble runs f with a server in a bubble of synctest.
func inBubble(t *testing.T, f func(t *testing.T, s *Server, c *tablestore.TableStoreClient)) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open("", Options{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		c := inProcess(s)
		createTable(t, c, "t", 1)
		f(t, s, c)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestThrottledRowsAreNotAppliedAndTheOthersAre(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		must(t, s, "POST", "/_engine/tables/t/simulate", `{"partition_wcu": 10}`, nil)
		must(t, s, "POST", "/_engine/tables/t/split", `{"keys": ["m"]}`, nil)
		time.Sleep(200 * time.Millisecond) // two units for each partition
		r, err := c.BatchWriteRow(rowsOf("a", "b", "z", "c", "d"))
		want := []string{"", "", "", wire.CodeNotEnoughCapacityUnit, wire.CodeNotEnoughCapacityUnit}
		if got := codes(t, r, err); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if n := rowsIn(t, c); n != 3 {
			t.Errorf("%d rows are in the table", n)
		}
		_, err = c.PutRow(&tablestore.PutRowRequest{PutRowChange: put("t", key("e", 1))})
		if e, ok := err.(*tablestore.OtsError); !ok || e.Code != wire.CodeNotEnoughCapacityUnit || e.HttpStatusCode != http.StatusForbidden {
			t.Errorf("a single row: %v", err)
		}
		_, err = c.PutRow(&tablestore.PutRowRequest{PutRowChange: put("t", key("y", 1))})
		if err != nil {
			t.Errorf("a row of the other partition: %v", err)
		}
		st := s.Sim().Stats()["t"]
		if st.Rows != 4 || st.Throttled != 3 || st.Units != 4 || st.Requests != 3 {
			t.Errorf("%+v", st.Count)
		}
	})
}

func TestASplitPartitionIsAwayAndThenTheChildrenServe(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		var list struct{ Partitions []map[string]any }
		must(t, s, "POST", "/_engine/tables/t/split", `{"keys": ["h", "p"], "unavailable_ms": 500}`, &list)
		if len(list.Partitions) != 3 || list.Partitions[0]["end"] != "h" || list.Partitions[1]["start"] != "h" || list.Partitions[2]["end"] != nil {
			t.Fatalf("%v", list.Partitions)
		}
		r, err := c.BatchWriteRow(rowsOf("a", "h"))
		if got := codes(t, r, err); got[0] != wire.CodePartitionUnavailable || got[1] != wire.CodePartitionUnavailable {
			t.Errorf("%q", got)
		}
		_, err = c.PutRow(&tablestore.PutRowRequest{PutRowChange: put("t", key("e", 1))})
		if e, ok := err.(*tablestore.OtsError); !ok || e.Code != wire.CodePartitionUnavailable || e.HttpStatusCode != http.StatusServiceUnavailable {
			t.Errorf("a single row: %v", err)
		}
		time.Sleep(500 * time.Millisecond)
		must(t, s, "POST", "/_engine/tables/t/split", `{"keys": ["w"], "unavailable_ms": 500}`, nil)
		r, err = c.BatchWriteRow(rowsOf("a", "h", "x"))
		if got := codes(t, r, err); got[0] != "" || got[1] != "" || got[2] != wire.CodePartitionUnavailable {
			t.Errorf("%q", got)
		}
		if n := rowsIn(t, c); n != 2 {
			t.Errorf("%d rows are in the table", n)
		}
	})
}

func TestDescribeTableGivesThePartitionsBounds(t *testing.T) {
	s := open(t, Options{})
	createTable(t, inProcess(s), "t", 1)
	name := []byte("\x0a\x01t")
	if a := raw(s, "DescribeTable", name, nil); strings.Contains(string(a.body), "pk1\x05") {
		t.Error("a table without simulation has bounds")
	}
	must(t, s, "POST", "/_engine/tables/t/split", `{"keys": ["h", "a\u0000b"]}`, nil)
	a := raw(s, "DescribeTable", name, nil)
	for _, k := range []string{"h", "a\x00b"} {
		row := wire.AppendRow(wire.AppendHeader(nil), []wire.Cell{{Name: []byte("pk1"), Type: wire.String, Value: []byte(k)}}, nil)
		if !strings.Contains(string(a.body), "\x32"+string(rune(len(row)))+string(row)) {
			t.Errorf("bound %q is missing", k)
		}
	}
}

func TestLatencyIsSleptHalfBeforeTheApplication(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		must(t, s, "POST", "/_engine/simulate", `{"latency_ms": 100}`, nil)
		go c.BatchWriteRow(rowsOf("a"))
		time.Sleep(49 * time.Millisecond)
		synctest.Wait()
		before := s.Sim().Stats()["t"].Rows
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if after := s.Sim().Stats()["t"].Rows; before != 0 || after != 1 {
			t.Errorf("%d rows before half of the latency, %d after", before, after)
		}
		time.Sleep(time.Second)
		start := time.Now()
		if _, err := c.BatchWriteRow(rowsOf("a")); err != nil || time.Since(start) != 100*time.Millisecond {
			t.Errorf("took %v, %v", time.Since(start), err)
		}
	})
}

func TestAQueueAnswersWhenTheRowsAreServed(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		must(t, s, "POST", "/_engine/simulate", `{"latency_ms": 100, "partition_wcu": 10, "limiter": "queue"}`, nil)
		for i, want := range []time.Duration{300 * time.Millisecond, 200 * time.Millisecond} {
			start := time.Now()
			got, err := c.BatchWriteRow(rowsOf(slices.Repeat([]string{"a"}, 2-i)...))
			if list := codes(t, got, err); slices.Max(list) != "" || time.Since(start) != want {
				t.Errorf("request %d took %v, want %v: %q", i, time.Since(start), want, list)
			}
		}
	})
}

func TestALimitOfTheTableRefusesRowsAsAPartitionDoes(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		must(t, s, "POST", "/_engine/simulate", `{"table_wcu": 3, "limiter": "fixed-window"}`, nil)
		must(t, s, "POST", "/_engine/tables/t/split", `{"keys": ["g", "p"]}`, nil)
		got, err := c.BatchWriteRow(rowsOf("a", "h", "q", "b", "i"))
		if list := codes(t, got, err); !slices.Equal(list, []string{"", "", sim.NotEnoughCapacityUnit, "", sim.NotEnoughCapacityUnit}) {
			t.Errorf("%q", list)
		}
	})
}

func TestAnOffSimulationCountsNothing(t *testing.T) {
	s := open(t, Options{})
	c := inProcess(s)
	createTable(t, c, "t", 1)
	if _, err := c.BatchWriteRow(rowsOf("a")); err != nil || len(s.Sim().Stats()) != 0 || s.sim.on.Load() {
		t.Errorf("%v, %v", err, s.Sim().Stats())
	}
}

func TestTheRequestedCapacityIsAccepted(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		if err := s.Sim().Simulate("", Simulation{Config: sim.Config{PartitionUnits: 1000, Latency: 5 * time.Millisecond}}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		n := 0
		for time.Since(start) < time.Second {
			keys := make([]string, 100)
			for i := range keys {
				keys[i] = fmt.Sprintf("k%06d", n)
				n++
			}
			if _, err := c.BatchWriteRow(rowsOf(keys...)); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Sim().Stats()["t"].Rows; got < 950 || got > 1005 {
			t.Errorf("%d rows in a second of 1000 units", got)
		}
	})
}

func TestSplitsWhileLoadingLoseAndInventNothing(t *testing.T) {
	s := open(t, Options{Simulation: &Simulation{Config: sim.Config{
		PartitionUnits: 20_000, Latency: 200 * time.Microsecond, Jitter: 1, AutoSplit: sim.AutoSplit{Bytes: 5000, Unavailable: time.Millisecond},
		Moves: sim.Moves{PerMinute: 6000, Unavailable: time.Millisecond},
	}}})
	c := inProcess(s)
	createTable(t, c, "t", 1)
	var accepted atomic.Int64
	var loaders sync.WaitGroup
	for g := range 4 {
		loaders.Go(func() {
			for i := range 50 {
				keys := make([]string, 20)
				for j := range keys {
					keys[j] = fmt.Sprintf("%04d", (g*1000+i*20+j)*7919%10000)
				}
				r, err := inProcess(s).BatchWriteRow(rowsOf(keys...))
				if err != nil {
					t.Error(err)
					return
				}
				for _, row := range r.TableToRowsResult["t"] {
					if row.IsSucceed {
						accepted.Add(1)
					}
				}
			}
		})
	}
	for i := range 8 {
		must(t, s, "POST", "/_engine/tables/t/split", fmt.Sprintf(`{"keys":["%d"],"unavailable_ms":1}`, i), nil)
		raw(s, "DescribeTable", []byte("\x0a\x01t"), nil)
		must(t, s, "GET", "/_engine/stats", "", nil)
	}
	loaders.Wait()
	st := s.Sim().Stats()["t"]
	if n := rowsIn(t, c); int64(n) != accepted.Load() || st.Rows != accepted.Load() {
		t.Errorf("%d rows in the table, %d acknowledged, %d counted", n, accepted.Load(), st.Rows)
	}
	if sum := st.Rows + st.Throttled + st.Unavailable; sum != 4000 || accepted.Load() == 0 || st.Unavailable == 0 {
		t.Errorf("%+v of 4000 rows", st.Count)
	}
}

func TestARowTheTableRefusesIsCountedAsFailed(t *testing.T) {
	s := open(t, Options{Simulation: &Simulation{}})
	c := inProcess(s)
	createTable(t, c, "t", 1)
	b := &tablestore.BatchWriteRowRequest{}
	change := put("t", key("a", 1), "v", "x")
	change.SetCondition(tablestore.RowExistenceExpectation_EXPECT_EXIST)
	b.AddRowChange(change)
	b.AddRowChange(put("t", key("b", 1), "v", "x"))
	wrong := &tablestore.PrimaryKey{}
	wrong.AddPrimaryKeyColumn("pk1", int64(1))
	wrong.AddPrimaryKeyColumn("pk2", int64(1))
	b.AddRowChange(put("t", wrong, "v", "x"))
	b.AddRowChange(put("elsewhere", key("a", 1), "v", "x"))
	r, err := c.BatchWriteRow(b)
	want := fmt.Sprint([]string{wire.CodeConditionCheckFail, "", wire.CodeInvalidPK})
	if got := fmt.Sprint(codes(t, r, err)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if row := r.TableToRowsResult["elsewhere"][0]; row.Error.Code != wire.CodeObjectNotExist {
		t.Errorf("%+v", row)
	}
	if st := s.Sim().Stats()["t"]; st.Rows != 2 || st.Failed != 1 {
		t.Errorf("%+v", st.Count)
	}
}
