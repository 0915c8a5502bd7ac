//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

var (
	flinkFolder = flag.String("flink", "", "folder with the lib of a Flink; \"\" skips the test of a real one")
	flinkRows   = flag.Int("flink-rows", 100_000, "rows of each load on Flink")
)

// flink is a Flink cluster on this machine: a JobManager, and two TaskManagers with two slots each.
type flink struct {
	*place
	rest     int
	managers []*process
	page     []string // commands in docs/flink.md
}

const flinkOpens = " --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.util=ALL-UNNAMED " +
	"--add-opens=java.base/java.net=ALL-UNNAMED"

func (f *flink) java(options, class string) string {
	return fmt.Sprintf("exec java %s%s -Dlog4j.configurationFile=%s -cp '%s/lib/*' org.apache.flink.%s", options,
		flinkOpens, f.path("conf/log4j.properties"), *flinkFolder, class)
}

func startFlink(t *testing.T, env []string) *flink {
	needs(t, "java", "mvn")
	f := &flink{place: newPlace(t, env...), page: linesOf(t, "docs/flink.md")}
	var ports []int
	var open []net.Listener
	for range 2 {
		l := conformance.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
		open = append(open, l)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	for _, l := range open {
		l.Close()
	}
	f.rest = ports[1]
	f.write("conf/config.yaml", fmt.Sprintf(`jobmanager: {rpc: {address: localhost, port: %d}, bind-host: localhost}
rest: {address: localhost, bind-address: localhost, port: %d}
taskmanager: {bind-host: localhost, host: localhost, numberOfTaskSlots: 2}
heartbeat: {interval: 2000, timeout: 10000}
io: {tmp: {dirs: %s}}
`, ports[0], ports[1], f.dir))
	f.write("conf/log4j.properties", `rootLogger.level = INFO
rootLogger.appenderRef.c.ref = c
appender.c.name = c
appender.c.type = CONSOLE
appender.c.layout.type = PatternLayout
appender.c.layout.pattern = %d{HH:mm:ss,SSS} %-5p %c{1} - %m%n
`)
	must(t, os.MkdirAll(f.path("bin"), 0o755))
	must(t, os.WriteFile(f.path("bin/flink"), []byte("#!/bin/sh\n"+f.java("-Xmx256m", "client.cli.CliFrontend")+` "$@"`+
		"\n"), 0o755))
	f.env = append(f.env, "FLINK_CONF_DIR="+f.path("conf"), "PATH="+f.path("bin")+":"+filepath.Dir(binary)+":"+
		os.Getenv("PATH"))
	f.managers = []*process{f.startJobs(), f.startTasks(), f.startTasks()}
	f.await("the slots of the cluster", func() bool { return f.slots() == 4 })
	return f
}

func (f *flink) startJobs() *process {
	return f.bash(f.java("-Xmx768m", "runtime.entrypoint.StandaloneSessionClusterEntrypoint") +
		" --configDir conf -D jobmanager.memory.heap.size=768m -D jobmanager.memory.off-heap.size=128m")
}

func (f *flink) startTasks() *process {
	line := f.java("-Xmx640m -XX:MaxDirectMemorySize=512m", "runtime.taskexecutor.TaskManagerRunner") +
		" --configDir conf -D taskmanager.cpu.cores=1.0"
	for _, d := range strings.Fields("framework.heap.size=128m task.heap.size=512m framework.off-heap.size=128m " +
		"task.off-heap.size=64m network.min=128m " +
		"network.max=128m managed.size=256m jvm-metaspace.size=256m jvm-overhead.min=192m jvm-overhead.max=192m") {
		line += " -D taskmanager.memory." + d
	}
	return f.bash(line)
}

func (f *flink) ask(path string, to any) error {
	answer, err := http.Get(fmt.Sprintf("http://localhost:%d%s", f.rest, path))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return json.NewDecoder(answer.Body).Decode(to)
}

func (f *flink) slots() int {
	var o struct {
		Slots int `json:"slots-available"`
	}
	_ = f.ask("/overview", &o) // errors are ignored: the caller asks again
	return o.Slots
}

func (f *flink) await(what string, come func() bool) {
	f.t.Helper()
	for end := time.Now().Add(processTimeout); !come(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			for _, m := range f.managers {
				said := m.said.String()
				f.t.Logf("%s", said[max(0, len(said)-5000):])
			}
			f.t.Fatalf("not within %v: %s", processTimeout, what)
		}
	}
}

// of returns the page's command that begins with begin, but with the test's names.
func (f *flink) of(begin, job, tsimport string) string {
	f.t.Helper()
	i := slices.IndexFunc(f.page, func(line string) bool { return strings.HasPrefix(line, begin) })
	if i < 0 {
		f.t.Fatalf("docs/flink.md has no command %q", begin)
	}
	root := conformance.Try(filepath.Abs("..")).Must(f.t)
	return strings.NewReplacer("oss://exports/orders", f.path("in"), "oss://jobs/orders-1", f.path(job), "--table orders",
		"--table "+job, " 20", " 3",
		"/usr/bin/tsimport", tsimport, "packaging/flink", filepath.Join(root, "packaging/flink")).Replace(f.page[i])
}

