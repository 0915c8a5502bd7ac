//go:build e2e

package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/google/go-cmp/cmp"
)

var (
	hostileRounds = flag.Int("hostile-rounds", 1, "how many seeds the tests of hostile networks run with")
	hostileSeed   = flag.Uint64("hostile-seed", 1, "the first of them")
	hostileMost   = flag.Int("hostile-troubles", 12, "how many requests of a load meet trouble at the most")
)

// hostileTimeout is how long a request of these loads may take. It is short, so that what arrives late does so soon;
// hostileSettle is far longer than a delayed request of the proxy can take on a slow machine.
const (
	hostileTimeout = 700 * time.Millisecond
	hostileSettle  = 2 * time.Second
)

// troubles are the faults of a hostile network by name.
func troubles() map[string]trouble {
	all := map[string]trouble{
		"cut before": cutBefore, "cut after": cutAfter, "truncated": truncated, "late": applyLate, "stalled": stalled,
		"flipped": flipped, "garbage": garbage, "replayed": replayed,
	}
	for _, status := range []int{301, 302, 303, 307, 308, 400, 403, 404, 408, 413, 421, 429, 431, 500, 502, 503, 504} {
		all[fmt.Sprint(status, " before")] = answered(status, false)
		all[fmt.Sprint(status, " after")] = answered(status, true)
	}
	return all
}

// hostileLoad is a load through a hostile network, and the table that a sequential load leaves: worked out from the
// records alone, without any code of the loader.
type hostileLoad struct {
	mode     string
	flags    []string
	text     string
	before   map[hostileKey]map[string]any
	want     map[hostileKey]map[string]any
	rejected int
}

type hostileKey struct {
	user string
	n    int64
}

const hostileRecords, hostileUsers = 600, 40

// drawLoad draws the records of a load, with keys that come again and again.
func drawLoad(rnd *rand.Rand, mode string) *hostileLoad {
	l := &hostileLoad{mode: mode, before: map[hostileKey]map[string]any{}, want: map[hostileKey]map[string]any{}}
	switch mode {
	case "update", "delete":
		l.flags = []string{"--mode", mode}
	case "not-exist", "exist":
		l.flags = []string{"--condition", mode}
	}
	if mode != "put" {
		for i := range hostileUsers {
			if k := (hostileKey{fmt.Sprint("u", i), int64(i % 3)}); i%2 == 0 {
				l.before[k] = map[string]any{"a": "before", "c": "kept"}
			}
		}
	}
	for k, cells := range l.before {
		l.want[k] = cells
	}
	var text strings.Builder
	text.WriteString("pk1,pk2,a,b\n")
	for i := range hostileRecords {
		k := hostileKey{fmt.Sprint("u", rnd.IntN(hostileUsers)), int64(rnd.IntN(3))}
		a, b := fmt.Sprint("a", i), any(int64(i))
		if rnd.IntN(4) == 0 {
			b = nil
		}
		fmt.Fprintf(&text, "%s,%d,%s,", k.user, k.n, a)
		if b != nil {
			fmt.Fprint(&text, b)
		}
		text.WriteString("\n")
		l.apply(k, a, b)
	}
	l.text = text.String()
	return l
}

// apply does with the wanted table what one record does.
func (l *hostileLoad) apply(k hostileKey, a string, b any) {
	cells := map[string]any{"a": a}
	if b != nil {
		cells["b"] = b
	}
	_, exists := l.want[k]
	switch {
	case l.mode == "delete":
		delete(l.want, k)
	case l.mode == "not-exist" && exists, l.mode == "exist" && !exists:
		l.rejected++
	case l.mode == "update":
		merged := map[string]any{}
		for name, v := range l.want[k] {
			merged[name] = v
		}
		for name, v := range cells {
			merged[name] = v
		}
		l.want[k] = merged
	default:
		l.want[k] = cells
	}
}

// throughHostileNetwork lays the proxy between a load and a new store. Of the requests one in four meets trouble, until
// there were as many as a load gets over in a short time.
func throughHostileNetwork(t *testing.T, seed uint64, names []string) (*served, *hostileProxy, map[string]int) {
	s := startServe(t, "--sync", "none", "--quiet")
	all, left, met := troubles(), *hostileMost, map[string]int{}
	rnd := rand.New(rand.NewPCG(seed, 1))
	p := &hostileProxy{timeout: hostileTimeout, settle: hostileSettle}
	p.decide = func(operation string, n int) trouble { // called under a lock
		if left == 0 || operation == "CreateTable" || operation == "DescribeTable" && n == 0 || rnd.IntN(4) > 0 {
			return nil
		}
		left--
		name := names[rnd.IntN(len(names))]
		met[name]++
		return all[name]
	}
	p.start(t, s, seed)
	return s, p, met
}

