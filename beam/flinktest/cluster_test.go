//go:build linux

package flinktest

import (
	"bytes"
	"context"
	"encoding/json"
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

// cluster is a Flink of this machine with the job server of Beam.
type cluster struct {
	t    *testing.T
	made string // what install.sh has made
	dir  string
	env  []string // of TaskManagers, and so of workers

	rpc, rest, job, artifact, expansion int

	manager, server *program
	tasks           []*program
	before          time.Duration // processor time of programs that have ended
}

// program is a process of the cluster.
type program struct {
	cmd  *exec.Cmd
	name string
	log  string
	gone chan struct{}
}

func freePorts(t *testing.T, n int) (ports []int) {
	var open []net.Listener
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		conformance.Must(t, err)
		open = append(open, l)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	for _, l := range open {
		l.Close()
	}
	return ports
}

func startCluster(t *testing.T, made string, env []string) *cluster {
	p := freePorts(t, 5)
	dir := *logs
	if dir == "" {
		dir = t.TempDir()
	}
	c := &cluster{t: t, made: made, dir: dir, env: env, rpc: p[0], rest: p[1], job: p[2], artifact: p[3], expansion: p[4]}
	c.config()
	t.Cleanup(c.stop)
	c.startManager()
	c.tasks = []*program{c.startTasks(), c.startTasks()}
	c.startServer()
	c.ready()
	return c
}

func (c *cluster) config() {
	text := fmt.Sprintf(`jobmanager:
  rpc:
    address: localhost
    port: %d
  execution:
    failover-strategy: region
  bind-host: localhost
taskmanager:
  bind-host: localhost
  host: localhost
  numberOfTaskSlots: 1
rest:
  address: localhost
  bind-address: localhost
  port: %d
heartbeat:
  interval: 2000
  timeout: 10000
restart-strategy:
  type: fixed-delay
  fixed-delay:
    attempts: 10
    delay: 1 s
parallelism:
  default: 2
io:
  tmp:
    dirs: %s
classloader:
  resolve-order: parent-first
  check-leaked-classloader: false
`, c.rpc, c.rest, c.folder("tmp"))
	c.write("conf/config.yaml", text)
	c.write("conf/log4j.properties", `rootLogger.level = INFO
rootLogger.appenderRef.c.ref = c
appender.c.name = c
appender.c.type = CONSOLE
appender.c.layout.type = PatternLayout
appender.c.layout.pattern = %d{HH:mm:ss,SSS} %-5p %c{1} - %m%n
`)
}

func (c *cluster) folder(name string) string {
	dir := filepath.Join(c.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		c.t.Fatal(err)
	}
	return dir
}

func (c *cluster) write(name, text string) {
	c.folder(filepath.Dir(name))
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// java starts a class of Flink or Beam.
func (c *cluster) java(name string, options []string, class string, args ...string) *program {
	all := slices.Clone(options)
	for _, p := range []string{"lang", "util", "nio", "util.concurrent", "time", "net"} {
		all = append(all, "--add-opens=java.base/java."+p+"=ALL-UNNAMED")
	}
	all = append(all, "-Dlog4j.configurationFile="+filepath.Join(c.dir, "conf/log4j.properties"), "-cp", c.made+"/flink/*:"+c.made+"/beam/*", class)
	cmd := exec.Command("java", append(all, args...)...)
	cmd.Env = append(os.Environ(), c.env...)
	p := &program{cmd: cmd, name: name, log: filepath.Join(c.dir, fmt.Sprintf("%s-%d.log", name, time.Now().UnixNano())), gone: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		c.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	log.Close()
	go func() {
		_ = cmd.Wait() // they are killed
		close(p.gone)
	}()
	return p
}

func (c *cluster) startManager() {
	c.manager = c.java("jobmanager", []string{"-Xmx768m"}, "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint", "--configDir", c.folder("conf"),
		"-D", "jobmanager.memory.heap.size=768m", "-D", "jobmanager.memory.off-heap.size=128m")
}

func (c *cluster) startTasks() *program {
	args := []string{"--configDir", c.folder("conf")}
	for _, d := range []string{
		"taskmanager.cpu.cores=1.0", "taskmanager.memory.framework.heap.size=128m", "taskmanager.memory.task.heap.size=512m", "taskmanager.memory.framework.off-heap.size=128m",
		"taskmanager.memory.task.off-heap.size=64m", "taskmanager.memory.network.min=128m", "taskmanager.memory.network.max=128m", "taskmanager.memory.managed.size=256m",
		"taskmanager.memory.jvm-metaspace.size=256m", "taskmanager.memory.jvm-overhead.min=192m", "taskmanager.memory.jvm-overhead.max=192m",
		fmt.Sprintf("taskmanager.resource-id=tm-%d", time.Now().UnixNano()),
	} {
		args = append(args, "-D", d)
	}
	return c.java("taskmanager", []string{"-Xmx640m", "-XX:MaxDirectMemorySize=512m"}, "org.apache.flink.runtime.taskexecutor.TaskManagerRunner", args...)
}

func (c *cluster) startServer() {
	c.server = c.java("jobserver", []string{"-Xmx512m"}, "org.apache.beam.runners.flink.FlinkJobServerDriver", "--job-host", "localhost", "--job-port", strconv.Itoa(c.job),
		"--artifact-port", strconv.Itoa(c.artifact), "--expansion-port", strconv.Itoa(c.expansion), "--flink-master", fmt.Sprintf("localhost:%d", c.rest), "--artifacts-dir", c.folder("artifacts"))
}

// ready waits until both TaskManagers have a slot that is free, and the job server listens.
func (c *cluster) ready() {
	c.until(2*time.Minute, "the cluster is ready", func() bool {
		var o struct {
			Slots int `json:"slots-available"`
		}
		if err := c.ask("/overview", &o); err != nil || o.Slots != 2 {
			return false
		}
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("localhost:%d", c.job), time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

func (c *cluster) ask(path string, to any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://localhost:%d%s", c.rest, path), nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return json.NewDecoder(answer.Body).Decode(to)
}

// until waits for a condition, and fails the test if it does not come.
func (c *cluster) until(within time.Duration, what string, is func() bool) {
	c.t.Helper()
	for end := time.Now().Add(within); !is(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			c.logs()
			c.t.Fatalf("not within %v: %s", within, what)
		}
	}
}

// kill is kill -9.
func (c *cluster) kill(p *program) {
	c.before += processorTime(p.cmd.Process.Pid)
	_ = p.cmd.Process.Kill()
	<-p.gone
}

func (c *cluster) stop() {
	for _, p := range append([]*program{c.server, c.manager}, c.tasks...) {
		if p != nil {
			c.kill(p)
		}
	}
	for _, pid := range c.workers() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// family is what is known of processes.
func family(pids []int) (text string) {
	for _, pid := range pids {
		if f := fields(pid); len(f) > 1 {
			text += fmt.Sprintf(" %d (%s, child of %s)", pid, f[0], f[1])
		}
	}
	return text
}

// logs shows the end of all logs of a test that fails.
func (c *cluster) logs() {
	names, _ := filepath.Glob(filepath.Join(c.dir, "*.log"))
	for _, name := range names {
		body, _ := os.ReadFile(name)
		c.t.Logf("%s:\n%s", filepath.Base(name), body[max(0, len(body)-3000):])
	}
}

// workers are the processes of workers.
func (c *cluster) workers() (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		body, err := os.ReadFile(name)
		if err != nil || !bytes.Contains(body, []byte("--provision_endpoint")) || !bytes.HasPrefix(body, []byte(binary)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil && stateOf(pid) != 'Z' {
			pids = append(pids, pid)
		}
	}
	return pids
}

// begun counts the attempts at tasks that workers have begun, as their logs in those of the TaskManagers say.
func (c *cluster) begun() (n int) {
	names, _ := filepath.Glob(filepath.Join(c.dir, "taskmanager-*.log"))
	for _, name := range names {
		body, err := os.ReadFile(name)
		if err != nil {
			c.t.Fatal(err)
		}
		for line := range strings.Lines(string(body)) {
			if strings.Contains(line, "tsimport: ") && strings.Contains(line, " task ") && strings.HasSuffix(strings.TrimSpace(line), "begins") {
				n++
			}
		}
	}
	return n
}

// flinkTime is the processor time of Flink and the job server so far.
func (c *cluster) flinkTime() time.Duration {
	sum := c.before
	for _, p := range append([]*program{c.server, c.manager}, c.tasks...) {
		select {
		case <-p.gone:
		default:
			sum += processorTime(p.cmd.Process.Pid)
		}
	}
	return sum
}

// fields are those of /proc/PID/stat after the name.
func fields(pid int) []string {
	body, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(body[bytes.LastIndexByte(body, ')')+1:]))
}

func stateOf(pid int) byte {
	if f := fields(pid); len(f) > 0 {
		return f[0][0]
	}
	return 'Z'
}

func processorTime(pid int) time.Duration {
	f := fields(pid)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
