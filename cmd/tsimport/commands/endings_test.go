package commands

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	jobs "example.com/tsimport/jobs/job"
)

var (
	updateEndings = flag.Bool("update-endings", false, "write the table of endings into both pages fields.md")
	everyForm     = flag.Bool("every-form", false, "end each command quietly, aloud and with a log of JSON (make e2e)")
)

// wayToEnd is a row of the table of endings in docs/fields.md, produced by TestEveryEndingIsReportedAndCounted.
type wayToEnd struct {
	why, zh string
	code    int
	service string // behaviour of the service: refuses, is down, is busy or hangs
	signal  os.Signal
	says    string // parts of the last line, separated by bars
	// cases holds commands after their preconditions. A ! marks a command that the service refuses. N is a unique number.
	cases []endingCase
}

type endingCase struct{ do, says string }

const (
	begun   = "!load good.csv --table r --create --pk id --run-dir run-N; "
	begun3  = "!load bad.csv --table r3 --create --pk id:integer --run-dir run-N; "
	planned = "load good.csv --table w --create --pk id --job-dir job-N; "
	aged    = "load good.csv --table a_N_202001 --create --pk id; age --policy age.yaml --table a_N_{month} --apply"
)

// moving lists commands that read or write rows until the service stops them.
var moving = []endingCase{
	{"load good.csv --table t --pk id --fresh --retry-for 1m", "0 written|see tsimport-runs"},
	{"copy t c --create --fresh --retry-for 1m", "0 written|see tsimport-runs"},
	{"sync other.csv --table t --fresh --settle 1ms --retry-for 1m", ""},
	{"verify good.csv --table t --pk id --retry-for 1m", ""},
	{"export --table t -o out-N.csv", ""},
	{"run good.yaml --fresh --retry-for 1m", "0 of 2 loads done|load one: |see tsimport-runs"},
	{begun + "resume run-N", "0 written|see run-N"},
	{planned + "work --job-dir job-N", "see |job-N"},
	{aged, "0 tables changed"},
}

