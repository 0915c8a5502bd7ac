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
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// described is a response to DescribeTable: table t1 with the string key uid, and one partition bound, uid = "m".
const described = "0a0d0a02743112070a037569641002120c0a04080010001080e2cfaa061a1108ffffffffffffffffff0110012880a30520" +
	"012a020800321d7500000001030403000000756964050600000003010000006d0abd09a6"

// answers is a service that gives all requests the same response, or several responses in turn.
type answers struct {
	mu       sync.Mutex
	status   int
	bodies   [][]byte
	requests int
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body := io.NopCloser(bytes.NewReader(a.bodies[a.requests%len(a.bodies)]))
	a.requests++
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: a.status, Header: http.Header{}, Body: body, Request: r}, nil
}

func answering(t *testing.T, status int, bodies ...[]byte) (*Admin, *answers) {
	t.Helper()
	service := &answers{status: status, bodies: bodies}
	return admin(t, via(service)), service
}

func unhex(t *testing.T, digits string) []byte {
	t.Helper()
	return conformance.Try(hex.DecodeString(digits)).Must(t)
}

// withBounds returns described with the values added as partition bounds.
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

func TestPartitionBoundsAreRead(t *testing.T) {
	more := []table.Value{{Type: table.String, Bytes: []byte("m\x00")}, {Type: table.Integer, Int: -5},
		{Type: table.Binary, Bytes: []byte{0xff}}}
	a, service := answering(t, 200, withBounds(t, more...))
	got := conformance.Try(a.Splits("t1")).Must(t)
	conformance.Equal(t, cmp.Diff(append([]table.Value{{Type: table.String, Bytes: []byte("m")}}, more...), got), "",
		"(-want +got)")
	conformance.Equal(t, service.requests, 1, "requests")
}

func TestConcurrentDescriptionsAreNotMixed(t *testing.T) {
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
	conformance.True(t, seen[1] == 10 && seen[2] == 10, "numbers of bounds: %v", seen)
	recordings.Range(func(id, _ any) bool {
		t.Errorf("recording %v is left", id)
		return true
	})
}

func TestLayoutDoesNotRetry(t *testing.T) {
	busy := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "OTSServerBusy")
	a, service := answering(t, 503, busy)
	conformance.Refused(t, conformance.ErrorOf(a.Layout("t1")), "describe table t1: OTSServerBusy", "error")
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
		got, err := a.Splits("t1")
		conformance.True(t, err != nil && !strings.Contains(err.Error(), "\n"), "%s: %v, %v", name, got, err)
	}
	whole := withBounds(t, table.Value{Type: table.Integer, Int: 1})
	for cut := len(unhex(t, described)) + 1; cut < len(whole); cut++ {
		got, err := decodeSplits(whole[:cut])
		conformance.True(t, err != nil, "cut at %d: %v", cut, got)
	}
}

func TestUnrecordedResponseIsAnError(t *testing.T) {
	config := tablestore.NewDefaultTableStoreConfig()
	config.Transport = &answers{status: 200, bodies: [][]byte{unhex(t, described)}}
	a := &Admin{Client: tablestore.NewClientWithConfig("http://fake", "i", "id", "s", "", config), Context: t.Context()}
	got, err := a.Splits("t1")
	conformance.Refused(t, err, "not recorded", "%v", got)
}

// splitter returns an Admin of a store in this process that can create tables with partitions.
func splitter(t *testing.T, through func(http.RoundTripper) http.RoundTripper) (*Admin, *server.Server) {
	t.Helper()
	s := engine(t, server.Options{})
	target := of(s)
	if through != nil {
		target.Transport = through(target.Transport)
	}
	return admin(t, target), s
}

// splitBounds holds ascending values of each partition-key type.
var splitBounds = map[table.Type][]table.Value{
	table.String: {{Type: table.String, Bytes: []byte("b")}, {Type: table.String, Bytes: []byte("b\u00fc")},
		{Type: table.String, Bytes: []byte("c")}},
	table.Integer: {{Type: table.Integer, Int: -5}, {Type: table.Integer, Int: 0}, {Type: table.Integer, Int: 1 << 60}},
	table.Binary:  {{Type: table.Binary, Bytes: []byte{0}}, {Type: table.Binary, Bytes: []byte{0xff, 1}}},
}

