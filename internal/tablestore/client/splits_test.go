package client

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
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
		conformance.Refused(t, conformance.ErrorOf(decodeCreated(whole[:cut])), "", "the creation time, cut at %d", cut)
	}
}

func TestUnrecordedResponseIsAnError(t *testing.T) {
	config := tablestore.NewDefaultTableStoreConfig()
	config.Transport = &answers{status: 200, bodies: [][]byte{unhex(t, described)}}
	a := &Admin{Client: tablestore.NewClientWithConfig("http://fake", "i", "id", "s", "", config), Context: t.Context()}
	got, err := a.Splits("t1")
	conformance.Refused(t, err, "not recorded", "%v", got)
}

func splitter(t *testing.T) (*Admin, *server.Server) {
	t.Helper()
	s := engine(t, server.Options{})
	return admin(t, of(s)), s
}

var splitBounds = map[table.Type][]table.Value{
	table.String: {{Type: table.String, Bytes: []byte("b")}, {Type: table.String, Bytes: []byte("b\u00fc")},
		{Type: table.String, Bytes: []byte("c")}},
	table.Integer: {{Type: table.Integer, Int: -5}, {Type: table.Integer, Int: 0}, {Type: table.Integer, Int: 1 << 60}},
	table.Binary:  {{Type: table.Binary, Bytes: []byte{0}}, {Type: table.Binary, Bytes: []byte{0xff, 1}}},
}

