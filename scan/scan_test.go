package scan

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/client"
	"tsimport/engine/faults"
	"tsimport/engine/server"
	"tsimport/table"
)

var key = []table.KeyColumn{{Name: "id", Type: table.Integer}}

// tableOf makes a table t with rows 0 to n−1 and returns a client for it.
func tableOf(t *testing.T, n int, plan *faults.Plan) *tablestore.TableStoreClient {
	t.Helper()
	s, err := server.Open("", server.Options{InMemory: true, Faults: plan})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	sdk, err := client.New(context.Background(), client.Target{
		Endpoint: "http://embedded", Instance: server.DefaultInstance, Transport: s.Transport(),
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: server.DefaultAccessKeyID, AccessKeySecret: server.DefaultAccessKeySecret},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	admin := &client.Admin{Client: sdk, Context: context.Background()}
	if err := admin.Create("t", key, table.Definition{TimeToLive: -1, MaxVersions: 1}); err != nil {
		t.Fatal(err)
	}
	for from := 0; from < n; from += 200 {
		req := &tablestore.BatchWriteRowRequest{}
		for i := from; i < min(from+200, n); i++ {
			put(req, int64(i), map[string]any{"n": int64(-i), "s": fmt.Sprint("row ", i)})
		}
		if _, err := sdk.BatchWriteRow(req); err != nil {
			t.Fatal(err)
		}
	}
	return sdk
}

func put(req *tablestore.BatchWriteRowRequest, id int64, columns map[string]any) {
	change := &tablestore.PutRowChange{TableName: "t", PrimaryKey: new(tablestore.PrimaryKey)}
	change.PrimaryKey.AddPrimaryKeyColumn("id", id)
	change.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	for c, v := range columns {
		change.AddColumn(c, v)
	}
	req.AddRowChange(change)
}

func TestAScanDeliversEveryRowOnceInOrder(t *testing.T) {
	const rows = 12_345 // three pages
	sdk := tableOf(t, rows, nil)
	for _, limit := range []int64{0, 1, 4999, 5000, 5001, rows, rows + 1} {
		next := int64(0)
		err := Table(context.Background(), sdk, "t", key, Options{Limit: limit}, func(r *Row) error {
			if got := r.PrimaryKey.PrimaryKeys[0].Value; got != next || len(r.Columns) != 2 {
				return fmt.Errorf("row %v with %d columns, want row %d", got, len(r.Columns), next)
			}
			next++
			return nil
		})
		want := int64(rows)
		if limit > 0 {
			want = min(limit, rows)
		}
		if err != nil || next != want {
			t.Errorf("limit %d: %d rows, %v", limit, next, err)
		}
	}
}

func TestAScanSurvivesPassingFaults(t *testing.T) {
	ways := []faults.Fault{
		{Action: faults.Refuse, Code: "OTSServerBusy"}, {Action: faults.Refuse, Code: "OTSPartitionUnavailable"},
		{Action: faults.Refuse, Code: "OTSTimeout"}, {Action: faults.DropAfter}, {Action: faults.TruncateBody}, {Action: faults.BadBody},
	}
	plan := &faults.Plan{Only: func(op string) bool { return op == "GetRange" }}
	plan.Decide = func(r faults.Request) faults.Fault {
		if r.N%2 == 0 && r.N/2 < len(ways) {
			return ways[r.N/2]
		}
		return faults.Fault{}
	}
	sdk := tableOf(t, 11_000, plan)
	rows := 0
	for range 3 {
		if err := Table(context.Background(), sdk, "t", key, Options{}, func(*Row) error { rows++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if rows != 33_000 {
		t.Errorf("%d rows in three scans, want 33000", rows)
	}
	if plan.Requests() < 2*len(ways) {
		t.Errorf("only %d requests: not every fault happened", plan.Requests())
	}
}

func TestAScanStopsAtErrorsThatDoNotPass(t *testing.T) {
	plan := &faults.Plan{Only: func(op string) bool { return op == "GetRange" }}
	sdk := tableOf(t, 10, plan)
	plan.Decide = func(faults.Request) faults.Fault { return faults.Fault{Action: faults.Refuse, Code: "OTSAuthFailed"} }
	if err := Table(context.Background(), sdk, "t", key, Options{}, func(*Row) error { return nil }); err == nil || !strings.Contains(err.Error(), "OTSAuthFailed") {
		t.Errorf("got %v", err)
	}
	plan.Decide = func(faults.Request) faults.Fault { return faults.Fault{Action: faults.Refuse, Code: "OTSServerBusy"} }
	ctx, cancel := context.WithCancelCause(context.Background())
	stopped := errors.New("stopped")
	cancel(stopped)
	if err := Table(ctx, sdk, "t", key, Options{}, func(*Row) error { return nil }); !errors.Is(err, stopped) {
		t.Errorf("got %v", err)
	}
	plan.Decide = nil
	enough := errors.New("enough")
	if err := Table(context.Background(), sdk, "t", key, Options{}, func(*Row) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
}

// everyType is a row with one value of each kind that is hard to write.
func everyType() *Row {
	r := &Row{PrimaryKey: new(tablestore.PrimaryKey)}
	r.PrimaryKey.AddPrimaryKeyColumn("id", int64(math.MinInt64))
	for _, c := range []struct {
		name  string
		value any
	}{
		{"b", []byte{0, 255}}, {"d", 1.5}, {"e", ""}, {"eb", []byte{}}, {"f", false}, {"i", int64(math.MaxInt64)}, {"l", 1e300}, {"q", "a,\"b\"\r\n"}, {"w", 5.0}, {"表", "<中文>"},
	} {
		r.Columns = append(r.Columns, &tablestore.AttributeColumn{ColumnName: c.name, Value: c.value})
	}
	return r
}

func TestCSVIsReadBackAsItWas(t *testing.T) {
	var out bytes.Buffer
	columns := []string{"b", "d", "e", "eb", "f", "i", "l", "missing", "q", "w", "表"}
	f, err := NewCSV(&out, []string{"id"}, columns)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Write(everyType()), f.Close()); err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(strings.NewReader(strings.ReplaceAll(out.String(), "\r\n", "␍\n"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := "-9223372036854775808|AP8=|1.5|||false|9223372036854775807|1e+300||a,\"b\"␍\n|5|<中文>"
	if got := strings.Join(records[1], "|"); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if !strings.Contains(out.String(), `1.5,"","",false`) {
		t.Error("empty values are not told from absent ones")
	}
}

func TestJSONLinesTellTheTypes(t *testing.T) {
	var out bytes.Buffer
	f := NewJSONL(&out)
	if err := errors.Join(f.Write(everyType()), f.Close()); err != nil {
		t.Fatal(err)
	}
	want := `{"id":-9223372036854775808,"b":{"base64":"AP8="},"d":1.5,"e":"","eb":{"base64":""},"f":false,"i":9223372036854775807,` +
		`"l":1e+300,"q":"a,\"b\"\r\n","w":5.0,"表":"<中文>"}` + "\n"
	if out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
	var any map[string]any
	if err := json.Unmarshal(out.Bytes(), &any); err != nil {
		t.Error(err)
	}
}

func TestASpoolGivesBackWhatItGot(t *testing.T) {
	dir := t.TempDir()
	s, err := NewSpool(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if err := s.Write(everyType()); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(s.Columns(), " "); got != "b d e eb f i l q w 表" {
		t.Errorf("columns %s", got)
	}
	rows := 0
	err = s.Replay(func(r *Row) error {
		rows++
		var got, want bytes.Buffer
		f, g := NewJSONL(&got), NewJSONL(&want)
		if err := errors.Join(f.Write(r), f.Close(), g.Write(everyType()), g.Close()); err != nil {
			return err
		}
		if got.String() != want.String() {
			return fmt.Errorf("got %s", got.String())
		}
		return nil
	})
	if err != nil || rows != 1000 {
		t.Errorf("%d rows, %v", rows, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v left behind, %v", left, err)
	}
}

func TestACutSpoolIsAnError(t *testing.T) {
	s, err := NewSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Write(everyType()); err != nil {
		t.Fatal(err)
	}
	s.rows++ // as if the last row had not reached the disk
	if err := s.Replay(func(*Row) error { return nil }); err == nil {
		t.Error("a missing row went unnoticed")
	}
}