func (f *flink) plan(job string, more ...string) {
	f.t.Helper()
	r := f.bash(f.of("tsimport load", job, "") + " --request-timeout 2s --settle 1s " + strings.Join(more, " "))
	conformance.MustEqual(f.t, r.wait(), 0, "plan: exit code\n%s", &r.said)
}

type flinkJob struct {
	f     *flink
	id    string
	dir   string
	began time.Time
}

func (f *flink) submit(job, tsimport string) *flinkJob {
	f.t.Helper()
	j := &flinkJob{f: f, dir: f.path(job), began: time.Now()}
	f.t.Cleanup(func() {
		for _, pid := range j.workers() {
			syscall.Kill(pid, syscall.SIGKILL) // a failed test may have left the process
		}
	})
	r := f.bash(f.of("flink run", job, tsimport))
	f.await("a worker of "+job, func() bool { return r.over() && r.wait() != 0 || len(j.workers()) > 0 || j.done() })
	worked := time.Now()
	conformance.MustEqual(f.t, r.wait(), 0, "flink run: exit code\n%s", &r.said)
	_, id, _ := strings.Cut(r.said.String(), "JobID ")
	j.id = strings.Fields(id)[0]
	var o struct {
		Start int64 `json:"start-time"`
	}
	must(f.t, f.ask("/jobs/"+j.id, &o))
	f.t.Logf("FIGURES %s: the first worker began %.1f s after the command, and %.1f s after Flink had the job", job,
		worked.Sub(j.began).Seconds(), worked.Sub(time.UnixMilli(o.Start)).Seconds())
	return j
}

func (j *flinkJob) done() bool { return there(filepath.Join(j.dir, "summary.json"))() }

