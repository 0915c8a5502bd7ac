package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/google/go-cmp/cmp"
)

var testContext = context.Background()

// bothWays runs a test through the transport and through a port.
func bothWays(t *testing.T, o Options, f func(t *testing.T, s *Server, c *tablestore.TableStoreClient)) {
	t.Run("in process", func(t *testing.T) {
		s := open(t, o)
		f(t, s, inProcess(s))
	})
	t.Run("over HTTP", func(t *testing.T) {
		s := open(t, o)
		f(t, s, overHTTP(t, s))
	})
}

func TestARowSurvivesTheRoundTrip(t *testing.T) {
	bothWays(t, Options{}, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		createTable(t, c, "t", 1)
		k := key("a\x00b", -5)
		resp, err := c.PutRow(&tablestore.PutRowRequest{PutRowChange: put("t", k,
			"s", "héllo", "i", int64(-7), "d", 3.25, "b", true, "f", false, "bin", []byte{0, 255}, "es", "", "eb", []byte{})})
		if err != nil {
			t.Fatal(err)
		}
		if u := resp.ConsumedCapacityUnit; u.Read != 0 || u.Write != 1 {
			t.Errorf("consumed %+v", u)
		}
		r := get(t, c, "t", k)
		got := map[string]any{}
		var names []string
		for _, col := range r.Columns {
			got[col.ColumnName] = col.Value
			names = append(names, col.ColumnName)
		}
		want := map[string]any{"s": "héllo", "i": int64(-7), "d": 3.25, "b": true, "f": false, "bin": []byte{0, 255}, "es": "", "eb": []byte{}}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"b", "bin", "d", "eb", "es", "f", "i", "s"}, names); d != "" {
			t.Error(d)
		}
		if r := get(t, c, "t", key("a", -5)); len(r.PrimaryKey.PrimaryKeys) != 0 {
			t.Errorf("a row that was never written: %+v", r)
		}
	})
}

