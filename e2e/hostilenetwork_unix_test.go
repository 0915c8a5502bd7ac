//go:build e2e && unix

package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
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
	// hostileInterruptions is how often a load is killed, or stopped for longer than --settle and continued.
	hostileInterruptions = 4
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

// ledger is what the summary of a load says of its records.
type ledger struct {
	State                                           string
	Read, Written, Rejected, Superseded, Unfinished int
}

// TestAHostileNetworkChangesNoRow loads through a hostile network. TestAHostileNetworkAndKillsChangeNoRow kills such loads, or stops and
// continues them, at requests that are drawn, and gives the same command again until it ends by itself.
func TestAHostileNetworkChangesNoRow(t *testing.T) {
	throughHostileNetworks(t, 0, "put", "update", "delete", "not-exist", "exist", "auto")
}

func TestAHostileNetworkAndKillsChangeNoRow(t *testing.T) {
	modes := []string{"increment", "auto", "put", "update", "delete", "not-exist", "exist", "versions"}
	if *hostileRounds == 1 {
		modes = modes[:2] // the others wait for --settle again and again
	}
	throughHostileNetworks(t, hostileInterruptions, modes...)
}

func throughHostileNetworks(t *testing.T, interruptions int, modes ...string) {
	for seed := *hostileSeed; seed < *hostileSeed+uint64(*hostileRounds); seed++ {
		for i, mode := range modes {
			t.Run(fmt.Sprint(mode, " seed ", seed), func(t *testing.T) {
				t.Parallel()
				k := &interrupted{t: t, mode: mode, left: interruptions, rnd: rand.New(rand.NewPCG(seed, 10+uint64(i)))}
				k.run(seed)
			})
		}
	}
}

// interrupted is a load that is killed, stopped and continued.
type interrupted struct {
	t    *testing.T
	mode string
	rnd  *rand.Rand

	requests           atomic.Int64 // that the proxy has seen
	left, kills, stops int
}