func hostileArgs(s *served, p *hostileProxy, dir, input string, flags ...string) []string {
	return append([]string{"load", input, "--endpoint", p.URL, "--instance", s.Instance, "--table", "t", "--run-dir", filepath.Join(dir, "run"),
		"--request-timeout", hostileTimeout.String(), "--settle", hostileSettle.String(), "--max-errors", "-1", "--concurrency", "8", "--json", "-q"}, flags...)
}

// ledger is what the summary of a load says of its records.
type ledger struct {
	State                                           string
	Read, Written, Rejected, Superseded, Unfinished int
	Requests                                        int
}

func TestAHostileNetworkChangesNoRow(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for seed := *hostileSeed; seed < *hostileSeed+uint64(*hostileRounds); seed++ {
		for _, mode := range []string{"put", "update", "delete", "not-exist", "exist"} {
			t.Run(fmt.Sprint(mode, " seed ", seed), func(t *testing.T) {
				t.Parallel()
				loadThroughHostileNetwork(t, seed, mode)
			})
		}
	}
}

func loadThroughHostileNetwork(t *testing.T, seed uint64, mode string) {
	names := hostileNames()
	s, p, met := throughHostileNetwork(t, seed, names)
	l := drawLoad(rand.New(rand.NewPCG(seed, 2)), mode)
	tb := &table{service: &service{TableStoreClient: newClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret)}, name: "t"}
	meta := &tablestore.TableMeta{TableName: "t"}
	meta.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_STRING)
	meta.AddPrimaryKeyColumn("pk2", tablestore.PrimaryKeyType_INTEGER)
	must(t, tb.create(meta, newOptions(-1, 1)))
	for k, cells := range l.before {
		var all []cell
		for name, v := range cells {
			all = append(all, cell{Name: name, Value: v})
		}
		tb.load(t, tb.put(tb.key(k.user, k.n), all...))
	}
	dir := t.TempDir()
	input := filepath.Join(dir, "in.csv")
	must(t, os.WriteFile(input, []byte(l.text), 0o600))
	stdout, stderr, code := runBinaryWith(t, s.credentials(), hostileArgs(s, p, dir, input, l.flags...)...)
	var sum ledger
	if err := json.Unmarshal([]byte(stdout), &sum); err != nil {
		t.Fatalf("exit code %d, %v: %s%s\ntroubles: %v", code, err, stdout, stderr, met)
	}
	wantCode := 0
	if l.rejected > 0 {
		wantCode = 3
	}
	if code != wantCode || sum.State != "finished" || sum.Read != hostileRecords || sum.Rejected != l.rejected ||
		sum.Written+sum.Rejected+sum.Superseded != hostileRecords || sum.Unfinished != 0 {
		reasons, _ := os.ReadFile(filepath.Join(dir, "run", "rejects.jsonl")) // there is none without rejects
		t.Errorf("exit code %d, %+v, want %d rejected: %s\ntroubles: %v\n%.2000s", code, sum, l.rejected, stderr, met, reasons)
	}
	got := map[hostileKey]map[string]any{}
	for _, r := range tb.all(t) {
		cells := map[string]any{}
		for _, c := range r.Cells {
			cells[c.Name] = c.Value
		}
		got[hostileKey{r.Key[0].(string), r.Key[1].(int64)}] = cells
	}
	if d := differs(l.want, got, cmp.AllowUnexported(hostileKey{})); d != "" {
		t.Errorf("%d rows, want %d (-want +got):\n%.3000s\ntroubles: %v", len(got), len(l.want), d, met)
	}
	t.Logf("%d requests, troubles: %v", sum.Requests, met)
}

// hostileNames returns the names of the troubles in a fixed order, without those named.
func hostileNames(without ...string) (names []string) {
	for name := range troubles() {
		if !slices.Contains(without, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestAHostileNetworkLeavesEachNumberedRecordOnce is the same for an auto-increment key. A network that repeats requests by
// itself is left out: the service then makes two rows of which neither answer tells.
func TestAHostileNetworkLeavesEachNumberedRecordOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for seed := *hostileSeed; seed < *hostileSeed+uint64(*hostileRounds); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			numberThroughHostileNetwork(t, seed)
		})
	}
}

