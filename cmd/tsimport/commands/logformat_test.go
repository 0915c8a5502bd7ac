package commands

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/tsimport/bench"
	"example.com/tsimport/cmd/tsimport/advise"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/pipeline/rundir"
	"github.com/google/go-cmp/cmp"
)

var updateLogs = flag.Bool("update-logs", false, "write testdata/*.log.jsonl")

// volatile lists texts that differ between equal runs, and their replacements.
var volatile = []struct {
	find *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`"time":"[^"]*Z"`), `"time":"TIME"`},
	{regexp.MustCompile(`"seconds":[0-9.e-]+`), `"seconds":0`},
	{regexp.MustCompile(`in [0-9.]+m?s |[0-9.]+m?s, [0-9,]+ rows/s`), `in TIME `},
	{regexp.MustCompile(`"rows_per_second":[0-9.e+]+`), `"rows_per_second":0`},
	{regexp.MustCompile(`[0-9]{8}T[0-9.]+Z`), `RUN`},
	// Message texts are for people; their wording and number may change.
	{regexp.MustCompile(`(?m)"msg":"(?:[^"\\]|\\.)*"(,.*"event":"message".*)$`), `"msg":"TEXT"$1`},
	{regexp.MustCompile(`(?m)^(.*"event":"message".*\n)(?:.*"event":"message".*\n)+`), `$1`},
}

// TestJSONLogsMatchGoldenFiles runs commands and compares their logs with testdata/NAME.log.jsonl.
func TestJSONLogsMatchGoldenFiles(t *testing.T) {
	golden := conformance.Try(filepath.Abs("testdata")).Must(t)
	t.Chdir(t.TempDir())
	t.Setenv(logFormatVariable, "json")
	for name, text := range map[string]string{
		"a.csv": "id,n\n1,2\n2,x\n3,4\n",
		"job.yaml": "version: 1\nloads:\n  t1: {from: [a.csv], pk: [id:integer], type: [n=integer]}\n  t2: {from: [b.csv], " +
			"pk: [id:integer]}\n  t3: {after: [t2], from: [a.csv], pk: [id:integer]}\n",
	} {
		put(t, name, text)
	}
	for _, c := range []struct {
		name, args string
		code       int
	}{
		{"load", "load a.csv --table t --pk id:integer --type n=integer", 3},
		{"missing", "load b.csv --table t --pk id:integer", 2},
		{"usage", "load a.csv --no-such-flag", 2},
		{"verify", "verify a.csv --table t --pk id:integer --type n=integer", 3},
		{"sync", "sync a.csv --table t --pk id:integer --type n=integer --delete", 3},
		{"export", "export --table t -o t.csv", 0},
		{"quiet", "load a.csv --table t --pk id:integer --type n=integer --quiet", 3},
		{"job", "run job.yaml", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			code := Run(append([]string{os.Args[0]}, strings.Fields(c.args)...), io.Discard, &log)
			conformance.Equal(t, code, c.code, "exit code")
			for line := range bytes.Lines(log.Bytes()) {
				var fields struct{ Time, Level, Msg, Event, Command string }
				conformance.MustEqual(t, json.Unmarshal(line, &fields), nil, "%s", line)
				_, err := time.Parse(time.RFC3339, fields.Time)
				conformance.True(t, err == nil && fields.Level != "" && fields.Msg != "" && fields.Event != "" &&
					fields.Command != "", "a field is missing: %s", line)
			}
			got := log.String()
			for _, v := range volatile {
				got = v.find.ReplaceAllString(got, v.with)
			}
			name := filepath.Join(golden, c.name+".log.jsonl")
			if *updateLogs {
				put(t, name, got)
			}
			want := conformance.Try(os.ReadFile(name)).Must(t)
			conformance.Equal(t, cmp.Diff(string(want), got), "", "(-want +got); -update-logs writes it")
		})
	}
}

