package client

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// described is an answer to DescribeTable: table t1 with string key uid, and one bound of a partition, uid = "m".
const described = "0a0d0a02743112070a037569641002120c0a04080010001080e2cfaa061a1108ffffffffffffffffff0110012880a30520012a020800" +
	"321d7500000001030403000000756964050600000003010000006d0abd09a6"

// answers is a service that answers every request alike, one after the other when there are several.
type answers struct {
	mu       sync.Mutex
	status   int
	bodies   [][]byte
	requests int
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body := a.bodies[a.requests%len(a.bodies)]
	a.requests++
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
}

func answering(t *testing.T, status int, bodies ...[]byte) (*Admin, *answers) {
	t.Helper()
	service := &answers{status: status, bodies: bodies}
	return admin(t, Target{Endpoint: "http://fake", Instance: "i", AcceptUnsigned: true, Credentials: keys("s"), Transport: service}), service
}

func unhex(t *testing.T, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(digits)
	must(t, err)
	return b
}

// withBounds returns the answer with one more bound.
func withBounds(t *testing.T, values ...table.Value) []byte {
	answer := unhex(t, described)
	name := plainbuffer.NewName("uid")
	for _, v := range values {
		var row plainbuffer.Row
		row.Begin(nil)
		row.Key(&name, v)
		answer = protowire.AppendTag(answer, shardSplits, protowire.BytesType)
		answer = protowire.AppendBytes(answer, row.End())
	}
	return answer
}

func TestTheBoundsOfPartitionsAreRead(t *testing.T) {
	more := []table.Value{
		{Type: table.String, Bytes: []byte("m\x00")}, {Type: table.Integer, Int: -5}, {Type: table.Binary, Bytes: []byte{0xff}},
	}
	a, service := answering(t, 200, withBounds(t, more...))
	got, err := a.Splits("t1")
	must(t, err)
	if diff := cmp.Diff(append([]table.Value{{Type: table.String, Bytes: []byte("m")}}, more...), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	conformance.Equal(t, service.requests, 1, "requests")
}

func TestConcurrentDescriptionsDoNotMixTheirAnswers(t *testing.T) {
	a, _ := answering(t, 200, withBounds(t), withBounds(t, table.Value{Type: table.Integer, Int: 1}))
	var wait sync.WaitGroup
	var mu sync.Mutex
	seen := map[int]int{}
	for range 20 {
		wait.Go(func() {
			got, err := a.Splits("t1")
			conformance.Equal(t, err, nil, "error")
			mu.Lock()
			defer mu.Unlock()
			seen[len(got)]++
		})
	}
	wait.Wait()
	if seen[1] != 10 || seen[2] != 10 {
		t.Errorf("numbers of bounds: %v", seen)
	}
	recordings.Range(func(id, _ any) bool {
		t.Errorf("recording %v is left", id)
		return true
	})
}

func TestWhoWatchesPartitionsAsksOnce(t *testing.T) {
	busy := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "OTSServerBusy")
	a, service := answering(t, 503, busy)
	_, err := a.Layout("t1")
	conformance.Refused(t, err, "describe table t1: OTSServerBusy", "error")
	conformance.Equal(t, service.requests, 1, "requests")
}

func TestBrokenBoundsAreErrors(t *testing.T) {
	bound := func(row []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(unhex(t, described), shardSplits, protowire.BytesType), row)
	}
	for name, answer := range map[string][]byte{
		"nothing":            {},
		"no protobuf":        []byte("<html>"),
		"a missing field":    unhex(t, described)[:15],
		"an empty row":       bound(nil),
		"a cut row":          bound(unhex(t, "75000000010304")),
		"a row without keys": bound(unhex(t, "7500000001090a")),
		"a double":           withBounds(t, table.Value{Type: table.Double, Double: 1}),
	} {
		a, _ := answering(t, 200, answer)
		if got, err := a.Splits("t1"); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	whole := withBounds(t, table.Value{Type: table.Integer, Int: 1})
	for cut := len(unhex(t, described)) + 1; cut < len(whole); cut++ {
		if got, err := decodeSplits(whole[:cut]); err == nil {
			t.Errorf("cut at %d: %v", cut, got)
		}
	}
}

func TestAnAnswerThatIsNotSeenIsAnError(t *testing.T) {
	config := tablestore.NewDefaultTableStoreConfig()
	config.Transport = &answers{status: 200, bodies: [][]byte{unhex(t, described)}}
	a := &Admin{Client: tablestore.NewClientWithConfig("http://fake", "i", "id", "s", "", config), Context: t.Context()}
	if got, err := a.Splits("t1"); err == nil || !strings.Contains(err.Error(), "not seen") {
		t.Errorf("%v, %v", got, err)
	}
}

// splitter is an Admin of a store in this process that can create tables with partitions.
func splitter(t *testing.T, through func(http.RoundTripper) http.RoundTripper) (*Admin, *server.Server) {
	t.Helper()
	s := engine(t, server.Options{})
	target := of(s)
	if through != nil {
		target.Transport = through(target.Transport)
	}
	return admin(t, target), s
}

