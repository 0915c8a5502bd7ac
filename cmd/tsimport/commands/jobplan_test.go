package commands

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline"
)

// plannerOf makes a planner from the name, the seconds (-1 if unknown) and the predecessors of each load.
func plannerOf(parallel int, loads ...any) *jobPlanner {
	p := &jobPlanner{plan: &jobPlan{Parallel: parallel}, measured: measuredRates{}}
	p.record, p.session = new(job.Record), new(session)
	for i := 0; i < len(loads); i += 3 {
		s := &job.State{Single: job.Single{Name: loads[i].(string), After: loads[i+2].([]string)}}
		p.record.Loads = append(p.record.Loads, s)
		p.plan.Loads = append(p.plan.Loads, &loadPlan{Name: s.Name, State: planPlanned, Seconds: loads[i+1].(float64),
			Rows: 10, WriteUnits: 20})
	}
	return p
}

func TestPlannedTimeFollowsTheOrderOfLoads(t *testing.T) {
	none := []string(nil)
	for name, tt := range map[string]struct {
		p    *jobPlanner
		want float64
	}{
		"one at a time":    {plannerOf(1, "a", 10.0, none, "b", 20.0, none, "c", 5.0, none), 35},
		"two at a time":    {plannerOf(2, "a", 10.0, none, "b", 20.0, none, "c", 5.0, none), 20},
		"after each other": {plannerOf(3, "a", 10.0, []string{"b"}, "b", 20.0, []string{"c"}, "c", 5.0, none), 35},
		"one is unknown":   {plannerOf(3, "a", 10.0, none, "b", -1.0, none), -1},
	} {
		conformance.Equal(t, tt.p.schedule(), tt.want, "%s", name)
	}
	p := plannerOf(3, "a", 10.0, none, "b", 20.0, none, "out", -1.0, none, "wrong", -1.0, none, "done", 100.0, none)
	p.plan.Loads[2].Command, p.plan.Loads[3].State, p.plan.Loads[3].ExitCode, p.plan.Loads[4].State = job.Export,
		planRefused, 2, planDone
	p.total()
	got := p.plan.Totals
	conformance.True(t, got == (planTotals{Rows: 20, WriteUnits: 40, Seconds: 20, Bytes: -1}) && p.plan.ExitCode == 2,
		"%+v, exit code %d", got, p.plan.ExitCode)
	conformance.Contains(t, strings.Join(p.plan.lines(), "\n"), "  files     not known: no load reads files", "databases")
	p.plan.Loads[0].Files, p.plan.Loads[0].Bytes = new(planFiles), 7
	p.plan.Totals = planTotals{}
	p.total()
	conformance.Equal(t, p.plan.Totals.Bytes, 7, "a load of 7 bytes and one of a database")
	p.plan.Totals = planTotals{}
	p.session.rates.MaxWCU = 1 // for all loads together
	p.total()
	conformance.Equal(t, p.plan.Totals.Seconds, 40, "%+v", p.plan.Totals)
}

func TestLoadsArePlannedInStartOrder(t *testing.T) {
	none := []string(nil)
	p := plannerOf(1, "x", 1.0, []string{"y"}, "y", 1.0, none, "z", 1.0, []string{"w"}, "v", 1.0, none, "w", 1.0,
		[]string{"v"})
	var got []string
	for _, s := range inOrder(p.record.Loads) {
		got = append(got, s.Name)
	}
	conformance.Equal(t, strings.Join(got, " "), "y x v w z", "join")
	if !p.comesAfter("z", "y") { // loads run one at a time
		t.Error("z comes after y")
	}
	p.plan.Parallel = 2
	conformance.True(t, !p.comesAfter("z", "y") && p.comesAfter("z", "v") && p.comesAfter("x", "y"),
		"of two at a time, only what after: names is waited for")
}

func TestPlanOfSmallFileCountsEachRecordOnce(t *testing.T) {
	l := &loadPlan{Rows: 2, RowsAre: rowsExact, New: &planNew{Key: []string{"id:integer"}}}
	l.sampled(128, 64)
	conformance.True(t, l.Sampled == 2 && l.Rejected == 1, "%d of %d", l.Rejected, l.Sampled)
	for unmade, want := range map[bool]string{false: "would be created", true: "is not created"} {
		l.New.unmade = unmade
		l.describeTable(func(_, format string, a ...any) {
			conformance.True(t, strings.Contains(fmt.Sprintf(format, a...), want), "%v: %s %q", unmade, format, a)
		})
	}
}

