package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/internal/objectstore/storetest"
	"tsimport/pipeline/checkpoint"
)

var (
	copyRounds = flag.Int("copy-rounds", 1, "how many copies TestKilledCopies kills, each several times")
	copySeed   = flag.Uint64("copy-seed", 0, "the seed of the first of them")
)

// pairOf are two services, the second of which is the profile b.
type pairOf struct {
	*place
	a, b *served
	more []string // of the environment, beside the services
}

func newPairOf(t testing.TB) *pairOf {
	return pairUp(t, startServe(t, "--sync", "none", "--splits", "200ms:0ms:6"), startServe(t, "--sync", "none", "--splits", "150ms:0ms:6"))
}

func pairUp(t testing.TB, a, b *served) *pairOf {
	return &pairOf{newPlace(t, append(a.env(), "TABLESTORE_ENDPOINT_B="+b.URL, "TABLESTORE_ACCESS_KEY_ID_B="+b.AccessKeyID, "TABLESTORE_ACCESS_KEY_SECRET_B="+b.AccessKeySecret)...), a, b, nil}
}

// bucket makes a store of objects that the commands find.
func (p *pairOf) bucket(t *testing.T, name string) *storetest.Server {
	around := &surroundings{T: t}
	objects := storetest.New(around, name)
	p.more, p.env = around.env, append(p.env, around.env...)
	return objects
}

// inB is a table of the second service as an argument.
func (p *pairOf) inB(table string) string { return "ots://b@" + p.b.Instance + "/" + table }

// dump is all of a table: every row with every version, by its key.
func dump(t testing.TB, s *served, name string) map[string][]cell {
	t.Helper()
	rows := map[string][]cell{}
	for r := range rowsOfVersions(t, s.client(), name, 100) {
		rows[fmt.Sprint(keyValues(r.PrimaryKey))] = cellsOf(r.Columns)
	}
	return rows
}

// fill makes a table with rows of all kinds: of several versions, of any columns and types, and of none.
func (p *pairOf) fill(name string, from, to int) {
	p.t.Helper()
	tb := p.a.table(name)
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

// copied is what the summary of a copy, or of another load, says.
type copied struct {
	State                                           string
	Read, Written, Rejected, Superseded, Unfinished int64
	Read_again, Expired_cells, Condition_failed     int64
}

// summary is the newest run's.
func (p *pairOf) summary() (r copied) {
	p.t.Helper()
	p.place.summary(&r)
	return r
}

// checkLedger checks that the newest run is finished and that each row of its source was read and written.
func (p *pairOf) checkLedger(rows int64) (r copied) {
	p.t.Helper()
	if r = p.summary(); r.State != "finished" || r.Unfinished != 0 || r.Rejected != 0 || r.Read != r.Written+r.Superseded || r.Read-r.Read_again != rows {
		p.t.Errorf("%+v", r)
	}
	return r
}

// refusesPages are the faults of a service that is read, losesWrites those of one that is written to.
var (
	refusesPages = []string{"refuse:OTSServerBusy", "refuse:OTSNotEnoughCapacityUnit", "refuse:OTSPartitionUnavailable", "drop-after", "truncate-body", "bad-body"}
	losesWrites  = []string{"refuse", "refuse-rows", "drop-after", "drop-before", "error-after", "apply-late", "truncate-body"}
)

// troubles makes the first service refuse and cut the share of pages, and the second refuse and lose that of writes; 0 of both ends that.
func (p *pairOf) troubles(seed uint64, pages, writes float64) {
	p.t.Helper()
	troubled(p.t, p.a, seed, pages, "GetRange", refusesPages...)
	troubled(p.t, p.b, seed, writes, "BatchWriteRow", losesWrites...)
}

// TestKilledCopies kills copies with SIGKILL, while both services refuse and lose requests and the tables split, until one comes to its end:
// the target is the source, and the ledger adds up.
func TestKilledCopies(t *testing.T) {
	t.Parallel()
	for round := *copySeed; round < *copySeed+uint64(*copyRounds); round++ {
		t.Run(fmt.Sprint("seed ", round), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(round, 19))
			rows, kills := 1500, 2+rnd.IntN(3)
			if *copyRounds == 1 {
				rows, kills = 500, 1
			}
			p := newPairOf(t)
			p.fill("t", 0, rows)
			p.troubles(round, 0.2, 0.1)
			args := []string{"copy", "t", p.inB("t"), "--create", "--settle", "500ms", "--batch-rows", fmt.Sprint(5 + rnd.IntN(40)), "--concurrency", fmt.Sprint(1 + rnd.IntN(8))}
			if round%2 == 1 {
				args = append(args, "--pk", "h:string=md5(pk1, 4)", "--pk", "pk1", "--pk", "pk2")
			}
			attempts := 1
			for ; ; attempts++ {
				given, until := args, never
				if attempts > 1 && rnd.IntN(2) == 0 && finalRows(p.dir) >= 0 {
					given = []string{"resume"}
				}
				if attempts <= kills {
					final := finalRows(p.dir) + rnd.Int64N(int64(rows/4))
					until = func() bool { return finalRows(p.dir) >= final }
				}
				if p.attempt(until, given...) {
					break
				}
			}
			r := p.checkLedger(int64(rows))
			p.troubles(0, 0, 0)
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

func never() bool { return false }

// attempt runs a command and kills it when the moment has come. It reports whether the command ended well.
func (p *pairOf) attempt(moment func() bool, args ...string) (whole bool) {
	p.t.Helper()
	cmd := p.command(args...)
	cmd.Env = append(cmd.Env, "TSIMPORT_CHECKPOINT_EVERY=20ms")
	r := begin(p.t, cmd)
	r.until(moment)
	r.kill()
	if r.ProcessState.ExitCode() > 0 {
		p.t.Fatalf("tsimport %q: %v\n%s", args, r.ProcessState, &r.said)
	}
	return r.ProcessState.Success()
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
