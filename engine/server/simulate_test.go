package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/sim"
	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

// admin asks the admin API and decodes the answer into out, which may be nil.
func admin(t testing.TB, s *Server, method, path, body string, out any) int {
	t.Helper()
	a := s.serve(testContext, &request{method: method, path: path, header: http.Header{}, body: []byte(body), tooLong: len(body) > maxAdminBytes})
	if out != nil {
		conformance.MustEqual(t, json.Unmarshal(a.body, out), nil, "%s %s: %s", method, path, a.body)
	}
	return a.status
}

// tell is admin for what has to succeed.
func tell(t testing.TB, s *Server, method, path, body string, out any) {
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

// writeRows sends a batch and returns the codes of its rows, "" for an applied row.
func writeRows(t testing.TB, c *tablestore.TableStoreClient, b *tablestore.BatchWriteRowRequest) (codes []string) {
	t.Helper()
	r, err := c.BatchWriteRow(b)
	must(t, err)
	for _, row := range r.TableToRowsResult["t"] {
		codes = append(codes, row.Error.Code)
	}
	return codes
}

// putRow sends a row alone.
func putRow(c *tablestore.TableStoreClient, p *tablestore.PutRowChange) error {
	_, err := c.PutRow(&tablestore.PutRowRequest{PutRowChange: p})
	return err
}

// inBubble runs f with a server in a bubble of synctest.
func inBubble(t *testing.T, f func(t *testing.T, s *Server, c *tablestore.TableStoreClient)) {
	synctest.Test(t, func(t *testing.T) {
		s := reopen(t, "", Options{InMemory: true})
		c := inProcess(s)
		createTable(t, c, "t", 1)
		f(t, s, c)
		conformance.Equal(t, s.Close(), nil, "Close")
	})
}

func TestThrottledRowsAreNotAppliedAndTheOthersAre(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		tell(t, s, "POST", "/_engine/tables/t/simulate", `{"partition_wcu": 10}`, nil)
		tell(t, s, "POST", "/_engine/tables/t/split", `{"keys": ["m"]}`, nil)
		time.Sleep(200 * time.Millisecond) // two units for each partition
		want := []string{"", "", "", wire.CodeNotEnoughCapacityUnit, wire.CodeNotEnoughCapacityUnit}
		conformance.Same(t, writeRows(t, c, rowsOf("a", "b", "z", "c", "d")), want, "write rows")
		hasRows(t, c, 3)
		err := putRow(c, put("t", key("e", 1)))
		if e, ok := err.(*tablestore.OtsError); !ok || e.Code != wire.CodeNotEnoughCapacityUnit || e.HttpStatusCode != http.StatusForbidden {
			t.Errorf("a single row: %v", err)
		}
		must(t, putRow(c, put("t", key("y", 1)))) // of the other partition
		st := s.Sim().Stats()["t"]
		if st.Rows != 4 || st.Throttled != 3 || st.Units != 4 || st.Requests != 3 {
			t.Errorf("%+v", st.Count)
		}
	})
}

func TestASplitPartitionIsAwayAndThenTheChildrenServe(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		var list struct{ Partitions []map[string]any }
		tell(t, s, "POST", "/_engine/tables/t/split", `{"keys": ["h", "p"], "unavailable_ms": 500}`, &list)
		if len(list.Partitions) != 3 || list.Partitions[0]["end"] != "h" || list.Partitions[1]["start"] != "h" || list.Partitions[2]["end"] != nil {
			t.Fatalf("%v", list.Partitions)
		}
		if got := writeRows(t, c, rowsOf("a", "h")); got[0] != wire.CodePartitionUnavailable || got[1] != wire.CodePartitionUnavailable {
			t.Errorf("%q", got)
		}
		err := putRow(c, put("t", key("e", 1)))
		if e, ok := err.(*tablestore.OtsError); !ok || e.Code != wire.CodePartitionUnavailable || e.HttpStatusCode != http.StatusServiceUnavailable {
			t.Errorf("a single row: %v", err)
		}
		time.Sleep(500 * time.Millisecond)
		tell(t, s, "POST", "/_engine/tables/t/split", `{"keys": ["w"], "unavailable_ms": 500}`, nil)
		if got := writeRows(t, c, rowsOf("a", "h", "x")); got[0] != "" || got[1] != "" || got[2] != wire.CodePartitionUnavailable {
			t.Errorf("%q", got)
		}
		hasRows(t, c, 2)
	})
}

func TestLatencyIsSleptHalfBeforeTheApplication(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		tell(t, s, "POST", "/_engine/simulate", `{"latency_ms": 100}`, nil)
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
		tell(t, s, "POST", "/_engine/simulate", `{"latency_ms": 100, "partition_wcu": 10, "limiter": "queue"}`, nil)
		for i, want := range []time.Duration{300 * time.Millisecond, 200 * time.Millisecond} {
			start := time.Now()
			list := writeRows(t, c, rowsOf(slices.Repeat([]string{"a"}, 2-i)...))
			if slices.Max(list) != "" || time.Since(start) != want {
				t.Errorf("request %d took %v, want %v: %q", i, time.Since(start), want, list)
			}
		}
	})
}

func TestALimitOfTheTableRefusesRowsAsAPartitionDoes(t *testing.T) {
	inBubble(t, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		tell(t, s, "POST", "/_engine/simulate", `{"table_wcu": 3, "limiter": "fixed-window"}`, nil)
		tell(t, s, "POST", "/_engine/tables/t/split", `{"keys": ["g", "p"]}`, nil)
		if list := writeRows(t, c, rowsOf("a", "h", "q", "b", "i")); !slices.Equal(list, []string{"", "", sim.NotEnoughCapacityUnit, "", sim.NotEnoughCapacityUnit}) {
			t.Errorf("%q", list)
		}
	})
}

func TestAnOffSimulationCountsNothing(t *testing.T) {
	s, c := withTable(t, Options{})
	if _, err := c.BatchWriteRow(rowsOf("a")); err != nil || len(s.Sim().Stats()) != 0 || s.sim.on.Load() {
		t.Errorf("%v, %v", err, s.Sim().Stats())
	}
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
		tell(t, s, "POST", "/_engine/tables/t/split", fmt.Sprintf(`{"keys":["%d"],"unavailable_ms":1}`, i), nil)
		raw(s, "DescribeTable", []byte("\x0a\x01t"), nil)
		tell(t, s, "GET", "/_engine/stats", "", nil)
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
	s, c := withTable(t, Options{Simulation: &Simulation{}})
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
	must(t, err)
	for i, want := range []string{wire.CodeConditionCheckFail, "", wire.CodeInvalidPK} {
		conformance.Equal(t, r.TableToRowsResult["t"][i].Error.Code, want, "row %d", i)
	}
	conformance.Equal(t, r.TableToRowsResult["elsewhere"][0].Error.Code, wire.CodeObjectNotExist, "code")
	if st := s.Sim().Stats()["t"]; st.Rows != 2 || st.Failed != 1 {
		t.Errorf("%+v", st.Count)
	}
}