func TestPlanCostsUseTheLowestCeiling(t *testing.T) {
	cost := func(change func(l *loadPlan, cfg *pipeline.Config)) *loadPlan {
		p := plannerOf(1)
		l := &loadPlan{Rows: 1000, RowBytes: 5000, Sampled: 100, Rejected: 10, WriteUnits: -1, Seconds: -1, plans: p,
			units: 2, Existing: &planTable{Partitions: 4}}
		cfg := new(pipeline.Config)
		change(l, cfg)
		l.cost(cfg)
		return l
	}
	for name, tt := range map[string]struct {
		change         func(l *loadPlan, cfg *pipeline.Config)
		units, indexes int64
		seconds        float64
		rate           string
	}{
		"no ceiling": {func(*loadPlan, *pipeline.Config) {}, 1800, 0, -1, ""},
		"2 indexes":  {func(l *loadPlan, _ *pipeline.Config) { l.Existing.Indexes = []string{"i", "j"} }, 3600, 1800, -1, ""},
		"units":      {func(_ *loadPlan, c *pipeline.Config) { c.Lanes.Rates.MaxWCU = 10 }, 1800, 0, 180, "--max-wcu"},
		"the slowest": {func(l *loadPlan, c *pipeline.Config) {
			c.Lanes.Rates.MaxWCU, c.Lanes.Rates.MaxRows, c.Lanes.Rates.MaxBytes = 1000, 100, 1e6
			l.plans.session.rates.MaxRows = 9
		}, 1800, 0, 100, "--max-rows-per-second of the job"},
		"unknown rows": {func(l *loadPlan, _ *pipeline.Config) { l.Rows = -1 }, -1, 0, -1, ""},
		"no rows": {func(l *loadPlan, _ *pipeline.Config) { l.Rows, l.units, l.Sampled, l.Rejected = 0, 0, 0, 0 }, 0,
			0, -1, ""},
		"no sample":   {func(l *loadPlan, _ *pipeline.Config) { l.units, l.Sampled, l.Rejected = 0, 0, 0 }, -1, 0, -1, ""},
		"all refused": {func(l *loadPlan, _ *pipeline.Config) { l.units, l.Rejected = 0, 100 }, 0, 0, -1, ""},
	} {
		if l := cost(tt.change); l.WriteUnits != tt.units || l.IndexReadUnits != tt.indexes || l.Seconds != tt.seconds ||
			l.Rate != tt.rate {
			t.Errorf("%s: %d units, %d of indexes, %v s by %q", name, l.WriteUnits, l.IndexReadUnits, l.Seconds, l.Rate)
		}
	}
}

func TestPlanUsesRateOfLastLongRun(t *testing.T) {
	root := t.TempDir()
	summary := func(folder string, written int, seconds float64, more string) {
		t.Helper()
		dir := filepath.Join(root, folder)
		must(t, os.MkdirAll(dir, 0o755))
		text := fmt.Sprintf(
			`{"version":1,"state":"finished","target":"here","table":"t","attempts":1,"written":%d,"seconds":%v%s}`, written,
			seconds, more)
		must(t, os.WriteFile(filepath.Join(dir, "summary.json"), []byte(text), 0o644))
	}
	rate := func() float64 { return measureRuns(root)["here\x00t"].rowsPerSecond }
	conformance.Equal(t, rate(), 0, "without runs")
	summary("20260101T000000.000Z-t", 10_000, 10, "")
	summary("20260102T000000.000Z-t", 10_000, 5, "")
	for i, more := range []string{`,"dry_run":true`, `,"attempts":2`, `,"state":"bad"`, `,"table":"u"`, `,"target":"x"`} {
		summary(fmt.Sprintf("2026020%dT000000.000Z-t", i+1), 10_000, 1, more)
	}
	summary("20260301T000000.000Z-t", 999, 100, "")
	summary("20260302T000000.000Z-t", 10_000, 0.5, "")
	must(t, os.WriteFile(filepath.Join(root, "a file"), nil, 0o644))
	conformance.Equal(t, rate(), 2000, "rows a second")
	// Loads of a job have their own runs.
	summary("20260401T000000.000Z-job/t", 10_000, 2, "")
	must(t, os.WriteFile(filepath.Join(root, "20260401T000000.000Z-job", job.FolderFile),
		[]byte(`{"version":1,"loads":[{"name":"t"}]}`), 0o644))
	conformance.Equal(t, rate(), 5000, "of a job: rows a second")
}