func TestLinesAreShownAndLoggedByKind(t *testing.T) {
	var text, log, load bytes.Buffer
	asText, asLog, ofLoad, planned := newDisplay(&text), newDisplay(&log), newDisplay(&load), new(loadPlan)
	asLog.logJSON("load")
	for _, say := range []words.Say{asText.say, asLog.say, ofLoad.of("orders").say, planned.hear, nil} {
		say.Line("warning: %s", "no kind")
		say.Note("read oss://u:%s@h", "secret")
		say.Warn("two\nlines")
	}
	conformance.Equal(t, text.String(), "tsimport: warning: no kind\ntsimport: note: read oss://xxxxx@h\ntsimport: "+
		"warning: two�lines\n", "text")
	conformance.Equal(t, load.String(), "tsimport: orders: warning: no kind\ntsimport: orders: note: read "+
		"oss://xxxxx@h\ntsimport: orders: warning: two�lines\n", "text of a load")
	conformance.Equal(t, fmt.Sprintf("%q %q", planned.Notes, planned.Warnings), `["read oss://xxxxx@h"] ["two�lines"]`,
		"plan")
	var logged []string
	for line := range bytes.Lines(log.Bytes()) {
		var e struct{ Level, Event, Msg string }
		must(t, json.Unmarshal(line, &e))
		logged = append(logged, e.Level+" "+e.Event+" "+e.Msg)
	}
	conformance.Equal(t, strings.Join(logged, "; "),
		"INFO message warning: no kind; INFO message note: read oss://xxxxx@h; WARN warning two�lines", "log")
}

func TestProgressAndRejectsAreLogged(t *testing.T) {
	var log bytes.Buffer
	show := newDisplay(&log)
	show.logJSON("load")
	s := &screen{w: show, say: show.say, start: time.Now().Add(-time.Minute)}
	s.progress.Ended.Read.Store(500)
	s.progress.Ended.Written.Store(300)
	s.progress.BytesRead.Store(1 << 20)
	s.progress.BytesTotal.Store(4 << 20)
	s.progress.Hindrance.LimitedBy.Store(uint32(bottleneck.Partition))
	s.logProgress()
	for i := range rejectsLogged + 5 {
		s.reject(&rundir.Reason{File: "oss://u:secret@h/a.csv", Record: int64(i + 1), Code: "WrongType",
			Message: "not a number", Value: "\x1b[31m\u202e"})
	}
	s.logRejects()
	s.logRejects()
	var events []map[string]any
	for line := range bytes.Lines(log.Bytes()) {
		var e map[string]any
		must(t, json.Unmarshal(line, &e))
		events = append(events, e)
	}
	conformance.MustEqual(t, len(events), rejectsLogged+2, "events")
	progress, reject, last := events[0], events[1], events[len(events)-1]
	for key, want := range map[string]any{"event": "progress", "read": 500.0, "written": 300.0, "bytes_read": 1048576.0,
		"bytes_total": 4194304.0, "limited_by": "partition"} {
		conformance.Equal(t, progress[key], want, "progress: %s", key)
	}
	rate, _ := progress["rows_per_second"].(float64)
	conformance.True(t, rate >= 1 && rate <= 5, "rows_per_second %v", rate)
	conformance.True(t, reject["event"] == "reject" && reject["code"] == "WrongType" && reject["record"] == 1.0 &&
		reject["line"] == nil, "reject: %v", reject)
	text := log.String()
	conformance.True(t, !strings.Contains(text, "secret") && !strings.ContainsAny(text, "\x1b\u202e") &&
		!strings.Contains(text, `\u001b`), "the log shows a secret, or what acts on a terminal")
	conformance.True(t, last["event"] == "warning" && last["level"] == slog.LevelWarn.String(),
		"that rejects are left out is not said: %v", last)
}

func TestLogFormatVariableAppliesToEveryCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	for value, want := range map[string]string{"json": `{"time"`, "text": "tsimport: ", "xml": "want text or json"} {
		t.Setenv("TSIMPORT_LOG_FORMAT", value)
		for _, line := range []string{"inspect none.csv", "table describe --table nowhere --store none",
			"load none.csv --table t --pk id"} {
			ends(t, 2, line, want)
		}
	}
}

// screenOf returns the lines that a terminal of this width shows after a text. It only knows the display's sequences.
func screenOf(t *testing.T, text string, columns int) []string {
	t.Helper()
	lines := [][]rune{nil}
	row, column := 0, 0
	for len(text) > 0 {
		switch {
		case strings.HasPrefix(text, "\x1b[J"):
			lines = lines[:row+1]
			lines[row] = lines[row][:min(column, len(lines[row]))]
			text = text[3:]
			continue
		case strings.HasPrefix(text, "\x1b[K"):
			lines[row] = lines[row][:min(column, len(lines[row]))]
			text = text[3:]
			continue
		case strings.HasPrefix(text, "\x1b[A"):
			row--
			text = text[3:]
			continue
		case text[0] == '\x1b':
			t.Fatalf("the terminal does not know %.10q", text)
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
			column = 0
		case '\n':
			column = 0
			if row++; row == len(lines) {
				lines = append(lines, nil)
			}
		default:
			conformance.True(t, column != columns, "line %d is wider than the terminal", row)
			for len(lines[row]) <= column {
				lines[row] = append(lines[row], ' ')
			}
			lines[row][column] = r
			column++
		}
	}
	var shown []string
	for _, l := range lines {
		shown = append(shown, string(l))
	}
	return shown
}

