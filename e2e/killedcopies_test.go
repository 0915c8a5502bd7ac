package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/pipeline/checkpoint"
)

var (
	copyRounds = flag.Int("copy-rounds", 1, "how many copies TestKilledCopies kills, each several times")
	copySeed   = flag.Uint64("copy-seed", 0, "the seed of the first of them")
)

// pairOf are two services, the second of which is the profile b.
type pairOf struct {
	t    testing.TB
	dir  string
	a, b *served
	env  []string // beside that of the test's process
}

func newPairOf(t testing.TB) *pairOf {
	return &pairOf{t: t, dir: t.TempDir(), a: startServe(t, "--sync", "none", "--splits", "200ms:0ms:6"), b: startServe(t, "--sync", "none", "--splits", "150ms:0ms:6")}
}

func (p *pairOf) environment() []string {
	return append([]string{
		"TABLESTORE_ENDPOINT=" + p.a.URL, "TABLESTORE_INSTANCE=" + p.a.Instance,
		"TABLESTORE_ACCESS_KEY_ID=" + p.a.AccessKeyID, "TABLESTORE_ACCESS_KEY_SECRET=" + p.a.AccessKeySecret,
		"TABLESTORE_ENDPOINT_B=" + p.b.URL, "TABLESTORE_ACCESS_KEY_ID_B=" + p.b.AccessKeyID, "TABLESTORE_ACCESS_KEY_SECRET_B=" + p.b.AccessKeySecret,
	}, p.env...)
}

func (p *pairOf) command(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), p.environment()...)
	return cmd
}

// run runs a command that must end with the exit code, and returns what it said.
func (p *pairOf) run(code int, args ...string) string {
	p.t.Helper()
	cmd := p.command(args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		p.t.Fatalf("tsimport %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// inB is a table of the second service as an argument.
func (p *pairOf) inB(table string) string { return "ots://b@" + p.b.Instance + "/" + table }

// dump is all of a table: every row with every version, by its key.
func dump(t testing.TB, s *served, name string) map[string][]cell {
	t.Helper()
	sdk := newClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret)
	described, err := sdk.DescribeTable(&tablestore.DescribeTableRequest{TableName: name})
	must(t, err)
	from, to := new(tablestore.PrimaryKey), new(tablestore.PrimaryKey)
	for _, k := range described.TableMeta.SchemaEntry {
		from.AddPrimaryKeyColumnWithMinValue(*k.Name)
		to.AddPrimaryKeyColumnWithMaxValue(*k.Name)
	}
	rows := map[string][]cell{}
	for from != nil {
		page, err := sdk.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
			TableName: name, StartPrimaryKey: from, EndPrimaryKey: to, Direction: tablestore.FORWARD, MaxVersion: 100}})
		must(t, err)
		for _, r := range page.Rows {
			rows[fmt.Sprint(keyValues(r.PrimaryKey))] = cellsOf(r.Columns)
		}
		from = page.NextStartPrimaryKey
	}
	return rows
}

// fill makes a table with rows of all kinds: of several versions, of any columns and types, and of none.
func (p *pairOf) fill(name string, from, to int) {
	p.t.Helper()
	s := p.a
	tb := &table{service: &service{TableStoreClient: newClient(s.URL, s.Instance, s.AccessKeyID, s.AccessKeySecret)}, name: name}
	if from == 0 {
		meta := &tablestore.TableMeta{TableName: name}
		meta.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_STRING)
		meta.AddPrimaryKeyColumn("pk2", tablestore.PrimaryKeyType_INTEGER)
		meta.AddDefinedColumn("n", tablestore.DefinedColumn_INTEGER)
		must(p.t, tb.create(meta, newOptions(-1, 4)))
	}
	now := time.Now().UnixMilli()
	var changes []tablestore.RowChange
	for i := from; i < to; i++ {
		var cells []cell
		if i%13 != 12 {
			cells = append(cells, c("text", strings.Repeat(fmt.Sprint("row ", i, " "), 1+i%30)), c("n", i), c("b", []byte{0, byte(i)}), c(fmt.Sprint("c", i%90), i%2 == 0), c("d", float64(i)/3))
			for back := range i % 5 {
				cells = append(cells, v("versions", int64(i*back), now-int64(1000*back)))
			}
		}
		changes = append(changes, tb.put(tb.key(fmt.Sprint("key ", i%997), i), cells...))
	}
	tb.load(p.t, changes...)
}

func (p *pairOf) same(from, to *served, source, target string) {
	p.t.Helper()
	if diff := differs(dump(p.t, from, source), dump(p.t, to, target)); diff != "" {
		p.t.Errorf("%s is not %s:\n%.2000s", target, source, diff)
	}
}

