package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

var (
	kills  = flag.Int("kills", 1, "how often each command is killed before it may end, and tsimport serve")
	rounds = flag.Int("rounds", 1, "how many seeds each command is killed with, and meets a hostile network with")
	first  = flag.Uint64("first-seed", 1, "the first of them")
)

const movedRows = 300

// moved moves table t between two services. Its commands reach both through proxies that count requests.
type moved struct {
	*pairOf
	direct   *pairOf // the services, without the proxies
	name     string  // name of the new table
	networks [2]*proxy
	rnd      *rand.Rand
	kills    int // number of kills per command
	struck   *int
	more     []string // further arguments of each command
}

func (p *pairOf) move(t *testing.T, name string, seed uint64, decide func() func(operation string) trouble) *moved {
	m := &moved{direct: pairUp(t, p.a, p.b), name: name, rnd: rand.New(rand.NewPCG(seed, 1)), struck: new(int)}
	var through [2]*served
	for i, s := range []*served{p.a, p.b} {
		m.networks[i] = startProxy(t, s, decide())
		through[i] = &served{URL: m.networks[i].URL, Instance: s.Instance, AccessKeyID: s.AccessKeyID,
			AccessKeySecret: s.AccessKeySecret}
	}
	m.pairOf = pairUp(t, through[0], through[1])
	m.direct.dir = m.dir
	m.env = append(m.env, "TSIMPORT_CHECKPOINT_EVERY=20ms")
	return m
}

// swap returns the move in the other direction: the own service of its commands is the second one.
func (m *moved) swap() *moved {
	q := *m
	q.pairOf, q.direct = m.swapped(), m.direct.swapped()
	return &q
}

// ways maps names to functions that move rows into a table of that name and check it.
var ways = map[string]func(m *moved){
	"loaded": func(m *moved) {
		m.until(0, there(m.path("t.jsonl")), "export", "--table", "t", "--format", "jsonl", "--typed", "-o", "t.jsonl")
		m.write("in.jsonl", m.read("t.jsonl")+"bad\n")
		m = m.swap()
		m.until(3, m.finished, "load", "in.jsonl", "--table", m.name, "--create", "--max-versions", "4", "--max-errors", "-1",
			"--pk", "pk1:string", "--pk", "pk2:integer")
		kept := m.glob("tsimport-runs/*/rejects.ndjson")
		if s := m.summary(); s.Read != movedRows+1 || s.Written != movedRows || s.Rejected != 1 || len(kept) != 1 {
			m.t.Fatalf("%+v, rejects in %q", s, kept)
		}
		rejects, err := os.ReadFile(kept[0])
		conformance.True(m.t, err == nil && string(rejects) == "bad\n", "the rejects are %q, %v", rejects, err)
		m.direct.same(m.direct.a, m.direct.b, m.name, "t")
	},
	"archived": func(m *moved) {
		m.until(0, there(m.path("kept/manifest.json")), "export", "--table", "t", "--format", "archive", "-o", "kept",
			"--concurrency", "2")
		m = m.swap()
		m.until(0, m.finished, "load", "kept", "--table", m.name, "--create")
		m.direct.same(m.direct.a, m.direct.b, m.name, "t")
	},
	"numbered": func(m *moved) {
		m.direct.run(0, "export", "--table", "t", "--format", "archive", "-o", "kept")
		m = m.swap()
		keys := []string{"--table", m.name, "--returned-keys", "keys.csv"}
		m.until(0, m.finished, append([]string{"load", "kept", "--create", "--pk", "pk1:string", "--pk", "pk2:auto"},
			keys...)...)
		for _, source := range []string{"kept", m.inB("t")} {
			m.direct.ends(0, append([]string{"verify", source, "--extra", "fail"}, keys...), fmt.Sprint(movedRows, " equal"))
		}
	},
	"copied": func(m *moved) {
		m.until(0, m.finished, "copy", "t", m.inB(m.name), "--create")
		if s := m.summary(); s.Written != movedRows || s.Read-s.Read_again != movedRows ||
			s.Rejected+s.Superseded+s.Unfinished != 0 {
			m.t.Errorf("%+v", s)
		}
		m.direct.same(m.direct.a, m.direct.b, "t", m.name)
	},
	"indexed": func(m *moved) { // including kills between two indexes
		m.until(0, m.finished, "copy", "i", m.inB(m.name), "--create", "--rename-index", "i_by_city="+m.name+"_by_city",
			"--rename-index", "i_by_n="+m.name+"_by_n")
		m.direct.same(m.direct.a, m.direct.b, "i", m.name)
		m.direct.sameIndexes(m.direct.a, m.direct.b, "i", m.name)
	},
	"synced": func(m *moved) {
		m.direct.run(0, "copy", "t", m.inB(m.name), "--create", "--run-dir", "before")
		m = m.swap()
		tb := m.direct.a.table(m.name)
		for i := range 50 {
			key := func(n int) *tablestore.PrimaryKey { return tb.key(fmt.Sprint("key ", n), n) }
			tb.load(m.t, tb.delete(key(4*i)), tb.put(key(4*i+1), c("other", i)), tb.put(tb.key("surplus", i)))
		}
		m.until(0, m.finished, "sync", m.inB("t"), "--table", m.name, "--delete", "--max-delete", "100%")
		m.direct.same(m.direct.a, m.direct.b, m.name, "t")
	},
	"counted": func(m *moved) {
		// Counters reveal records that are added twice or not at all.
		for i := range 2 {
			record := func(r int) string { return fmt.Sprintf("%d,%d", r/2, 1+r%2) }
			m.write(fmt.Sprintf("in.%s%d.csv", m.name, i), fileOf("id,n", movedRows, record))
		}
		m.write("job.yaml", `version: 1
defaults: {create: true, mode: increment, pk: [id:integer], batch-bytes: 2KiB, settle: 300ms}
loads: {"{table}": {from: ["in.{table}.csv"]}}
`)
		m = m.swap()
		m.more = nil
		done := func() bool { _, r := jobOf(m.dir); return r != nil && r.State == "done" }
		m.until(0, done, "run", "job.yaml")
		_, r := jobOf(m.dir)
		conformance.True(m.t, r.Read == 2*movedRows && r.Written == 2*movedRows, "%+v", r)
		for i := range 2 {
			rows := dump(m.t, m.direct.a, fmt.Sprint(m.name, i))
			for id, cells := range rows {
				conformance.True(m.t, slices.Contains(untimed(cells), c("n", int64(3))), "row %s of table %d: %v", id, i, cells)
			}
			conformance.True(m.t, len(rows) == movedRows/2, "%d rows in table %d", len(rows), i)
		}
	},
}