func TestTableIsCreatedWithPartitions(t *testing.T) {
	a, _ := splitter(t, nil)
	define := table.Definition{TimeToLive: 86400, MaxVersions: 3, MaxDeviation: 100000}
	for of, bounds := range splitBounds {
		name := "t" + of.String()
		key := []table.KeyColumn{{Name: "k", Type: of}, {Name: "n", Type: table.Integer, Auto: true}}
		refused, err := a.CreateSplit(name, key, define, nil, bounds)
		conformance.MustTrue(t, refused == nil && err == nil, "%v: refused %v, %v", of, refused, err)
		got := conformance.Try(a.Describe(name)).Must(t)
		diff := cmp.Diff(key, got.Key)
		conformance.True(t, diff == "" && got.Definition == define, "%v: %+v, key %s", of, got.Definition, diff)
		splits, err := a.Splits(name)
		diff = cmp.Diff(bounds, splits)
		conformance.True(t, err == nil && diff == "", "%v: %v (-want +got):\n%s", of, err, diff)
		conformance.Is(t, conformance.ErrorOf(a.CreateSplit(name, key, define, nil, bounds)), ErrTableExists, "%v", of)
	}
}

func TestTableIsCreatedWithoutRefusedPartitions(t *testing.T) {
	bounds := splitBounds[table.String]
	key := []table.KeyColumn{{Name: "k", Type: table.String}}
	for answer, want := range map[string]string{sim.PreSplitRefused: "cannot be specified", sim.PreSplitIgnored: ""} {
		a, s := splitter(t, nil)
		must(t, s.Sim().Simulate("", server.Simulation{Config: sim.Config{Answers: sim.Answers{PreSplit: answer}}}))
		refused, err := a.CreateSplit("t", key, defaults, nil, bounds)
		conformance.MustTrue(t, err == nil && (refused == nil) == (want == "") &&
			(refused == nil || strings.Contains(refused.Error(), want)), "%s: refused %v, %v", answer, refused, err)
		got, err := a.Splits("t")
		conformance.True(t, err == nil && len(got) == 0, "%s: bounds %v, %v", answer, got, err)
	}
}

// cutting is a network that loses the response to the first CreateTable.
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

func TestPresplitTableWithLostResponseIsCreatedOnce(t *testing.T) {
	a, _ := splitter(t, func(base http.RoundTripper) http.RoundTripper { return &cutting{base: base} })
	a.Proven = true
	bounds := splitBounds[table.String]
	refused, err := a.CreateSplit("t", []table.KeyColumn{{Name: "k", Type: table.String}}, defaults, nil, bounds)
	conformance.MustTrue(t, refused == nil && err == nil, "refused %v, %v", refused, err)
	got, err := a.Splits("t")
	conformance.True(t, err == nil && len(got) == len(bounds), "bounds %v, %v", got, err)
}

func TestTableNameMayExceedSDKLimit(t *testing.T) {
	a, _ := splitter(t, nil)
	key := []table.KeyColumn{{Name: "k", Type: table.String}}
	for _, n := range []int{maxSDKName, maxSDKName + 1, table.MaxNameBytes} {
		name := strings.Repeat("a", n)
		conformance.MustEqual(t, a.Create(name, key, defaults), nil, "%d characters", n)
		got, err := a.Describe(name)
		conformance.True(t, err == nil && cmp.Diff(key, got.Key) == "", "%d characters: %v, %v", n, got, err)
		conformance.Is(t, a.Create(name, key, defaults), ErrTableExists, "%d characters: made twice", n)
	}
}

// clocked returns an Admin of an embedded service with its own clock and a table t.
func clocked(t *testing.T, now *time.Time, plan *faults.Plan) *Admin {
	t.Helper()
	s := engine(t, server.Options{Faults: plan, Now: func() time.Time { return *now }})
	a := admin(t, of(s))
	must(t, a.Create("t", stringKey, table.Definition{TimeToLive: 86400, MaxVersions: 3, MaxDeviation: 1000}))
	return a
}