var waysToEnd = []wayToEnd{
	{why: "done", zh: "完成", cases: []endingCase{
		{"load good.csv --table t --pk id --fresh", ""}, {"copy t c --create --fresh", ""}, {"sync good.csv --table t", ""},
		{"verify good.csv --table t --pk id", ""}, {"export --table t -o out-N.csv", ""}, {"run good.yaml --fresh", ""},
		{begun + "resume run-N", ""}, {planned + "work --job-dir job-N", ""}, {aged, ""},
	}},
	{why: "nothing is new", zh: "没有新内容", cases: []endingCase{
		{"load good.csv --table new --create --pk id --only-new; load good.csv --table new --pk id --only-new", ""},
		{"run new.yaml; run new.yaml", ""},
	}},
	{why: "done, rows were rejected", zh: "完成，有些行被拒绝", code: 3, says: "bad.csv:4", cases: []endingCase{
		{"load bad.csv --table i --create --pk id:integer --fresh", "3 read, 2 written, 1 rejected|see tsimport-runs"},
		{"sync bad.csv --table i", "see tsimport-runs"},
		{"load bad.csv --table i --create --pk id:integer --fresh --dry-run", "2 would be written, 1 would be rejected"},
		{"run bad.yaml --fresh", "job done: 2 of 2 loads done|load one: finished: 3 read|see tsimport-runs"},
		{"verify bad.csv --table i --pk id:integer",
			"the rows that could be compared match, but 1 rejected record could not"},
		{begun3 + "resume run-N", "3 read, 2 written|see run-N"},
		{"load bad.csv --table w3 --create --pk id:integer --job-dir job-N; work --job-dir job-N", "3 read, 2 written|job-N"},
	}},
	{why: "done, inputs were set aside", zh: "完成，有些输入被搁置", code: 3, says: "cut.csv.gz|1 input set aside|see tsimport-runs",
		cases: []endingCase{
			{"load good.csv cut.csv.gz --table aside_N --create --pk id --only-new", ""},
			{"run aside.yaml --fresh", "load one: "},
		}},
	{why: "the error limit", zh: "超过错误上限", code: 4, says: "1 rejected|bad.csv:4", cases: []endingCase{
		{"load bad.csv --table i --create --pk id:integer --fresh --max-errors 0", "--max-errors|see tsimport-runs"},
		{"run limit.yaml --fresh", "job failed: 1 of 2 loads done|load two: "},
		{"sync bad.csv --table i --max-errors 0", "see tsimport-runs"},
	}},
	{why: "bad usage", zh: "用法错误", code: 2, cases: []endingCase{
		{"load good.csv --table t --pk nothing", "nothing"}, {"copy nowhere c", "nowhere"},
		{"sync good.csv --table nowhere", "nowhere"}, {"verify good.csv --table nowhere --pk id", "nowhere"},
		{"export --table nowhere -o out.csv", "nowhere"}, {"run broken.yaml", "broken.yaml"}, {"resume nowhere", "nowhere"},
		{"work --job-dir nowhere", "nowhere"}, {"age --policy nowhere.yaml --table a_{month}", "nowhere.yaml"},
		{"load good.csv --table t --pk id --timeout -1s", "--timeout"},
		{"load good.csv --table t --pk id --run-dir good.csv/x", "--run-dir"},
		{"run good.yaml --run-dir good.csv/x", "--run-dir"},
	}},
	{why: "an input that is not what it should be", zh: "输入不符合所述", code: 2, says: "cut.csv.gz|cut short",
		cases: []endingCase{
			{"load cut.csv.gz --table cut --create --pk id --fresh", "read|see tsimport-runs"},
			{"sync cut.csv.gz --table t", ""},
			{"verify cut.csv.gz --table t --pk id", ""}, {"run cut.yaml --fresh", "load two: "},
			{"load cut.csv.gz --table cut --create --pk id --job-dir job-N; work --job-dir job-N", "job-N"},
		}},
	{why: "refused by the service", zh: "被服务拒绝", code: 5, service: "refuses", says: "OTSNoPermissionAccess",
		cases: moving},
	{why: "the service is down", zh: "服务不可用", code: 1, service: "is down", says: "cannot connect", cases: []endingCase{
		{"load good.csv --table t --pk id --fresh --retry-for 1ms", ""}, {"copy t c --create --fresh --retry-for 1ms", ""},
		{"sync other.csv --table t --fresh --settle 1ms --retry-for 1ms", ""},
		{"verify good.csv --table t --pk id --retry-for 1ms", ""}, {"export --table t -o out-N.csv", ""},
		{"run good.yaml --fresh --retry-for 1ms", "0 of 2 loads done|load one: "},
		{"age --policy age.yaml --table a_{month} --apply", ""},
	}},
	{why: "the service is busy for longer than `--retry-for`", zh: "服务繁忙的时间超过 `--retry-for`", code: 1, service: "is busy",
		says: "OTSServerBusy", cases: []endingCase{
			{"load good.csv --table t --pk id --fresh --retry-for 1ms", "0 written|see tsimport-runs"},
			{"copy t c --create --fresh --retry-for 1ms", "0 written|see tsimport-runs"},
			{"run good.yaml --fresh --retry-for 1ms", "load one: "}, {strings.Replace(begun, "--pk", "--retry-for 1ms --pk", 1) +
				"resume run-N", "see run-N"},
			{strings.Replace(planned, "--pk", "--retry-for 1ms --pk", 1) + "work --job-dir job-N", "job-N"},
		}},
	{why: "differences", zh: "有差异", code: 6, cases: []endingCase{{"verify other.csv --table t --pk id",
		"1 equal, 0 missing, 1 different|the first: different|other.csv, record 2"}}},
	{why: "no input", zh: "没有输入", code: 7, says: "none-*.csv", cases: []endingCase{
		{"load none-*.csv --table t --pk id", ""}, {"sync none-*.csv --table t", ""},
		{"verify none-*.csv --table t --pk id", ""}, {"run none.yaml --fresh", "job failed: 1 of 2 loads done|load two: "},
	}},
	{why: "nothing is new, with `--fail-if-nothing-new`", zh: "没有新内容，使用 `--fail-if-nothing-new`", code: 7, says: "new",
		cases: []endingCase{
			{"load good.csv --table new --pk id --only-new --fail-if-nothing-new", ""},
		}},
	{why: "Ctrl-C (SIGINT)", zh: "Ctrl-C（SIGINT）", code: 130, service: "is busy", signal: os.Interrupt,
		says: "stopped by interrupt", cases: moving},
	{why: "SIGTERM", zh: "SIGTERM", code: 143, service: "is busy", signal: syscall.SIGTERM, says: "stopped by terminated",
		cases: moving},
	{why: "SIGHUP", zh: "SIGHUP", code: 129, service: "is busy", signal: syscall.SIGHUP, says: "stopped by hangup",
		cases: moving},
	{why: "a second signal, where the first waits for requests", zh: "第二个信号，第一个还在等待请求", code: 143, service: "hangs",
		signal: syscall.SIGTERM, says: "stopped by terminated",
		cases: []endingCase{moving[0], moving[1], moving[5], moving[6]}},
	{why: "`--timeout`", zh: "`--timeout`", code: 1, service: "is busy", says: "stopped by --timeout 50ms",
		cases: []endingCase{
			{"load good.csv --table t --pk id --fresh --timeout 50ms", ""}, {"copy t c --create --fresh --timeout 50ms", ""},
			{"sync other.csv --table t --fresh --settle 1ms --timeout 50ms", ""},
			{"verify good.csv --table t --pk id --timeout 50ms", ""}, {"export --table t -o out-N.csv --timeout 50ms", ""},
			{"run good.yaml --fresh --timeout 50ms", ""},
			{planned + "work --job-dir job-N --timeout 50ms", ""}, {aged + " --timeout 50ms", ""},
		}},
	// e2e: TestKilledLoadLosesNoAcknowledgedRow
	{why: "killed (SIGKILL, no memory)", zh: "被杀死（SIGKILL，内存不足）", code: exitcode.Killed},
}