func (k *interrupted) run(seed uint64) {
	t := k.t
	t.Helper()
	var without []string
	if k.mode == "auto" || k.mode == "versions" {
		without = []string{"replayed"} // one that the loader cannot see
	}
	s, p, met := throughHostileNetwork(t, seed, hostileNames(without...))
	decide := p.decide
	p.decide = func(operation string, n int) trouble {
		k.requests.Add(1)
		return decide(operation, n)
	}
	draw := k.mode
	switch k.mode {
	case "versions":
		draw = "update"
	case "increment", "auto":
		draw = "put"
	}
	l := drawLoad(rand.New(rand.NewPCG(seed, 4)), draw)
	tb := s.table("t")
	meta := &tablestore.TableMeta{TableName: "t"}
	meta.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_STRING)
	if k.mode == "auto" {
		meta.AddPrimaryKeyColumnOption("seq", tablestore.PrimaryKeyType_INTEGER, tablestore.AUTO_INCREMENT)
	} else {
		meta.AddPrimaryKeyColumn("pk2", tablestore.PrimaryKeyType_INTEGER)
	}
	versions := 1
	if k.mode == "versions" {
		versions, l.before = 1000, nil
	}
	must(t, tb.create(meta, newOptions(-1, versions)))
	for key, cells := range l.before {
		var all []cell
		for name, v := range cells {
			all = append(all, cell{Name: name, Value: v})
		}
		tb.load(t, tb.put(tb.key(key.user, key.n), all...))
	}
	switch k.mode {
	case "increment":
		l.flags = []string{"--mode", "increment", "--exclude", "a"}
	case "auto":
		l.flags = []string{"--pk", "pk1:string", "--pk", "seq:auto", "--type", "pk2=integer", "--returned-keys", "keys.csv"}
	}
	at := newPlace(t, s.credentials()...)
	at.write("in.csv", l.text)
	args := append([]string{"load", "in.csv", "--endpoint", p.URL, "--instance", s.Instance, "--table", "t", "--run-dir", "run", "--request-timeout", hostileTimeout.String(),
		"--settle", hostileSettle.String(), "--max-errors", "-1", "--concurrency", "8", "--json", "-q"}, l.flags...)
	if k.left > 0 {
		args = append(args, "--batch-rows", "8")
	}
	sum, code := k.until(at, args)
	defer func() {
		if t.Failed() {
			t.Logf("%+v, troubles: %v; repeat with -hostile-seed %d", sum, met, seed)
		}
	}()
	rejected := l.rejected
	if k.mode == "increment" {
		rejected = strings.Count(l.text, ",\n") // they have nothing to add
	}
	if sum.State != "finished" || sum.Read != hostileRecords || sum.Rejected != rejected || sum.Written+sum.Rejected+sum.Superseded != hostileRecords ||
		sum.Unfinished != 0 || (code == 3) != (rejected > 0) {
		reasons, _ := os.ReadFile(at.path("run/rejects.jsonl")) // there is none without rejects
		t.Errorf("exit code %d, want %d rejected: %.2000s", code, rejected, reasons)
	}
	switch k.mode {
	case "versions":
		wantVersions(t, s, l.text)
	case "increment":
		wantAdded(t, s, l.text)
	case "auto":
		wantOnce(t, s, l.text, at.read("keys.csv"))
	default:
		got := map[hostileKey]map[string]any{}
		for _, r := range tb.all(t) {
			cells := map[string]any{}
			for _, c := range r.Cells {
				cells[c.Name] = c.Value
			}
			got[hostileKey{r.Key[0].(string), r.Key[1].(int64)}] = cells
		}
		if d := differs(l.want, got, cmp.AllowUnexported(hostileKey{})); d != "" {
			t.Errorf("%d rows, want %d (-want +got):\n%.3000s", len(got), len(l.want), d)
		}
	}
	t.Logf("%d kills, %d stops, %d requests, troubles: %v", k.kills, k.stops, k.requests.Load(), met)
}

// until gives the command again and again until it ends by itself.
func (k *interrupted) until(at *place, args []string) (sum ledger, code int) {
	t := k.t
	for ; ; k.left-- {
		cmd := at.command(args...)
		var out bytes.Buffer
		cmd.Stdout = &out
		r := begin(t, cmd)
		strike := k.requests.Load() + int64(3+k.rnd.IntN(60))
		come := func() bool { return k.left > 0 && k.requests.Load() >= strike }
		struck := r.until(come)
		if struck && k.rnd.IntN(3) == 0 {
			k.stops++
			must(t, unlessEnded(cmd.Process.Signal(syscall.SIGSTOP)))
			time.Sleep(hostileSettle + hostileSettle/4) // the pause is what is tried
			must(t, unlessEnded(cmd.Process.Signal(syscall.SIGCONT)))
			strike = k.requests.Load() + int64(3+k.rnd.IntN(30))
			struck = r.until(come)
		}
		if struck {
			k.kills++
			r.kill()
			continue
		}
		code, said := r.wait(), r.said.String()
		if out.Len() == 0 && strings.HasPrefix(said, "tsimport: describe table t: ") {
			continue // the first request met a trouble that looks like a wrong endpoint
		}
		if code != 0 && code != 3 {
			t.Fatalf("exit code %d: %s%s", code, &out, said)
		}
		must(t, json.Unmarshal(out.Bytes(), &sum))
		return sum, code
	}
}

// hostileCells are the records of a text of drawLoad, in order.
func hostileCells(text string) (all [][]string) {
	for _, line := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
		all = append(all, strings.Split(line, ","))
	}
	return all
}