func TestReservedThroughputIsChangedOncePerInterval(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	a := clocked(t, &now, nil)
	created := now
	adjusted := func(want time.Time) {
		t.Helper()
		got, err := a.Adjusted("t")
		conformance.True(t, err == nil && got.Equal(want), "adjusted at %v, %v; want %v", got, err, want)
	}
	adjusted(created)
	now = now.Add(10 * time.Second)
	must(t, a.Reserve("t", 5, 7))
	adjusted(now)
	first := now
	now = now.Add(time.Minute)
	conformance.Is(t, a.Reserve("t", 5, 6), ErrTooFrequent, "a minute later")
	adjusted(first)
	now = now.Add(time.Minute)
	conformance.Equal(t, a.Reserve("t", 5, 6), nil, "two minutes later")
	adjusted(now) // a decrease
	got, err := a.Describe("t")
	conformance.True(t, err == nil && got.ReservedRead == 5 && got.ReservedWrite == 6 && got.TimeToLive == 86400 &&
		got.MaxVersions == 3, "%+v, %v", got, err)
}

func TestTableChangesSurviveTemporaryFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, f := range []faults.Fault{{Action: faults.Refuse, Code: "OTSServerBusy"},
			{Action: faults.AnswerErrorAfter, Code: "OTSTimeout"}} {
			failed := map[string]int{}
			plan := &faults.Plan{Only: func(op string) bool { return op != "CreateTable" },
				Decide: func(r faults.Request) faults.Fault {
					if failed[r.Operation]++; failed[r.Operation]%2 == 1 {
						return f
					}
					return faults.Fault{}
				}}
			now := time.Now()
			a := clocked(t, &now, plan)
			for what, change := range map[string]func() error{
				"options": func() error { return a.SetOptions("t", -1, 1) }, "units": func() error { return a.Reserve("t", 1, 2) },
				"an update": func() error { return a.Update("t", Change{MaxDeviation: new(int64(7))}) },
				"adjusted":  func() error { _, err := a.Adjusted("t"); return err },
			} {
				conformance.Equal(t, change(), nil, "%s after %s", what, f.Code)
			}
			conformance.True(t, failed["UpdateTable"] == 6 && failed["DescribeTable"] == 2, "requests: %v", failed)
			want := table.Definition{TimeToLive: -1, MaxVersions: 1, MaxDeviation: 7, ReservedRead: 1, ReservedWrite: 2}
			got, err := a.Describe("t")
			conformance.True(t, err == nil && got.Definition == want, "%+v, %v", got, err)
			now = now.Add(ThroughputInterval)
			failed["UpdateTable"] = 0
			must(t, a.Update("t", Change{ReservedWrite: new(5)}))
			conformance.Equal(t, failed["UpdateTable"], 2, "updates after %s", f.Code)
			got, err = a.Describe("t")
			conformance.True(t, err == nil && got.ReservedWrite == 5, "%+v, %v", got, err)
		}
	})
}

func TestMissingTableCannotBeChanged(t *testing.T) {
	now := time.Now()
	a := clocked(t, &now, nil)
	_, adjusted := a.Adjusted("none")
	for what, err := range map[string]error{"options": a.SetOptions("none", -1, 1), "throughput": a.Reserve("none", 1, 1),
		"adjusted": adjusted} {
		conformance.Is(t, err, ErrNoTable, "%s", what)
	}
}

func TestThroughputChangeTimeIsReadFromResponse(t *testing.T) {
	described := unhex(t, described)
	details := func(f ...uint64) []byte { // numbers and values of fields after the required units
		body := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte{0x08, 0, 0x10, 0})
		for i := 0; i < len(f); i += 2 {
			body = protowire.AppendVarint(protowire.AppendTag(body, protowire.Number(f[i]), protowire.VarintType), f[i+1])
		}
		return protowire.AppendBytes(protowire.AppendTag(bytes.Clone(described), 2, protowire.BytesType), body)
	}
	for _, tt := range []struct {
		answer []byte
		want   int64
	}{
		{described, 1700000000}, {details(2, 5, 3, 9), 9}, {details(2, 9, 3, 5), 9},
	} {
		a, _ := answering(t, 200, tt.answer)
		got, err := a.Adjusted("t1")
		conformance.True(t, err == nil && got.Unix() == tt.want, "%v, %v; want %d", got, err, tt.want)
	}
	a, _ := answering(t, 200, []byte("<html>"))
	got, err := a.Adjusted("t1")
	conformance.True(t, err != nil && !strings.Contains(err.Error(), "\n"), "%v, %v", got, err)
}