func terminal(columns int) (*display, *bytes.Buffer) {
	var out bytes.Buffer
	return &display{w: &out, terminal: true, columns: func() int { return columns }}, &out
}

func TestPaintedLinesStayBelowWrittenText(t *testing.T) {
	d, out := terminal(20)
	d.Write([]byte("first\n"))
	d.paint("bar 1", "lane a", "lane b")
	d.paint("bar 22", "lane c", "lane dd")
	check := func(want ...string) {
		t.Helper()
		conformance.Equal(t, cmp.Diff(want, screenOf(t, out.String(), 20)), "", "(-want +got)")
	}
	check("tsimport: first", "bar 22", "lane c", "lane dd")
	d.Write([]byte("second\n"))
	check("tsimport: first", "tsimport: second", "")
	d.paint("bar 3", "lane e", "lane f")
	d.paint("bar", "lane")
	check("tsimport: first", "tsimport: second", "bar", "lane")
	d.paint("bar")
	check("tsimport: first", "tsimport: second", "bar")
	d.paint()
	d.paint()
	check("tsimport: first", "tsimport: second", "")
	d.Write([]byte("end\n"))
	check("tsimport: first", "tsimport: second", "tsimport: end", "")
}

func TestLineWiderThanTheTerminalIsTruncated(t *testing.T) {
	d, out := terminal(10)
	d.paint("123456789", "1234567890", "日本語日本語", "a\x1b[2Jb")
	want := []string{"123456789", "12345678…", "日本語日…", "a�[2Jb"}
	conformance.Equal(t, cmp.Diff(want, screenOf(t, out.String(), 10)), "", "(-want +got)")
}

func TestNothingIsPaintedWithoutATerminal(t *testing.T) {
	var out bytes.Buffer
	d := newDisplay(&out)
	d.paint("bar", "lane")
	d.Write([]byte("text\n"))
	d.paint()
	conformance.Equal(t, out.String(), "tsimport: text\n", "string")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }

func TestClosedPipeIsReportedToItsWriter(t *testing.T) {
	d := &display{w: broken{}, terminal: true, columns: func() int { return 80 }}
	d.paint("bar")
	conformance.Refused(t, conformance.ErrorOf(d.Write([]byte("text\n"))), "", "no error after painted lines")
	conformance.Refused(t, conformance.ErrorOf(d.Write([]byte("text\n"))), "", "no error")
}

func TestDifferenceShowsVersionsMissingOnOneSide(t *testing.T) {
	for _, c := range []struct {
		input, table []string
		want         string
	}{
		{[]string{"1"}, []string{"2"}, "1, in the table 2"},
		{[]string{"1"}, nil, "1, in the table none"},
		{nil, []string{"1"}, "none, in the table 1"},
		{[]string{"1 at 5", "0 at 3"}, []string{"1 at 5"}, "the table lacks 0 at 3"},
		{[]string{"1 at 5"}, []string{"1 at 5", "0 at 3"}, "only the table has 0 at 3"},
		{[]string{"1 at 5", "0 at 3"}, []string{"1 at 5", "0 at 4"}, "0 at 3, in the table 0 at 4"},
		{[]string{`"x"… (900 bytes)`}, []string{`"x"… (900 bytes)`},
			`"x"… (900 bytes), in the table equal as far as it is shown`},
	} {
		conformance.Equal(t, differenceText(c.input, c.table), c.want, "%q and %q", c.input, c.table)
	}
}

// TestOutputDoesNotFollowAPlantedLink plants a link where an output is written before it gets its name.
func TestOutputDoesNotFollowAPlantedLink(t *testing.T) {
	dir := t.TempDir()
	victim, out := filepath.Join(dir, "victim"), filepath.Join(dir, "out.csv")
	put(t, victim, "precious")
	if err := os.Symlink(victim, out+".part"); err != nil {
		t.Skip(err)
	}
	err := writeOutput(t.Context(), out, io.Discard, func(w io.Writer) error {
		_, err := io.WriteString(w, "rows")
		return err
	})
	must(t, err)
	for name, want := range map[string]string{victim: "precious", out: "rows"} {
		text, err := os.ReadFile(name)
		conformance.True(t, err == nil && string(text) == want, "%s holds %q, %v", name, text, err)
	}
	info, err := os.Lstat(out)
	conformance.True(t, err == nil && info.Mode().IsRegular(), "the output is %v, %v", info.Mode(), err)
}

