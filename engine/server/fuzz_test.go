package server

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"maps"
	"math"
	"net"
	"net/http"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

type taps struct {
	http.RoundTripper
	bodies map[string][][]byte
}

func (r *taps) RoundTrip(req *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(req.Body)
	op := strings.TrimPrefix(req.URL.Path, "/")
	r.bodies[op] = append(r.bodies[op], body)
	req.Body = io.NopCloser(bytes.NewReader(body))
	return r.RoundTripper.RoundTrip(req)
}

// sdkRequests returns the SDK's bodies for every operation with all options, supported or not.
func sdkRequests(t testing.TB) map[string][][]byte {
	s := open(t, Options{NoSync: true})
	tap := &taps{s.Transport(), map[string][][]byte{}}
	c := sdk("http://localhost", tap)
	createTable(t, c, "t", 3)
	k, auto := key("k", 1), &tablestore.PrimaryKey{}
	auto.AddPrimaryKeyColumn("pk1", "k")
	auto.AddPrimaryKeyColumnWithAutoIncrement("pk2")
	single := tablestore.NewSingleColumnCondition("c", tablestore.CT_GREATER_EQUAL, int64(1))
	both := tablestore.NewCompositeColumnCondition(tablestore.LO_AND)
	both.AddFilter(single)
	both.AddFilter(tablestore.NewSingleColumnValueRegexFilter("s", tablestore.CT_EQUAL,
		tablestore.NewValueTransferRule("([0-9]+)", tablestore.Variant_INTEGER), int64(7)))
	filters := []tablestore.ColumnFilter{nil, single, both, &tablestore.PaginationFilter{Offset: 1, Limit: 2}}
	all := put("t", k, "c", int64(math.MaxInt64), "s", "a7", "d", 2.5, "b", []byte{0, 255}, "t", true)
	all.AddColumnWithTimestamp("c", int64(2), s.o.Now().UnixMilli())
	all.SetColumnCondition(single)
	returned := put("t", auto)
	returned.SetReturnPk()
	u := &tablestore.UpdateRowChange{TableName: "t", PrimaryKey: k}
	u.PutColumn("c", "v")
	u.DeleteColumn("s")
	u.DeleteColumnWithTimestamp("d", 1700000000000)
	u.IncrementColumn("n", 3)
	u.SetReturnIncrementValue()
	u.AppendIncrementColumnToReturn("n")
	u.SetCondition(tablestore.RowExistenceExpectation_EXPECT_EXIST)
	d := &tablestore.DeleteRowChange{TableName: "t", PrimaryKey: k}
	d.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	batch := batchOf(2)
	batch.IsAtomic = true
	batch.AddRowChange(u)
	batch.AddRowChange(d)
	c.BatchWriteRow(batch)
	c.BatchWriteRow(batchOf(2))
	for _, p := range []*tablestore.PutRowChange{all, returned} {
		c.PutRow(&tablestore.PutRowRequest{PutRowChange: p})
	}
	c.UpdateRow(&tablestore.UpdateRowRequest{UpdateRowChange: u})
	for _, f := range filters {
		one := &tablestore.SingleRowQueryCriteria{TableName: "t", PrimaryKey: k, MaxVersion: 2,
			ColumnsToGet: []string{"c", "pk1"}, Filter: f}
		c.GetRow(&tablestore.GetRowRequest{SingleRowQueryCriteria: one})
		many := &tablestore.MultiRowQueryCriteria{TableName: "t", MaxVersion: 1, Filter: f, StartColumn: ptrTo("a"),
			EndColumn: ptrTo("z")}
		many.AddRow(k)
		many.AddRow(key("none", 2))
		c.BatchGetRow(&tablestore.BatchGetRowRequest{MultiRowQueryCriteria: []*tablestore.MultiRowQueryCriteria{many}})
		c.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{TableName: "t",
			StartPrimaryKey: key("z", 0), EndPrimaryKey: key("a", 0), Direction: tablestore.BACKWARD,
			TimeRange: &tablestore.TimeRange{Start: 0, End: math.MaxInt64 / 1000}, Limit: 3, Filter: f}})
	}
	scan(t, c, "t", tablestore.FORWARD, 3)
	c.DeleteRow(&tablestore.DeleteRowRequest{DeleteRowChange: d})
	aboutTables(c)
	tap.bodies["ListTimeseriesTable"] = [][]byte{{}}
	tap.bodies["BulkImport"], tap.bodies["BulkExport"] = bulkRequests()
	tap.bodies["CreateTable"] = append(tap.bodies["CreateTable"], createWithEverything())
	return tap.bodies
}