// TestMadeOfComparesEveryField tests tables that differ in one field: the first, a middle one or the last.
func TestMadeOfComparesEveryField(t *testing.T) {
	number, seconds, yes := 7, int64(7), true
	whole := Change{&number, &number, &number, &number, &seconds, &yes}
	made := func(differs func(*Table)) *Table {
		of := &Table{}
		of.ReservedRead, of.ReservedWrite, of.TimeToLive, of.MaxVersions, of.MaxDeviation = 7, 7, 7, 7, 7
		differs(of)
		return of
	}
	for name, differs := range map[string]func(*Table){
		"reads": func(of *Table) { of.ReservedRead = 8 }, "writes": func(of *Table) { of.ReservedWrite = 8 },
		"time to live": func(of *Table) { of.TimeToLive = 8 }, "versions": func(of *Table) { of.MaxVersions = 8 },
		"deviation": func(of *Table) { of.MaxDeviation = 8 }, "updates": func(of *Table) { of.NoUpdates = true },
	} {
		conformance.Equal(t, whole.madeOf(made(differs)), false, "%s: a table of others is as the change makes it", name)
		none := new(Change)
		conformance.True(t, none.madeOf(made(differs)), "%s: what a change leaves alone may be anything", name)
	}
	conformance.Equal(t, whole.madeOf(made(func(*Table) {})), true, "a table with all parts is not as the change makes it")
}

func TestUpdateNamesOnlyChanges(t *testing.T) {
	now := time.Now()
	a := clocked(t, &now, nil)
	want := table.Definition{TimeToLive: 86400, MaxVersions: 3, MaxDeviation: 1000}
	for _, step := range []struct {
		change Change
		apply  func()
	}{
		{Change{ReservedWrite: new(7)}, func() { want.ReservedWrite = 7 }},
		{Change{MaxVersions: new(4)}, func() { want.MaxVersions = 4 }},
		{Change{TimeToLive: new(-1)}, func() { want.TimeToLive = -1 }},
		{Change{MaxDeviation: new(int64(7))}, func() { want.MaxDeviation = 7 }},
		{Change{ReservedRead: new(2), TimeToLive: new(100000)}, func() { want.ReservedRead, want.TimeToLive = 2, 100000 }},
	} {
		now = now.Add(ThroughputInterval)
		must(t, a.Update("t", step.change))
		step.apply()
		got, err := a.Describe("t")
		conformance.True(t, err == nil && got.Definition == want, "%+v, %v, want %+v", got, err, want)
	}
	must(t, a.Update("t", Change{AllowUpdate: new(false)}))
	want.NoUpdates = true
	got, err := a.Describe("t")
	conformance.True(t, err == nil && got.Definition == want, "%+v, %v", got, err)
}

func TestTooFrequentChangeIsPostponed(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	a := clocked(t, &now, nil)
	must(t, a.Update("t", Change{ReservedWrite: new(5)}))
	now = now.Add(30 * time.Second)
	conformance.Is(t, a.Update("t", Change{ReservedWrite: new(6), MaxVersions: new(9)}), ErrTooFrequent, "update")
	got, err := a.Describe("t")
	conformance.True(t, err == nil && got.ReservedWrite == 5 && got.MaxVersions == 3, "%+v, %v", got, err)
	due, err := a.Changeable("t", ThroughputInterval, now)
	conformance.True(t, err == nil && due.Sub(now) == 91*time.Second, "in %v, %v", due.Sub(now), err)
	now = due
	must(t, a.Update("t", Change{ReservedWrite: new(6)}))
}