// TestPageOfEndingsIsCurrent compares the tables in the pages with the output of "make errors".
func TestPageOfEndingsIsCurrent(t *testing.T) {
	for language, page := range []string{"docs/fields.md", "docs/zh/fields.md"} {
		name := filepath.Join("..", "..", "..", page)
		text := conformance.Try(os.ReadFile(name)).Must(t)
		head := []string{"| why a command ends | exit code | its last line | events | last success | commands |\n",
			"| 命令结束的原因 | 退出码 | 最后一行 | 事件 | 最近一次成功的时间 | 命令 |\n"}[language]
		before, rest, found := strings.Cut(string(text), head)
		_, after, _ := strings.Cut(rest, "\n\n")
		conformance.MustEqual(t, found, true, "%s has no table of endings", page)
		var want strings.Builder
		want.WriteString(before + head + "|---|---|---|---|---|---|\n")
		for _, w := range waysToEnd {
			want.WriteString(w.row(language))
		}
		want.WriteString("\n" + after)
		if *updateEndings {
			put(t, name, want.String())
		} else if want.String() != string(text) {
			t.Errorf("%s is not what the table says; make errors writes it", page)
		}
	}
}

func (w *wayToEnd) row(language int) string {
	all := [][2]string{{"none", "无"}, {"the cause", "原因"}, {"cause, counts, folder", "原因、行数、目录"},
		{"counts, the first difference", "行数、第一处差异"}}
	line, events, success := all[1], "`summary`, `error`", [2]string{"kept", "保留"}
	var commands []string
	for _, c := range w.cases {
		steps := strings.Split(c.do, "; ")
		command, _, _ := strings.Cut(steps[len(steps)-1], " ")
		if !slices.Contains(commands, "`"+command+"`") {
			commands = append(commands, "`"+command+"`")
		}
		if strings.Contains(c.says+w.says, "see ") {
			line = all[2]
		}
	}
	switch w.code {
	case 0:
		line, events, success = all[0], "`summary`", [2]string{"set", "更新"}
	case exitcode.Differences:
		line = all[3]
	case exitcode.Killed:
		line, events = all[0], all[0][language]
	}
	of := strings.Join(commands, []string{", ", "、"}[language])
	if len(commands) == 9 || len(commands) == 0 {
		of = []string{"all", "全部"}[language]
	}
	return fmt.Sprintf("| %s | `%d` | %s | %s | %s | %s |\n", [2]string{w.why, w.zh}[language], w.code, line[language],
		events, success[language], of)
}