func aboutTables(c *tablestore.TableStoreClient) {
	c.ListTable()
	id, _ := startIn(c, "t", "a")
	if id == "" { // the table has no transactions
		id = strings.Repeat("0", 32)
	}
	c.CommitTransaction(&tablestore.CommitTransactionRequest{TransactionId: &id})
	c.AbortTransaction(&tablestore.AbortTransactionRequest{TransactionId: &id})
	c.ListStream(&tablestore.ListStreamRequest{TableName: ptrTo("t")})
	index := &tablestore.IndexMeta{IndexName: "i", IndexType: tablestore.IT_GLOBAL_INDEX}
	index.AddPrimaryKeyColumn("d")
	c.CreateIndex(&tablestore.CreateIndexRequest{MainTableName: "t", IndexMeta: index, IncludeBaseData: true})
	c.DeleteIndex(&tablestore.DeleteIndexRequest{MainTableName: "t", IndexName: "i"})
	c.ListSearchIndex(&tablestore.ListSearchIndexRequest{TableName: "t"})
	c.DescribeTable(&tablestore.DescribeTableRequest{TableName: "t"})
	c.UpdateTable(&tablestore.UpdateTableRequest{TableName: "t", TableOption: &tablestore.TableOption{TimeToAlive: 86400,
		MaxVersion: 2, DeviationCellVersionInSec: 9},
		ReservedThroughput: &tablestore.ReservedThroughput{Readcap: 1, Writecap: 2}})
	c.ComputeSplitPointsBySize(&tablestore.ComputeSplitPointsBySizeRequest{TableName: "t", SplitSize: 1,
		SplitSizeUnitInByte: ptrTo(int64(1 << 20)), SplitPointLimit: ptrTo(int32(3))})
	more := &tablestore.AddDefinedColumnRequest{TableName: "t"}
	more.AddDefinedColumn("d", tablestore.DefinedColumn_STRING)
	c.AddDefinedColumn(more)
	fewer := &tablestore.DeleteDefinedColumnRequest{TableName: "t", DefinedColumns: []string{"d"}}
	c.DeleteDefinedColumn(fewer)
	c.DeleteTable(&tablestore.DeleteTableRequest{TableName: "t"})
}

func ptrTo[T any](v T) *T { return &v }

// createWithEverything returns a CreateTable that the SDK cannot send, with an auto-increment column and partitions.
func createWithEverything() []byte {
	meta := nested(nil, 1, []byte("u"))
	meta = nested(meta, 2, varint(nested(nil, 1, []byte("pk1")), 2, 2))
	meta = nested(meta, 2, varint(varint(nested(nil, 1, []byte("pk2")), 2, 1), 3, 1))
	meta = nested(meta, 3, varint(nested(nil, 1, []byte("d")), 2, 4))
	body := nested(nil, 1, meta)
	body = nested(body, 2, nested(nil, 1, varint(varint(nil, 1, 0), 2, 0)))
	body = nested(body, 3, varint(varint(varint(nil, 1, math.MaxUint64), 2, 1), 5, 86400))
	m := []byte{3, 1, 0, 0, 0, 'm'}
	body = nested(body, 4, nested(nested(nil, 1, []byte{9}), 2, m))
	return nested(body, 4, nested(nested(nil, 1, m), 2, []byte{10}))
}