func (m *moved) finished() bool {
	return len(m.glob("tsimport-runs/2*/summary.json")) > 0 && m.summary().State == "finished"
}

// until runs the command or resume, and kills it at random requests, until it ends with code or the table is whole.
func (m *moved) until(code int, whole func() bool, args ...string) {
	m.t.Helper()
	last := 4 // an export sends few requests
	if args[0] != "export" {
		last, args = 15, append(args, m.more...)
	}
	requests := func() int64 { return m.networks[0].requests.Load() + m.networks[1].requests.Load() }
	for left, given := m.kills, args; ; left-- {
		r, at := m.start(given...), requests()+int64(2+m.rnd.IntN(last))
		if left > 0 && r.until(func() bool { return requests() >= at }) {
			if r.kill(); r.ProcessState.ExitCode() < 0 {
				if *m.struck++; whole() {
					return
				}
				if given = args; m.rnd.IntN(2) == 0 && finalRows(m.dir) >= 0 {
					given = []string{"resume"}
				}
				continue
			}
		}
		got := r.wait()
		conformance.MustTrue(m.t, got == code, "tsimport %q: exit code %d, want %d:\n%s", given, got, code, &r.said)
		return
	}
}

// TestKilledCommands kills each command that moves rows. The result must equal that of an uninterrupted run. The random
// loads in pipeline, scaleout and tablesync test this for all options of a load.
func TestKilledCommands(t *testing.T) {
	t.Parallel()
	p := newPairOf(t)
	p.fill("t", 0, movedRows)
	p.indexed("i", 40)
	for name, way := range ways {
		for seed := *first; seed < *first+uint64(*rounds); seed++ {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				m := p.move(t, fmt.Sprint(name, seed), seed, func() func(string) trouble { return nil })
				m.kills, m.more = *kills, []string{"--settle", "300ms", "--batch-bytes", "2KiB"}
				way(m)
				conformance.True(t, *m.struck != 0, "no command was killed")
				t.Logf("killed %d times", *m.struck)
			})
		}
	}
}

// aging is a server with tables of four months, three of them expired, and the arguments of age.
type aging struct {
	*place
	server  *served
	args    []string
	archive []string // tables that must be archived in the end
	old     string   // folder or address for archives
}

func newAging(t *testing.T, interval string) *aging { return newAgingTo(t, interval, "old") }