// bounds are values of each type that a partition key can have, in order.
var splitBounds = map[table.Type][]table.Value{
	table.String:  {{Type: table.String, Bytes: []byte("b")}, {Type: table.String, Bytes: []byte("b\u00fc")}, {Type: table.String, Bytes: []byte("c")}},
	table.Integer: {{Type: table.Integer, Int: -5}, {Type: table.Integer, Int: 0}, {Type: table.Integer, Int: 1 << 60}},
	table.Binary:  {{Type: table.Binary, Bytes: []byte{0}}, {Type: table.Binary, Bytes: []byte{0xff, 1}}},
}

func TestATableIsMadeWithThePartitionsAskedFor(t *testing.T) {
	a, _ := splitter(t, nil)
	define := table.Definition{TimeToLive: 86400, MaxVersions: 3, MaxDeviation: 100000}
	for of, bounds := range splitBounds {
		name := "t" + of.String()
		key := []table.KeyColumn{{Name: "k", Type: of}, {Name: "n", Type: table.Integer, Auto: true}}
		if refused, err := a.CreateSplit(name, key, define, nil, bounds); refused != nil || err != nil {
			t.Fatalf("%v: refused %v, %v", of, refused, err)
		}
		got, err := a.Describe(name)
		must(t, err)
		if diff := cmp.Diff(key, got.Key); diff != "" || got.Definition != define {
			t.Errorf("%v: %+v, key %s", of, got.Definition, diff)
		}
		splits, err := a.Splits(name)
		if diff := cmp.Diff(bounds, splits); err != nil || diff != "" {
			t.Errorf("%v: %v (-want +got):\n%s", of, err, diff)
		}
		if _, err := a.CreateSplit(name, key, define, nil, bounds); !errors.Is(err, ErrTableExists) {
			t.Errorf("%v: made twice: %v", of, err)
		}
	}
}

func TestATableIsMadeWithoutPartitionsThatAreRefusedOrIgnored(t *testing.T) {
	bounds := splitBounds[table.String]
	key := []table.KeyColumn{{Name: "k", Type: table.String}}
	define := table.Definition{TimeToLive: -1, MaxVersions: 1}
	for answer, want := range map[string]string{sim.PreSplitRefused: "cannot be specified", sim.PreSplitIgnored: ""} {
		a, s := splitter(t, nil)
		must(t, s.Sim().Simulate("", server.Simulation{Config: sim.Config{Answers: sim.Answers{PreSplit: answer}}}))
		refused, err := a.CreateSplit("t", key, define, nil, bounds)
		if err != nil || (refused == nil) != (want == "") || refused != nil && !strings.Contains(refused.Error(), want) {
			t.Fatalf("%s: refused %v, %v", answer, refused, err)
		}
		if got, err := a.Splits("t"); err != nil || len(got) != 0 {
			t.Errorf("%s: bounds %v, %v", answer, got, err)
		}
	}
}

// cutting loses the answer to the first CreateTable.
type cutting struct {
	base http.RoundTripper
	done bool
}

func (c *cutting) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := c.base.RoundTrip(r)
	if err == nil && !c.done && strings.HasSuffix(r.URL.Path, "/CreateTable") {
		c.done = true
		res.Body.Close()
		return nil, errors.New("connection reset")
	}
	return res, err
}

func TestATableWithPartitionsWhoseAnswerIsLostIsMadeOnce(t *testing.T) {
	a, _ := splitter(t, func(base http.RoundTripper) http.RoundTripper { return &cutting{base: base} })
	a.Proven = true
	bounds := splitBounds[table.String]
	refused, err := a.CreateSplit("t", []table.KeyColumn{{Name: "k", Type: table.String}}, table.Definition{TimeToLive: -1, MaxVersions: 1}, nil, bounds)
	if refused != nil || err != nil {
		t.Fatalf("refused %v, %v", refused, err)
	}
	if got, err := a.Splits("t"); err != nil || len(got) != len(bounds) {
		t.Errorf("bounds %v, %v", got, err)
	}
}

func TestATableMayHaveANameThatTheSDKFindsTooLong(t *testing.T) {
	a, _ := splitter(t, nil)
	key, define := []table.KeyColumn{{Name: "k", Type: table.String}}, table.Definition{TimeToLive: -1, MaxVersions: 1}
	for _, n := range []int{maxSDKName, maxSDKName + 1, table.MaxNameBytes} {
		name := strings.Repeat("a", n)
		conformance.MustEqual(t, a.Create(name, key, define), nil, "%d characters", n)
		if got, err := a.Describe(name); err != nil || cmp.Diff(key, got.Key) != "" {
			t.Errorf("%d characters: %v, %v", n, got, err)
		}
		conformance.Is(t, a.Create(name, key, define), ErrTableExists, "%d characters: made twice", n)
	}
}
