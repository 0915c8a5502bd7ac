package null

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/bench"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

func start(t *testing.T, o Options) (*Server, string) {
	t.Helper()
	s := conformance.Try(Start("127.0.0.1:0", o)).Must(t)
	t.Cleanup(s.Close)
	return s, s.Listener.Addr().String()
}

func sdk(endpoint string, transport http.RoundTripper) *tablestore.TableStoreClient {
	config := tablestore.NewDefaultTableStoreConfig()
	config.RetryTimes, config.Transport = 0, transport
	config.HTTPTimeout.RequestTimeout = 20 * time.Second
	return tablestore.NewClientWithConfig(endpoint, "i", "a", "b", "", config)
}

// signing starts a server that signs its answers, and returns a client with this secret.
func signing(t *testing.T, o Options, secret string) (*client.Admin, *client.Traffic) {
	t.Helper()
	o.AccessKeyID, o.AccessKeySecret = "a", "b"
	_, address := start(t, o)
	traffic := new(client.Traffic)
	c := conformance.Try(client.New(t.Context(), client.Target{Endpoint: "http://" + address, Instance: "i",
		Credentials: &common.DefaultCredentialsProvider{AccessKeyID: "a", AccessKeySecret: secret}}, traffic)).Must(t)
	return &client.Admin{Client: c, Context: t.Context()}, traffic
}

func batch(name string, rows, bytes int) *tablestore.BatchWriteRowRequest {
	b := new(tablestore.BatchWriteRowRequest)
	for i := range rows {
		change := &tablestore.PutRowChange{TableName: name, PrimaryKey: new(tablestore.PrimaryKey)}
		change.PrimaryKey.AddPrimaryKeyColumn("id", int64(i))
		change.AddColumn("v", strings.Repeat("x", bytes))
		change.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
		b.AddRowChange(change)
	}
	return b
}

func TestAllRowsAreAnswered(t *testing.T) {
	s, address := start(t, Options{})
	c := sdk("http://"+address, nil)
	want := 0
	for _, rows := range []int{1, 2, 199, 200, 200, 3} {
		for _, bytes := range []int{1, 400, 5000} {
			res, err := c.BatchWriteRow(batch("t", rows, bytes))
			conformance.MustEqual(t, err, nil, "%d rows of %d bytes", rows, bytes)
			results := res.TableToRowsResult["t"]
			conformance.MustEqual(t, len(results), rows, "results for rows of %d bytes", bytes)
			for _, r := range results {
				conformance.MustTrue(t, r.IsSucceed && r.ConsumedCapacityUnit.Write == 1, "%+v", r)
			}
			want += rows
		}
	}
	conformance.True(t, int(s.Rows.Load()) == want && s.Requests.Load() == 18 && s.Connections.Load() == 1,
		"%d rows, %d requests, %d connections; want %d, 18, 1", s.Rows.Load(), s.Requests.Load(), s.Connections.Load(), want)
}