func TestTableIsCreatedWithPartitions(t *testing.T) {
	a, _ := splitter(t)
	define := table.Definition{TimeToLive: 86400, MaxVersions: 3, MaxDeviation: 100000, NoUpdates: true}
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
		a, s := splitter(t)
		must(t, s.Sim().Simulate("", server.Simulation{Config: sim.Config{Answers: sim.Answers{PreSplit: answer}}}))
		refused, err := a.CreateSplit("t", key, defaults, nil, bounds)
		conformance.MustTrue(t, err == nil && (refused == nil) == (want == "") &&
			(refused == nil || strings.Contains(refused.Error(), want)), "%s: refused %v, %v", answer, refused, err)
		got, err := a.Splits("t")
		conformance.True(t, err == nil && len(got) == 0, "%s: bounds %v, %v", answer, got, err)
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

func TestTableIsComparedWithTheOneRead(t *testing.T) {
	now := time.Now()
	a := clocked(t, &now, nil)
	is := conformance.Try(a.Describe("t")).Must(t)
	for _, c := range []struct {
		was Table
		why string
	}{
		{*is, ""}, {Table{Name: "t", Key: stringKey}, ""}, {Table{Name: "t", Created: is.Created}, "another primary key"},
		{Table{Name: "t", Created: is.Created - 1, Key: stringKey}, "created at " + madeAt(is.Created-1) +
			", the present one was created at " + madeAt(is.Created)},
		{Table{Name: "u", Key: stringKey}, "it no longer exists"},
	} {
		err := a.Same(&c.was)
		conformance.True(t, (err == nil) == (c.why == "") && (err == nil || errors.As(err, new(*ReplacedError)) &&
			strings.HasSuffix(err.Error(), c.why)), "%+v: %v", c.was, err)
	}
	a.Connection = nil
	conformance.InALine(t, a.Update("t", Change{}), "no connection was given", "an update")
	err := a.Create(strings.Repeat("u", maxSDKName+1), stringKey, defaults)
	conformance.InALine(t, err, "require a Connection", "a name")
}

// TestEachRequestOfAnOperationMayFail lets each request of each operation fail, one at a time. A permanent refusal must
// be reported; a busy service or a lost response must make no difference. Table d has the column v, table t has none.
func TestEachRequestOfAnOperationMayFail(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of the clock of synctest
	long := strings.Repeat("u", maxSDKName+1)
	bounds := []table.Value{{Type: table.String, Bytes: []byte("m")}}
	index := table.Index{Name: "i", Key: []string{"v", "s"}}
	defined := map[string]table.Type{"v": table.String}
	for _, op := range []struct {
		says string // the beginning of its errors
		do   func(a *Admin) (any, error)
	}{
		{"create table u: ", func(a *Admin) (any, error) { return nil, a.Create("u", stringKey, defaults) }},
		{"create table " + long + ": ", func(a *Admin) (any, error) {
			return nil, a.CreateDefined(long, stringKey, defaults, defined)
		}},
		{"", func(a *Admin) (any, error) {
			refused, err := a.CreateSplit("u", stringKey, defaults, nil, bounds)
			return nil, errors.Join(refused, err)
		}},
		{"drop table t: ", func(a *Admin) (any, error) { return nil, a.Drop("t") }},
		{"list tables: ", func(a *Admin) (any, error) { return a.List() }},
		{"change table t: ", func(a *Admin) (any, error) { return nil, a.SetOptions("t", -1, 2) }},
		{"change table t: ", func(a *Admin) (any, error) {
			if err := a.Reserve("t", 1, 2); !errors.Is(err, ErrTooFrequent) {
				return nil, err
			}
			return nil, nil // after a lost response
		}},
		{"change table t: ", func(a *Admin) (any, error) {
			return nil, a.Update("t", Change{ReservedWrite: new(5), MaxDeviation: new(int64(9)), AllowUpdate: new(false)})
		}},
		{"create index i of table d: ", func(a *Admin) (any, error) {
			return nil, errors.Join(a.CreateIndex("d", index), a.CreateIndex("d", index))
		}},
		{"describe table t: ", func(a *Admin) (any, error) { return a.Opened("t") }},
		{"describe table t: ", func(a *Admin) (any, error) { return a.Splits("t") }},
		{"describe table t: ", func(a *Admin) (any, error) { return a.Postponed("t", time.Minute, start, 2) }},
		{"describe table t: ", func(a *Admin) (any, error) { return a.UpdatesWholeRows("t") }},
		{"describe table t: ", func(a *Admin) (any, error) { return a.Global("t") }},
		{"check whether table t is the one that was read: describe table t: ", func(a *Admin) (any, error) {
			return nil, a.Same(&Table{Name: "t", Key: stringKey})
		}},
		{"read table t: ", func(a *Admin) (any, error) {
			types, rows, err := a.CellTypes("t", stringKey, 5)
			return fmt.Sprint(types, rows), err
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			// run returns the operation's result and, if no request was refused permanently, the tables after it.
			run := func(failing int, f faults.Fault) (outcome string, failed bool, err error) {
				armed := false
				plan := &faults.Plan{Only: func(string) bool { return armed }, Decide: func(r faults.Request) faults.Fault {
					if failed = failed || r.N == failing; r.N != failing {
						return faults.Fault{}
					}
					return f
				}}
				now := start
				a := clocked(t, &now, plan)
				must(t, a.CreateDefined("d", stringKey, defaults, defined))
				now, armed = now.Add(ThroughputInterval), true
				found, err := op.do(a)
				armed = false
				outcome = fmt.Sprint(found)
				for _, name := range conformance.Try(a.List()).Must(t) {
					outcome += fmt.Sprintf(" %+v %v", conformance.Try(a.Describe(name)).Must(t),
						conformance.Try(a.Splits(name)).Must(t))
				}
				return outcome, failed, err
			}
			want, _, err := run(-1, faults.Fault{})
			must(t, err)
			for n, failed := 0, true; failed; n++ {
				_, failed, err = run(n, faults.Fault{Action: faults.Refuse, Code: authFailed})
				if conformance.Equal(t, err != nil, failed, "%s%v", op.says, err); err == nil {
					continue
				}
				conformance.InALine(t, err, authFailed, "%s", op.says)
				conformance.True(t, strings.HasPrefix(err.Error(), op.says), "%v", err)
				_, _, err = run(n, faults.Fault{Action: faults.Refuse, Code: "OTSObjectNotExist"})
				conformance.True(t, err == nil || IsNoTable(err) || errors.As(err, new(*ReplacedError)), "%v", err)
				for _, f := range []faults.Fault{{Action: faults.Refuse, Code: "OTSServerBusy"}, {Action: faults.DropAfter},
					{Action: faults.Refuse, Code: "OTSTableNotReady"}, {Action: faults.AnswerErrorAfter, Code: "OTSTimeout"}} {
					got, _, err := run(n, f)
					conformance.True(t, err == nil && got == want, "%s%v\ngot  %s\nwant %s",
						op.says, err, got, want)
				}
			}
		})
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

// TestUpdateNamesOnlyChanges has a change of a new table in each line.
func TestUpdateNamesOnlyChanges(t *testing.T) {
	conformance.Golden(t, "changes.golden", func(input string) string {
		var c Change
		now := time.Now()
		a := clocked(t, &now, nil)
		must(t, json.Unmarshal([]byte(input), &c))
		before := conformance.Try(a.Describe("t")).Must(t)
		now = now.Add(ThroughputInterval)
		err := a.Update("t", c)
		after := conformance.Try(a.Describe("t")).Must(t)
		return fmt.Sprintf("%s%+v\nreserves %v, options %v, made before %v, after %v", codeOf(err),
			after.Definition, c.Reserves(), c.Options(), c.madeOf(before), c.madeOf(after))
	})
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
	for refusals, want := range []time.Duration{91, 91, 91, 91, 91, 120, 240, 240} { // in seconds
		due, err := a.Postponed("t", ThroughputInterval, now, max(1, refusals))
		conformance.True(t, err == nil && due.Sub(now) == want*time.Second, "refusal %d: in %v", refusals, due.Sub(now))
	}
	now = due
	must(t, a.Update("t", Change{ReservedWrite: new(6)}))
}