// hostile would clear a terminal, set its title, return to the start of the line, and reverse the writing direction.
const hostile = "a\x1b[2J\x1b]0;title\x07\r\u009b31m\u202eb"

func TestControlCharactersAreNotPrinted(t *testing.T) {
	t.Chdir(t.TempDir())
	file := hostile + ".csv"
	text := "id,\"" + hostile + "\ntsimport: finished\",n\n1,\"" + hostile + "\",1\n\"" + hostile +
		"\",x,2\nk,y,3\nk,z,\"" + hostile + "\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Skipf("the file system takes no such name: %v", err)
	}
	ran := 0
	for _, args := range [][]string{
		{"inspect", file},
		{"inspect", "--count", file},
		{"check", file, "--pk", "id", "--unique", "--type", "n=integer"},
		{"advise", file},
		{"explain", file, "--pk", "id"},
		{"explain", file, "--pk", "id", "--pk", "n:string"},
		{"load", file, "--table", "t", "--pk", "id:string"},
		{"load", file, "--table", "u", "--pk", "id", "--type", "n=integer"},
		{"load", file, "--table", "t", "--dry-run"},
		{"load", file, "--table", hostile},
		{"load", hostile, "--table", "t", "--pk", "id"},
		{"load", file, "--table", "t", "--pk", hostile},
		{"load", file, "--table", "t", "--type", hostile + "=integer"},
		{"load", file, "--table", "t", "--no-such-flag-" + hostile},
		{"verify", file, "--table", "t"},
		{"verify", file, "--table", "t", "--type", "n=string", "--exclude", "n"},
		{"runs"},
		{"runs", hostile},
		{"table", "list"},
		{"table", "describe", "t"},
		{"table", "describe", hostile},
		{"export", "--table", hostile},
		{"age", "--table", hostile, "--policy", hostile},
		{hostile},
	} {
		var stdout, stderr bytes.Buffer
		code := Run(append([]string{"tsimport"}, args...), &stdout, &stderr)
		for name, out := range map[string]string{"stdout": stdout.String(), "stderr": stderr.String()} {
			i := strings.IndexFunc(out, acts)
			conformance.True(t, i < 0, "%q: %s has %q", args, name, out[max(0, i-60):min(len(out), i+20)])
			for line := range strings.Lines(out) {
				conformance.True(t, strings.TrimSpace(line) != "tsimport: finished", "%q: %s: a name's %q", args, name, line)
			}
		}
		if code == 0 || code == 3 {
			ran++
		}
	}
	conformance.True(t, ran >= 10, "only %d commands ran to their end", ran)
}

var quoted = regexp.MustCompile(`(?:'[^']*'|[^' ])+`)