// TestEveryEndingIsReportedAndCounted ends each command in each way, with and without --quiet and with a JSON log. The
// last line must give the cause of a nonzero code; metrics must name the given table and keep the last success's time.
func TestEveryEndingIsReportedAndCounted(t *testing.T) {
	conformance.NotForRaces(t)
	t.Chdir(t.TempDir())
	s := startServiceOfEndings(t)
	s.files(t)
	for number, w := range waysToEnd {
		t.Run(w.why, func(t *testing.T) {
			if w.signal != nil && (runtime.GOOS == "windows" || signal.Ignored(w.signal)) {
				t.Skip("these tests are not told of the signal")
			}
			forms := []string{"quiet", "text", "json"}
			for i, c := range w.cases {
				for j, form := range forms {
					if *everyForm || (number+i)%len(forms) == j {
						s.end(t, &w, c, form)
					}
				}
			}
		})
	}
}

func (s *serviceOfEndings) end(t *testing.T, w *wayToEnd, c endingCase, form string) {
	t.Helper()
	s.n++
	s.said.Store(new(sent))
	number := strings.NewReplacer("-N", fmt.Sprint("-", s.n), "_N", fmt.Sprint("_", s.n))
	t.Setenv("TABLESTORE_ENDPOINT", s.url)
	steps := strings.Split(number.Replace(c.do), "; ")
	for _, step := range steps[:len(steps)-1] {
		step, refused := strings.CutPrefix(step, "!")
		s.does(map[bool]string{true: "refuses"}[refused], "load")
		var said bytes.Buffer
		code := Run(append([]string{"tsimport"}, strings.Fields(step)...), io.Discard, &said)
		conformance.MustTrue(t, code == map[bool]int{true: 5}[refused], "%s: exit code %d\n%s", step, code, said.String())
	}
	line := steps[len(steps)-1]
	args := append(strings.Fields(line), "--metrics-file", "m.prom")
	if s.does(w.service, args[0]); w.service == "is down" {
		t.Setenv("TABLESTORE_ENDPOINT", "http://127.0.0.1:1")
	}
	t.Setenv(logFormatVariable, "text")
	switch form {
	case "quiet":
		args = append(args, "--quiet")
	case "json":
		t.Setenv(logFormatVariable, "json")
	}
	labels := labelsOfEnding(args, steps)
	const success = "tsimport_last_run_success_timestamp_seconds"
	put(t, "m.prom", "# TYPE "+success+" gauge\n"+success+labels+" 7\n")
	said := &sent{signal: w.signal, twice: w.service == "hangs"}
	s.said.Store(said)
	code := Run(append([]string{"tsimport"}, args...), io.Discard, said)
	s.does("", "")
	text := said.String()
	if code != w.code {
		t.Errorf("%s, %s: exit code %d, want %d\n%s", form, line, code, w.code, text)
		return
	}
	for _, wrong := range wrongLastLine(text, form, w, endingCase{c.do, number.Replace(c.says)}) {
		t.Errorf("%s, %s: %s\n%s", form, line, wrong, text)
	}
	metrics := conformance.Try(os.ReadFile("m.prom")).Must(t)
	conformance.True(t, strings.Contains(string(metrics), success+labels+" 7\n") != (code == 0) &&
		strings.Contains(string(metrics), fmt.Sprintf("exit_code%s %d\n", labels, code)) &&
		strings.Contains(string(metrics), "duration_seconds"+labels), "%s: want%s\n%s", line, labels, metrics)
}

func wrongLastLine(text, form string, w *wayToEnd, c endingCase) (wrong []string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	last := lines[len(lines)-1]
	if form == "json" {
		var e struct {
			Msg, Event string
			ExitCode   int `json:"exit_code"`
		}
		if err := json.Unmarshal([]byte(last), &e); err != nil || e.ExitCode != w.code ||
			e.Event != map[bool]string{true: eventSummary, false: eventError}[w.code == 0] {
			return []string{"the last event"}
		}
		last = "tsimport: " + e.Msg
	}
	if form == "quiet" && w.code == 0 && text != "" {
		return []string{"something is said"}
	}
	if w.code == 0 {
		return nil
	}
	for _, says := range strings.Split("tsimport: |"+w.says+"|"+c.says, "|") {
		if !strings.Contains(last, says) {
			wrong = append(wrong, "the last line lacks "+says)
		}
	}
	if form == "quiet" && w.signal == nil && !strings.HasPrefix(c.do, "run") && len(lines) > 1 {
		wrong = append(wrong, "more than a line")
	}
	return wrong
}

