package server

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
)

func TestAnInstanceRefusesWholeRequests(t *testing.T) {
	at := &clock{time.Now()}
	for _, simulated := range []bool{false, true} {
		s, c := withTable(t, Options{InstanceUnits: 100, Now: at.now})
		if simulated {
			must(t, s.Sim().Simulate("t", Simulation{Config: sim.Config{PartitionUnits: 1000}}))
		}
		_, err := c.BatchWriteRow(rowsOf("a", "b"))
		var ots *tablestore.OtsError
		if !errors.As(err, &ots) || ots.HttpStatusCode != 429 || ots.Code != "OTSFlowControl" || ots.Message != "The requests have been throttled." {
			t.Fatalf("simulated %v: %v", simulated, err)
		}
		at.at = at.at.Add(time.Second) // a tenth of which is saved up
		if got := writeRows(t, c, rowsOf("a", "b", "c", "d")); slices.ContainsFunc(got, func(c string) bool { return c != "" }) {
			t.Errorf("simulated %v: %v", simulated, got)
		}
		var stats struct{ Instance sim.InstanceCount }
		tell(t, s, "GET", "/_engine/stats", "", &stats)
		if stats.Instance != (sim.InstanceCount{Units: 4, Refused: 1, Rows: 2}) {
			t.Errorf("simulated %v: %+v", simulated, stats)
		}
		tell(t, s, "DELETE", "/_engine/stats", "", nil)
		tell(t, s, "GET", "/_engine/stats", "", &stats)
		conformance.Equal(t, stats.Instance, sim.InstanceCount{}, "simulated %v: %+v", simulated, stats)
	}
}

func TestIndexesAreDescribedAndPaidFor(t *testing.T) {
	at := &clock{time.Now()}
	s, c := withTable(t, Options{Now: at.now})
	tell(t, s, "POST", "/_engine/tables/t/simulate", `{"partition_wcu": 10, "indexes": 2}`, nil)
	d, err := c.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t"})
	if err != nil || len(d.IndexMetas) != 2 || d.IndexMetas[1].IndexName != "t_index2" || !slices.Equal(d.IndexMetas[0].Primarykey, []string{"pk1", "pk2"}) {
		t.Fatalf("%v, %+v", err, d)
	}
	at.at = at.at.Add(time.Second)
	if got := writeRows(t, c, rowsOf("a", "b", "c", "d")); !slices.Equal(got, []string{"", "", "", "OTSNotEnoughCapacityUnit"}) {
		t.Errorf("ten units are three rows of three: %v", got)
	}
	off := false
	for _, o := range []struct {
		option tablestore.TableOption
		taken  bool
	}{
		{tablestore.TableOption{TimeToAlive: -1, MaxVersion: 2}, false},
		{tablestore.TableOption{TimeToAlive: 86400, MaxVersion: 1}, false},
		{tablestore.TableOption{TimeToAlive: 86400, MaxVersion: 1, AllowUpdate: &off}, true},
	} {
		_, err := c.UpdateTable(&tablestore.UpdateTableRequest{TableName: "t", TableOption: &o.option})
		conformance.Equal(t, err == nil, o.taken, "%+v: %v", o.option, err)
	}
	conformance.Equal(t, admin(t, s, "POST", "/_engine/tables/t/simulate", `{"indexes": 6}`, nil), 400, "six indexes")
	tell(t, s, "POST", "/_engine/tables/t/simulate", `{}`, nil)
	if d, err := c.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t"}); err != nil || len(d.IndexMetas) != 0 {
		t.Errorf("%v, %+v", err, d)
	}
}