// TestEveryAdvisedCommandCanBePlanned also checks that a command for a database, or a file with a key, has that key.
func TestEveryAdvisedCommandCanBePlanned(t *testing.T) {
	conformance.NotForRaces(t)
	root := conformance.Try(filepath.Abs("../../..")).Must(t)
	tsimport := commandsIn(t)
	var inputs []string
	alike := map[string]bool{} // only one file of each kind in each folder is used
	for _, dir := range []string{"examples", "reader/testdata"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if info, err := d.Info(); err == nil && info.Size() < 100_000 && !alike[filepath.Dir(path)+filepath.Ext(path)] {
				alike[filepath.Dir(path)+filepath.Ext(path)] = true
				inputs = append(inputs, path)
			}
			return nil
		})
		must(t, err)
	}
	for _, order := range []bench.Order{bench.Sorted, bench.Arrival, bench.Random} {
		var text strings.Builder
		must(t, (bench.StudentCards{Rows: 3000, Order: order, Seed: 3}).WriteCSV(t.Context(), &text))
		put(t, string(order)+".csv", text.String())
		inputs = append(inputs, string(order)+".csv")
	}
	const many = " WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) SELECT "
	databaseIn(t, "CREATE TABLE geo (region TEXT, city TEXT, area_code INT, PRIMARY KEY (region, city))",
		"INSERT INTO geo"+many+"'r' || i % 7, 'c' || i, i % 90 FROM n",
		"CREATE TABLE orders (shop INT, at TEXT, order_no INT, v, PRIMARY KEY (shop, at, order_no))",
		"INSERT INTO orders"+many+"i % 3, datetime(1700000000 + i / 4, 'unixepoch'), i % 4, i FROM n",
		"CREATE TABLE digits (code TEXT, shop_id TEXT, PRIMARY KEY (code, shop_id))",
		"INSERT INTO digits"+many+"i, 's' || i % 5 FROM n",
		"CREATE TABLE five (a INT, b TEXT, c INT, d INT, e_id INT, PRIMARY KEY (a, b, c, d, e_id))",
		"INSERT INTO five"+many+"i % 2, 'b' || i % 3, i % 5, i % 7, i FROM n",
		"CREATE TABLE seq (id INTEGER PRIMARY KEY, user_id INT)", "INSERT INTO seq"+many+"i, i % 50 FROM n")
	for table, args := range map[string]string{"geo": "", "orders": "", "digits": "", "five": "",
		"seq": "--candidates id,user_id,user_id+id"} {
		inputs = append(inputs, "sqlite:shop.db?table="+table+" "+args)
	}
	planned, seen := 0, map[string]int{}
	for _, input := range inputs {
		args := append([]string{"advise"}, strings.Fields(input)...)
		var out, errOut strings.Builder
		if Run(append([]string{"tsimport"}, append(args, "--json", "--growth", "50")...), &out, &errOut) != 0 {
			continue // the file cannot be loaded without flags
		}
		var report struct {
			Candidates []struct{ Fix, Key *struct{ Command string } }
			Design     *struct{ Command, Unique string }
		}
		conformance.MustEqual(t, json.Unmarshal([]byte(out.String()), &report), nil, "%s", input)
		var commands []string
		for _, c := range report.Candidates {
			if c.Fix != nil {
				commands = append(commands, c.Fix.Command)
			}
			if c.Key != nil {
				commands = append(commands, c.Key.Command)
			}
		}
		if report.Design != nil {
			commands = append(commands, report.Design.Command)
		}
		for _, command := range commands {
			words := quoted.FindAllString(command, -1)
			for i := range words {
				words[i] = strings.ReplaceAll(words[i], "'", "")
			}
			for words[0] != "load" {
				words = words[1:]
			}
			var out, errOut strings.Builder
			code := Run(append([]string{"tsimport"}, append(words, "--dry-run", "-q", "--max-errors", "-1")...), &out, &errOut)
			conformance.True(t, code == 0 || code == 3, "%s: exit code %d: %s\n%s", input, code, command, errOut.String())
			planned++
			if strings.HasPrefix(input, "sqlite") {
				seen[strings.Fields(input)[0]]++
				conformance.True(t, !strings.Contains(errOut.String(), "warning"), "%s: %s\n%s", input, command, errOut.String())
			}
		}
	}
	conformance.True(t, planned >= 30 && len(seen) == 5, "%d commands were planned, of databases %v", planned, seen)
	holds(t, tsimport(0, "advise", "sqlite:shop.db?table=geo"), "so it stays unique", "--pk region")
	_ = os.Remove("shop.db")
}

func advice() *advise.Report {
	return &advise.Report{Files: []string{"a.csv"}, Rows: 1000, Partitions: 4, Rate: 4000, Growth: 1,
		Candidates: []*advise.Candidate{
			{Column: "user\x1b[2J", Verdict: advise.Recommended, Reason: strings.Repeat("many words ", 20), Share: 0.5,
				Load: 0.25, Facts: advise.Facts{Distinct: 900}},
			{Column: "price", Verdict: advise.NotRecommended, Reason: "double"},
		}}
}

func TestAdviceWithoutATerminalIsPlainAndUncut(t *testing.T) {
	var b strings.Builder
	must(t, newAdvicePrinter(&b).print(advice()))
	conformance.True(t, !strings.Contains(b.String(), "\x1b") &&
		strings.Contains(b.String(), "██████░░░░░░  50.0%   25.0%") &&
		strings.Contains(b.String(), strings.TrimSpace(strings.Repeat("many words ", 20))), "printed:\n%s", b.String())
}

func TestAdviceFoldsItsSentencesToTheTerminal(t *testing.T) {
	var b strings.Builder
	p := &advicePrinter{w: &b, width: 60, colour: true}
	must(t, p.print(advice()))
	conformance.True(t, strings.Contains(b.String(), "\x1b[32m recommended") && !strings.Contains(b.String(), "\x1b[2J"),
		"printed %q", b.String())
	for line := range strings.Lines(b.String()) {
		conformance.True(t, !strings.Contains(line, "many words") || utf8.RuneCountInString(line) <= 61,
			"%d characters in a line: %s", utf8.RuneCountInString(line), line)
	}
}

func TestLineWithoutSpacesIsCutAtTheWidth(t *testing.T) {
	lines := fold(strings.Repeat("x", 50)+" end", 20)
	conformance.True(t, len(lines) == 3 && lines[0] == strings.Repeat("x", 20) &&
		lines[2] == strings.Repeat("x", 10)+" end", "folded into %q", lines)
}