func labelsOfEnding(args, steps []string) string {
	command, table, load := args[0], "", ""
	of := args
	switch command {
	case "resume":
		if len(steps) > 1 {
			command, of = "load", strings.Fields(steps[0])
		}
	case "work":
		of = strings.Fields(steps[0])
	case "run":
		load = strings.TrimSuffix(args[1], ".yaml")
	}
	if i := slices.Index(of, "--table"); i >= 0 {
		table = of[i+1]
	} else if command == "copy" {
		table = args[2]
	}
	return fmt.Sprintf(`{command="%s",load="%s",table="%s"}`, command, load, table)
}

// serviceOfEndings is a service that can refuse requests, be busy, or let requests hang.
type serviceOfEndings struct {
	plan *faults.Plan
	said atomic.Pointer[sent]
	url  string
	n    int
}

func startServiceOfEndings(t *testing.T) *serviceOfEndings {
	s := &serviceOfEndings{plan: new(faults.Plan)}
	engine, err := server.Open("", server.Options{InMemory: true, Log: log.New(io.Discard, "", 0), Faults: s.plan})
	must(t, err)
	l := conformance.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- engine.ServeListener(ctx, l, server.Limits{}) }()
	t.Cleanup(func() {
		stop()
		must(t, <-done)
		must(t, engine.Close())
	})
	s.url = "http://" + l.Addr().String()
	for name, value := range map[string]string{"INSTANCE": server.DefaultInstance,
		"ACCESS_KEY_ID": server.DefaultAccessKeyID, "ACCESS_KEY_SECRET": server.DefaultAccessKeySecret} {
		t.Setenv("TABLESTORE_"+name, value)
	}
	return s
}

// does sets the fault for requests of a command that write rows or, if it writes none, read rows.
func (s *serviceOfEndings) does(what, command string) {
	fault := map[string]faults.Fault{"refuses": {Action: faults.Refuse, Code: "OTSNoPermissionAccess"},
		"is busy": {Action: faults.Refuse, Code: "OTSServerBusy"}, "hangs": {Action: faults.Hang}}[what]
	rows := func(operation string) bool {
		if command == "verify" || command == "export" || command == "age" {
			return operation == "GetRange" || operation == "BulkExport"
		}
		return operation == "BatchWriteRow"
	}
	s.plan.Change(rows, func(faults.Request) faults.Fault {
		if what != "" {
			s.said.Load().once.Do(s.said.Load().send)
		}
		return fault
	})
}

// sent is the stderr of a command. send sends it a signal, and if twice is set, Write another one when it is waiting.
type sent struct {
	signal os.Signal
	twice  bool
	once   sync.Once
	mu     sync.Mutex
	text   strings.Builder
}

func (s *sent) send() {
	if s != nil && s.signal != nil {
		p, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = p.Signal(s.signal)
		}
		conformance.Must(conformance.Sure{}, err)
	}
}

func (s *sent) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.twice && bytes.Contains(b, []byte("interrupt again to stop now")) {
		s.send()
	}
	return s.text.Write(b)
}

func (s *sent) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *serviceOfEndings) files(t *testing.T) {
	put(t, "good.csv", "id,v\n1,a\n2,b\n")
	put(t, "other.csv", "id,v\n1,a\n2,c\n")
	put(t, "bad.csv", "id,v\n1,a\n2,b\nx,c\n")
	var rows strings.Builder
	for i := range 9_000 { // more rows than the load samples before it writes the first one
		fmt.Fprintf(&rows, "%d,%01000d\n", i, i)
	}
	packed := gzipped(t, "id,v\n"+rows.String())
	put(t, "cut.csv.gz", packed[:len(packed)-1000])
	job := func(name, one, two string) {
		load := func(name, of string) string {
			return "  " + name + ":\n    from: " + of + "\n    pk: [id:integer]\n    mode: put\n"
		}
		put(t, name, "version: 1\ndefaults: {create: true}\nloads:\n"+load("one", one)+load("two", two))
	}
	job("good.yaml", "good.csv", "good.csv")
	job("new.yaml", "good.csv\n    only-new: true", "good.csv\n    only-new: true")
	job("bad.yaml", "bad.csv", "good.csv")
	job("aside.yaml", "[good.csv, cut.csv.gz]\n    bad-inputs: set-aside", "good.csv")
	job("cut.yaml", "good.csv", "cut.csv.gz")
	job("none.yaml", "bad.csv", "none-*.csv")
	job("limit.yaml", "bad.csv", "bad.csv\n    max-errors: 0")
	put(t, "broken.yaml", "version: 1\nloads: 7\n")
	put(t, "age.yaml", "period: month\nclasses:\n  - {up_to: 0, ttl: -1}\n  - {archive: ./archive}\n")
	t.Setenv("TABLESTORE_ENDPOINT", s.url)
	ends(t, 0, "load good.csv --table t --create --pk id --quiet")
}