func numberThroughHostileNetwork(t *testing.T, seed uint64) {
	s, p, met := throughHostileNetwork(t, seed, hostileNames("replayed"))
	const records = 300
	var text strings.Builder
	text.WriteString("user,what\n")
	for i := range records {
		fmt.Fprintf(&text, "u%d,w%d\n", i*7%40, i)
	}
	dir := t.TempDir()
	input, keys := filepath.Join(dir, "in.csv"), filepath.Join(dir, "keys.csv")
	must(t, os.WriteFile(input, []byte(text.String()), 0o600))
	stdout, stderr, code := runBinaryWith(t, s.credentials(),
		hostileArgs(s, p, dir, input, "--create", "--pk", "user:string", "--pk", "seq:auto", "--returned-keys", keys)...)
	var sum ledger
	if err := json.Unmarshal([]byte(stdout), &sum); err != nil || code != 0 || sum.Written != records || sum.Read != records {
		t.Fatalf("exit code %d, %v, %+v: %s\ntroubles: %v", code, err, sum, stderr, met)
	}
	client := newClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret)
	numbers, rows := map[string]int64{}, 0
	for r := range rowsOf(t, client, "t") {
		rows++
		for _, c := range r.Columns {
			if c.ColumnName == "what" {
				numbers[c.Value.(string)] = r.PrimaryKey.PrimaryKeys[1].Value.(int64)
			}
		}
	}
	if rows != records || len(numbers) != records {
		t.Errorf("%d rows, %d different records, want %d of each\ntroubles: %v", rows, len(numbers), records, met)
	}
	returned, err := os.ReadFile(keys)
	must(t, err)
	got := map[string]string{}
	for _, r := range readCSV(t, string(returned), "file,record,user,seq") {
		got[r[1]] = r[3]
	}
	last := map[string]int64{}
	for i := range records {
		user, n := fmt.Sprint("u", i*7%40), numbers[fmt.Sprint("w", i)]
		if n <= last[user] {
			t.Errorf("record %d of %s has number %d after %d", i+1, user, n, last[user])
		}
		last[user] = n
		if got[strconv.Itoa(i+1)] != fmt.Sprint(n) {
			t.Errorf("record %d: key %q was returned, the table holds %d", i+1, got[strconv.Itoa(i+1)], n)
		}
	}
	if len(got) != records {
		t.Errorf("%d keys were returned, want %d", len(got), records)
	}
	t.Logf("%d requests, troubles: %v", sum.Requests, met)
}

// rowsOf reads a table through the SDK, page by page.
func rowsOf(t *testing.T, client *tablestore.TableStoreClient, name string) func(func(*tablestore.Row) bool) {
	return rowsOfVersions(t, client, name, 1)
}

// rowsOfVersions is rowsOf with the newest versions of each cell.
func rowsOfVersions(t *testing.T, client *tablestore.TableStoreClient, name string, versions int32) func(func(*tablestore.Row) bool) {
	return func(yield func(*tablestore.Row) bool) {
		start, end := &tablestore.PrimaryKey{}, &tablestore.PrimaryKey{}
		described, err := client.DescribeTable(&tablestore.DescribeTableRequest{TableName: name})
		must(t, err)
		for _, k := range described.TableMeta.SchemaEntry {
			start.AddPrimaryKeyColumnWithMinValue(*k.Name)
			end.AddPrimaryKeyColumnWithMaxValue(*k.Name)
		}
		for start != nil {
			r, err := client.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
				TableName: name, StartPrimaryKey: start, EndPrimaryKey: end, Direction: tablestore.FORWARD, MaxVersion: versions}})
			must(t, err)
			for _, row := range r.Rows {
				if !yield(row) {
					return
				}
			}
			start = r.NextStartPrimaryKey
		}
	}
}

// TestAFewSlowConnectionsCarryALoad allows fewer connections than the load has workers, on a slow line.
func TestAFewSlowConnectionsCarryALoad(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	s := startServe(t, "--sync", "none", "--quiet", "--partitions", "16")
	p := &hostileProxy{connections: 4, bandwidth: 256 << 10, decide: func(string, int) trouble { return nil }}
	p.start(t, s, 1)
	const rows = 4000
	var text strings.Builder
	text.WriteString("id,v\n")
	for i := range rows {
		fmt.Fprintf(&text, "%02x%d,%s\n", i*37%256, i, strings.Repeat("x", 100))
	}
	dir := t.TempDir()
	input := filepath.Join(dir, "in.csv")
	must(t, os.WriteFile(input, []byte(text.String()), 0o600))
	stdout, stderr, code := runBinaryWith(t, s.credentials(), "load", input, "--endpoint", p.URL, "--instance", s.Instance, "--table", "t", "--create", "--pk", "id:string",
		"--run-dir", filepath.Join(dir, "run"), "--concurrency", "64", "--settle", "1s", "--json", "-q")
	var sum ledger
	if err := json.Unmarshal([]byte(stdout), &sum); err != nil || code != 0 || sum.Written != rows {
		t.Fatalf("exit code %d, %v, %+v: %s", code, err, sum, stderr)
	}
	n := 0
	for range rowsOf(t, newClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret), "t") {
		n++
	}
	if n != rows {
		t.Errorf("%d rows in the table, want %d", n, rows)
	}
	t.Logf("%d connections were refused", p.refused) // how many the load tries for depends on the machine
}