// The rows of a job file that names a target must not go to the target in the shell's environment.
func TestJobFileKeepsItsTarget(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "in.csv", "id,n\na,1\n")
	for name, value := range map[string]string{
		endpointEnv: "http://127.0.0.1:1", instanceEnv: "other", "TSIMPORT_ENDPOINT": "http://127.0.0.1:1",
		"TSIMPORT_INSTANCE": "other", "TABLESTORE_ACCESS_KEY_ID": "a", "TABLESTORE_ACCESS_KEY_SECRET": "b",
	} {
		t.Setenv(name, value)
	}
	for i, tt := range []struct{ target, flags, says string }{
		{"target: {store: ./mine}", "", "target: embedded store ./mine"},
		{"target: {store: ./mine}", "--store other", "target: embedded store other"},
		{"target: {endpoint: 'http://127.0.0.1:2', instance: own}", "", "target: instance own at http://127.0.0.1:2"},
		{"", "", "target: instance other at http://127.0.0.1:1"},
	} {
		put(t, "job.yaml", "version: 1\n"+tt.target+"\nloads:\n  t: {from: in.csv, pk: id, create: true, retry-for: 1ms}\n")
		var said bytes.Buffer
		Run(append([]string{"tsimport", "run", "job.yaml", "--fresh"}, strings.Fields(tt.flags)...), io.Discard, &said)
		conformance.Contains(t, said.String(), tt.says+"\n", "%d: %q is missing", i, tt.says)
	}
	for _, store := range []string{"mine", "other"} {
		conformance.Must(t, conformance.ErrorOf(os.Stat(store)))
	}
}

// TestWorkersFindTheServiceOfThePlan plans with environment or flags, and runs workers with another service or none.
func TestWorkersFindTheServiceOfThePlan(t *testing.T) {
	service := enginetest.Start(t)
	places := map[string]string{endpointEnv: service.URL, instanceEnv: service.Instance}
	for name, c := range map[string]struct {
		planned, worked map[string]string
		flags           []string
	}{
		"one place":   {planned: places},
		"flags, none": {flags: []string{"--endpoint", service.URL, "--instance", service.Instance}},
		"two places":  {planned: places, worked: map[string]string{endpointEnv: "http://127.0.0.1:1", instanceEnv: "other"}},
		"flags":       {planned: map[string]string{"TSIMPORT_ENDPOINT": service.URL, "TSIMPORT_INSTANCE": service.Instance}},
		"half of two": {planned: places, worked: map[string]string{endpointEnv: service.URL}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			t.Setenv("TABLESTORE_ACCESS_KEY_ID", service.AccessKeyID)
			t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", service.AccessKeySecret)
			t.Setenv("OSS_REGION", "cn-hangzhou")
			t.Setenv("AWS_REGION", "eu-central-1")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "not-for-manifests")
			environment := func(of map[string]string) {
				for _, name := range []string{endpointEnv, instanceEnv, "TSIMPORT_ENDPOINT", "TSIMPORT_INSTANCE"} {
					t.Setenv(name, of[name])
				}
			}
			put(t, "in.csv", "id,a\n1,x\n2,y\n")
			call := func(want int, args ...string) string {
				t.Helper()
				var out, said bytes.Buffer
				code := Run(append([]string{"tsimport"}, args...), &out, &said)
				conformance.MustTrue(t, code == want, "%q: exit code %d\n%s%s", args, code, out.String(), said.String())
				return out.String() + said.String()
			}
			environment(c.planned)
			job := filepath.Join(dir, "job")
			plan := append([]string{"load", "in.csv", "--table", strings.NewReplacer(" ", "_", ",", "").Replace(name),
				"--create", "--pk", "id", "--job-dir", job}, c.flags...)
			conformance.Contains(t, call(2, append(plan, "--fresh")...), "--fresh is for loads and jobs", "an option of runs")
			text := call(0, append(plan, "--plan")...)
			conformance.Contains(t, text, "4 workers of", "the plan of the steps")
			conformance.Refused(t, conformance.ErrorOf(os.Stat(job)), "no such file", "the plan has made something")
			call(0, plan...)
			text = call(0, "manifests", job, "--image", "i", "--volume", "shared:"+dir)
			for _, want := range []string{"name: TABLESTORE_ENDPOINT", "value: " + service.URL, "value: " + service.Instance,
				"value: cn-hangzhou", "name: AWS_REGION"} {
				conformance.Contains(t, text, want, "the manifests")
			}
			conformance.True(t, !strings.Contains(text, service.AccessKeySecret) && !strings.Contains(text, "not-for-manifests"),
				"the manifests hold a secret:\n%s", text)
			environment(c.worked)
			text = call(0, "work", "--job-dir", job)
			conformance.True(t, strings.Contains(text, "2 written") && strings.Contains(text, service.URL), "said:\n%s", text)
			warning := "warning: requests go to " + service.URL + ", as planned in " + job + "; " + endpointEnv +
				" of this machine is " + c.worked[endpointEnv]
			if other := c.worked[endpointEnv]; strings.Contains(text, warning+"\n") != (other != "" && other != service.URL) {
				t.Errorf("the worker, whose environment names %q, says\n%s", other, text)
			}
			conformance.Refused(t, conformance.ErrorOf(os.Stat(defaultStore)), "", "the worker has made an embedded store")
		})
	}
}