func TestExportWarnsOfUnmatchedColumnsAndConditions(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "a.csv", "id,v\n1,a\n")
	ends(t, 0, "load a.csv --table t --pk id")
	for flags, want := range map[string]string{
		"--columns v,typo": "no exported row has the column typo", "--filter typo==1": "no row passes --filter",
		"--where v==\"b\"": "no row passes --where", "--columns v --filter v==\"a\"": "",
	} {
		said := ends(t, 0, "export --table t "+flags, want)
		conformance.Equal(t, strings.Contains(said, "warning: no "), want != "", "%s: %s: a warning", flags, said)
	}
}

func gzipped(t *testing.T, text string) string {
	var out bytes.Buffer
	w := conformance.Try(gzip.NewWriterLevel(&out, gzip.NoCompression)).Must(t)
	conformance.Must(t, conformance.ErrorOf(w.Write([]byte(text))))
	must(t, w.Close())
	return out.String()
}

// TestMetricsReportEndings checks which endings have metrics. TestEveryEndingIsReportedAndCounted checks their content.
func TestMetricsReportEndings(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "a.csv", "id,n\n1,2\n2,3\n")
	put(t, "job.yaml", "version: 1\nloads:\n  one: {from: [a.csv], pk: [id:integer]}\n  two: {table: other, from: "+
		"[b.csv], pk: [id:integer]}\n")
	for _, step := range []struct {
		args string
		code int
		says string
	}{
		{"load a.csv --table t --pk id:integer --type n=boolean --metrics-file m.prom", 3, ""},
		{"run job.yaml --metrics-file j.prom", 2, "b.csv"},
		{"load a.csv --table t --pk id:integer --metrics-file none/m.prom", 2, "there is no folder none"},
		{"load a.csv --table t --pk id:integer --fresh --metrics-file a.csv", 0, "warning: --metrics-file"},
	} {
		var said bytes.Buffer
		code := Run(append([]string{"tsimport"}, strings.Fields(step.args)...), io.Discard, &said)
		conformance.True(t, code == step.code && strings.Contains(said.String(), step.says),
			"%s: exit code %d, want %d\n%s", step.args, code, step.code, said.String())
	}
	for file, all := range map[string][]string{
		"m.prom": {`rows{command="load",load="",outcome="rejected",table="t"} 2`, `outcome="read",table="t"} 2`,
			`outcome="written",table="t"} 0`},
		"j.prom": {`exit_code{command="run",load="job",table=""} 2`, `exit_code{command="load",load="one",table="one"} 0`,
			`rows{command="load",load="one",outcome="written",table="one"} 2`,
			`exit_code{command="load",load="two",table="other"} 2`},
	} {
		text := conformance.Try(os.ReadFile(file)).Must(t)
		for _, has := range all {
			conformance.Contains(t, string(text), has, "text")
		}
	}
}

func TestHeldLoadThatFailedBeforeIsNotSuccessful(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "job.yaml", "version: 1\nloads:\n  one: {from: [a.csv], pk: [id], only-new: true}\n  two: {after: [one], "+
		"from: [none.csv], pk: [id]}\n")
	put(t, "a.csv", "id,n\n1,2\n")
	for _, says := range []string{"; load two: ", "; load one: "} {
		ends(t, 2, "run job.yaml --quiet --metrics-file m.prom", says)
		err := os.Remove("a.csv")
		conformance.MustTrue(t, says != "; load two: " || err == nil, "%v", err)
	}
	text := conformance.Try(os.ReadFile("m.prom")).Must(t)
	for _, metric := range []string{"success_timestamp_seconds", "exit_code"} {
		reached := strings.Contains(string(text), metric+`{command="load",load="two",table="two"}`)
		conformance.Equal(t, reached, false, "load two was reached\n%s", text)
	}
}