func (j *flinkJob) workers() (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		line, _ := os.ReadFile(name) // the process may have ended
		if strings.Contains(string(line), "work\x00--job-dir\x00"+j.dir+"\x00") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func (j *flinkJob) writes() {
	j.f.t.Helper()
	j.f.await("a checkpoint of a shard", func() bool {
		found, _ := filepath.Glob(filepath.Join(j.dir, "writing/*/checkpoint.*"))
		return len(found) > 0
	})
}

// ends waits until the job ends in state. It returns how often tasks were restarted, and why.
func (j *flinkJob) ends(state string) (again int, why string) {
	j.f.t.Helper()
	var o struct {
		State    string
		Vertices []struct{ ID string }
	}
	j.f.await("the end of the job", func() bool {
		must(j.f.t, j.f.ask("/jobs/"+j.id, &o))
		return slices.Contains([]string{"FINISHED", "CANCELED", "FAILED"}, o.State)
	})
	conformance.Equal(j.f.t, o.State, state, "the job is")
	for _, v := range o.Vertices {
		var tasks struct {
			Subtasks []struct{ Attempt int }
		}
		must(j.f.t, j.f.ask("/jobs/"+j.id+"/vertices/"+v.ID, &tasks))
		for _, s := range tasks.Subtasks {
			again += s.Attempt
		}
	}
	var e struct {
		Root string `json:"root-exception"`
	}
	must(j.f.t, j.f.ask("/jobs/"+j.id+"/exceptions", &e))
	return again, e.Root
}

// exact waits for the end of a load and checks that the table has every row.
func (j *flinkJob) exact() (again int) {
	t := j.f.t
	t.Helper()
	again, why := j.ends("FINISHED")
	t.Logf("FIGURES %s: %d rows after %.1f s, %d tasks begun again\n%s", filepath.Base(j.dir), *flinkRows,
		time.Since(j.began).Seconds(), again, why)
	s := j.f.status(j.dir)
	conformance.True(t, s.ExitCode != nil && *s.ExitCode == 0 && s.Read == *flinkRows && s.Written == *flinkRows, "%+v", s)
	j.f.ends(0, []string{"verify", j.f.path("in") + "/*.csv", "--table", filepath.Base(j.dir), "--extra", "fail"})
	return again
}

func (j *flinkJob) cancel() time.Duration {
	t := j.f.t
	t.Helper()
	began := time.Now()
	r := j.f.bash(strings.ReplaceAll(j.f.of("flink cancel", "", ""), "JOBID", j.id))
	conformance.MustEqual(t, r.wait(), 0, "flink cancel: exit code\n%s", &r.said)
	j.ends("CANCELED")
	took := time.Since(began)
	left := j.workers()
	conformance.True(t, len(left) == 0, "the job is cancelled, and processes work: %v", left)
	return took
}

func (f *flink) heard(text string) bool {
	return slices.ContainsFunc(f.managers[1:], func(m *process) bool { return strings.Contains(m.said.String(), text) })
}

// TestLoadsOnFlink follows docs/flink.md on a real Flink. Ledgers must be exact, and tables must equal the inputs.
func TestLoadsOnFlink(t *testing.T) {
	if *flinkFolder == "" {
		t.Skip("no -flink: make flink")
	}
	f := startFlink(t, startServe(t, "--sync", "none").env())
	const files = 20
	for i := range files {
		f.write(fmt.Sprintf("in/%02d.csv", i), fileOf("id,name,amount", *flinkRows/files, func(k int) string {
			n := k*files + i
			return fmt.Sprintf("%08x,the name of %d,%d", uint32(n)*2654435761, n, n*7)
		}))
	}
	build := exec.Command("bash", "-c", f.page[0])
	build.Dir = ".."
	out, err := build.CombinedOutput()
	conformance.MustEqual(t, err, nil, "%s\n%s", f.page[0], out)
	slow := fmt.Sprintf("--max-rows-per-second %d", *flinkRows/15)
	sub := func(name string, do func(f *flink)) {
		t.Run(name, func(t *testing.T) {
			here := *f
			here.place = &place{t, f.dir, f.env}
			do(&here)
			here.await("free slots", func() bool { return here.slots() == 4 })
		})
	}

	sub("undisturbed", func(f *flink) {
		for _, job := range []string{"cold", "warm", "again"} {
			f.plan(job)
			conformance.Equal(f.t, f.submit(job, binary).exact(), 0, "tasks begun again")
			conformance.Equal(f.t, f.heard("finished: "), true, "the logs have what workers say")
		}
		f.plan("one")
		began := time.Now()
		f.run(0, "work", "--job-dir", f.path("one"), "--quiet")
		f.t.Logf("FIGURES one process: %.1f s", time.Since(began).Seconds())
	})
	sub("a worker is killed", func(f *flink) {
		f.plan("killed", slow)
		j := f.submit("killed", binary)
		j.writes()
		must(f.t, syscall.Kill(j.workers()[0], syscall.SIGKILL))
		conformance.Equal(f.t, j.exact(), 1, "tasks begun again")
	})
	sub("a TaskManager is killed", func(here *flink) {
		here.plan("lost", slow)
		j := here.submit("lost", binary)
		j.writes()
		f.managers[1].kill()
		f.managers[1] = f.startTasks()
		if again := j.exact(); again < 1 || again > 2 {
			here.t.Errorf("%d tasks were begun again", again)
		}
	})
	sub("the JobManager is killed, and the same command continues the load", func(here *flink) {
		here.plan("left", slow)
		j := here.submit("left", binary)
		j.writes()
		f.managers[0].kill()
		here.await("the end of the workers", func() bool { return len(j.workers()) == 0 })
		conformance.Equal(here.t, j.done(), false, "the load was done before they ended")
		f.managers[0] = f.startJobs()
		here.await("the slots of the cluster", func() bool { return here.slots() == 4 })
		here.submit("left", binary).exact()
	})
	sub("a cancelled job is continued by another, with a binary that Flink distributes", func(f *flink) {
		f.plan("cancelled", slow)
		j := f.submit("cancelled", binary)
		j.writes()
		f.t.Logf("FIGURES cancelled after %v", j.cancel())
		conformance.Equal(f.t, j.done(), false, "the load was done before it was cancelled")
		f.submit("cancelled", "file://"+binary).exact()
	})
	sub("a worker that does not obey is killed", func(f *flink) {
		stubborn := f.write("stubborn", "#!/bin/sh\ntrap '' TERM\necho it stays\nwhile :; do sleep 1; done\n")
		must(f.t, os.Chmod(stubborn, 0o755))
		j := f.submit("stubborn-job", stubborn)
		f.await("its output in the log", func() bool { return f.heard("it stays") })
		if took := j.cancel(); took < 10*time.Second {
			f.t.Errorf("it was cancelled after %v", took)
		}
	})
	sub("what another attempt does not change fails the job", func(f *flink) {
		f.plan("changed")
		f.write("in/00.csv", "id,name,amount\nof another file,,1\n")
		again, why := f.submit("changed", binary).ends("FAILED")
		conformance.Equal(f.t, again, 0, "tasks begun again")
		conformance.Contains(f.t, why, "exit code 2: tsimport: ", "the cluster says")
	})
	sub("exit codes", func(f *flink) {
		for code, state := range map[int]string{3: "FINISHED", 4: "FAILED", 5: "FAILED", 6: "FAILED"} {
			name := fmt.Sprint("ends-with-", code)
			script := f.write(name, fmt.Sprintf("#!/bin/sh\nmkdir -p $3 && touch $3/summary.json\nexit %d\n", code))
			must(f.t, os.Chmod(script, 0o755))
			again, _ := f.submit("of-"+name, script).ends(state)
			conformance.Equal(f.t, again, 0, "%s: tasks begun again", name)
		}
	})
}