func TestWorkerWithoutAServiceDoesNotLoadIntoAnEmbeddedStore(t *testing.T) {
	serviceInEnvironment(t)
	t.Chdir(t.TempDir())
	put(t, "in.csv", "id,a\n1,x\n")
	ends(t, 0, "load in.csv --table t --create --pk id --job-dir job")
	body := conformance.Try(os.ReadFile("job/plan.json")).Must(t)
	without := strings.Replace(string(body), `"endpoint": `, `"was": `, 1) // as if planned without an endpoint
	put(t, "job/plan.json", without)
	t.Setenv(endpointEnv, "")
	ends(t, 2, "work --job-dir job", "neither the job's plan nor this machine names an endpoint")
	conformance.Refused(t, conformance.ErrorOf(os.Stat(defaultStore)), "", "there is an embedded store")
}

func serviceInEnvironment(t *testing.T) {
	t.Helper()
	service := enginetest.Start(t)
	for name, value := range map[string]string{
		endpointEnv: service.URL, instanceEnv: service.Instance, "TABLESTORE_ACCESS_KEY_ID": service.AccessKeyID,
		"TABLESTORE_ACCESS_KEY_SECRET": service.AccessKeySecret,
	} {
		t.Setenv(name, value)
	}
}

func TestWorkersRunTheLoadsOfAJob(t *testing.T) {
	serviceInEnvironment(t)
	tsimport := commandsIn(t)
	put(t, "a.csv", "id,v\n1,x\n2,y\n")
	put(t, "b.csv", "id,v\n1,x\nbad\n3,z\n")
	const head = "version: 1\ndefaults: {pk: [id], create: true}\nloads:\n"
	put(t, "one.yaml", head+"  a: {from: [a.csv]}\n")
	for name, c := range map[string]struct{ job, want string }{
		"sync":    {head + "  a: {command: sync, from: [a.csv]}\n", "load a: --job-dir does not apply to sync"},
		"counter": {head + "  a: {from: [a.csv], mode: increment}\n", "load a: --job-dir: --mode increment"},
		"ceiling": {"version: 1\ndefaults: {pk: [id], max-wcu: 50}\nloads:\n  a: {from: [a.csv]}\n",
			"max-wcu for all loads together"},
	} {
		put(t, name+".yaml", c.job)
		conformance.Contains(t, tsimport(2, "run", name+".yaml", "--job-dir", name), c.want, "%s", name)
	}
	conformance.Contains(t, tsimport(2, "run", "one.yaml", "--workers", "2"), "--job-dir", "no job directory")
	for flags, want := range map[string]string{
		"--fresh": "--fresh is for loads and jobs that this process runs", "--parallel=2": "--parallel is for loads and jobs",
		"--run-dir=r": "--run-dir is for loads and jobs", "--workers=0": "--workers 0: want 1 to 4096",
	} {
		conformance.Contains(t, tsimport(2, "run", "one.yaml", "--job-dir=wrong", flags), want, "%s", flags)
	}
	conformance.Contains(t, tsimport(2, "run", "one.yaml", "--job-dir", ""), "no job directory", "an empty name")
	put(t, "job.yaml", head+"  b: {from: [b.csv], after: [a]}\n  a: {from: [a.csv]}\n  c: {from: [a.csv], order: none}\n")
	said := tsimport(0, "run", "job.yaml", "--job-dir", "job", "--workers", "2")
	conformance.Contains(t, said, "job: 3 loads; start on each machine", "what the plan says")
	tsimport(0, "run", "job.yaml", "--job-dir", "job", "--workers", "2")
	conformance.Contains(t, tsimport(2, "run", "one.yaml", "--job-dir", "job"), "holds another job", "two jobs")
	conformance.Contains(t, tsimport(0, "status", "job"), "b: open; 0 read", "the status before")
	conformance.Contains(t, tsimport(2, "status", "job", "--listen", "127.0.0.1:0"), "loads/a", "what can be watched")
	holds(t, tsimport(0, "manifests", "job", "--image", "i", "--volume", "shared:/"), "completions: 2")

	put(t, "job/stop", "")
	conformance.Contains(t, tsimport(1, "work", "--job-dir", "job"), "the job was stopped", "a worker of a stopped job")
	said = tsimport(3, "resume", "job")
	conformance.Contains(t, said, "job done: 3 loads, 7 read, 6 written, 1 rejected", "how it ends")
	a, b := strings.Index(said, "working on load a"), strings.Index(said, "working on load b")
	conformance.True(t, a >= 0 && b >= a, "b was to be loaded after a:\n%s", said)
	conformance.Contains(t, tsimport(0, "work", "--job-dir", "job"), "the job's exit code is 3", "a late worker")
	ends(t, 0, "status job", "b: finished (exit code 3); 3 read, 2 written, 1 rejected")
	for table, rows := range map[string]string{"a": "2", "b": "2", "c": "2"} {
		conformance.Contains(t, tsimport(0, "table", "count", table), rows+"\n", "%s", table)
	}
	put(t, "limits.yaml", head+"  d: {from: [b.csv], max-errors: 0}\n  e: {from: [a.csv]}\n")
	tsimport(0, "run", "limits.yaml", "--job-dir", "limits")
	put(t, "limits/loads/e/stop", "")
	said = tsimport(1, "work", "--job-dir", "limits")
	conformance.True(t, strings.HasSuffix(strings.TrimSpace(said), "/limits") &&
		strings.Count(said[strings.LastIndex(said, "tsimport:"):], "; see") == 1, "%s", said)
	tsimport(4, "resume", "limits")
	conformance.Contains(t, tsimport(0, "status", "limits"), "e: finished", "the load beside a failed one")
	put(t, "limits.yaml", head+"  d: {from: [b.csv], max-errors: 1}\n  e: {from: [a.csv]}\n  f: {from: [a.csv]}\n")
	conformance.Contains(t, tsimport(2, "run", "limits.yaml", "--job-dir", "limits"), "with other loads", "one load more")
	put(t, "limits.yaml", head+"  d: {from: [b.csv], max-errors: 1}\n  e: {from: [a.csv]}\n")
	conformance.Contains(t, tsimport(0, "status", "limits"), "d: stopped", "before the limit is raised")
	tsimport(0, "run", "limits.yaml", "--job-dir", "limits")
	conformance.Contains(t, tsimport(0, "status", "limits"), "d: open", "with a higher limit")
	tsimport(3, "work", "--job-dir", "limits")
	conformance.Refused(t, conformance.ErrorOf(os.Stat(defaultStore)), "no such file", "an embedded store was made")
}

