package server

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

// must ends the test if there is an error of Go or of the service.
func must[E comparable](t testing.TB, err E) {
	t.Helper()
	var none E
	conformance.MustEqual(t, err, none, "error")
}

func reopen(t testing.TB, dir string, o Options) *Server {
	t.Helper()
	s := conformance.Try(Open(dir, o)).Must(t)
	return s
}

func open(t testing.TB, o Options) *Server {
	t.Helper()
	o.InMemory = true
	s := reopen(t, "", o)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func sdk(endpoint string, rt http.RoundTripper) *tablestore.TableStoreClient {
	c := tablestore.NewDefaultTableStoreConfig()
	c.RetryTimes = 0
	c.Transport = rt
	return tablestore.NewClientWithConfig(endpoint, DefaultInstance, DefaultAccessKeyID, DefaultAccessKeySecret, "", c)
}

func inProcess(s *Server) *tablestore.TableStoreClient { return sdk("http://localhost", s.Transport()) }

func overHTTP(t testing.TB, s *Server) *tablestore.TableStoreClient {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	rt := &http.Transport{}
	t.Cleanup(rt.CloseIdleConnections)
	return sdk(h.URL, rt)
}

func createTable(t testing.TB, c *tablestore.TableStoreClient, name string, versions int) {
	t.Helper()
	meta := &tablestore.TableMeta{TableName: name}
	meta.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_STRING)
	meta.AddPrimaryKeyColumn("pk2", tablestore.PrimaryKeyType_INTEGER)
	must(t, conformance.ErrorOf(c.CreateTable(&tablestore.CreateTableRequest{
		TableMeta:          meta,
		TableOption:        &tablestore.TableOption{TimeToAlive: -1, MaxVersion: versions, DeviationCellVersionInSec: 86400},
		ReservedThroughput: &tablestore.ReservedThroughput{},
	})))
}

func withTable(t testing.TB, o Options) (*Server, *tablestore.TableStoreClient) {
	t.Helper()
	s := open(t, o)
	c := inProcess(s)
	createTable(t, c, "t", 1)
	return s, c
}

func bounds() (low, high *tablestore.PrimaryKey) {
	low, high = &tablestore.PrimaryKey{}, &tablestore.PrimaryKey{}
	for _, name := range []string{"pk1", "pk2"} {
		low.AddPrimaryKeyColumnWithMinValue(name)
		high.AddPrimaryKeyColumnWithMaxValue(name)
	}
	return low, high
}

func key(a string, b int64) *tablestore.PrimaryKey {
	k := &tablestore.PrimaryKey{}
	k.AddPrimaryKeyColumn("pk1", a)
	k.AddPrimaryKeyColumn("pk2", b)
	return k
}

// put is a PutRow change with columns named and valued in turn.
func put(table string, k *tablestore.PrimaryKey, columns ...any) *tablestore.PutRowChange {
	c := &tablestore.PutRowChange{TableName: table, PrimaryKey: k}
	for i := 0; i < len(columns); i += 2 {
		c.AddColumn(columns[i].(string), columns[i+1])
	}
	c.SetCondition(tablestore.RowExistenceExpectation_IGNORE)
	return c
}

// code is the error's OTS code, "" for none, or the text of an error that is not the service's.
func code(err error) string {
	if err == nil {
		return ""
	}
	if e, ok := err.(*tablestore.OtsError); ok {
		return e.Code
	}
	return err.Error()
}

func headers(s *Server, body []byte) http.Header {
	h := http.Header{}
	h.Set(wire.HeaderDate, s.o.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
	h.Set(wire.HeaderAPIVersion, wire.APIVersion)
	h.Set(wire.HeaderAccessKeyID, DefaultAccessKeyID)
	h.Set(wire.HeaderInstance, DefaultInstance)
	h.Set(wire.HeaderMD5, md5Text(body))
	return h
}

// raw posts a signed request with the test's body and decodes nothing.
func raw(s *Server, op string, body []byte, change func(http.Header)) *answer {
	h := headers(s, body)
	if change != nil {
		change(h)
	}
	if h.Get(wire.HeaderSignature) == "" && h.Get(wire.HeaderSignatureV4) == "" {
		h.Set(wire.HeaderSignature, wire.Sign(DefaultAccessKeySecret, "/"+op, h))
	}
	return s.serve(testContext, &request{method: http.MethodPost, path: "/" + op, header: h, body: body,
		tooLong: len(body) > wire.MaxBodyBytes})
}

type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func signed(s *Server, op string, body []byte) *http.Request {
	r, err := http.NewRequest(http.MethodPost, "http://localhost/"+op, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header = headers(s, body)
	r.Header.Set(wire.HeaderSignature, wire.Sign(DefaultAccessKeySecret, "/"+op, r.Header))
	return r
}

// nested and varint append fields of a protobuf message: the SDK cannot send all that the server reads.
func nested(dst []byte, id protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, id, protowire.BytesType), b)
}

func varint(dst []byte, id protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, id, protowire.VarintType), n)
}

func bulkImport(rows ...*tablestore.PutRowChange) []byte {
	body := nested(nil, 1, []byte("t"))
	for _, p := range rows {
		body = nested(body, 2, nested(varint(nil, 1, 1), 2, p.Serialize()))
	}
	return body
}