// TestAttemptsOfAJobCountTogether checks that later attempts of a job count, show and can retry the rejects of earlier
// ones, even if their clock was ahead, and that the next night does not count them.
func TestAttemptsOfAJobCountTogether(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "job.yaml", "version: 1\ndefaults: {create: true, only-new: true, pk: [id], type: {n: integer}, "+
		"fail-if-nothing-new: true}\nloads:\n  done: {from: [d-*.csv]}\n  failed: {from: [f-*.csv]}\n")
	put(t, "d-1.csv", "id,n\n1,2\n2,x\n")
	for i := range 3 {
		put(t, fmt.Sprintf("f-%d.csv", i), []string{"id,n\n1,2\n2,y\n", "id,m\n1,2\n", "id,o\n"}[i])
	}
	// Most inputs are bad, so the cause may be elsewhere.
	said := ends(t, 1, "run job.yaml -q", `f-0.csv:3`, "; load failed: finished", "2 inputs are bad, first: f-1.csv: ",
		"done: finished: 2 read", "4 read, 2 written, 2 rejected")
	conformance.Equal(t, strings.Count(said, "2 inputs are bad"), 1, "a cause is said once: %s", said)
	job := conformance.Try(filepath.Glob("tsimport-runs/*-job")).Must(t)[0]
	ahead := regexp.MustCompile(`("(?:first_)?started": )"\d+`)
	for _, name := range []string{job + "/done/run.json", job + "/done/summary.json"} {
		put(t, name, ahead.ReplaceAllString(string(conformance.Try(os.ReadFile(name)).Must(t)), `$1"2999`))
	}
	// The next attempt is killed before its loads begin, and the one after it while they run.
	r := conformance.Try(jobs.ReadRecord(job)).Must(t)
	for _, again := range []int{0, 1} {
		for _, s := range r.Loads {
			s.State, s.Again = jobs.Running, again
		}
		r.State = jobs.Running
		must(t, takeEarlier(&call{}, job, r))
		f := r.Loads[1]
		conformance.True(t, f.State == jobs.Running && f.Again == 1 && f.Rejected == 1, "%+v", f)
	}
	put(t, "d-2.csv", "id,n\n3,4\n4,z\n")
	must(t, os.Remove("f-1.csv"))
	must(t, os.Remove("f-2.csv"))
	const earlier = "an earlier attempt rejected 1 row, see "
	ends(t, 3, "run job.yaml --metrics-file m.prom", "6 read, 3 written, 3 rejected", "load done: finished: 2 read",
		"failed: "+earlier+job+"/failed (2 of 2", earlier+job+"/done")
	metrics := string(conformance.Try(os.ReadFile("m.prom")).Must(t))
	holds(t, metrics, `load="done",outcome="rejected",table="done"} 2`,
		`exit_code{command="load",load="failed",table="failed"} 3`)
	ends(t, 0, "runs "+job, ", 6 of 6 rows final, 3 rejected", job+"/done ", job+"/done+2 ", job+"/failed ")
	ends(t, 0, "files --table done", "rejected 1 row: "+job+"/done)", "rejected 1 row: "+job+"/done+2)")
	put(t, job+"/done/rejects.csv", "id,n\n2,3\n")
	ends(t, 0, "load --retry-rejects "+job+"/done", "1 written")
	put(t, "d-3.csv", "id,n\n5,x\n")
	ends(t, 7, "run job.yaml", "1 read, 0 written, 1 rejected")
	put(t, "f-4.csv", "id,n\n3,4\n")
	ends(t, 7, "run job.yaml --plan", "load done would end with exit code 7")
	ends(t, 7, "run job.yaml", "1 read, 1 written, 0 rejected", "load done: nothing new") // rejects are last night's
	put(t, "d-4.csv", "id,n\n6,7\n")
	put(t, "f-5.csv", "id,n\n4,5\n")
	ends(t, 0, "run job.yaml")
	ends(t, 0, "runs prune --older-than 0s --keep 1 --plan", "would remove "+job+" ")
}