func newAgingTo(t *testing.T, interval, old string) *aging {
	server := startServe(t, "--quiet", "--throughput-interval", interval)
	a := &aging{place: newPlace(t, server.env()...), server: server, old: old}
	a.write("policy.yaml", "period: month\nclasses:\n  - {up_to: 3, reserved: {read: 5, write: 9}, ttl: 864000}\n  - "+
		"{archive: '"+old+"'}\n")
	for i, month := range []string{"202401", "202402", "202403", "202406"} {
		tb := server.table("c_" + month)
		meta := &tablestore.TableMeta{TableName: tb.name}
		meta.AddPrimaryKeyColumn("pk1", tablestore.PrimaryKeyType_INTEGER)
		must(t, tb.create(meta, 1))
		var changes []tablestore.RowChange
		for id := range 20 * (i + 1) {
			changes = append(changes, tb.put(tb.key(id), c("v", fmt.Sprintf("%s-%d", month, id)), c("b", []byte{0, byte(id)})))
		}
		tb.load(t, changes...)
		if month < "202404" {
			a.archive = append(a.archive, tb.name)
			a.run(0, "export", "--table", tb.name, "-o", "before/"+tb.name+"/")
		}
	}
	a.args = []string{"age", "--policy", "policy.yaml", "--table", "c_{month}", "--now", "2024-07-15T00:00:00Z",
		"--apply", "--drop-expired", "--throughput-interval", "0s"}
	return a
}

// TestNextAgeFinishesKilledOne kills age after its first lines. lifecycle/apply tests kills at all other times.
func TestNextAgeFinishesKilledOne(t *testing.T) {
	t.Parallel()
	newAging(t, "0s").killedAndFinished()
}

// TestNextAgeFinishesKilledOneInObjectStore archives to a store that refuses some requests and loses some answers.
func TestNextAgeFinishesKilledOneInObjectStore(t *testing.T) {
	t.Parallel()
	a := newAgingTo(t, "0s", "s3://bucket/old")
	objects := a.bucket(t, "bucket")
	unreliable(objects, 5)
	a.killedAndFinished()
	a.run(0, "load", "s3://bucket/old/c_202402", "--table", "c_202402", "--create", "--verify")
	a.ends(0, []string{"verify", "before/c_202402", "--table", "c_202402", "--extra", "fail"})
}

func (a *aging) killedAndFinished() {
	t := a.t
	t.Helper()
	killed := a.start(a.args...)
	killed.says("^.+$", 2)
	killed.kill()
	var result struct {
		Tables []struct{ Table, State string }
	}
	must(t, json.Unmarshal([]byte(a.output(append(a.args, "--json")...)), &result))
	for _, table := range result.Tables {
		conformance.True(t, table.State == "done" || table.State == "unchanged", "table %s is %s", table.Table, table.State)
	}
	a.check()
}

func TestWaitingAgeCanBeStoppedAndContinued(t *testing.T) {
	t.Parallel()
	a := newAging(t, "0s")
	// The creation counts as a change, so the youngest table's throughput cannot change yet.
	cmd := a.command(append(slices.Clone(a.args[:len(a.args)-1]), "1h", "--json")...)
	out := new(strings.Builder)
	cmd.Stdout = out
	r := begin(t, cmd)
	r.says("waiting ", 1)
	r.signal(os.Interrupt)
	code := r.wait()
	var stopped struct {
		Error    string
		ExitCode int `json:"exit_code"`
		Tables   []struct{ Table, State string }
	}
	must(t, json.Unmarshal([]byte(out.String()), &stopped))
	conformance.True(t, code == 130 && stopped.ExitCode == 130 && strings.Contains(stopped.Error, "interrupt") &&
		fmt.Sprint(stopped.Tables) == "[{c_202401 done} {c_202402 done} {c_202403 done} {c_202406 planned}]",
		"exit code %d, %+v", code, stopped)
	a.run(0, a.args...)
	a.check()
}

func (a *aging) check() {
	t := a.t
	t.Helper()
	if a.old == "old" {
		conformance.Equal(t, len(a.glob("old/*/manifest.json")), len(a.archive), "archives")
	}
	for _, name := range a.archive {
		a.ends(0, []string{"verify", a.old + "/" + name, "--archive", "before/" + name, "--extra", "fail"})
	}
	tables := conformance.Try(a.server.client().ListTable()).Must(t)
	conformance.Equal(t, fmt.Sprint(tables.TableNames), "[c_202406]", "tables %v", tables.TableNames)
	d := conformance.Try(a.server.client().DescribeTable(&tablestore.DescribeTableRequest{TableName: "c_202406"})).Must(t)
	conformance.True(t, d.ReservedThroughput.Readcap == 5 && d.ReservedThroughput.Writecap == 9 &&
		d.TableOption.TimeToAlive == 864000, "%+v, %+v", d.ReservedThroughput, d.TableOption)
}