func TestAllTablesExist(t *testing.T) {
	_, address := start(t, Options{})
	c := sdk("http://"+address, nil)
	res := conformance.Try(c.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t"})).Must(t)
	if o := res.TableOption; o.TimeToAlive != -1 || o.MaxVersion != 1 || o.DeviationCellVersionInSec != table.AnyAge {
		t.Errorf("options %+v", o)
	}
	k := res.TableMeta.SchemaEntry
	conformance.True(t, res.TableMeta.TableName == "t" && len(k) == 1 && *k[0].Name == "id" &&
		*k[0].Type == tablestore.PrimaryKeyType_INTEGER, "%+v", res.TableMeta)
	_, err := c.GetRow(&tablestore.GetRowRequest{SingleRowQueryCriteria: &tablestore.SingleRowQueryCriteria{
		TableName: "t", PrimaryKey: new(tablestore.PrimaryKey), MaxVersion: 1}})
	conformance.True(t, err != nil, "a row was read")
}

func TestAnswersAreSigned(t *testing.T) {
	t.Parallel()
	for secret, wrong := range map[string]bool{"b": false, "c": true} {
		admin, traffic := signing(t, Options{}, secret)
		for range 2 { // the second answer repeats the first
			_, err := admin.Client.BatchWriteRow(batch("t", 3, 1))
			conformance.Equal(t, wrong, err != nil, "secret %s: %v", secret, err)
		}
		_, err := admin.List()
		conformance.True(t, wrong == (err != nil), "secret %s: %v", secret, err)
		checked, unchecked := traffic.Checked.Load(), traffic.Unchecked.Load()
		conformance.True(t, wrong || unchecked == 0 && checked == 3, "%d answers checked, %d not", checked, unchecked)
	}
}

func TestPartitionsAreCutEvenly(t *testing.T) {
	admin, _ := signing(t, Options{Partitions: 4}, "b")
	bounds, err := admin.Splits("t")
	conformance.MustTrue(t, err == nil && len(bounds) == 3, "%v, %v", bounds, err)
	for i, b := range bounds {
		conformance.Equal(t, b.Int, int64(324_999_999+224_999_999*i), "partition %d begins", i+1)
	}
}

func TestTLSUsesAGeneratedCertificate(t *testing.T) {
	s, address := start(t, Options{TLS: true})
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	trusting := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	defer trusting.CloseIdleConnections()
	conformance.Must(t, conformance.ErrorOf(sdk("https://"+address, trusting).ListTable()))
	conformance.True(t, conformance.ErrorOf(sdk("https://"+address, nil).ListTable()) != nil,
		"a client that does not know the certificate trusts the server")
}

func TestInvalidRequestIsRefused(t *testing.T) {
	s, address := start(t, Options{})
	for _, text := range []string{"GET / HTTP/1.1\r\nHost: a\r\n",
		"POST /ListTable HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n",
		"POST /ListTable HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n"} {
		c := conformance.Try(net.Dial("tcp", address)).Must(t)
		conformance.Must(t, c.SetDeadline(time.Now().Add(5*time.Minute)))
		conformance.Must(t, conformance.ErrorOf(io.WriteString(c, text+"Connection: close\r\n\r\n")))
		answer, err := bufio.NewReader(c).ReadString('\n')
		conformance.True(t, err == nil && strings.HasPrefix(answer, "HTTP/1.1 400 "), "%q: %q, %v", text, answer, err)
		c.Close()
	}
	conformance.Equal(t, s.Requests.Load(), 0, "requests that count")
}

func TestLatencyDelaysTheAnswer(t *testing.T) {
	_, address := start(t, Options{Latency: 20 * time.Millisecond})
	begin := time.Now()
	conformance.Must(t, conformance.ErrorOf(sdk("http://"+address, nil).BatchWriteRow(batch("t", 1, 1))))
	took := time.Since(begin)
	conformance.True(t, took >= 20*time.Millisecond, "answered after %v", took)
}

func TestBulkImportIsAnswered(t *testing.T) {
	s, address := start(t, Options{AccessKeyID: "a", AccessKeySecret: "b"})
	body := protowire.AppendString([]byte{10}, "t")
	for range 3 {
		body = protowire.AppendBytes(append(body, 18), []byte{8, 1})
	}
	post := func(path string, body []byte) []byte {
		t.Helper()
		res := conformance.Try(http.Post("http://"+address+path, "", bytes.NewReader(body))).Must(t)
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		conformance.MustTrue(t, err == nil && res.StatusCode == http.StatusOK, "%s: status %d, %v", path, res.StatusCode, err)
		conformance.Equal(t, strings.HasPrefix(res.Header.Get("Authorization"), "OTS a:"), true, "%s: signed", path)
		conformance.True(t, res.Header.Get("x-ots-requestid") != "", "%s: no request ID, which Java's SDK wants", path)
		return answer
	}
	bulk := post("/BulkImport", body)
	// rowsOf returns the table in an answer and how many rows it has.
	rowsOf := func(answer []byte) (name string, rows int) {
		eachField(answer, func(number protowire.Number, _ uint64, value []byte) {
			if number == 1 {
				name = string(value)
			} else {
				rows++
			}
		})
		return name, rows
	}
	name, rows := rowsOf(bulk)
	conformance.True(t, name == "t" && rows == 3, "BulkImport: table %q, %d rows: % x", name, rows, bulk)
	batch := post("/BatchWriteRow", protowire.AppendBytes([]byte{10}, body))
	eachField(batch, func(_ protowire.Number, _ uint64, table []byte) {
		name, rows := rowsOf(table)
		conformance.True(t, name == "t" && rows == 3, "BatchWriteRow: table %q, %d rows: % x", name, rows, batch)
	})
	conformance.True(t, s.Rows.Load() == 6 && s.Requests.Load() == 2 && s.Connections.Load() == 1,
		"%d rows, %d requests, %d connections", s.Rows.Load(), s.Requests.Load(), s.Connections.Load())
}

// Rows generated in random order are read in key order, page by page, between two bounds.
func TestStoredRowsAreReadInPages(t *testing.T) {
	const rows = 2*pageRows + 7
	at := func(row int64) int64 { return bench.FirstID + row*((bench.LastID-bench.FirstID+1)/rows) }
	shape := bench.Shape{Columns: []bench.ShapeColumn{{Name: "id", Kind: bench.IntegerValues},
		{Name: "text", Kind: bench.StringValues, Length: 8}, {Name: "none", Kind: bench.NoValues}}}
	texts := map[int64]string{}
	conformance.Must(t, shape.EachRow(rows, 1, func(fields []string) {
		id := conformance.Try(strconv.ParseInt(fields[0], 10, 64)).Must(t)
		texts[id] = fields[1]
	}))
	stored := conformance.Try(RowsOf(shape, rows, 1)).Must(t)
	admin, _ := signing(t, Options{Rows: stored}, "b")
	read := func(from, to any, limit int32) (ids []int64, pages int) {
		criteria := &tablestore.RangeRowQueryCriteria{TableName: "t", StartPrimaryKey: new(tablestore.PrimaryKey),
			EndPrimaryKey: new(tablestore.PrimaryKey), MaxVersion: 1, Limit: limit}
		if from == nil {
			criteria.StartPrimaryKey.AddPrimaryKeyColumnWithMinValue("id")
		} else {
			criteria.StartPrimaryKey.AddPrimaryKeyColumn("id", from)
		}
		if to == nil {
			criteria.EndPrimaryKey.AddPrimaryKeyColumnWithMaxValue("id")
		} else {
			criteria.EndPrimaryKey.AddPrimaryKeyColumn("id", to)
		}
		for criteria.StartPrimaryKey != nil {
			memory := new(client.PageMemory)
			page := conformance.Try(client.GetPacked(admin.Client, criteria, memory)).Must(t)
			rows := conformance.Try(memory.Unpacked()).Must(t)
			for _, r := range rows {
				id := r.PrimaryKey.PrimaryKeys[0].Value.(int64)
				conformance.MustTrue(t, len(r.Columns) == 1 && r.Columns[0].Value == texts[id], "row %d is %v", id, r.Columns)
				ids = append(ids, id)
			}
			pages++
			criteria.StartPrimaryKey = page.NextStartPrimaryKey
		}
		return ids, pages
	}
	for _, c := range []struct {
		from, to    any
		limit       int32
		first, last int64
		pages       int
	}{{nil, nil, 0, 0, rows - 1, 3}, {at(10), at(5000), 0, 10, 4999, 1}, {at(3), at(10), 2, 3, 9, 4}} {
		ids, pages := read(c.from, c.to, c.limit)
		conformance.True(t, len(ids) == int(c.last-c.first)+1 && ids[0] == at(c.first) && ids[len(ids)-1] == at(c.last) &&
			pages == c.pages,
			"from %v to %v: %d rows in %d pages, want %d to %d in %d", c.from, c.to, len(ids), pages, c.first, c.last, c.pages)
	}
}

func TestAllShapesCanBeRead(t *testing.T) {
	for _, shape := range append(bench.Shapes(), bench.OddShapes()...) {
		stored, err := RowsOf(shape, 12, 1)
		conformance.MustEqual(t, err, nil, "shape %s", shape.Name)
		rows, count, next := []byte(nil), 0, 0
		for next < len(stored.rows) {
			rows, next = stored.page(next, len(stored.rows), pageRows)
			found, err := new(plainbuffer.RowReader).Read(rows, nil)
			conformance.MustEqual(t, err, nil, "shape %s", shape.Name)
			count += found
		}
		conformance.Equal(t, count, 12, "shape %s: rows", shape.Name)
	}
	conformance.True(t, conformance.ErrorOf(RowsOf(bench.Shapes()[0], 1_000_000_000, 1)) != nil, "more rows than ids")
}
