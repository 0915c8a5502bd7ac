//go:build e2e && unix

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/google/go-cmp/cmp"
)

// hostileInterruptions is how often a load is killed, or stopped for longer than --settle and continued.
const hostileInterruptions = 4

// TestAHostileNetworkAndKillsChangeNoRow kills loads through a hostile network, or stops and continues them, at requests that
// are drawn, and gives the same command again until it ends by itself.
func TestAHostileNetworkAndKillsChangeNoRow(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	modes := []string{"increment", "auto", "put", "update", "delete", "not-exist", "exist", "versions"}
	if *hostileRounds == 1 {
		modes = modes[:2] // the others wait for --settle again and again
	}
	for seed := *hostileSeed; seed < *hostileSeed+uint64(*hostileRounds); seed++ {
		for i, mode := range modes {
			t.Run(fmt.Sprint(mode, " seed ", seed), func(t *testing.T) {
				t.Parallel()
				k := &interrupted{t: t, mode: mode, rnd: rand.New(rand.NewPCG(seed, 10+uint64(i)))}
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

	requests     atomic.Int64 // that the proxy has seen
	kills, stops int
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
	tb := &table{service: &service{TableStoreClient: newClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret)}, name: "t"}
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
		l.flags = []string{"--pk", "pk1:string", "--pk", "seq:auto", "--type", "pk2=integer"}
	}
	dir := t.TempDir()
	input := filepath.Join(dir, "in.csv")
	must(t, os.WriteFile(input, []byte(l.text), 0o600))
	args := append(hostileArgs(s, p, dir, input, l.flags...), "--batch-rows", "8")
	sum := k.until(s, args)
	defer func() {
		if t.Failed() {
			t.Logf("%+v, troubles: %v; repeat with -hostile-seed %d", sum, met, seed)
		}
	}()
	rejected := l.rejected
	if k.mode == "increment" {
		rejected = strings.Count(l.text, ",\n") // they have nothing to add
	}
	if sum.State != "finished" || sum.Read != hostileRecords || sum.Rejected != rejected || sum.Written+sum.Rejected+sum.Superseded != hostileRecords {
		reasons, _ := os.ReadFile(filepath.Join(dir, "run", "rejects.jsonl")) // there is none without rejects
		t.Errorf("want %d rejected: %.2000s", rejected, reasons)
	}
	switch k.mode {
	case "versions":
		wantVersions(t, s, l.text)
	case "increment":
		wantAdded(t, s, l.text)
	case "auto":
		wantOnce(t, s, l.text)
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
func (k *interrupted) until(s *served, args []string) (sum ledger) {
	t := k.t
	for left := hostileInterruptions; ; left-- {
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), s.credentials()...)
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		must(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		killer := time.AfterFunc(processTimeout, func() { cmd.Process.Kill() })
		at, stop := k.requests.Load()+int64(3+k.rnd.IntN(60)), k.rnd.IntN(3) == 0
		killed := false
		tick := time.NewTicker(time.Millisecond)
		var err error
	waiting:
		for {
			select {
			case err = <-ended:
				break waiting
			case <-tick.C:
			}
			if left <= 0 || killed || k.requests.Load() < at {
				continue
			}
			if stop {
				k.stops++
				must(t, unlessEnded(cmd.Process.Signal(syscall.SIGSTOP)))
				time.Sleep(hostileSettle + hostileSettle/4) // the pause is what is tried
				must(t, unlessEnded(cmd.Process.Signal(syscall.SIGCONT)))
				at, stop = k.requests.Load()+int64(3+k.rnd.IntN(30)), false
				continue
			}
			k.kills++
			killed = true
			must(t, unlessEnded(cmd.Process.Kill()))
		}
		tick.Stop()
		killer.Stop()
		if killed {
			continue
		}
		if out.Len() == 0 && strings.HasPrefix(errOut.String(), "tsimport: describe table t: ") {
			continue // the first request met a trouble that looks like a wrong endpoint
		}
		if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) {
			t.Fatalf("%v: %s%s", err, out.String(), errOut.String())
		}
		must(t, json.Unmarshal(out.Bytes(), &sum))
		return sum
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
	client := newClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret)
	for r := range rowsOfVersions(t, client, "t", 1000) {
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
	for r := range rowsOf(t, newClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret), "t") {
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

// wantOnce compares the records of each pk1, in the order of their numbers.
func wantOnce(t *testing.T, s *served, text string) {
	t.Helper()
	want, got := map[string][]string{}, map[string][]string{}
	for _, r := range hostileCells(text) {
		want[r[0]] = append(want[r[0]], r[2])
	}
	for r := range rowsOf(t, newClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret), "t") {
		user := r.PrimaryKey.PrimaryKeys[0].Value.(string)
		for _, c := range r.Columns {
			if c.ColumnName == "a" {
				got[user] = append(got[user], c.Value.(string))
			}
		}
	}
	if d := differs(want, got); d != "" {
		t.Errorf("records (-want +got):\n%.3000s", d)
	}
}