// fromStdin replaces standard input, until the test ends, with a pipe that write fills.
func fromStdin(t *testing.T, write func(r, w *os.File)) {
	t.Helper()
	r, w, err := os.Pipe()
	must(t, err)
	was := os.Stdin
	os.Stdin = r
	var group sync.WaitGroup
	group.Go(func() { write(r, w); w.Close() })
	t.Cleanup(func() {
		os.Stdin = was
		r.Close()
		group.Wait()
	})
}

const threeLoads = `
version: 1
parallel: 3
defaults: {mode: changes, pk: ["id:string"], create: true, type: {id: string, v: string}}
loads: {a: {from: "-", source-table: a}, b: {from: "-", source-table: public.b}, c: {from: "-", source-table: c, max-rows-per-second: 1000}}
`

// TestJobLoadsTheTablesOfOneStream runs three loads twice. None may end early or wait for one that has failed.
func TestJobLoadsTheTablesOfOneStream(t *testing.T) {
	const all, bad = 3000, 1500 // several MiB in all
	var events []string
	want := [all + 1]map[string]map[string]string{{"a": {}, "b": {}, "c": {}}}
	rnd := rand.New(rand.NewPCG(44, 1))
	for i := range all {
		table, key, v := "abc"[rnd.IntN(3):][:1], fmt.Sprint("k", rnd.IntN(20)), fmt.Sprint(i)
		events = append(events,
			fmt.Sprintf(`{"op":"u","after":{"id":%q,"v":%q},"source":{"connector":"postgresql","schema":"public","table":%q,"lsn":%d,"pad":"%01000d"}}`+"\n",
				key, v, table, i+1, 0))
		want[i+1] = map[string]map[string]string{}
		for name, rows := range want[i] {
			want[i+1][name] = rows
		}
		want[i+1][table] = map[string]string{key: v}
		for key, v := range want[i][table] {
			if want[i+1][table][key] == "" {
				want[i+1][table][key] = v
			}
		}
	}
	text := func(from, to int) string { return strings.Join(events[from:to], "") }
	for end, c := range map[string]struct {
		code int
		done string
		does func(r, w *os.File)
	}{
		"a bad change": {4, "2 of 3", func(_, w *os.File) {
			_, _ = io.WriteString(w, strings.Replace(strings.Replace(text(bad, bad+1), `"op":"u"`, `"op":"?"`, 1), `"table":"`,
				`"table":"b","was":"`, 1)+text(bad, all))
		}},
		"a read error": {2, "0 of 3", func(r, _ *os.File) { must(t, r.SetReadDeadline(time.Unix(1, 0))) }},
		"an interrupt": {130, "0 of 3", func(_, w *os.File) {
			must(t, conformance.Try(os.FindProcess(os.Getpid())).Must(t).Signal(syscall.SIGINT))
			_, _ = io.WriteString(w, text(bad, all))
		}},
	} {
		t.Run(end, func(t *testing.T) {
			tsimport := commandsIn(t)
			has := func(table string, n int) {
				t.Helper()
				rows := tsimport(0, "export", "-t", table, "-q")
				conformance.Equal(t, strings.Count(rows, "\n"), len(want[n][table])+1, "lines of table %s", table)
				for key, v := range want[n][table] {
					conformance.Contains(t, rows, "\n"+key+","+v+"\n", "table %s", table)
				}
			}
			put(t, "job.yaml", threeLoads)
			fromStdin(t, func(r, w *os.File) {
				_, _ = io.WriteString(w, text(0, bad))
				c.does(r, w)
			})
			said := tsimport(c.code, "run", "job.yaml")
			holds(t, said, c.done+" loads done", "job.yaml --fresh a b c")
			from, at := "their beginning", 0
			if _, place, ok := strings.Cut(said, "give the changes from LSN 0/"); ok {
				must(t, conformance.ErrorOf(fmt.Sscanf(place, "%X", &at)))
				from = fmt.Sprintf("LSN 0/%X or before", at)
			}
			conformance.MustTrue(t, at <= bad && (at > 0 || c.code != 4), "begin at %d", at)
			for _, again := range [][]string{{"run", "job.yaml"}, {"run", "job.yaml", "--fresh", "b"}} {
				holds(t, tsimport(2, again...), "standard input cannot be read again", "give the changes from "+from)
			}
			if c.code == 4 {
				has("a", all)
				has("b", bad)
				has("c", all)
			}
			fromStdin(t, func(_, w *os.File) { _, _ = io.WriteString(w, text(at, all)) })
			ends(t, 0, "run job.yaml --fresh a b c", fmt.Sprintf("resume_from LSN 0/%X, the earliest of the loads", all))
			for table := range want[0] {
				has(table, all)
			}
		})
	}
}

func TestJobsRefuseStandardInputThatTheyCannotShare(t *testing.T) {
	tsimport := commandsIn(t)
	t.Setenv("FROM", "-")
	put(t, "job.yaml", threeLoads)
	put(t, "pipe.yaml", strings.ReplaceAll(threeLoads, `"-"`, os.DevNull))
	put(t, "variable.yaml", "version: 1\nloads: {a: {from: \"${FROM}\", pk: [id]}}\n")
	for args, want := range map[string]string{
		"job.yaml --plan":        "load a reads standard input, which one process can read once",
		"job.yaml --job-dir dir": "leave out --plan and --job-dir", "job.yaml --parallel 2": "set parallel: 3, or more",
		"pipe.yaml": "and each would get only a part", "variable.yaml": "a variable cannot name standard input",
	} {
		holds(t, tsimport(2, append([]string{"run"}, strings.Fields(args)...)...), want)
	}
}