func TestTablesAreListedDescribedUpdatedAndDeleted(t *testing.T) {
	s := open(t, Options{})
	c := inProcess(s)
	createTable(t, c, "t2", 3)
	createTable(t, c, "t1", 1)
	if _, err := c.CreateTable(&tablestore.CreateTableRequest{
		TableMeta:   &tablestore.TableMeta{TableName: "t1", SchemaEntry: []*tablestore.PrimaryKeySchema{{Name: ptr("a"), Type: ptr(tablestore.PrimaryKeyType_STRING)}}},
		TableOption: &tablestore.TableOption{TimeToAlive: -1, MaxVersion: 1}, ReservedThroughput: &tablestore.ReservedThroughput{},
	}); code(err) != "OTSObjectAlreadyExist" {
		t.Error(err)
	}
	l, err := c.ListTable()
	if err != nil || !cmp.Equal(l.TableNames, []string{"t1", "t2"}) {
		t.Error(l, err)
	}
	if _, err := c.UpdateTable(&tablestore.UpdateTableRequest{TableName: "t2", TableOption: &tablestore.TableOption{TimeToAlive: 100000, MaxVersion: 5}}); err != nil {
		t.Fatal(err)
	}
	d, err := c.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t2"})
	if err != nil {
		t.Fatal(err)
	}
	if o := d.TableOption; o.TimeToAlive != 100000 || o.MaxVersion != 5 || o.DeviationCellVersionInSec != 86400 {
		t.Errorf("options %+v", o)
	}
	if n := len(d.TableMeta.SchemaEntry); n != 2 || *d.TableMeta.SchemaEntry[1].Name != "pk2" {
		t.Errorf("schema %+v", d.TableMeta)
	}
	if _, err := c.PutRow(&tablestore.PutRowRequest{PutRowChange: put("t2", key("a", 1), "c", "v")}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.DeleteTable(&tablestore.DeleteTableRequest{TableName: "t2"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t2"}); code(err) != "OTSObjectNotExist" {
		t.Error(err)
	}
	createTable(t, c, "t2", 1)
	if r := get(t, c, "t2", key("a", 1)); len(r.PrimaryKey.PrimaryKeys) != 0 {
		t.Error("a table that was created again is not empty")
	}
}

func ptr[T any](v T) *T { return &v }

func TestABatchAnswersPerRowInRequestOrder(t *testing.T) {
	bothWays(t, Options{}, func(t *testing.T, s *Server, c *tablestore.TableStoreClient) {
		createTable(t, c, "t", 1)
		b := &tablestore.BatchWriteRowRequest{}
		for i := range 200 {
			p := put("t", key("k", int64(i)), "v", int64(i))
			if i%10 == 3 {
				p.SetCondition(tablestore.RowExistenceExpectation_EXPECT_EXIST)
			}
			b.AddRowChange(p)
		}
		resp, err := c.BatchWriteRow(b)
		if err != nil {
			t.Fatal(err)
		}
		rows := resp.TableToRowsResult["t"]
		if len(rows) != 200 {
			t.Fatalf("%d results", len(rows))
		}
		for i, r := range rows {
			if want := i%10 != 3; r.IsSucceed != want || !want && r.Error.Code != "OTSConditionCheckFail" {
				t.Errorf("row %d: %+v", i, r)
			}
		}
		if rows := scan(t, c, "t", tablestore.FORWARD, 0); len(rows) != 180 {
			t.Errorf("%d rows in the table", len(rows))
		}
	})
}

// scan reads a whole table, page by page, as texts.
func scan(t testing.TB, c *tablestore.TableStoreClient, table string, dir tablestore.Direction, limit int32) (rows []string) {
	t.Helper()
	from, to := &tablestore.PrimaryKey{}, &tablestore.PrimaryKey{}
	for _, n := range []string{"pk1", "pk2"} {
		from.AddPrimaryKeyColumnWithMinValue(n)
		to.AddPrimaryKeyColumnWithMaxValue(n)
	}
	if dir == tablestore.BACKWARD {
		from, to = to, from
	}
	for from != nil {
		r, err := c.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
			TableName: table, StartPrimaryKey: from, EndPrimaryKey: to, Direction: dir, MaxVersion: 100, Limit: limit,
		}})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range r.Rows {
			s := ""
			for _, k := range row.PrimaryKey.PrimaryKeys {
				s += fmt.Sprint(k.Value, " ")
			}
			for _, col := range row.Columns {
				s += fmt.Sprintf("%s=%v ", col.ColumnName, col.Value)
			}
			rows = append(rows, s)
		}
		from = r.NextStartPrimaryKey
	}
	return rows
}

func TestARangeIsPagedInBothDirections(t *testing.T) {
	s := open(t, Options{})
	c := inProcess(s)
	createTable(t, c, "t", 1)
	var want []string
	for i := range 25 {
		for _, p := range []string{"", "a", "a\x00", "b"} {
			if _, err := c.PutRow(&tablestore.PutRowRequest{PutRowChange: put("t", key(p, int64(i-12)), "v", int64(i))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, p := range []string{"", "a", "a\x00", "b"} {
		for i := range 25 {
			want = append(want, fmt.Sprint(p, " ", i-12, " v=", i, " "))
		}
	}
	for _, limit := range []int32{0, 1, 7, 99, 100, 101} {
		if d := cmp.Diff(want, scan(t, c, "t", tablestore.FORWARD, limit)); d != "" {
			t.Errorf("limit %d: %s", limit, d)
		}
		back := scan(t, c, "t", tablestore.BACKWARD, limit)
		for i := range back {
			if back[i] != want[len(want)-1-i] {
				t.Fatalf("backward, limit %d, row %d: %s", limit, i, back[i])
			}
		}
		if len(back) != len(want) {
			t.Errorf("backward, limit %d: %d rows", limit, len(back))
		}
	}
}

func TestACancelledRequestIsNotApplied(t *testing.T) {
	s := open(t, Options{})
	createTable(t, inProcess(s), "t", 1)
	ctx, cancel := context.WithCancel(testContext)
	cancel()
	req := signed(s, "PutRow", nil).WithContext(ctx)
	if _, err := s.Transport().RoundTrip(req); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestATransportAnswersWithAStatusLineAndALength(t *testing.T) {
	s := open(t, Options{})
	resp, err := s.Transport().RoundTrip(signed(s, "ListTable", nil))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.Status != "200 OK" || len(body) != 0 || resp.ContentLength != 0 {
		t.Error(resp.Status, body, err)
	}
}