// wantVersions compares all versions with those that one update after the other leaves.
func wantVersions(t *testing.T, s *served, text string) {
	t.Helper()
	want, got := map[string][]string{}, map[string][]string{}
	for _, r := range hostileCells(text) {
		for i, name := range []string{"a", "b"} {
			if v := r[2+i]; v != "" {
				at := r[0] + "/" + r[1] + "/" + name
				want[at] = append(want[at], v)
			}
		}
	}
	for r := range rowsOfVersions(t, s.client(), "t", 1000) {
		for _, c := range r.Columns {
			at := fmt.Sprint(r.PrimaryKey.PrimaryKeys[0].Value, "/", r.PrimaryKey.PrimaryKeys[1].Value, "/", c.ColumnName)
			got[at] = append(got[at], fmt.Sprint(c.Value))
		}
	}
	for _, v := range got {
		slices.Reverse(v) // the newest version comes first
	}
	if d := differs(want, got); d != "" {
		t.Errorf("versions (-want +got):\n%.3000s", d)
	}
}

// wantAdded compares the sums of column b.
func wantAdded(t *testing.T, s *served, text string) {
	t.Helper()
	want, got := map[string]int64{}, map[string]int64{}
	for _, r := range hostileCells(text) {
		if r[3] != "" {
			var n int64
			_, err := fmt.Sscan(r[3], &n)
			must(t, err)
			want[r[0]+"/"+r[1]] += n
		}
	}
	for r := range rowsOf(t, s.client(), "t") {
		for _, c := range r.Columns {
			if c.ColumnName == "b" {
				got[fmt.Sprint(r.PrimaryKey.PrimaryKeys[0].Value, "/", r.PrimaryKey.PrimaryKeys[1].Value)] = c.Value.(int64)
			}
		}
	}
	if d := differs(want, got); d != "" {
		t.Errorf("sums (-want +got):\n%.3000s", d)
	}
}

// wantOnce compares the records of each pk1, in the order of their numbers, and the keys that were returned.
func wantOnce(t *testing.T, s *served, text, keys string) {
	t.Helper()
	returned := map[string]string{} // by the number of the record
	for _, r := range readCSV(t, keys, "file,record,pk1,seq") {
		returned[r[1]] = r[2] + "/" + r[3]
	}
	want, got := map[string][]string{}, map[string][]string{}
	for i, r := range hostileCells(text) {
		want[r[0]] = append(want[r[0]], r[2]+" "+returned[fmt.Sprint(i+1)])
	}
	for r := range rowsOf(t, s.client(), "t") {
		user := r.PrimaryKey.PrimaryKeys[0].Value.(string)
		for _, c := range r.Columns {
			if c.ColumnName == "a" {
				got[user] = append(got[user], fmt.Sprintf("%v %s/%v", c.Value, user, r.PrimaryKey.PrimaryKeys[1].Value))
			}
		}
	}
	if d := differs(want, got); d != "" {
		t.Errorf("records (-want +got):\n%.3000s", d)
	}
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

// TestAFewSlowConnectionsCarryALoad allows fewer connections than the load has workers, on a slow line.
func TestAFewSlowConnectionsCarryALoad(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--sync", "none", "--quiet", "--partitions", "16")
	p := &hostileProxy{connections: 4, bandwidth: 256 << 10, decide: func(string, int) trouble { return nil }}
	p.start(t, s, 1)
	const rows = 2000
	at := newPlace(t, s.credentials()...)
	at.write("in.csv", fileOf("id,v", rows, func(i int) string { return fmt.Sprintf("%02x%d,%s", i*37%256, i, strings.Repeat("x", 100)) }))
	at.ends(0, []string{"load", "in.csv", "--endpoint", p.URL, "--instance", s.Instance, "--table", "t", "--create", "--pk", "id:string", "--run-dir", "run",
		"--concurrency", "64", "--settle", "1s"}, "2,000 written")
	if n := len(dump(t, s, "t")); n != rows {
		t.Errorf("%d rows in the table, want %d", n, rows)
	}
	t.Logf("%d connections were refused", p.refused) // how many the load tries for depends on the machine
}