func bulkRequests() (imports, exports [][]byte) {
	low, high := bounds()
	export := nested(nested(nested(nil, 1, []byte("t")), 3, low.Build(false)), 4, high.Build(false))
	return [][]byte{bulkImport(put("t", key("k", 1), "c", int64(1), "s", "text"))},
		[][]byte{export, varint(slices.Clip(export), 6, 0)}
}

// fuzzed is a server that is replaced after it has lost its table, or after many requests.
type fuzzed struct {
	*Server
	filled   bool
	requests int
}

const requestsPerServer = 5000

func (z *fuzzed) renew(t testing.TB) {
	if z.Server != nil {
		z.requests++
		if z.requests%requestsPerServer != 0 && (!z.filled || z.store.Table([]byte("t")) != nil) {
			return
		}
		must(t, z.Close())
	}
	s := reopen(t, "", Options{InMemory: true, NoSync: true, Log: log.New(io.Discard, "", 0)})
	z.Server = s
	if !z.filled {
		return
	}
	c := inProcess(s)
	createTable(t, c, "t", 2)
	b := &tablestore.BatchWriteRowRequest{}
	for i := range int64(200) {
		b.AddRowChange(put("t", key(fmt.Sprint("k", i%7), i), "c", i, "s", strings.Repeat("x", int(i)), "d", float64(i), "b",
			[]byte{byte(i)}, "t", i%2 == 0))
	}
	conformance.Must(t, conformance.ErrorOf(c.BatchWriteRow(b)))
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// These flags determine how the fuzzed body is sent.
const (
	toEmpty     = 1 << iota // to a server without tables
	deflated                // correctly compressed
	asDeflated              // declared to be compressed, though it rarely is
	answerSmall             // with a request for a compressed answer
)

// FuzzHandler sends any body to any operation, correctly signed, on an empty store and on one with rows.
func FuzzHandler(f *testing.F) {
	bodies := sdkRequests(f)
	ops := slices.Sorted(maps.Keys(operations))
	for i, op := range ops {
		conformance.MustTrue(f, len(bodies[op]) != 0, "no request of %s to begin with", op)
		for _, body := range bodies[op] {
			for _, how := range []uint8{0, toEmpty, deflated | answerSmall} {
				f.Add(uint8(i), how, body)
			}
		}
		f.Add(uint8(i), uint8(0), bodies["BatchWriteRow"][0])
		f.Add(uint8(i), uint8(asDeflated), deflate(bodies[op][0]))
		f.Add(uint8(i), uint8(0), []byte(nil))
	}
	servers := map[bool]*fuzzed{false: {filled: true}, true: {}}
	f.Fuzz(func(t *testing.T, number, how uint8, body []byte) {
		op := ops[int(number)%len(ops)]
		s := servers[how&toEmpty != 0]
		s.renew(t)
		var size string
		switch raw := len(body); {
		case how&deflated != 0:
			body, size = deflate(body), strconv.Itoa(raw)
		case how&asDeflated != 0:
			size = "1000"
		}
		hung := time.AfterFunc(patience, func() { panic(op + ": no answer") })
		defer hung.Stop()
		before := allocated()
		a := raw(s.Server, op, body, func(h http.Header) {
			if size != "" {
				h.Set(wire.HeaderRequestCompress, "deflate")
				h.Set(wire.HeaderRequestSize, size)
			}
			if how&answerSmall != 0 {
				h.Set(wire.HeaderResponseCompress, "deflate")
			}
		})
		got := int64(allocated() - before)
		conformance.True(t, got <= 64<<20+256*int64(len(body)), "%s: %d bytes allocated for a body of %d", op, got, len(body))
		checkAnswer(t, op, a)
	})
}

// checkAnswer fails the test unless every SDK can decode a.
func checkAnswer(t *testing.T, op string, a *answer) {
	conformance.True(t, a.status < http.StatusInternalServerError, "%s: %d %q", op, a.status, a.body)
	if a.header.Get(wire.HeaderMD5) != md5Text(a.body) || a.header.Get("Authorization") != "OTS "+DefaultAccessKeyID+":"+
		wire.SignResponse(DefaultAccessKeySecret, "/"+op, a.header) {
		t.Errorf("%s: not signed: %v", op, a.header)
	}
	if a.status == http.StatusOK || a.header.Get(wire.HeaderResponseCompress) != "" {
		return
	}
	for b := a.body; len(b) > 0; {
		id, typ, n := protowire.ConsumeTag(b)
		conformance.MustTrue(t, n >= 0 && typ == protowire.BytesType && id <= 2, "%s: not a message: %q", op, a.body)
		text, m := protowire.ConsumeBytes(b[n:])
		conformance.MustTrue(t, m > 0 && utf8.Valid(text), "%s: the error is not text: %q", op, a.body)
		b = b[n+m:]
	}
}

func FuzzConnection(f *testing.F) {
	var out syncBuffer
	at := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC) // or the corpus would expire after a quarter of an hour
	s := open(f, Options{Now: func() time.Time { return at }, Log: log.New(&out, "", 0)})
	addr := onPort(f, s, Limits{})
	list := onWire(f, s, "ListTable", nil)
	create := onWire(f, s, "CreateTable", createWithEverything())
	chunked := strings.Replace(list, "Content-Length: 0\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 1)
	for _, text := range []string{
		list, list + list, create, chunked, create[:len(create)-5], strings.Replace(list, "HTTP/1.1", "HTTP/1.0", 1),
		"GET /_engine/stats HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /_engine/faults HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"POST /%00 HTTP/1.1\r\nHost: x\r\nContent-Length: 5242881\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n",
		"\x16\x03\x01", "",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c := conformance.Try(net.Dial("tcp", addr)).Must(t)
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		c.(*net.TCPConn).SetLinger(0) // thousands of connections would use up all ports
		c.Write(text)                 // the server may close before the end
		c.(*net.TCPConn).CloseWrite()
		back, err := io.ReadAll(c)
		e, ok := err.(net.Error)
		conformance.MustTrue(t, !ok || !e.Timeout(), "neither an answer nor an end: %q", back)
		conformance.True(t, len(back) == 0 || bytes.HasPrefix(back, []byte("HTTP/1.")), "not HTTP: %q", back)
		conformance.True(t, !strings.Contains(out.String(), "panic"), "%s", out.String())
		s.SetFaults(nil) // the admin API may have set faults
		a := raw(s, "ListTable", nil, nil)
		conformance.True(t, a.status == http.StatusOK, "afterwards: %d %q", a.status, a.body)
	})
}

func FuzzHeaders(f *testing.F) {
	s := open(f, Options{})
	f.Add("x-ots-date", "2024-01-02T03:04:05.123111Z", []byte("x"))
	f.Add("x-ots-request-compress-type", "deflate", deflate([]byte("x")))
	f.Add("x-ots-request-compress-size", "-1", []byte(nil))
	f.Add("x-ots-response-compress-type", "deflate", []byte(nil))
	f.Add("x-ots-signaturev4", "x", []byte(nil))
	f.Add("x-ots-ststoken", "列\xff", []byte(nil))
	f.Add("x-ots-contentmd5", " ", binary.LittleEndian.AppendUint64(nil, 1))
	f.Fuzz(func(t *testing.T, name, value string, body []byte) {
		a := raw(s, "DescribeTable", body, func(h http.Header) {
			h.Set("x-ots-request-compress-type", "deflate")
			h.Set("x-ots-request-compress-size", "10")
			h.Set(name, value)
		})
		conformance.True(t, a.status < http.StatusInternalServerError && a.header.Get(wire.HeaderMD5) == md5Text(a.body) &&
			a.header.Get(wire.HeaderRequestID) != "", "%d %q %v", a.status, a.body, a.header)
	})
}