// troubled makes a service answer the share of requests of an operation with a fault.
func troubled(t testing.TB, s *served, seed uint64, rate float64, operation string, kinds ...string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"rate": rate, "seed": seed, "operations": []string{operation}, "kinds": kinds, "delay_ms": 20})
	must(t, err)
	req, err := http.NewRequest(http.MethodPost, s.URL+"/_engine/faults", bytes.NewReader(body))
	must(t, err)
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		t.Fatalf("faults: %s", res.Status)
	}
}

// summary is the newest run's.
func (p *pairOf) summary() (r struct {
	State                                           string
	Read, Written, Rejected, Superseded, Unfinished int64
	Read_again, Expired_cells, Condition_failed     int64
}) {
	p.t.Helper()
	runs, err := filepath.Glob(filepath.Join(p.dir, "tsimport-runs", "*"))
	if err != nil || len(runs) == 0 {
		p.t.Fatalf("no run: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(runs[len(runs)-1], "summary.json"))
	must(p.t, err)
	must(p.t, json.Unmarshal(text, &r))
	return r
}

// TestKilledCopies kills copies with SIGKILL, while both services refuse and lose requests and the tables split, until one comes to its end:
// the target is the source, and the ledger adds up.
func TestKilledCopies(t *testing.T) {
	t.Parallel()
	for round := *copySeed; round < *copySeed+uint64(*copyRounds); round++ {
		t.Run(fmt.Sprint("seed ", round), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(round, 19))
			const rows = 1500
			p := newPairOf(t)
			p.fill("t", 0, rows)
			troubled(t, p.a, round, 0.2, "GetRange", "refuse:OTSServerBusy", "refuse:OTSNotEnoughCapacityUnit", "refuse:OTSPartitionUnavailable", "drop-after", "truncate-body", "bad-body")
			troubled(t, p.b, round, 0.1, "BatchWriteRow", "refuse", "refuse-rows", "drop-after", "drop-before", "error-after", "apply-late", "truncate-body")
			args := []string{"copy", "t", p.inB("t"), "--create", "--settle", "500ms", "--batch-rows", fmt.Sprint(5 + rnd.IntN(40)), "--concurrency", fmt.Sprint(1 + rnd.IntN(8))}
			if round%2 == 1 {
				args = append(args, "--pk", "h:string=md5(pk1, 4)", "--pk", "pk1", "--pk", "pk2")
			}
			attempts := 0
			for kills := 2 + rnd.IntN(3); ; kills-- {
				attempts++
				given := args
				if attempts > 1 && rnd.IntN(2) == 0 && finalRows(p.dir) >= 0 {
					given = []string{"resume"}
				}
				cmd := p.command(given...)
				cmd.Env = append(cmd.Env, "TSIMPORT_CHECKPOINT_EVERY=20ms")
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &out
				must(t, cmd.Start())
				ended := make(chan error, 1)
				go func() { ended <- cmd.Wait() }()
				if kills > 0 {
					killAfter(cmd, p.dir, finalRows(p.dir)+rnd.Int64N(rows/4), ended)
				}
				if err := <-ended; err == nil {
					break
				} else if cmd.ProcessState.ExitCode() > 0 {
					t.Fatalf("attempt %d: %v\n%s", attempts, err, &out)
				}
			}
			r := p.summary()
			if r.State != "finished" || r.Unfinished != 0 || r.Rejected != 0 || r.Read != r.Written+r.Superseded || r.Read-r.Read_again != rows {
				t.Errorf("%+v", r)
			}
			troubled(t, p.a, 0, 0, "GetRange", "refuse")
			troubled(t, p.b, 0, 0, "BatchWriteRow", "refuse")
			if round%2 == 1 {
				p.run(0, "copy", p.inB("t"), "back", "--create", "--pk", "pk1", "--pk", "pk2", "--exclude", "h")
				p.same(p.a, p.a, "t", "back")
			} else {
				p.same(p.a, p.b, "t", "t")
			}
			t.Logf("%d attempts, %d rows read again", attempts, r.Read_again)
		})
	}
}

// killAfter kills a process once so many rows are final, unless it ends before.
func killAfter(cmd *exec.Cmd, dir string, final int64, ended chan error) {
	for finalRows(dir) < final && len(ended) == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	cmd.Process.Kill()
}

// finalRows is how many rows the checkpoint of the newest run in a folder calls final, -1 without one.
func finalRows(dir string) int64 {
	runs, err := filepath.Glob(filepath.Join(dir, "tsimport-runs", "*"))
	if err != nil || len(runs) == 0 {
		return -1
	}
	s, err := checkpoint.Read(slices.Max(runs))
	if err != nil {
		return -1
	}
	return s.Counters["written"] + s.Counters["rejected"] + s.Counters["superseded"] + s.Counters["condition_failed"] + s.Counters["archived"]
}
